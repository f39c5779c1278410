"""`irscope graph`."""

"""`irscope upgrade`."""

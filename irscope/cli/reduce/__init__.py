"""`irscope reduce`."""

"""`irscope ls`."""

"""`irscope bisect`."""

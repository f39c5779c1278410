"""`irscope dump`."""

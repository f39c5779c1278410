"""`irscope sweep`."""

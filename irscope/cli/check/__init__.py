"""`irscope check`: assertions about kernels, from the command line."""

"""`irscope watch`: records a file again whenever it is saved."""

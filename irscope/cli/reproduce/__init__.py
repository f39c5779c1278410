"""`irscope reproduce`: the file, and the check of what it compiles to."""

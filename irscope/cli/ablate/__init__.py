"""`irscope ablate`."""

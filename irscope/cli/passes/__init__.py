"""`irscope passes`: the passes, what each changed, and the life of an operation or a value through them."""

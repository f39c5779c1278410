"""The movie of a kernel: what each pass that changed it made of its operations and of its main values."""

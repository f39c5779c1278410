"""The movie of a kernel: the operations and main values after each pass that changed it."""

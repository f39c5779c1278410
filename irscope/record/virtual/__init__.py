"""The virtual GPU: runs an unmodified program that expects a GPU on a machine that has none."""

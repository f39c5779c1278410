"""The CUDA toolkit's programs, and what a compiled kernel takes on the device."""

"""The device side of torch on the virtual GPU."""

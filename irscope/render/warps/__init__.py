"""The picture of a warp-specialised kernel: partitions as lanes, buffers and barriers between them."""

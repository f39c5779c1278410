"""A capture as one Python file that compiles it again with Triton alone."""

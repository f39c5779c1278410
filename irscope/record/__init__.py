"""Recording: everything that needs Triton, in a process of its own."""

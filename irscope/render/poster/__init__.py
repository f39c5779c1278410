"""A kernel at a glance: one 16:9 picture of its loop, shared memory, tile, registers, limits and worst findings."""

"""Importing this package registers every family; each module holds kernels of one kind."""

from benchmarks.timing.families import attention, elementwise, indexed, products, rows, tiles

__all__ = ["attention", "elementwise", "indexed", "products", "rows", "tiles"]

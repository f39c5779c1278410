"""Importing this package registers every family; each module holds kernels of one kind."""

from benchmarks.timing.families import (
    attention,
    elementwise,
    fresh_data,
    fresh_products,
    fresh_sequences,
    indexed,
    products,
    rows,
    specialized,
    tiles,
)

__all__ = [
    "attention",
    "elementwise",
    "fresh_data",
    "fresh_products",
    "fresh_sequences",
    "indexed",
    "products",
    "rows",
    "specialized",
    "tiles",
]

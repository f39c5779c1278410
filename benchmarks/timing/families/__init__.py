"""Importing this package registers every family; each module holds kernels of one kind."""

from benchmarks.timing.families import (
    attention,
    elementwise,
    fresh_data,
    fresh_products,
    fresh_sequences,
    indexed,
    library_serving,
    library_training,
    products,
    rows,
    specialized,
    tiles,
    unseen_data,
    unseen_images,
    unseen_products,
    unseen_sequences,
)

__all__ = [
    "attention",
    "elementwise",
    "fresh_data",
    "fresh_products",
    "fresh_sequences",
    "indexed",
    "library_serving",
    "library_training",
    "products",
    "rows",
    "specialized",
    "tiles",
    "unseen_data",
    "unseen_images",
    "unseen_products",
    "unseen_sequences",
]

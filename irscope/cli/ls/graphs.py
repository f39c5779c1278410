"""The rows of `irscope ls` by the graphs of TorchInductor's that their kernels come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irscope.store.shelf import StoredRow

__all__ = ["by_graph"]


def by_graph(rows: Iterable[StoredRow]) -> list[StoredRow]:
    """The rows with those of one graph of one recording together, where the first of them stands."""
    groups: dict[Any, list[StoredRow]] = {}
    for number, row in enumerate(rows):
        one = row.facts
        graph = one.graphs[0] if one.graphs else number
        groups.setdefault((one.date, one.target, graph), []).append(row)
    return [row for group in groups.values() for row in group]

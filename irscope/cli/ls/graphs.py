"""The rows of `irscope ls` by the graphs of TorchInductor's that their kernels come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from irscope.errors import CaptureFormatError
from irscope.model.graph_origin import GraphOrigin
from irscope.store.schema import converted

__all__ = ["by_graph", "graphs_of"]


def graphs_of(manifest: Mapping[str, Any]) -> list[str]:
    """The graphs that the manifest of a capture names: `0 forward`; none where it names them otherwise."""
    if not (rows := manifest.get("graphs")):
        return []
    try:
        origins = converted(rows, tuple[GraphOrigin, ...])
    except CaptureFormatError:
        return []
    return [f"{origin.graph} {origin.part}".rstrip() for origin in origins]


def by_graph(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with those of one graph of one recording together, where the first of them stands."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for number, row in enumerate(rows):
        graph = row["graphs"][0] if row["graphs"] else number
        groups.setdefault((row["date"], row["target"], graph), []).append(row)
    return [row for group in groups.values() for row in group]

"""Reads an FX graph as torch prints it, with the line of Python that each of its nodes comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping

from irscope.model.evidence import GraphNode

__all__ = ["read_graph_lines"]

# # File: /home/user/model.py:19 in forward, code: hidden = functional.gelu(self.up(x))
_FILE = re.compile(r"# File: ([^\n]{1,4096}?):(\d{1,9}) in ([^\n,]{1,300}), code: (.*)")
# mul_1: "f32[8, 256]" = torch.ops.aten.mul.Tensor(addmm, 0.5)   |   getitem = unbind[0]
_NODE = re.compile(r"([A-Za-z_]\w{0,300})(?:: \"[^\"\n]{0,4096}\")? = ")


def read_graph_lines(text: str) -> Mapping[str, GraphNode]:
    """The nodes of a graph that have a line of Python, by name; none for any other text."""
    found: dict[str, GraphNode] = {}
    place: tuple[str, int, str, str] | None = None
    for row in text.splitlines():
        line = row.strip()
        if line.startswith("#"):
            at = _FILE.match(line)
            place = (at[1], int(at[2]), at[3], at[4]) if at else None
        elif place is not None and (node := _NODE.match(line)):
            found.setdefault(node[1], GraphNode(node[1], "", *place))
    return found

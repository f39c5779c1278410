"""Which graph of TorchInductor's a kernel comes from, which of its nodes, and which lines of Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["GraphCall", "GraphNode", "GraphOrigin", "GraphPart"]

GraphPart = Literal["forward", "backward", "inference", ""]
"""`inference` for a graph that was compiled without gradients; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the FX graph that TorchInductor made kernels of, and the line of Python that it stands for."""

    name: str
    """`mul_3`"""
    operator: str = ""
    """`aten.mul.Tensor`; empty where it is not known."""
    file: str = ""
    """Of the innermost frame outside of torch and the standard library; empty where it is not known."""
    line: int = 0
    function: str = ""
    code: str = ""
    """The text of the line."""


@dataclass(frozen=True, slots=True)
class GraphCall:
    """What the code of a graph calls beside its Triton kernels: a function of a library or of ATen."""

    callee: str
    """`extern_kernels.addmm`"""
    operators: tuple[str, ...] = ()
    """The operators that it stands for, as they were before decomposition: `aten.addmm`."""
    count: int = 1


@dataclass(frozen=True, slots=True)
class GraphOrigin:
    """One graph that a kernel was generated for. Graphs with the same kernel share its code."""

    graph: str
    """TorchInductor's number of the graph in its process; the forward and the backward part share it."""
    part: GraphPart
    kernel: int = 0
    """Which of the graph's Triton kernels it is, from 1 in the order of its code."""
    kernels: int = 0
    """How many Triton kernels the graph has."""
    launches: int = 0
    """How often the code of the graph launches this one."""
    heuristic: str = ""
    """The function of TorchInductor's that chose its configurations: `persistent_reduction`."""
    source_nodes: tuple[str, ...] = ()
    """The nodes of the graph before decomposition that were fused, in topological order."""
    operators: tuple[str, ...] = ()
    """Their operators: `aten.native_layer_norm`."""
    nodes: tuple[GraphNode, ...] = ()
    """The nodes after decomposition, which the kernel computes."""
    others: tuple[GraphCall, ...] = ()
    """What the graph calls that is no Triton kernel."""

    @property
    def title(self) -> str:
        """`graph 0 forward`"""
        return f"graph {self.graph} {self.part}".rstrip()

    @property
    def lines(self) -> tuple[GraphNode, ...]:
        """The first node of each line of Python, by file and line."""
        first: dict[tuple[str, int], GraphNode] = {}
        for node in self.nodes:
            if node.file:
                first.setdefault((node.file, node.line), node)
        return tuple(first[place] for place in sorted(first))

"""Reads the code that TorchInductor generates for a graph: its Triton kernels, their nodes, and its other calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from irscope.model.evidence import GraphCall, GraphNode, GraphOrigin, GraphPart

__all__ = ["GeneratedKernel", "read_output_code"]

# # AOT ID: ['0_forward']
_ID = re.compile(r"# AOT ID: \['(\w{1,40})'\]")
# triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
_DEFINED = re.compile(r"(\w{1,300}) = async_compile\.triton\('\w{1,300}', '''")
# # Topologically Sorted Source Nodes: [linear, y], Original ATen: [aten.addmm]
_SORTED = re.compile(r"# (?:(?:Topologically Sorted|Unsorted) )?Source Nodes: \[")
# #   %mul : Tensor "f32[8, 64][64, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = …
_NODE = re.compile(r"#   %(\w{1,300}) :")
_TARGET = "= call_function[target="
# @triton_heuristics.persistent_reduction(
_HEURISTIC = re.compile(r"^@triton_heuristics\.(\w{1,80})\(", re.MULTILINE)
# buf4 = extern_kernels.convolution(buf0, …   |   buf0 = torch.ops.aten.sort.stable(arg0_1, …
_CALL = re.compile(r"(?:\w{1,300} = )?((?:extern_kernels|torch\.ops|aten|inductor_ops)\.[\w.]{1,300})\(")
# triton_poi_fused_add_0.run(buf0, 512, stream=raw_stream0)
_RUN = re.compile(r"(\w{1,300})\.run\(")
_PARTS: dict[str, GraphPart] = {"forward": "forward", "backward": "backward", "inference": "inference"}
_END_OF_KERNEL = "'''"
_PATH = "# kernel path: "
_MAPPING = "# Source node to ATen node mapping:"
_FRAGMENT = "# Graph fragment:"


@dataclass(frozen=True, slots=True)
class GeneratedKernel:
    """One Triton kernel in the code of a graph."""

    name: str
    code: str
    """The text of its module, which defines the kernel under that name."""
    origin: GraphOrigin
    """Without the lines of Python, which the code does not name."""
    path: str = ""
    """The file that it was written to."""


@dataclass(slots=True)
class _Comment:
    """What stands above a kernel or a call."""

    source_nodes: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    nodes: tuple[GraphNode, ...] = ()


def read_output_code(text: str) -> tuple[GeneratedKernel, ...]:
    """The Triton kernels in the code of one graph; none for any other text."""
    lines = text.splitlines()
    graph, part = _graph_of(lines)
    if not graph:
        return ()
    defined: dict[str, tuple[str, str, _Comment]] = {}
    path = ""
    launches: Counter[str] = Counter()
    others: Counter[tuple[str, tuple[str, ...]]] = Counter()
    comment = _Comment()
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        if line.startswith("#"):
            if line.startswith(_PATH):
                path = line.removeprefix(_PATH)
            elif _SORTED.match(line):
                comment, at = _comment(lines, at - 1)
        elif found := _DEFINED.match(line):
            end = _end_of(lines, at)
            defined[found[1]] = path, "\n".join(lines[at:end]), comment
            comment, path, at = _Comment(), "", end + 1
        elif (found := _RUN.match(line)) and found[1] in defined:
            launches[found[1]] += 1
            comment = _Comment()
        elif found := _CALL.match(line):
            others[found[1], comment.operators] += 1
            comment = _Comment()
    calls = tuple(GraphCall(callee, operators, count) for (callee, operators), count in others.items())
    shared = GraphOrigin(graph, part, kernels=len(defined), others=calls)
    return tuple(
        _kernel(name, path, code, said, replace(shared, kernel=number, launches=launches[name]))
        for number, (name, (path, code, said)) in enumerate(defined.items(), 1)
    )


def _kernel(name: str, path: str, code: str, said: _Comment, origin: GraphOrigin) -> GeneratedKernel:
    heuristic = _HEURISTIC.search(code)
    origin = replace(
        origin,
        heuristic=heuristic[1] if heuristic else "",
        source_nodes=said.source_nodes,
        operators=said.operators,
        nodes=said.nodes,
    )
    return GeneratedKernel(name, code, origin, path)


def _graph_of(lines: Sequence[str]) -> tuple[str, GraphPart]:
    """The number of the graph, and which part of it the code is; empty for text that names none."""
    for line in lines[:200]:
        if found := _ID.match(line):
            graph, _, part = found[1].rpartition("_")
            return (graph, _PARTS[part]) if part in _PARTS else ("", "")
    return "", ""


def _end_of(lines: Sequence[str], at: int) -> int:
    """Where the text of a kernel ends that begins with a line: the line of its closing quotes."""
    return next((number for number in range(at, len(lines)) if lines[number].startswith(_END_OF_KERNEL)), len(lines))


def _comment(lines: Sequence[str], at: int) -> tuple[_Comment, int]:
    """The comment that begins with a line, and the line after it."""
    sources, _, operators = lines[at].strip().partition("[")[2].partition("], Original ATen: [")
    said = _Comment(_names(sources), _names(operators.removesuffix("]")))
    mapped: list[str] = []
    nodes: dict[str, GraphNode] = {}
    section = ""
    at += 1
    while at < len(lines) and (line := lines[at].strip()).startswith("#") and not _SORTED.match(line):
        at += 1
        if line in (_MAPPING, _FRAGMENT):
            section = line
        elif section == _MAPPING:
            mapped += _names(line.partition(" => ")[2])
        elif section == _FRAGMENT and (found := _NODE.match(line)) and _TARGET in line:
            operator = line.partition(_TARGET)[2].partition("]")[0].removeprefix("torch.ops.")
            nodes[found[1]] = GraphNode(found[1], operator)
    said.nodes = tuple(nodes.values()) or tuple(map(GraphNode, dict.fromkeys(mapped)))
    return said, at


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))

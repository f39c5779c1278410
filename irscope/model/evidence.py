"""Evidence beside a capture: the compiler's log, lines of operations, counters, ceilings, a graph, a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

BaselineValue = int | float | str | tuple[str, ...]
BaselineFacts = Mapping[str, BaselineValue]
"""By name."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The recorded facts of kernels."""

    kernels: Mapping[str, Mapping[str, BaselineFacts]] = field(default_factory=dict[str, Any])
    """`KERNEL TARGET` → variant → its facts. A variant is `x=*fp16%16 n=i32 BLOCK=64 num_warps=8`."""
    tolerances: tuple[str, ...] = ()
    """How much worse facts may be: `registers=4`."""
    triton_versions: tuple[str, ...] = ()
    """Those that compiled them."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The measured peak rates of a GPU."""

    device: str
    """As its driver names it."""
    target: str
    bytes_per_s: float
    """Of a large copy, bytes read plus bytes written."""
    flops_per_s: tuple[tuple[str, float], ...] = ()
    """(torch's name of a dtype, rate of its matrix product)."""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """The measured counters of one launch of a capture's kernel."""

    page: str
    """Nsight Compute's source page of that launch as CSV: a row for each instruction."""
    device: str = ""
    """The name of the GPU; empty if the report does not name it."""
    tool: str = ""
    """`Nsight Compute 2025.3.1.0`; empty where only its export was read."""
    own_binary: bool = False
    """Whether the capture's own binary was launched; otherwise its instructions were compared as texts."""


@dataclass(frozen=True, slots=True)
class OperationLines:
    """The operations of one stage's lines, or why they are not known."""

    stage: str
    """`ptx`, `sass` or `amdgcn`."""
    runs: tuple[tuple[int, int], ...] = ()
    """(the operation's first line in the TTGIR, 1-based, or 0 for none; lines of the assembly), from its first line."""
    reason: str = ""
    """Why they are not known, for people; empty if they are."""

    @staticmethod
    def of(stage: str, lines: Iterable[int]) -> OperationLines:
        """The operations given for every line of the assembly."""
        return OperationLines(stage, tuple((line, len(list(same))) for line, same in groupby(lines)))

    @property
    def by_line(self) -> tuple[int, ...]:
        """The operation of every line of the assembly: index 0 is line 1."""
        return tuple(line for line, count in self.runs for _ in range(count))


MOST_LOG_BYTES = 4 << 20
MOST_LOG_LINES = 100_000
"""The most that is kept of what one pass printed; on a matmul the longest takes half a megabyte and 2,000 lines."""


@dataclass(frozen=True, slots=True)
class PassLog:
    """The output of one pass, or of a stage before, between and after its passes."""

    stage: str
    text: str
    """As printed, with the location of every operation in it."""
    index: int | None = None
    """The `index` of the pass's snapshot; None for what the stage printed outside of its passes."""
    lines_left_out: int = 0
    """How many lines more there were than are kept."""


@dataclass(frozen=True, slots=True)
class CompilerLog:
    """The log of a second compile of a capture, which differed from the first one only in what it printed."""

    passes: tuple[PassLog, ...] = ()
    """Those that printed something, in the order they ran; a stage's own output stands after that of its passes."""
    differing: tuple[str, ...] = ()
    """The stages that differ between the second compile and the first, for which the log may not hold.

    Of one and the same PTX, ptxas may make another cubin the next time.
    """


SpanKind = Literal[
    "import", "compile", "front end", "stage", "pass", "call", "llvm", "llvm analysis", "tool", "irscope"
]
"""`call`: a function of the compiler, such as the translation to LLVM IR. `tool`: another program, such as ptxas.
`irscope`: what the recording itself takes."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """One part of a compile, by the clock."""

    name: str
    kind: SpanKind
    start_ns: int
    """Since the first part began; a recording process counts from an arbitrary moment."""
    duration_ns: int
    depth: int
    """How many parts it stands in: the last one before it with a smaller depth holds it."""


@dataclass(frozen=True, slots=True)
class CompileTimes:
    """Where the time of a compile went: of a separate compile, in which only times were recorded."""

    spans: tuple[TimeSpan, ...]
    """In the order they began, each before those within it."""
    processor_ns: int = 0
    """Processor time of the compile, of this process and of the tools that it ran."""
    notes: tuple[str, ...] = ()
    """What was not timed, and why."""


GraphPart = Literal["forward", "backward", "inference", ""]
"""`inference` for a graph that was compiled without gradients; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the FX graph that TorchInductor generated kernels for, and the line of Python that it stands for."""

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
    """A function of a library or of ATen that the code of a graph calls, next to its Triton kernels."""

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
    """The calls of the graph that are not Triton kernels."""

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

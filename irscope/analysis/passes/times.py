"""Where the time of a compile went: its parts as a tree, alike parts as one, and the share that is accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from irscope.model.evidence import CompileTimes, SpanKind, TimeSpan

_HOLDERS = ("compile", "stage")
"""Parts whose own time, outside of what stands in them, is accounted for by nothing."""

_KERNEL, _FREED = "CompiledKernel.__init__", "freeing of the MLIR context"
"""The last that a compile calls, and what is left for it: its modules and their context end with it."""
_TAIL = "text and clean-up"
"""What a stage does after its last pass or call: LLVM IR is written as text, assembly is edited, modules are freed."""


@dataclass
class TimeNode:
    """One part of a compile, with the parts within it."""

    name: str
    kind: SpanKind
    duration_ns: int = 0
    count: int = 1
    parts: list[TimeNode] = field(default_factory=list["TimeNode"])

    @property
    def own_ns(self) -> int:
        """Its time outside of the parts within it."""
        return max(0, self.duration_ns - sum(part.duration_ns for part in self.parts))

    def walk(self) -> Iterator[TimeNode]:
        """Itself and all within it."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True)
class TimeTree:
    """All parts of one compile."""

    root: TimeNode
    imports: tuple[TimeNode, ...]
    recording_ns: int
    """The time of irscope's own recording, which is in no part."""

    @cached_property
    def whole_ns(self) -> int:
        """The compile by the clock, without irscope's own recording."""
        return self.root.duration_ns

    @cached_property
    def unaccounted_ns(self) -> int:
        return sum(node.own_ns for node in self.root.walk() if node.kind in _HOLDERS)

    @property
    def accounted(self) -> float:
        """The share of the compile that is the time of some part."""
        return 1 - self.unaccounted_ns / self.whole_ns if self.whole_ns else 1.0

    def passes(self, kind: SpanKind = "llvm") -> list[TimeNode]:
        """The passes of LLVM's, or of another kind, the slowest first; those of one name together."""
        return _merged([node for node in self.root.walk() if node.kind == kind])


def time_tree(times: CompileTimes) -> TimeTree:
    """The parts of a compile; the recording's own are taken out of all that they stand in."""
    top = TimeNode("", "compile")
    stack = [top]
    recording_ns = 0
    for span in _with_tails(times.spans):
        del stack[span.depth + 1 :]
        if span.kind == "irscope":
            if not any(node.kind == "irscope" for node in stack):
                recording_ns += span.duration_ns
                for node in stack:
                    node.duration_ns -= span.duration_ns
            # Whatever stands in it goes with it.
            stack.append(TimeNode(span.name, span.kind, span.duration_ns))
            continue
        node = TimeNode(span.name, span.kind, span.duration_ns)
        if not any(other.kind == "irscope" for other in stack):
            stack[-1].parts.append(node)
        stack.append(node)
    root = next((node for node in top.parts if node.kind == "compile"), TimeNode("", "compile"))
    return TimeTree(root, tuple(node for node in top.parts if node.kind == "import"), recording_ns)


def _with_tails(spans: Sequence[TimeSpan]) -> Iterator[TimeSpan]:
    """The parts, with what each stage, and Triton's compile, does after its last one as a part."""
    ended_ns: dict[int, int] = {}
    stage: TimeSpan | None = None
    kernel: TimeSpan | None = None
    for span in (*spans, None):
        if kernel is not None and span is not None and span.depth <= kernel.depth:
            end_ns = kernel.start_ns + kernel.duration_ns
            yield TimeSpan(_FREED, "call", end_ns, max(0, span.start_ns - end_ns), kernel.depth)
            kernel = None
        if stage is not None and (span is None or span.depth <= stage.depth):
            end_ns, last_ns = stage.start_ns + stage.duration_ns, ended_ns.get(stage.depth + 1, stage.start_ns)
            yield TimeSpan(_TAIL, "call", last_ns, max(0, end_ns - last_ns), stage.depth + 1)
            stage = None
        if span is None:
            return
        if span.name == _KERNEL:
            kernel = span
        if span.kind == "stage":
            stage = span
            ended_ns = {}
        ended_ns[span.depth] = span.start_ns + span.duration_ns
        yield span


def own_times(times: CompileTimes | None) -> dict[str, int]:
    """Part, as `ttgir:pipeline#1`, `llvm:licm`, `ptxas` → nanoseconds outside of the parts within it."""
    found: dict[str, int] = {}
    root = time_tree(times).root if times is not None else TimeNode("", "compile")
    for stage in root.parts:
        for node in stage.walk():
            name = f"llvm:{node.name.partition('#')[0]}" if node.kind.startswith("llvm") else node.name
            label = f"{stage.name}:{name}" if node.kind == "pass" else name
            found[label] = found.get(label, 0) + node.own_ns
    return found


def _merged(nodes: Sequence[TimeNode]) -> list[TimeNode]:
    """Those of one name as one, the slowest first: `sroa#1` and `sroa#2` are `sroa`, twice."""
    by_name: dict[str, TimeNode] = {}
    for node in nodes:
        name = node.name.partition("#")[0]
        known = by_name.setdefault(name, TimeNode(name, node.kind, 0, 0))
        known.duration_ns += node.duration_ns
        known.count += 1
        known.parts += node.parts
    return sorted(by_name.values(), key=lambda node: -node.duration_ns)


def children(node: TimeNode) -> list[TimeNode]:
    """The parts of a part as they are shown: LLVM's passes, calls and analyses by name, the others as they ran."""
    own = [part for part in node.parts if not part.kind.startswith("llvm") and part.kind != "call"]
    merged = _merged([part for part in node.parts if part not in own])
    return own + merged

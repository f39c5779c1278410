"""Compiles beside a recording's own: a trial, a graft between two compilers, and a row of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from irscope.model.capture import Capture, PassSnapshot, SnapshotLevel
from irscope.plan import PassPlan
from irscope.target import Target


@dataclass(frozen=True, slots=True)
class Trial:
    """What is compiled in place of a capture's own source."""

    text: str
    """The source; with `after`, the IR after that pass."""
    after: PassSnapshot | None = None
    options: tuple[tuple[str, Any], ...] = ()
    """(compile option, value), in place of the launch's own."""
    last_stage: str = ""
    """The stage after which the compile stops; empty for none."""
    layouts: bool = False
    """Whether the layouts are asked of the compiler."""


CompileTrials = Callable[[Capture, Sequence[Trial]], Iterator[tuple[int, Capture]]]
"""Compiles trials of a capture, and yields (0-based place of the trial, its capture), each as soon as it is there."""


Side = Literal["before", "after"]
"""Of the two compilers: `before` is the one of `--from`, `after` the one of `--to`."""


def other_side(side: Side) -> Side:
    return "after" if side == "before" else "before"


@dataclass(frozen=True, slots=True)
class Graft:
    """A compile that is asked for: the text of a stage, compiled on by one of the two."""

    side: Side
    """Which of the two compiles."""
    stage: str
    """The stage whose artifact the text is."""
    text: str
    giver: Capture
    """The capture that the text is of, which knows what a later stage alone does not: the shared memory."""
    last_stage: str = ""
    """The stage after which it stops; empty for none."""
    snapshots: SnapshotLevel = "none"
    off: tuple[str, ...] = ()
    """The labels of passes that are off too."""
    resumed: int = 0
    """How many passes of the stage are behind the text, which is IR within the stage then; 0 for its artifact."""
    with_sass: bool = False
    """Whether the SASS of its binary is needed, as far as nvdisasm is there."""


@dataclass(frozen=True, slots=True)
class Point:
    """One way of compiling a capture, as far as it is another than the capture's own."""

    target: str = ""
    interpreter: str = ""
    plan: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    """tl.constexpr values that the launch is recorded with, in place of its own."""

    @property
    def name(self) -> str:
        """`BLOCK=128 num_warps=8 target=cuda:100`."""
        rows = [
            *self.constants,
            *self.options,
            ("target", self.target),
            ("triton", self.interpreter),
            ("plan", self.plan),
        ]
        return " ".join(f"{key}={value}" for key, value in rows if value != "")

    def varied(self, key: str, value: Any) -> Point:
        """This way with one thing more changed: its `target`, `plan`, `triton` (an interpreter) or an option."""
        if key == "target":
            return replace(self, target=str(Target.parse(str(value))))
        if key == "plan":
            return replace(self, plan=str(PassPlan.parse(str(value))))
        if key == "triton":
            return replace(self, interpreter=str(value))
        return replace(self, options=(*self.options, (key, value)))


def combinations(axes: Mapping[str, Iterable[Any]]) -> tuple[Point, ...]:
    """Every combination of what is changed (key → values), the capture's own way first; raises what `varied` does."""
    points = [Point()]
    for key, values in axes.items():
        points = [one for point in points for one in (point, *(point.varied(key, value) for value in values))]
    return tuple(dict.fromkeys(points))


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One capture, compiled in one way. A figure that is not known is None."""

    key: str
    """Equal for the same compile by the same compiler."""
    capture: str
    """The id of the capture whose source was compiled."""
    kernel: str
    file: str
    line: int
    constants: str
    """`BLOCK=64 N=2`."""
    vs: str
    """How it differs from the capture: `num_warps=8 target=cuda:100`; empty for the capture's own way."""
    target: str
    plan: str
    interpreter: str
    """The Python whose Triton compiled it; empty for the one of the sweep."""
    triton: str
    source_triton: str
    """The Triton whose front end made the IR; where it is another than `triton`, that one's own did not run."""
    num_warps: int | None
    num_stages: int | None
    num_ctas: int | None
    id: str
    """The id of the compile's own capture; empty if there was none."""
    status: str
    """`ok` or `failed`."""
    failure: str
    """The kind of the failure; `worker` where the processes that compiled it were ended; empty for none."""
    message: str
    registers: int | None = None
    spilled_bytes: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int | None = None
    tensor_memory_columns: int | None = None
    occupancy_percent: float | None = None
    code_bytes: int | None = None
    instructions: int | None = None
    counts: tuple[tuple[str, int], ...] = ()
    """The instructions that matter, in the PTX or AMDGCN: (`ld.global.128`, 2)."""
    findings: tuple[str, ...] = ()
    """The codes of what `irscope why` finds without another compile."""
    compile_us: int | None = None
    processor_us: int | None = None
    """Of one compile, in all stages; the shortest of several where a sweep ranks by time."""
    processor_most_us: int | None = None
    """The longest of several; None of one."""
    meaning: str = ""
    """`same`, `changed` or `not decided`, against the IR that was compiled; empty without `--verify`."""

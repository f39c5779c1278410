"""A kernel under two compilers: its two compiles, the facts that changed, and the blamed pass."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from irscope.analysis.diff.texts import TextDiff
from irscope.analysis.findings.model import Finding
from irscope.analysis.regressions import FactChange
from irscope.device.measurement import Measurement
from irscope.model.capture import Capture
from irscope.model.evidence import CompileTimes
from irscope.model.trial import Graft, Side

_Found = TypeVar("_Found")
Asking = Generator[Graft, Capture | None, _Found]
"""What asks for one compile after another, and gets each one's capture, or None where the compiler refuses."""


class UpgradeCompiler(Protocol):
    """One Triton, as an upgrade needs it; `irscope.record.variants.pool` has it."""

    @property
    def version(self) -> str: ...

    def compile(self, captures: Sequence[Capture]) -> Iterator[tuple[int, Capture]]:
        """(place, its compile) of the source of each capture, in any order; a failed capture where it refuses."""
        ...

    def timed(self, capture: Capture) -> CompileTimes | None:
        """Where the time of a compile of its source goes; None where it refuses."""
        ...

    def graft(self, grafts: Sequence[tuple[Capture, Graft]]) -> Iterator[tuple[int, Capture | None]]:
        """(place, its compile) of each (capture whose options count, graft), in any order; None where it refuses."""
        ...

    def disassemble(self, capture: Capture) -> Capture:
        """A capture with the SASS of its binary; without it where that cannot be had."""
        ...


@dataclass(frozen=True, slots=True)
class Probe:
    """One graft: the artifact of a stage by one compiler, compiled on by the other."""

    stage: str
    """The last stage that is the giver's."""
    by: Side
    """Who compiled on."""
    like: Side | None
    """Whose fact came of it; None if it is neither's, or it did not compile."""
    value: str
    """The fact as text, or why there is none."""


@dataclass(frozen=True, slots=True)
class Guilty:
    """The pass of the stage to blame after which the two differ."""

    label: str
    """`ttgir:coalesce#1`; or what is no pass of MLIR's: `llvm-opt`, `ptxas`."""
    outcome: tuple[str, str]
    """(before, after): `ran`, `skipped`, `failed` or `absent`."""
    options: tuple[str, str]
    """(before, after)."""
    is_confirmed: bool | None
    """Whether the difference of the stage is gone without the pass; None if it cannot be switched off."""
    diff: TextDiff | None
    """The IR after it, before against after."""
    proof: str = ""


@dataclass(frozen=True, slots=True)
class Blame:
    """Where a change comes from."""

    change: FactChange
    stages: tuple[str, ...]
    """The stage that makes it; several where it could not be told which, none where nothing could be."""
    probes: tuple[Probe, ...]
    guilty: Guilty | None = None
    doubts: tuple[str, ...] = ()
    """Why it is uncertain, in sentences; empty if it is not."""

    @property
    def telling_probes(self) -> tuple[Probe, ...]:
        """The grafts from which something was learned; all if there is none."""
        return tuple(one for one in self.probes if one.like) or self.probes

    @property
    def is_sure(self) -> bool:
        """Whether it is one stage, and every graft was validated."""
        return len(self.stages) == 1 and not self.doubts


@dataclass(frozen=True, slots=True)
class UpgradeRow:
    """One variant of a kernel under both compilers; a side that has none of it is None."""

    before: Capture | None
    after: Capture | None
    variant: str = ""
    """What tells it from the others of its kernel: `BLOCK=64 num_warps=8`."""
    changes: tuple[FactChange, ...] = ()
    """The changes for the worse first."""
    blame: Blame | None = None
    findings: tuple[Finding, ...] = ()
    """Those that came with the change."""
    source_version: str = ""
    """Of the Triton whose front end made the IR that both compiled; empty where each one's own front end ran."""
    measured: Measurement | None = None
    """The launch on a GPU; None if it was not asked for, or could not be made."""
    why_not_measured: str = ""

    @property
    def capture(self) -> Capture:
        capture = self.after or self.before
        if capture is None:
            raise ValueError("a row of no capture")
        return capture

    def side(self, side: Side) -> Capture:
        """The compile of a side; raises ValueError where there is none."""
        capture = self.before if side == "before" else self.after
        if capture is None:
            raise ValueError(f"the row has no capture {side}")
        return capture

    @property
    def why_not_compared(self) -> str:
        """Why there is nothing to compare; empty where there is."""
        if self.before is None or self.after is None:
            return "not launched before" if self.before is None else "not launched after"
        for side, capture in (("before", self.before), ("after", self.after)):
            if capture.failure is not None and capture.failure.kind == "parse":
                return f"the one {side} does not read the IR of the front end"
        if self.before.has_compiled:
            return ""
        failure = self.after.failure
        if not self.after.has_compiled:
            return f"neither compiles it: {failure.headline if failure else ''}"
        is_foreign = self.source_version not in ("", self.before.environment.triton_version)
        return f"the one before does not compile the IR of Triton {self.source_version}" if is_foreign else ""

    @property
    def verdict(self) -> Literal["worse", "better", "other", "same", "unpaired"]:
        """The row in one word: `same` for equal code, `other` if something changed, and nothing to better or worse."""
        if self.why_not_compared:
            return "unpaired"
        verdicts = {one.verdict for one in self.changes}
        if "worse" in verdicts:
            return "worse"
        return "better" if "better" in verdicts else "other" if verdicts else "same"


@dataclass(frozen=True, slots=True)
class CompileTimeChange:
    """The compile time of one kernel by both, in milliseconds of processor time."""

    kernel: str
    target: str
    before_ms: tuple[float, ...]
    """Of each compile, the shortest first."""
    after_ms: tuple[float, ...]
    part: str
    """The pass, tool or call that changed most: `ttgir:pipeline#1`."""
    part_ms: tuple[float, float]
    """(before, after) of that, by the clock, once."""

    @property
    def ratio(self) -> float:
        """The shortest after over the shortest before."""
        return self.after_ms[0] / self.before_ms[0] if self.before_ms[0] else 1.0

    @property
    def verdict(self) -> Literal["slower", "faster", "same"]:
        """`same` where the compiles of both spread over each other."""
        if self.after_ms[0] > self.before_ms[-1]:
            return "slower"
        return "faster" if self.after_ms[-1] < self.before_ms[0] else "same"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Kernels under two compilers: the versions, a row for each variant, and notes on all of them."""

    versions: tuple[str, str]
    """Of Triton: (before, after)."""
    rows: tuple[UpgradeRow, ...]
    source_versions: tuple[str, ...] = ()
    """Of the Tritons whose front ends made the IR that both compiled; empty where each one's own front end ran."""
    grafts: int = 0
    """Compiles beside those of all variants."""
    device: str = ""
    """The GPU that launches were made on; empty if none were asked for."""
    compile_time: CompileTimeChange | None = None
    """That of the kernel whose compile changed most; None where none changed much, or nothing was measured."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of all rows."""
        said: list[str] = []
        if self.source_versions:
            made = ", ".join(self.source_versions)
            said.append(
                f"Both compiled the IR of Triton {made}'s front end, so the front ends are not compared: "
                "irscope upgrade FILE runs the script under both."
            )
        if self.device and all(one.measured is None for one in self.rows):
            said.append("No launch was timed: the binaries are equal, or the launch failed, as its row states.")
        elif self.device:
            said.append(
                f"Timed on {self.device}, by each environment's own interpreter, in turns: a ratio is of blocks that "
                "follow each other, with the 95 % confidence interval of its median. Results are those on the inputs "
                "of --from, compared within its own noise (docs/gpu.md)."
            )
        return tuple(said)

    def regressions(self, facts: Collection[str] = ()) -> int:
        """How many variants got worse; `facts`: only by these."""
        return sum(
            any(one.verdict == "worse" and (not facts or one.name in facts) for one in row.changes) for row in self.rows
        )

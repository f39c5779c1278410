"""Finding: one thing worth a reader's time in a compiled kernel, with causes and suggestions; comments silence it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from irscope.errors import UsageError, did_you_mean
from irscope.ir.locations.model import Chain
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.device.measurement import Agreement, Ratio


Evidence = Literal["log", "ir", "assembly", "evaluated", "launch", "binary", "predicted"]
"""The evidence of a cause: the compiler's log, an operation of the IR, instructions of the assembly, addresses or
values that were evaluated, the arguments and options of the launch, the binary's own figures, or the model of the
launch."""


LEAST_SHARE = 0.03
"""Of the predicted time, below which a finding is counted and not shown."""


@dataclass(frozen=True, slots=True)
class _FindingKind:
    """One kind of finding; its code never changes its meaning."""

    code: str
    """`IRS101`."""
    name: str
    """`narrow-load`."""
    rank: int
    """Kinds of a lower rank come first, whatever they cost."""


KINDS = {
    one.code: one
    for one in (
        _FindingKind("IRS101", "narrow-load", 2),
        _FindingKind("IRS102", "narrow-store", 2),
        _FindingKind("IRS103", "wasted-sectors", 2),
        _FindingKind("IRS104", "repeated-loads", 2),
        _FindingKind("IRS105", "masked-lanes", 3),
        _FindingKind("IRS106", "discarded-loads", 2),
        _FindingKind("IRS201", "loop-not-pipelined", 2),
        _FindingKind("IRS202", "fewer-stages", 2),
        _FindingKind("IRS203", "exposed-loads", 2),
        _FindingKind("IRS204", "masked-iterations", 2),
        _FindingKind("IRS205", "barriers-in-loop", 3),
        _FindingKind("IRS206", "scalar-loop", 2),
        _FindingKind("IRS301", "dot-not-mma", 1),
        _FindingKind("IRS302", "dot-not-async", 2),
        _FindingKind("IRS303", "wgmma-serialised", 1),
        _FindingKind("IRS304", "dot-by-mma-sync", 1),
        _FindingKind("IRS305", "widened-operand", 2),
        _FindingKind("IRS306", "product-without-dot", 1),
        _FindingKind("IRS307", "transposed-operand", 2),
        _FindingKind("IRS308", "small-tile", 3),
        _FindingKind("IRS309", "accumulator-through-registers", 3),
        _FindingKind("IRS401", "conversion-through-shared-memory", 3),
        _FindingKind("IRS402", "shared-conflicts", 3),
        _FindingKind("IRS501", "spills", 1),
        _FindingKind("IRS502", "low-occupancy", 4),
        _FindingKind("IRS503", "does-not-fit", 0),
        _FindingKind("IRS504", "heavy-epilogue", 3),
        _FindingKind("IRS505", "few-ctas", 2),
        _FindingKind("IRS506", "idle-threads", 2),
        _FindingKind("IRS507", "tail-wave", 3),
        _FindingKind("IRS508", "launch-bound", 4),
        _FindingKind("IRS509", "exposed-latency", 3),
        _FindingKind("IRS510", "order-of-ctas", 3),
        _FindingKind("IRS601", "fp32-dot-by-fma", 1),
        _FindingKind("IRS602", "atomic-by-loop", 2),
        _FindingKind("IRS603", "fp32-dot-in-tf32", 4),
        _FindingKind("IRS604", "float64", 1),
        _FindingKind("IRS605", "atomic-contention", 2),
        _FindingKind("IRS606", "wide-division", 2),
        _FindingKind("IRS701", "offset-overflow", 0),
        _FindingKind("IRS702", "nonfinite-result", 0),
    )
}


@dataclass(frozen=True, slots=True)
class Cause:
    """One link of the chain of causes; each is the reason of the one before."""

    text: str
    evidence: Evidence
    source: str
    """Where the evidence is: `ttgir:coalesce#1, line 213 of its log`, `line 96 of ttgir`."""


@dataclass(frozen=True, slots=True)
class FixChange:
    """A change of a compile that can be tried without the script."""

    kind: Literal[
        "divisible",
        "constant",
        "option",
        "hint",
        "contiguous",
        "factor",
        "compare",
        "layout",
        "snapshot",
        "stages",
        "narrow",
    ]
    """`hint`: `tl.multiple_of` on what is multiplied by an argument. `contiguous`: that and `tl.max_contiguous` on the
    remainders of a division by it. `factor`: another number in place of a constant, in products, comparisons and
    offsets. `compare`: one comparison in place of another, everywhere.
    `stages`: of the loop of a line of Python. `narrow`: a dot takes an operand as it is before it is widened, there.
    `layout`: in a kernel that names its layouts. `snapshot`: in the IR after the pass that chose them."""
    name: str
    """The argument, without `%`; the option; the constant's name, or the number itself; the layout; or the line."""
    value: int | str
    """The layout that replaces it, or a number."""
    was: int = 0
    """Of a `factor`: the constant. Of a `snapshot`: the line, after that pass, of the one access that gets the layout;
    0 if it replaces all. Of a `narrow`: the column, 1-based."""

    def __str__(self) -> str:
        if self.kind == "divisible":
            return f"{self.name} divisible by {self.value}"
        if self.kind == "hint":
            return f"tl.multiple_of(… * {self.name}, {self.value})"
        if self.kind == "contiguous":
            return f"tl.max_contiguous(tl.multiple_of(… % {self.name}, {self.value}), {self.value})"
        if self.kind == "factor" and self.name == str(self.was):
            return f"{self.value} in place of {self.was}"
        if self.kind == "compare":
            return f"{self.value} in place of {self.name}"
        if self.kind == "stages":
            return f"tl.range(…, num_stages={self.value}) in line {self.name}"
        if self.kind == "narrow":
            return f"no {self.value} in line {self.name}"
        if self.kind in ("layout", "snapshot"):
            from irscope.ir.mlir.attributes import read_encoding

            pairs = zip(read_encoding(self.name).numbers, read_encoding(str(self.value)).numbers, strict=False)
            return ", ".join(f"{name} {[*was]} → {[*now]}" for (name, was), (_, now) in pairs if was != now)
        return f"{self.name} = {self.value}" if self.kind in ("constant", "factor") else f"{self.name}={self.value}"


def is_alone(changes: Iterable[FixChange]) -> bool:
    """Whether changes are tried without those of other findings."""
    return any(one.kind in ("option", "snapshot", "layout", "narrow") for one in changes)


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of compiling a change."""

    is_better: bool
    """Whether the kernel is predicted to be faster with it; else, whether the finding is gone or less."""
    effects: tuple[str, ...] = ()
    """`16 → 128 bits`, `84 → 90 registers`: of the finding itself, then of the kernel."""
    failure: str = ""
    """Why it could not be compiled."""
    agreement: Agreement | None = None
    """Whether it computes the same in a launch on a GPU; None if it was not run."""
    ratio: Ratio | None = None
    """Its time over that of the launch as it is."""
    untimed: str = ""
    """Why it has no time, although it was requested."""
    seconds: float | None = None
    """The predicted time of the launch with it; None if it was not predicted."""

    @property
    def timing(self) -> str:
        """`0.62x the time (…), identical`, or why there is none; empty if it was not requested."""
        if self.ratio is None or self.agreement is None:
            return self.untimed
        return f"time {self.ratio.text}, result {self.agreement.verdict}"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested fix."""

    text: str
    """The change of the Python text."""
    changes: tuple[FixChange, ...] = ()
    """The compiled changes that try it; empty if it cannot be tried without the script."""
    proof: Proof | None = None
    """None if it was not tried."""

    @property
    def is_relaid(self) -> bool:
        """Whether another layout is tried in the IR after the pass that chose it."""
        return any(one.kind == "snapshot" for one in self.changes)

    @property
    def tried(self) -> str:
        """The changes that are compiled, as text."""
        return ", ".join(map(str, self.changes))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is slow in a kernel, with its causes, its cost and suggested fixes."""

    code: str
    operation: str
    """`tt.load`; empty if it is about the whole kernel."""
    line: int
    """In the TTGIR, 1-based; 0 if it is about the whole kernel."""
    values: tuple[str, ...]
    """The results of the operation, or what it works on."""
    chain: Chain
    """Where it comes from, innermost first; empty if it is about the whole kernel."""
    place: tuple[tuple[str, int], ...]
    """(file, line) of the frames of the user's code, innermost first."""
    text: str
    """The problem, with its figures."""
    cost: str
    """The cost, in words."""
    weight: int
    """The cost as a number, by which findings of one rank are ordered."""
    causes: tuple[Cause, ...]
    suggestions: tuple[Suggestion, ...] = ()
    factor: float = 1.0
    """How many times fewer instructions would do."""
    seconds: float | None = None
    """The predicted time that the launch takes longer because of it; None if that is not known."""
    share: float = 0.0
    """The part of the launch's predicted time that this is."""
    lines: tuple[int, ...] = ()
    """Further lines of the TTGIR that it is about, or whose findings it brings about."""

    @property
    def kind(self) -> _FindingKind:
        return KINDS[self.code]

    @property
    def is_small(self) -> bool:
        """Whether it is counted, and not shown."""
        return self.kind.rank > 0 and self.seconds is not None and self.share < LEAST_SHARE

    @property
    def best_fix(self) -> Suggestion | None:
        """The suggestion that was compiled and is better, with the least predicted time; None without one."""
        fixes = [one for one in self.suggestions if one.proof is not None and one.proof.is_better]
        return min(fixes, key=lambda one: (one.proof.seconds if one.proof else None) or inf, default=None)


# x = tl.load(p)  # irscope: ignore[IRS101]
_COMMENT = re.compile(r"#\s*irscope:\s*ignore(?:\[(?P<codes>[^\]]{0,400})\])?")


ANY = "any"
"""Every kind of finding, in place of the codes and names of some."""


def codes_of(words: Iterable[str]) -> frozenset[str]:
    """The codes that some codes or names of kinds mean, all for `any`; raises UsageError for one that is none."""
    words = list(words)
    if ANY in words:
        return frozenset(KINDS)
    found = {word: _code(word) for word in words}
    for word, code in found.items():
        if not code:
            known = [one for kind in KINDS.values() for one in (kind.code, kind.name)]
            raise UsageError(f"{word!r} is not a finding: docs/findings.md lists them.{did_you_mean(word, known)}")
    return frozenset(found.values())


def is_silenced(finding: Finding, capture: Capture) -> bool:
    """Whether a comment silences a finding: on a line that it comes from, or on the kernel's `def` for the kernel's."""
    kernel = capture.launch.kernel
    places = finding.place or ((kernel.file, kernel.line),)
    # The locations of all stages are not needed where nothing was found.
    from irscope.analysis.source.map import python_line

    return any(_is_named(finding, python_line(capture, file, line)) for file, line in places)


def _is_named(finding: Finding, line: str) -> bool:
    match = _COMMENT.search(line)
    if match is None:
        return False
    return match["codes"] is None or finding.code in {_code(word.strip()) for word in match["codes"].split(",")}


def _code(word: str) -> str:
    return next((one.code for one in KINDS.values() if word.casefold() in (one.code.casefold(), one.name)), "")

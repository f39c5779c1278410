"""Tries suggestions: which changes are compiled, how far, and by what number each compile is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from irscope.analysis.findings.changed import edited, snapshot_of, with_changes
from irscope.analysis.findings.loops import LOADS, buffers_of, loads_of_dot, loops_with_dots, waits_in_loops
from irscope.analysis.findings.model import Finding, FixChange, Proof, Suggestion
from irscope.analysis.findings.search import Searched, grid_with, search, smaller
from irscope.analysis.findings.studied import Studied
from irscope.device.occupancy import excesses_of, occupancy_of
from irscope.errors import UsageError
from irscope.memory.machine import ACCESSES, count_actions
from irscope.model.capture import Capture
from irscope.model.trial import CompileTrials, Trial

Changes = tuple[FixChange, ...]
Constants = tuple[tuple[str, str], ...]
"""(tl.constexpr, value) of those that are others than in the launch."""
Reconfigured = Callable[[Constants, tuple[int, int, int]], "Capture | None"]
"""Such values, and the grid → the launch with them; None if it cannot be made."""
Predict = Callable[[Capture], "float | None"]


_MOST_OF_SEARCH = 64


@dataclass(frozen=True, slots=True)
class Budget:
    """How many compiles try fixes."""

    findings: int | None = 3
    """Only of so many findings, the worst; None for all."""
    compiles: int | None = 3
    search: int = 0
    """At most so many more search options and tiles, where a launch is predicted."""

    @staticmethod
    def of(most: int | None) -> Budget:
        """At most so many compiles of any length, of all findings, and for a search; None for all there are."""
        return Budget(None, most, _MOST_OF_SEARCH if most is None else most)

    @staticmethod
    def parse(text: str | None) -> Budget:
        """The value of `--tries`; raises UsageError for anything but a number or `all`."""
        if text is None:
            return Budget()
        if text != "all" and not (text.isdecimal() and len(text) < 6):
            raise UsageError(f"--tries {text!r} is not a number of compiles: write one, such as 8, or all.")
        return Budget.of(None if text == "all" else int(text))


class Tries:
    """The changes of one capture that were compiled."""

    def __init__(self, studied: Studied, compile_trials: CompileTrials, budget: Budget) -> None:
        self._studied = studied
        self._compile_trials = compile_trials
        self._budget = budget
        self._known: dict[Changes, Studied | None] = {}
        """Changes → their compile; None if they cannot be written into the source."""
        self._bases: dict[Constants, Capture | None] = {(): studied.capture}
        """Values of tl.constexpr → the launch with them and its own options; None if it cannot be made."""
        self._texts: dict[Changes, str | None] = {}
        self._count = 0
        self._has_sectors = False
        """Whether the sectors of accesses are compared, for which the layouts are needed."""
        self.left_out = 0
        """How many changes were not tried that the budget had no compile for, when `choose` was called last."""

    @property
    def grid(self) -> tuple[int, int, int] | None:
        return self._studied.capture.launch.grid

    @property
    def captures(self) -> dict[Changes, Capture]:
        """The changes of each compile -> its capture."""
        return {changes: after.capture for changes, after in self._known.items() if after is not None}

    def choose(self, findings: Sequence[Finding]) -> list[Changes]:
        """The changes to compile next; none if all is known, or the budget is spent."""
        self._has_sectors = any(one.code == "IRS103" for one in findings)
        open_ = [(one, changes) for one in findings if (changes := self._next_of(one))]
        worst = [one for one in findings if any(each.changes for each in one.suggestions)][: self._budget.findings]
        wanted = [*dict.fromkeys(changes for finding, changes in open_ if finding in worst)]
        most = self._budget.compiles
        chosen = wanted if most is None else wanted[: max(most - self._count, 0)]
        self.left_out = len({changes for _, changes in open_} - {*chosen})
        return chosen

    def _next_of(self, finding: Finding) -> Changes:
        if finding.best_fix is not None:
            return ()
        wanted = (one.changes for one in finding.suggestions if one.changes and one.changes not in self._known)
        return next((changes for changes in wanted if self._text_of(changes) is not None), ())

    def search(
        self, predicted: Predict, whole: float, reconfigured: Reconfigured | None, fixes: Mapping[Changes, float]
    ) -> Searched:
        """The fastest configuration by predicted time that the budget finds; its capture is one of `captures`.

        `fixes`: those that were compiled, with their predicted seconds.
        """

        def compiled(wanted: Sequence[Changes]) -> dict[Changes, Capture]:
            made = self._configured(wanted, partial(self._of_same_work, reconfigured))
            self._known |= {one: Studied(after) for one, after in made.items()}
            return made

        capture, most = self._studied.capture, self._budget.search
        captures = self.captures
        begun = {one: (seconds, captures[one]) for one, seconds in fixes.items() if one in captures}
        return search(capture, compiled, predicted, whole, most, with_tiles=reconfigured is not None, begun=begun)

    def smaller(self, reconfigured: Reconfigured | None) -> list[tuple[Changes, Capture | None]]:
        """Configurations that ask for less memory, each with its compile, or None where that was refused."""
        grid = self._studied.capture.launch.grid or (1, 1, 1)
        wanted = smaller(self._studied.capture)
        made = self._configured(wanted, lambda own: None if reconfigured is None else reconfigured(own, grid))
        return [(one, made.get(one)) for one in wanted]

    def _of_same_work(self, reconfigured: Reconfigured | None, constants: Constants) -> Capture | None:
        grid = grid_with(self._studied.capture.launch, dict(constants))
        base = reconfigured(constants, grid) if reconfigured is not None and grid is not None else None
        return base if base is not None and _stores_same(self._studied, base) else None

    def _configured(
        self, wanted: Sequence[Changes], base_of: Callable[[Constants], Capture | None]
    ) -> dict[Changes, Capture]:
        """The launch with other options and tl.constexpr values; `base_of` compiles it with the latter."""
        made: dict[Changes, Capture] = {}
        groups: dict[Constants, list[Changes]] = {}
        for changes in wanted:
            constants = tuple((one.name, str(one.value)) for one in changes if one.kind == "constant")
            groups.setdefault(constants, []).append(changes)
        for constants, alike in groups.items():
            if constants not in self._bases:
                self._bases[constants] = base_of(constants)
            if (base := self._bases[constants]) is None:
                continue
            options = [tuple((one.name, one.value) for one in each if one.kind == "option") for each in alike]
            made |= {each: base for each, own in zip(alike, options, strict=True) if not own}
            varied = [each for each, own in zip(alike, options, strict=True) if own and base.has_compiled]
            trials = [Trial(base.begun_text, None, own) for own in options if own]
            made |= {varied[index]: after for index, after in self._compile_trials(base, trials if varied else [])}
        return made

    def _text_of(self, changes: Changes) -> str | None:
        """The source with changes; None if they cannot be written into it, as where an argument is not multiplied."""
        if changes not in self._texts and any(one.kind == "snapshot" for one in changes):
            self._texts[changes] = edited(self._studied.capture, changes[0]) if len(changes) == 1 else None
        if changes not in self._texts:
            source = self._studied.capture.begun_text
            kernel = self._studied.module.kernel
            names = [value.name for value, _, _ in kernel.parameters] if kernel is not None else []
            written = any(one.kind != "option" for one in changes)
            self._texts[changes] = with_changes(source, names, changes) if written else source
        return self._texts[changes]

    def told(self, finding: Finding) -> Finding:
        """A finding with the known results of its suggestions."""

        def with_proof(one: Suggestion) -> Suggestion:
            after = self._known.get(one.changes)
            if after is None or one.proof is not None:
                return one
            return replace(one, proof=compare(finding, self._studied, after, relaid=one.is_relaid))

        return replace(finding, suggestions=tuple(map(with_proof, finding.suggestions)))

    def compile(self, chosen: Sequence[Changes]) -> None:
        """Compile some changes to the end; those that cannot be written into the source are left out."""
        capture = self._studied.capture
        trials: list[tuple[Changes, Trial]] = []
        self._known |= dict.fromkeys(chosen)
        for changes in chosen:
            if (text := self._text_of(changes)) is not None:
                options = tuple((one.name, one.value) for one in changes if one.kind == "option")
                after = snapshot_of(capture) if changes[0].kind == "snapshot" else None
                trials.append((changes, Trial(text, after, options, layouts=self._has_sectors)))
        self._count += len(trials)
        if trials:
            made = self._compile_trials(capture, [trial for _, trial in trials])
            self._known |= {trials[index][0]: Studied(after) for index, after in made}


def _stores_same(own: Studied, after: Capture) -> bool:
    def stored(studied: Studied) -> Counter[str]:
        accesses = [
            one.access for one in studied.global_costs if one.access is not None and one.access.action == "store"
        ]
        return sum((Counter({one.argument or "": one.launch.distinct_bytes[1]}) for one in accesses), Counter[str]())

    return after.has_compiled and stored(own) == stored(Studied(after))


@dataclass(frozen=True, slots=True)
class _Measured:
    value: int
    """The less the better."""
    text: str


_Measure = Callable[[Finding, Studied], "_Measured | None"]


def compare(finding: Finding, own: Studied, other: Studied, *, relaid: bool = False) -> Proof:
    """The result of a compile that tries a suggestion.

    The other capture should hold its layouts if sectors are compared. `relaid`: whether another layout is tried, which
    may bring conversions in.
    """
    before, after = own.capture, other.capture
    if not after.has_compiled:
        return Proof(False, failure=after.failure.why_not_run if after.failure is not None else "it was not compiled")
    measure = _MEASURES.get(finding.code)
    if measure is None:
        failure = _why_not_run(after)
        return Proof(not failure, tuple(_others(finding, before, after)), failure)
    was, now = (measure(finding, one) for one in (own, other))
    if was is None or now is None:
        return Proof(False, failure="its effect was not found in the new compile")
    effects = (f"{was.text} → {now.text}",) if was.text != now.text else ()
    failure = "" if before.failure is not None else _why_not_run(after)
    fits = not failure
    narrower = dict(_narrower(own, other)) if finding.code == "IRS401" else {}
    loops = own.operations[finding.line].loops if narrower else 0
    is_better = now.value < was.value and fits and all(depth < loops for depth in narrower.values())
    more = _of_layouts(finding, own, other) if relaid else ()
    effects = (*effects, *narrower, *more, *_others(finding, before, after))
    return Proof(is_better, effects, failure)


def _narrower(own: Studied, other: Studied) -> Iterator[tuple[str, int]]:
    """The accesses to global memory that a compile made narrower, and in how many loops they are."""
    for one in own.operations.values():
        if one.opcode in ACCESSES and (was := max(own.machine.widths_of(one), default=0)):
            chain = own.chain_at(one.first_line)
            accesses = [same for same in other.operations.values() if same.opcode in ACCESSES]
            widths = [
                width
                for same in accesses
                if chain and other.chain_at(same.first_line) == chain
                for width in other.machine.widths_of(same)
            ]
            if widths and max(widths) < was:
                yield f"{was} → {max(widths)} bits per thread of {one.name} (line {one.first_line} of ttgir)", one.loops


def _of_layouts(finding: Finding, own: Studied, other: Studied) -> Iterator[str]:
    """How the conversions of a kernel, and the instructions of the access, change by another layout."""
    counts = [Counter(one.opcode for one in each.operations.values())["convert_layout"] for each in (own, other)]
    rows = [("conversions", *counts)]
    widths = [_widths(finding, each) for each in (own, other)] if finding.code == "IRS103" else []
    if widths and all(widths):
        rows += [
            ("bits per thread", *map(max, widths)),
            ("instructions of the access", *(one.total() for one in widths)),
        ]
    for name, was, now in rows:
        if was != now:
            yield f"{was} → {now} {name}"


def _why_not_run(after: Capture) -> str:
    """Why a kernel cannot run; of a compile that ended before the binary, by its shared memory. Empty if it can."""
    if after.failure is not None:
        return after.failure.why_not_run
    return "" if after.resources.registers is not None else "; ".join(map(str, excesses_of(after)))


def _others(finding: Finding, before: Capture, after: Capture) -> Iterator[str]:
    rows = (
        ("registers", before.resources.registers, after.resources.registers),
        ("bytes of shared memory", before.resources.shared_bytes, after.resources.shared_bytes),
        ("bytes spilled", before.resources.spilled_bytes, after.resources.spilled_bytes),
        ("bytes of code", before.resources.code_bytes, after.resources.code_bytes),
    )
    own = {"IRS501": "bytes spilled", "IRS503": "bytes of shared memory"}.get(finding.code)
    for name, was, now in rows:
        if was is not None and now is not None and was != now and name != own:
            yield f"{was} → {now} {name}"


def _widths(finding: Finding, studied: Studied) -> Counter[int]:
    found = Counter[int]()
    for one in studied.operations.values():
        if one.opcode in ACCESSES and studied.chain_at(one.first_line) == finding.chain:
            found += studied.machine.widths_of(one)
    return found


def _width(finding: Finding, studied: Studied) -> _Measured | None:
    widths = _widths(finding, studied)
    return _Measured(-max(widths), f"{max(widths)} bits per thread") if widths else None


def _sectors(finding: Finding, studied: Studied) -> _Measured | None:
    # Of a copy past the registers as of a load.
    costs = [cost for cost in studied.global_costs if studied.chain_at(cost.line) == finding.chain]
    accesses = [cost.access for cost in costs if cost.access is not None]
    units = sum(one.launch.units[0] for one in accesses)
    return _Measured(units, f"{units} {accesses[0].unit}") if accesses else None


def _waiting_loads(finding: Finding, studied: Studied) -> _Measured | None:
    loops = [*loops_with_dots(studied)]
    if not loops:
        return None
    inside = [one for loop in loops for one in loop.walk()]
    fed = {load.first_line for one in inside if one.kind == "dot" for load in loads_of_dot(studied, one)}
    is_amd = studied.capture.target.backend == "hip"
    loads = [
        one
        for one in inside
        if one.opcode in LOADS
        and studied.chain_at(one.first_line) == finding.chain
        # What AMD's pipeliner begins in one iteration for the next is still a load.
        and (not is_amd or one.first_line in fed)
    ]
    return _Measured(len(loads), "not pipelined" if loads else "pipelined")


def _buffers(finding: Finding, studied: Studied) -> _Measured | None:
    copies = [
        one
        for one in studied.operations.values()
        if one.loops
        and (one.name == finding.operation or one.opcode in LOADS)
        and studied.chain_at(one.first_line) == finding.chain
    ]
    count = max((buffers_of(studied, one) for one in copies), default=0)
    return _Measured(-count, f"{count} buffers") if count else None


def _waits(_: Finding, studied: Studied) -> _Measured | None:
    if not any(one.opcode == "warp_group_dot" for one in studied.operations.values()):
        return None
    waits = waits_in_loops(studied)
    return _Measured(waits, f"{waits} dots that block immediately")


def _through_shared(_: Finding, studied: Studied) -> _Measured | None:
    """The whole kernel's stores to shared memory: a conversion may be done elsewhere instead."""
    stage = studied.machine.text_stage
    if not stage:
        return None
    stores = count_actions(studied.capture.text(stage), stage, "shared store", "matrix store")
    return _Measured(stores, f"{stores} store{'s' * (stores != 1)} to shared memory")


def _spilled(_: Finding, studied: Studied) -> _Measured | None:
    spilled = studied.capture.resources.spilled_bytes
    return _Measured(spilled, f"{spilled} bytes spilled") if spilled is not None else None


def _occupied(_: Finding, studied: Studied) -> _Measured | None:
    """Warps at once; those that spills pay for count for nothing."""
    found, spilled = occupancy_of(studied.capture), studied.capture.resources.spilled_bytes or 0
    if found is None:
        return None
    return _Measured((spilled << 10) - found.warps_per_sm, f"{found.warps_per_sm} of {found.max_warps} warps")


def _that_fits(_: Finding, studied: Studied) -> _Measured | None:
    failed = studied.capture.failure is not None
    size = studied.capture.resources.shared_bytes
    return _Measured(failed, f"{size} bytes of shared memory, {'does not fit' if failed else 'fits'}")


_MEASURES: dict[str, _Measure] = {
    "IRS101": _width,
    "IRS102": _width,
    "IRS103": _sectors,
    "IRS201": _waiting_loads,
    "IRS202": _buffers,
    "IRS302": _waits,
    "IRS401": _through_shared,
    "IRS501": _spilled,
    "IRS502": _occupied,
    "IRS503": _that_fits,
    "IRS504": _occupied,
}

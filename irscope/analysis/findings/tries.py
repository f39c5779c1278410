"""Tries suggestions: which changes are compiled, how far, and by what number each compile is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from irscope.analysis.findings.changed import edited, snapshot_of, with_changes
from irscope.analysis.findings.loops import LOADS, buffers_of, loads_of_dot, loops_with_dots, waits_in_loops
from irscope.analysis.findings.model import Finding, FixChange, Proof, Suggestion
from irscope.analysis.findings.search import Searched, grid_with, search
from irscope.analysis.findings.studied import Studied
from irscope.device.occupancy import CUDA_LIMITS, HIP_LIMITS, excesses_of, occupancy_of
from irscope.errors import UsageError
from irscope.ir.mlir.reader import parse_mlir
from irscope.memory.access import Cost
from irscope.memory.machine import ACCESSES, count_actions
from irscope.model.capture import Capture
from irscope.model.trial import CompileTrials, Trial

Changes = tuple[FixChange, ...]
Reconfigured = Callable[[tuple[tuple[str, str], ...], tuple[int, int, int]], "Capture | None"]
"""(tl.constexpr, value) of those that are others, and the grid → the launch with them; None if it cannot be made."""
Predict = Callable[[Capture], "float | None"]
_RANKS: dict[Reach, int] = {"ttgir": 0, "assembly": 1, "binary": 2}


_MOST_OF_SEARCH = 64


@dataclass(frozen=True, slots=True)
class Budget:
    """How many compiles try fixes."""

    findings: int | None = 3
    """Only of so many findings, the worst; None for all."""
    compiles: int | None = 3
    """At most so many; None without a limit."""
    long: int | None = 1
    """At most so many that go on from the TTGIR, which takes ten times as long; None without a limit."""
    search: int = 0
    """At most so many more search options and tiles, where a launch is predicted."""

    @staticmethod
    def of(most: int | None) -> Budget:
        """At most so many compiles of any length, of all findings, and for a search; None for all there are."""
        return Budget(None, most, most, _MOST_OF_SEARCH if most is None else most)

    @staticmethod
    def parse(text: str | None) -> Budget:
        """What `--tries` says; raises UsageError for what is no number, nor `all`."""
        if text is None:
            return Budget()
        if text != "all" and not (text.isdecimal() and len(text) < 6):
            raise UsageError(f"--tries {text!r} is no number of compiles: write one, such as 8, or all.")
        return Budget.of(None if text == "all" else int(text))


@dataclass(frozen=True, slots=True)
class _Tried:
    """What is known of a change."""

    together: Changes
    """All changes of the compile that it was tried in."""
    after: Studied | None
    """The capture of that compile; None if the changes cannot be written into the source."""
    reach: Reach


@dataclass(frozen=True, slots=True)
class _Plan:
    changes: Changes
    tried: tuple[Changes, ...]
    """The changes of several suggestions, which it tries at once."""
    reach: Reach
    sectors: bool
    """Whether the sectors that an access asks for are compared, for which the layouts are needed."""


class Tries:
    """The changes of one capture that were compiled."""

    def __init__(
        self, studied: Studied, compile_trials: CompileTrials, budget: Budget, *, to_binary: bool = False
    ) -> None:
        """`to_binary`: whether every compile makes a binary."""
        self._studied = studied
        self._compile_trials = compile_trials
        self._budget = budget
        self._to_binary = to_binary
        self._known: dict[Changes, _Tried] = {}
        self._texts: dict[Changes, str | None] = {}
        self._count = 0
        self._long = 0
        self.left_out = 0
        """How many changes were not tried that the budget had no compile for, when `choose` was called last."""

    @property
    def captures(self) -> dict[Changes, Capture]:
        """All changes of each compile -> its capture."""
        return {one.together: one.after.capture for one in self._known.values() if one.after is not None}

    def choose(self, findings: Sequence[Finding]) -> list[_Plan]:
        """The compiles to do next; none if all is known, or the budget is spent."""
        wanted = dict[Changes, Reach]()
        sectors: set[Changes] = set()
        open_ = [(one, changes) for one in findings if (changes := self._next_of(one))]
        worst = [one for one in findings if any(each.changes for each in one.suggestions)][: self._budget.findings]
        for finding, changes in open_:
            if finding in worst:
                wanted[changes] = _farthest([self._reach_of(finding, changes), wanted.get(changes) or "ttgir"])
                if finding.code == "IRS103":
                    sectors.add(changes)
        compiles, long = _left(self._budget.compiles, self._count), _left(self._budget.long, self._long)
        far = shared_compiles([one for one, reach in wanted.items() if reach != "ttgir"], min(long, compiles))
        plans = [
            _Plan(changes, tuple(tried), _farthest(wanted[one] for one in tried), bool(sectors & {*tried}))
            for changes, tried in far.items()
        ]
        taken = {one for plan in plans for one in plan.tried}
        # What a longer compile would show as well is known by a short one of those that are left.
        near = {
            changes
            for finding, changes in open_
            if finding in worst and changes not in taken and self._reach_of(finding, changes) == "ttgir"
        }
        short: list[Changes] = [one for one in wanted if one in near][: compiles - len(plans)]
        plans += [_Plan(one, (one,), "ttgir", False) for one in short]
        taken.update(short)
        self.left_out = len({changes for _, changes in open_} - taken)
        return plans

    def _reach_of(self, finding: Finding, changes: Changes) -> Reach:
        # What another layout of one access is worth is known with the registers only that the conversions take.
        is_one_access = any(one.kind == "snapshot" and one.was for one in changes)
        return "binary" if self._to_binary or is_one_access else reach_of(finding)

    def _next_of(self, finding: Finding) -> Changes:
        """The changes to try next for a finding; empty if there are none, or one helped."""
        if is_fixed(finding):
            return ()

        def is_open(changes: Changes) -> bool:
            known, needed = self._known.get(changes), _RANKS[self._reach_of(finding, changes)]
            return known is None or (known.after is not None and _RANKS[known.reach] < needed)

        wanted = (one.changes for one in finding.suggestions if one.changes)
        return next((changes for changes in wanted if is_open(changes) and self._text_of(changes) is not None), ())

    def search(self, predicted: Predict, whole: float, reconfigured: Reconfigured | None) -> Searched:
        """The fastest configuration by predicted time that the budget finds; its capture is one of `captures`."""
        capture = self._studied.capture
        bases: dict[tuple[tuple[str, str], ...], Capture | None] = {(): capture}

        def compiled(wanted: Sequence[Changes]) -> dict[Changes, Capture]:
            made: dict[Changes, Capture] = {}
            groups: dict[tuple[tuple[str, str], ...], list[Changes]] = {}
            for changes in wanted:
                constants = tuple((one.name, str(one.value)) for one in changes if one.kind == "constant")
                groups.setdefault(constants, []).append(changes)
            for constants, alike in groups.items():
                if constants not in bases:
                    grid = grid_with(capture, dict(constants))
                    base = reconfigured(constants, grid) if reconfigured is not None and grid is not None else None
                    bases[constants] = base if base is not None and _stores_same(self._studied, base) else None
                if (base := bases[constants]) is None or base.failure is not None:
                    continue
                options = [tuple((one.name, one.value) for one in each if one.kind == "option") for each in alike]
                made |= {each: base for each, own in zip(alike, options, strict=True) if not own}
                varied = [each for each, own in zip(alike, options, strict=True) if own]
                trials = [Trial(base.begun_text, None, own) for own in options if own]
                made |= {varied[index]: after for index, after in self._compile_trials(base, trials)}
            self._known |= {one: _Tried(one, Studied(after), "binary") for one, after in made.items()}
            return made

        return search(capture, compiled, predicted, whole, self._budget.search, with_tiles=reconfigured is not None)

    def _text_of(self, changes: Changes) -> str | None:
        """The source with changes; None if they cannot be written into it, as where an argument is not multiplied."""
        if changes not in self._texts and any(one.kind == "snapshot" for one in changes):
            self._texts[changes] = edited(self._studied.capture, changes[0]) if len(changes) == 1 else None
        if changes not in self._texts:
            source = self._studied.capture.begun_text
            kernel = self._studied.uses.module.kernel
            names = [value.name for value, _, _ in kernel.parameters] if kernel is not None else []
            written = any(one.kind != "option" for one in changes)
            self._texts[changes] = with_changes(source, names, changes) if written else source
        return self._texts[changes]

    def told(self, finding: Finding) -> Finding:
        """A finding with what is known of its suggestions."""

        def with_proof(one: Suggestion) -> Suggestion:
            known = self._known.get(one.changes)
            if known is None or known.after is None or one.proof is not None:
                return one
            needed = _RANKS[self._reach_of(finding, one.changes)]
            if _RANKS[known.reach] < needed and known.after.capture.failure is None:
                return one
            proof = compare(finding, self._studied, known.after, known.reach, relaid=one.is_relaid)
            return replace(one, proof=replace(proof, together=known.together if known.together != one.changes else ()))

        return replace(finding, suggestions=tuple(map(with_proof, finding.suggestions)))

    def compile(self, plans: Sequence[_Plan]) -> None:
        """Do some compiles; those to the TTGIR go on if what they made may not fit on the device."""
        made = dict(self._compiled(plans))
        self._take(plans, made)
        doubtful = [one for one in plans if one.reach == "ttgir" and one.changes in made]
        doubtful = [one for one in doubtful if _may_not_fit(made[one.changes])]
        if doubtful:
            further = [replace(one, reach="assembly") for one in doubtful]
            self._take(further, dict(self._compiled(further)))

    def _take(self, plans: Sequence[_Plan], made: Mapping[Changes, Capture]) -> None:
        for plan in plans:
            is_made = plan.changes in made
            after = Studied(made[plan.changes]) if is_made else None
            self._known |= dict.fromkeys(plan.tried, _Tried(plan.changes, after, plan.reach))
            self._count += is_made
            self._long += is_made and plan.reach != "ttgir"

    def _compiled(self, plans: Iterable[_Plan]) -> Iterator[tuple[Changes, Capture]]:
        """(changes, the capture compiled with them); those that cannot be written into the source are left out."""
        capture = self._studied.capture
        trials: list[tuple[Changes, Trial]] = []
        for plan in plans:
            if (text := self._text_of(plan.changes)) is None:
                continue
            options = tuple((one.name, one.value) for one in plan.changes if one.kind == "option")
            after = snapshot_of(capture) if plan.changes[0].kind == "snapshot" else None
            last_stage = _last_stage(capture, plan.reach)
            trials.append((plan.changes, Trial(text, after, options, last_stage, layouts=plan.sectors)))
        if trials:
            for index, after in self._compile_trials(capture, [trial for _, trial in trials]):
                yield trials[index][0], after


def _stores_same(own: Studied, after: Capture) -> bool:
    """Whether another grid of other tiles stores to as many bytes of each argument."""

    def stored(studied: Studied) -> Counter[str]:
        accesses = [
            one.access for one in studied.global_costs if one.access is not None and one.access.action == "store"
        ]
        return sum((Counter({one.argument or "": one.launch.distinct_bytes[1]}) for one in accesses), Counter[str]())

    return after.has_compiled and stored(own) == stored(Studied(after))


def _farthest(reaches: Iterable[Reach]) -> Reach:
    return max(reaches, key=lambda one: _RANKS[one])


def _left(most: int | None, used: int) -> int:
    return 1 << 30 if most is None else max(0, most - used)


def _last_stage(capture: Capture, reach: Reach) -> str:
    if reach == "ttgir":
        return "ttgir"
    return {"cuda": "ptx", "hip": "amdgcn"}.get(capture.target.backend, "") if reach == "assembly" else ""


def shared_compiles(wanted: Sequence[Changes], most: int) -> dict[Changes, list[Changes]]:
    """At most so many compiles -> the changes that each tries; where there are more, arguments change together.

    The first of them is tried in any case.
    """
    if len(wanted) <= most:
        return {one: [one] for one in wanted}
    if not most:
        return {}
    options = [one for one in wanted if any(part.kind in ("option", "snapshot") for part in one)]
    shares = len(options) < len(wanted) and (most > 1 or wanted[0] not in options)
    alone = options[: most - 1] if shares else options[:most]
    together: dict[tuple[str, bool], FixChange] = {}
    tried: list[Changes] = []
    for one in wanted if shares else ():
        if one not in options and all(together.get(subject(part), part) == part for part in one):
            together |= {subject(part): part for part in one}
            tried.append(one)
    return {one: [one] for one in alone} | ({tuple(together.values()): tried} if tried else {})


def subject(change: FixChange) -> tuple[str, bool]:
    """What a change is of: two of one subject contradict each other; products and remainders are two."""
    return change.name, change.kind == "contiguous"


def is_fixed(finding: Finding) -> bool:
    return any(one.proof is not None and one.proof.helps for one in finding.suggestions)


Reach = Literal["ttgir", "assembly", "binary"]
"""How far a compile goes: to the TTGIR, to PTX or AMDGCN, or to the binary. The first takes a tenth of the last."""


@dataclass(frozen=True, slots=True)
class _Measured:
    value: int
    """The less the better."""
    text: str


_Measure = Callable[[Finding, Studied], "_Measured | None"]


def reach_of(finding: Finding) -> Reach:
    """How far a compile must go to show whether a finding is fixed."""
    return _REACHES.get(finding.code, "binary")


def compare(finding: Finding, own: Studied, other: Studied, reach: Reach = "binary", *, relaid: bool = False) -> Proof:
    """What a compile that tries a suggestion says of it, and that went so far.

    The other capture should hold its layouts if sectors are compared. `relaid`: whether another layout is tried, which
    may bring conversions in.
    """
    before, after = own.capture, other.capture
    if not after.has_compiled:
        return Proof(False, failure=after.failure.why_not_run if after.failure is not None else "it was not compiled")
    measure = _MEASURES.get(finding.code)
    if measure is None:
        failure = _why_not_run(after)
        return Proof(not failure, tuple(_others(finding, before, after)), failure, unseen=_UNSEEN[reach])
    was, now = (measure(finding, one) for one in (own, other))
    if was is None or now is None:
        return Proof(False, failure="what it changes cannot be found in the new compile")
    effects = (f"{was.text} → {now.text}",) if was.text != now.text else ()
    failure = "" if before.failure is not None else _why_not_run(after)
    fits = not failure
    narrower = dict(_narrower(own, other)) if finding.code == "IRS401" else {}
    loops = own.operations[finding.line][1] if narrower else 0
    helps = now.value < was.value and fits and all(depth < loops for depth in narrower.values())
    more = _of_layouts(finding, own, other) if relaid else ()
    effects = (*effects, *narrower, *more, *_others(finding, before, after))
    return Proof(helps, effects, failure, unseen=_UNSEEN[reach])


def _narrower(own: Studied, other: Studied) -> Iterator[tuple[str, int]]:
    """The accesses to global memory that a compile made narrower, and in how many loops they are."""
    for one, loops in own.operations.values():
        if one.opcode in ACCESSES and (was := max(own.machine.widths_of(one), default=0)):
            chain = own.chain_at(one.first_line)
            same = (at for at, (same, _) in other.operations.items() if same.opcode in ACCESSES)
            widths = [
                width
                for at in same
                if chain and other.chain_at(at) == chain
                for width in other.machine.widths_of(other.operations[at][0])
            ]
            if widths and max(widths) < was:
                yield f"{was} → {max(widths)} bits per thread of {one.name} (line {one.first_line} of ttgir)", loops


def _of_layouts(finding: Finding, own: Studied, other: Studied) -> Iterator[str]:
    """How the conversions of a kernel, and the instructions of the access, change by another layout."""
    counts = [Counter(one.opcode for one, _ in each.operations.values())["convert_layout"] for each in (own, other)]
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


def _may_not_fit(capture: Capture) -> bool:
    """Whether the buffers of a capture's TTGIR, one beside the other, take more shared memory than a block has."""
    limits = CUDA_LIMITS.get(capture.target.arch) or HIP_LIMITS.get(capture.target.arch)
    allocations = (one for one in parse_mlir(capture.text("ttgir")).walk() if one.opcode == "local_alloc")
    buffers = (prod(kind.shape) * kind.element_bits for one in allocations for kind in one.result_types)
    return limits is None or sum(buffers) > 8 * limits.shared_bytes_per_block


def _why_not_run(after: Capture) -> str:
    """Why a kernel cannot run; of a compile that ended before the binary, by its shared memory. Empty if it can."""
    if after.failure is not None:
        return after.failure.why_not_run
    return "" if after.resources.registers is not None else "; ".join(map(str, excesses_of(after)))


def _others(finding: Finding, before: Capture, after: Capture) -> Iterator[str]:
    """How the figures of the whole kernel change."""
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


def _costs_at(finding: Finding, studied: Studied, costs: Sequence[Cost]) -> list[Cost]:
    """The costs of the operations of a finding's place; of a copy past the registers as of a load."""
    return [cost for cost in costs if studied.chain_at(cost.line) == finding.chain]


def _widths(finding: Finding, studied: Studied) -> Counter[int]:
    """Bits a lane → number of instructions, of the accesses of a finding's place."""
    found = Counter[int]()
    for one, _ in studied.operations.values():
        if one.opcode in ACCESSES and studied.chain_at(one.first_line) == finding.chain:
            found += studied.machine.widths_of(one)
    return found


def _width(finding: Finding, studied: Studied) -> _Measured | None:
    widths = _widths(finding, studied)
    return _Measured(-max(widths), f"{max(widths)} bits per thread") if widths else None


def _sectors(finding: Finding, studied: Studied) -> _Measured | None:
    costs = _costs_at(finding, studied, studied.global_costs)
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
        for one, loops in studied.operations.values()
        if loops
        and (one.name == finding.operation or one.opcode in LOADS)
        and studied.chain_at(one.first_line) == finding.chain
    ]
    count = max((buffers_of(studied, one) for one in copies), default=0)
    return _Measured(-count, f"{count} buffers") if count else None


def _waits(_: Finding, studied: Studied) -> _Measured | None:
    if not any(one.opcode == "warp_group_dot" for one, _ in studied.operations.values()):
        return None
    waits = waits_in_loops([*studied.operations.values()])
    return _Measured(waits, f"{waits} dots that block immediately")


def _through_shared(_: Finding, studied: Studied) -> _Measured | None:
    """What the whole kernel stores to shared memory: a conversion may be done elsewhere instead."""
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


_REACHES: dict[str, Reach] = {
    **dict.fromkeys(("IRS101", "IRS102", "IRS103", "IRS401"), "assembly"),
    **dict.fromkeys(("IRS201", "IRS202", "IRS302"), "ttgir"),
}
_UNSEEN: dict[Reach, tuple[str, ...]] = {
    "ttgir": ("widths", "registers", "shared memory"),
    "assembly": ("registers",),
    "binary": (),
}
"""What a compile that goes no further does not show."""
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

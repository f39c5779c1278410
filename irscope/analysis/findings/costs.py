"""The cost of each finding: the predicted time of the launch, less that of the same model without the fault.

Findings are ordered by that time. A finding that another one at the same place brings about comes after it, and both
are given the time of the two: the fix of the first is that of the second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from irscope.analysis.findings.find import findings_of, worst
from irscope.analysis.findings.launches import (
    SATURATED,
    bound_of,
    innermost,
    launch_findings,
    reasons_of,
    unexplained,
    waits_for_atomics,
)
from irscope.analysis.findings.loops import loads_of_dot, loops_with_dots
from irscope.analysis.findings.model import LEAST_SHARE, Finding
from irscope.analysis.findings.work import repeats_within
from irscope.errors import DAMAGE, IrscopeError
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.analysis.findings.studied import Studied
    from irscope.timing.accesses import Access
    from irscope.timing.predict import Model, Prediction

_GLOBAL = ("load", "store", "copy")
_LOADS = ("LDG", "LD", "LDGSTS")
_OF_ADDRESSES = (
    "IMAD", "IADD3", "IADD", "VIADD", "LEA", "ISETP", "LOP3", "PLOP3", "SEL", "PRMT", "MOV", "SHF", "R2P", "P2R",
)  # fmt: skip
"""The operations that compute addresses and conditions."""
_OF_VECTORS = ("IRS101", "IRS102")
_OF_LOOP = ("IRS201", "IRS203", "IRS205")
"""Kinds that one edit of a loop fixes all of."""
_CONSEQUENCES = {
    **dict.fromkeys(_OF_VECTORS, ("IRS201", "IRS202", "IRS203", "IRS302")),
    "IRS103": (*_OF_VECTORS, "IRS201", "IRS202", "IRS203", "IRS302"),
    "IRS201": ("IRS302",),
    "IRS205": ("IRS203", "IRS401", "IRS506"),
    "IRS206": ("IRS104", "IRS203", "IRS506"),
    **dict.fromkeys(("IRS301", "IRS601"), ("IRS304", "IRS308", "IRS401", "IRS402", "IRS501", "IRS506")),
    "IRS305": ("IRS101", "IRS103", "IRS307", "IRS401", "IRS402", "IRS501"),
    "IRS307": ("IRS101", "IRS103", "IRS201", "IRS302", "IRS401", "IRS402"),
    "IRS306": ("IRS401", "IRS402", "IRS501", "IRS506"),
    "IRS308": ("IRS304",),
    "IRS505": ("IRS203", "IRS506", "IRS509"),
}
"""Kind → the kinds of its consequences at its place, or in the whole kernel."""
_EVERYWHERE = ("IRS505",)
"""The kinds with consequences at any place."""
_OF_MODEL = frozenset((
    "IRS104", "IRS105", "IRS106", "IRS203", "IRS204", "IRS205", "IRS206", "IRS306", "IRS307", "IRS308", "IRS505",
    "IRS506", "IRS507", "IRS510", "IRS605", "IRS606",
))  # fmt: skip
OF_TIME = _OF_MODEL | {"IRS508", "IRS509"}
"""Kinds that only the predicted time of a launch shows."""
_OF_OTHER_WORK = ("IRS103", "IRS105", "IRS106", "IRS301", "IRS305", "IRS601", "IRS604")
"""Kinds whose fix has fewer sectors, less arithmetic, or other units, than the roofline's minimum counts."""
_OF_KERNEL = ("IRS501", "IRS506")
_ENOUGH_SAID = 0.1
"""The part of the time above which a finding explains a launch that takes longer than the minimum."""
_MOST_OF_FLOOR = 1.3
_MOST_RESIDENT = 32
"""CTAs of a multiprocessor at once, on the NVIDIA GPUs since Volta but those of 8.6 to 8.9, which have 16 or 24."""
_OF_FLOAT64 = ("DFMA", "DMUL", "DADD", "DSETP")
_CONVERTING = ("F2F", "MUFU")
"""Opcodes that may be of float64: `F2F.F64.F32`, `MUFU.RCP64H`."""
_OF_FUNCTION = 0.25
"""Instructions of exp, log and others in float32, of those in float64: 4 to 8 of 25 to 40."""
_FMA_OF_DOT = 5.0
"""How many times as fast a dot is on the tensor cores, at the least."""


@dataclass(frozen=True)
class Timed:
    """The predicted time of a capture's launch."""

    prediction: Prediction | None
    floor_seconds: float | None
    """The roofline's minimum time; None if it is not known."""
    most_floor_seconds: float | None = None
    """The same with all bytes and operations that could not be counted."""
    why_not: str = ""
    """Why there is no prediction."""
    model: Model | None = None
    """None where the prediction is not from machine code: then findings have no times."""

    @property
    def is_floor_open(self) -> bool:
        """Whether some of its bytes or operations could not be counted, so that the minimum is higher."""
        return self.floor_seconds != self.most_floor_seconds

    @property
    def least_seconds(self) -> float | None:
        """The minimum time; where it is open, with the bytes that DRAM moves in the model."""
        prediction, low, high = self.prediction, self.floor_seconds, self.most_floor_seconds
        if prediction is None or low is None or high is None or self.model is None:
            return low
        work = prediction.seconds - prediction.launch_seconds
        return max(low, min(high, dict(prediction.busy).get("DRAM", 0.0) * work))


def timed(capture: Capture, *, part: str | None = None) -> Timed:
    """Predict the launch of a capture that holds its SASS."""
    from irscope.timing.predict import Model

    if why := _why_not(capture):
        return Timed(None, None, why_not=why)
    try:
        model = Model(capture, part=part)
        low, high = _floor(capture, model.prediction.part) or (None, None)
        return Timed(model.prediction, low, high, model=model)
    except (IrscopeError, *DAMAGE) as error:
        return Timed(None, None, why_not=str(error) or type(error).__name__)


def _why_not(capture: Capture) -> str:
    if capture.failure is not None:
        return "it did not compile"
    if capture.launch.grid is None:
        return "it was compiled, not launched: --grid X,Y,Z and --size NAME=N state a launch"
    if capture.target.backend != "cuda":
        return f"the machine code of {capture.target} is not modelled"
    return "" if "sass" in capture.stages else "the capture holds no SASS"


def _floor(capture: Capture, part: str) -> tuple[float, float] | None:
    from irscope.analysis.roofline import roofline_of
    from irscope.device.parts import PEAKS

    try:
        floor = roofline_of(capture, PEAKS.get(part)).floor_s
    except (IrscopeError, *DAMAGE):
        return None
    return floor if floor is not None and 0 < floor[0] < inf else None


def priced(studied: Studied, findings: Iterable[Finding], time: Timed) -> tuple[Finding, ...]:
    """Findings with their predicted times, the most expensive first, and the findings that follow from the times.

    Without a model they stay in the order of `worst`.
    """
    if time.model is None or time.prediction is None:
        return worst(findings)
    pricer = _Pricer(studied, time)
    found = [*findings, *launch_findings(studied, time.model, time.prediction)]
    loops = {operation.first_line: loop.first_line for loop, operation in innermost(studied)}
    result = [pricer.priced(one, [other for other in found if _has_same_fix(one, other, loops)]) for one in found]
    # What only the times show is no finding where they do not show it.
    result = [one for one in result if one.code not in _OF_MODEL or (one.seconds and one.share >= LEAST_SHARE)]
    if _is_slow(time) and not any(one.share >= _ENOUGH_SAID for one in result):
        reason = pricer.priced(unexplained(studied, time.model, time.prediction, time.floor_seconds))
        # A launch at the limit of a unit gains nothing by it: the only reason is shown all the same.
        is_only = reason.is_small and all(one.is_small for one in result)
        result.append(replace(reason, seconds=None, share=0.0) if is_only else reason)
    return in_order(_with_consequences(result, loops, reasons_of(bound_of(time.prediction))))


def _has_same_fix(one: Finding, other: Finding, loops: Mapping[int, int]) -> bool:
    """Whether what fixes one finding fixes another one: the same change, or the same edit of one loop."""
    if one is other:
        return True
    if one.code in _OF_VECTORS and other.code in _OF_VECTORS:
        wanted, others = ([each.changes for each in finding.suggestions if each.changes] for finding in (one, other))
        return bool(wanted and others and wanted[0] == others[0])
    return one.code == other.code and one.code in _OF_LOOP and loops.get(one.line) == loops.get(other.line)


def _is_slow(time: Timed) -> bool:
    """Whether the work takes longer than its minimum; where that misses bytes, what DRAM moves is the minimum."""
    prediction, floor = time.prediction, time.floor_seconds
    if prediction is None or floor is None:
        return False
    work = prediction.seconds - prediction.launch_seconds
    # What DRAM is busy with is said: it bounds the launch, and kinds of their own name what it moves too much.
    if prediction.bound == "DRAM" or (time.is_floor_open and not waits_for_atomics(prediction)):
        floor = max(floor, dict(prediction.busy).get("DRAM", 0.0) * work)
    return work > _MOST_OF_FLOOR * floor


def every_finding(studied: Studied) -> tuple[tuple[Finding, ...], Prediction | None]:
    """The findings of a capture as `why` orders them, and the prediction of its launch; neither of a damaged one."""
    time = timed(studied.capture)
    try:
        return priced(studied, findings_of(studied), time), time.prediction
    except DAMAGE:
        # The texts come from the capture's file, which may say anything.
        return (), None


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Kernels that do not run or go astray first, then what costs most, then what has no time."""

    def key(one: Finding) -> tuple[object, ...]:
        cost = one.seconds
        small = cost is not None and one.share < LEAST_SHARE
        group = 0 if one.kind.rank == 0 else 3 if small else 2 if cost is None else 1
        # Of equal costs the cause comes first: of any place, of one place, and last what only has no other reason.
        causes = one.code not in _EVERYWHERE, one.code == "IRS509", -len(_CONSEQUENCES.get(one.code, ()))
        return group, -(cost or 0.0), causes, one.code, -one.weight, one.line

    return tuple(sorted(worst(findings), key=key))


def _with_consequences(
    findings: Sequence[Finding], loops: Mapping[int, int], reasons: Collection[str]
) -> list[Finding]:
    """Findings with the costs of their consequences; `reasons`: the kinds that bring about the bound of the launch."""

    def caused(one: Finding, other: Finding) -> bool:
        if other.code == "IRS509" and one.code in reasons:
            return not one.is_small
        is_there = (bool(one.place) and one.place[:1] == other.place[:1]) or other.code in _OF_KERNEL
        is_there = is_there or other.line in one.lines or one.code in _EVERYWHERE
        is_there = is_there or (other.line in loops and loops.get(one.line) == loops[other.line])
        return other.code in _CONSEQUENCES.get(one.code, ()) and is_there

    result: list[Finding] = []
    for one in findings:
        of_it = [other for other in findings if caused(one, other)]
        most = max((other for other in (one, *of_it)), key=lambda other: other.seconds or 0.0)
        result.append(replace(one, seconds=most.seconds, share=most.share) if of_it else one)
    return result


class _Pricer:
    """Asks the model of one launch what each finding costs."""

    def __init__(self, studied: Studied, time: Timed) -> None:
        assert time.model is not None
        assert time.prediction is not None
        model, prediction = time.model, time.prediction
        self._studied = studied
        self._model = model
        self._prediction = prediction
        self._whole = prediction.seconds
        self._floor = prediction.launch_seconds + (time.floor_seconds or 0.0) / SATURATED
        self._locations = model.locations
        self._bases = model.execution.program.bases
        self._global = {index for index, one in model.accesses if one.kind in _GLOBAL}
        work = prediction.seconds - prediction.launch_seconds
        self._least = prediction.launch_seconds + work * min(model.saturation / SATURATED, 1.0)
        busy = dict(prediction.busy)
        self._least_of_dram = prediction.launch_seconds + work * busy.get("DRAM", 0.0)
        # Copies to shared memory move the same bytes, but need no registers and no stores.
        most = max(busy.get(unit, 0.0) for unit in ("DRAM", "L2", "L2 port"))
        self._least_of_copies = prediction.launch_seconds + work * min(most / SATURATED, 1.0)
        dots = [one for loop in loops_with_dots(studied) for one in loop.walk() if one.kind == "dot"]
        self._loads_of_dots = {load.first_line for one in dots for load in loads_of_dot(studied, one)}

    def priced(self, finding: Finding, alike: Sequence[Finding] = ()) -> Finding:
        """A finding with its time, if the model can tell it; `alike`: those that have its fix, itself among them."""
        seconds = finding.seconds
        if seconds is None:
            if finding.code in _OF_VECTORS:
                after = self._wider(alike)
            else:
                after = self._after(finding, {at for one in alike for at in self._at(one)})
            if after is None:
                return finding
            # No unit does the least work of the launch faster.
            least = 0.0 if finding.code in _OF_OTHER_WORK else self._floor
            seconds = max(self._whole - max(after, least), 0.0)
        return replace(finding, seconds=seconds, share=seconds / self._whole)

    def _at(self, finding: Finding) -> Collection[int]:
        """The instructions of its place, and of its lines: those of the same calls, or else of the same line."""
        chains = [finding.chain, *(self._studied.chain_at(line) for line in finding.lines)]
        wanted = {tuple((frame.file, frame.line) for frame in chain) for chain in chains} - {()}
        frames = [tuple((frame.file, frame.line) for frame in chain) for chain in self._locations]
        own = {index for index, chain in enumerate(frames) if chain in wanted}
        if finding.code == "IRS205":
            # What it combines elements by is called from there.
            own |= {index for index, chain in enumerate(frames) for one in wanted if chain[-len(one) :] == one}
        if not own:
            # Before Triton 3.8 the assembly does not name the callers: those of all calls of the line.
            own = {index for index, chain in enumerate(frames) for one in wanted if chain == one[: len(chain)] != ()}
        place = finding.place[:1]
        return own or {
            index for index, chain in enumerate(self._locations)
            if place and chain and (chain[0].file, chain[0].line) == place[0]
        }  # fmt: skip

    def _after(self, finding: Finding, here: Collection[int]) -> float | None:
        """The predicted time without it, at some instructions; None if the model has no such question."""
        code = finding.code
        if code == "IRS501":
            return self._model.seconds(keeps=lambda index: 0.0 if self._bases[index] in ("LDL", "STL") else 1.0)
        if code == "IRS502":
            return self._at_least(self._model.seconds(resident=self._model.execution.resident * 2))
        if code == "IRS504":
            return self._at_least(self._model.seconds(resident=self._model.execution.resident + 1))
        if not here:
            return None
        if code == "IRS103":
            return self._coalesced(here)
        if code == "IRS201" and finding.line in self._loads_of_dots:
            copied = _left({*here} - self._global, 0.0)
            return max(self._changed(here, lambda one: replace(one, missed=0.0), copied), self._least_of_copies)
        if code in ("IRS201", "IRS202", "IRS203"):
            return self._at_least(self._changed(here, lambda one: replace(one, missed=0.0)))
        if code == "IRS402":
            return self._changed(here, lambda one: replace(one, wavefronts=min(one.wavefronts, one.ideal_wavefronts)))
        if code in ("IRS301", "IRS601"):
            return self._thinned(here, ("FFMA", "HFMA2", "LDS"), 1 / _FMA_OF_DOT)
        if code == "IRS104":
            return self._without_repeats(finding, here)
        if code == "IRS204":
            return self._without_iterations(finding)
        if code == "IRS306":
            if finding.factor > 1:
                return self._thinned(here, (), 1 / finding.factor)
            return self._thinned({*here} - self._global, (), 1 / _FMA_OF_DOT)
        if code == "IRS307":
            # Accesses that are so many times fewer and wider, and all else of the line as often.
            accesses = self._global.intersection(here)
            return self._changed(accesses, lambda one: _vector(one, finding.factor), _left(here, 1 / finding.factor))
        if code == "IRS308":
            matrices = [at for at, base in enumerate(self._bases) if base in ("LDSM", "HMMA", "LDS")]
            return self._thinned({*here, *matrices}, (*_LOADS, "LDSM", "LDS"), 1 / finding.factor)
        if code == "IRS510":
            arrays = {one.array for index, one in self._model.accesses if index in here}
            parts = self._model.execution.from_dram.items()
            fewer = {array: part / finding.factor if array in arrays else part for array, part in parts}
            return self._model.seconds(from_dram=fewer)
        if code == "IRS506":
            return self._at_least(self._with_fewer_warps(finding.factor))
        if code == "IRS305":
            return self._thinned(here, ("HMMA", "HGMMA", "LDS", "STS", "LDSM", "FFMA"), 0.5)
        if code == "IRS304":
            return self._thinned(here, ("HMMA", "LDSM"), 0.5)
        if code in ("IRS302", "IRS303"):
            return self._at_least(self._thinned(here, ("WARPGROUP",), 0.0))
        if code == "IRS309":
            return self._at_least(self._thinned(here, ("LDTM", "STTM"), 0.0))
        if code == "IRS401":
            return self._thinned(here, ("LDS", "STS", "LDSM", "STSM", "BAR", "SHFL"), 0.0)
        if code == "IRS604":
            return self._in_float32(finding)
        if code in ("IRS206", "IRS606"):
            return self._thinned({*here} - (self._global if code == "IRS606" else set()), (), 1 / finding.factor)
        if code == "IRS106":
            # Of each two sectors one is read.
            loads = {at for at in here if self._bases[at] in _LOADS}
            return self._changed(loads, lambda one: replace(one, sectors=one.sectors / 2, lines=one.lines / 2))
        if code == "IRS105":
            launch = self._prediction.launch_seconds
            return max(launch + (self._whole - launch) / finding.factor, self._least_of_dram)
        if code in ("IRS602", "IRS605"):
            return self._without_atomics(here)
        if code == "IRS205":
            if not any(self._bases[at] == "BAR" for at in here):
                # Each warp combines what it has itself.
                return self._whole
            return self._at_least(self._thinned(here, (), 0.0))
        return None

    def _at_least(self, seconds: float) -> float:
        """Waiting less moves no byte less: no unit does its work faster, nor is it busy all the time."""
        return max(seconds, self._least)

    def _changed(
        self, here: Collection[int], change: Callable[[Access], Access], keeps: Callable[[int], float] | None = None
    ) -> float:
        def access(index: int, one: Access) -> Access:
            return change(one) if index in here else one

        return self._model.seconds(access=access, keeps=keeps)

    def _coalesced(self, here: Collection[int]) -> float:
        """As few sectors as the bytes fill; what L1 kept of another access's sectors, each access misses itself."""
        from irscope.timing.predict import coalesced

        missed: defaultdict[tuple[int, str], float] = defaultdict(float)
        fewest: defaultdict[tuple[int, str], float] = defaultdict(float)
        for index, one in self._model.accesses:
            if index in here and coalesced(one) is not one:
                missed[one.array, one.kind] += one.sectors * one.missed
                fewest[one.array, one.kind] += one.ideal_sectors

        def change(one: Access) -> Access:
            key = one.array, one.kind
            after = coalesced(one)
            return one if after is one else replace(after, missed=min(1.0, missed[key] / max(fewest[key], 1e-9)))

        return self._changed(here, change)

    def _without_repeats(self, finding: Finding, here: Collection[int]) -> float:
        """So many times fewer sectors of its loads; where its lanes repeat each other, fewer loads of as many."""
        factor = finding.factor
        loads = {at for at in here if self._bases[at] in _LOADS}
        is_within = repeats_within(self._studied, finding.line, factor)
        more = factor if is_within else 1 / factor

        def change(one: Access) -> Access:
            return replace(one, sectors=one.sectors * more, lines=one.lines * more)

        return self._changed(loads, change, _left(loads if is_within else (), 1 / factor))

    def _without_atomics(self, here: Collection[int]) -> float:
        """A store in place of each atomic, of each address once, however many CTAs add to it at the same time."""
        fresh = self._model.execution.fresh
        left = {index: fresh.get(one.array, 1.0) for index, one in self._model.accesses if one.kind == "atomic"}
        return self._changed(
            left.keys() & {*here},
            lambda one: replace(one, kind="store"),
            lambda index: left.get(index, 1.0) if index in here else 1.0,
        )

    def _in_float32(self, finding: Finding) -> float:
        """Half of the instructions in float64, and fewer of those functions of which float32 has instructions."""
        functions = {*self._at(replace(finding, chain=(), place=()))} - self._global

        def keeps(at: int) -> float:
            base, opcode = self._bases[at], self._model.execution.program.code[at].opcode
            is_wide = base in _OF_FLOAT64 or (base in _CONVERTING and "64" in opcode)
            return _OF_FUNCTION if at in functions else 0.5 if is_wide else 1.0

        return self._model.seconds(keeps=keeps)

    def _without_iterations(self, finding: Finding) -> float:
        """A part of the iterations of the loop, the time of whose lines is known, is left."""
        places = {(place.file, place.line) for line in finding.lines for place in self._studied.chain_at(line)}
        share = sum(one.share for one in self._prediction.lines if (one.file, one.line) in places)
        work = (self._whole - self._prediction.launch_seconds) * min(share, 1.0)
        return self._whole - work * (1 - 1 / finding.factor)

    def _thinned(self, here: Collection[int], opcodes: Sequence[str], part: float) -> float:
        """A part of the instructions of some opcodes is left, of all of them if none is named."""
        chosen = {at for at in here if not opcodes or self._bases[at] in opcodes}
        return self._model.seconds(keeps=_left(chosen, part))

    def _with_fewer_warps(self, factor: float) -> float:
        """So many times fewer warps, each with as much more of the tile: their instructions are issued less often.

        As many times more CTAs are resident, as far as a multiprocessor takes them.
        """
        kinds = {index: one.kind for index, one in self._model.accesses}
        resident = self._model.execution.resident
        return self._model.seconds(
            # Global memory moves the same bytes.
            keeps=lambda index: 1 / factor if kinds.get(index, "") in ("", "shared") else 1.0,
            resident=min(int(resident * factor), max(_MOST_RESIDENT, resident)),
        )

    def _wider(self, findings: Sequence[Finding]) -> float:
        """Wider accesses: each vector has one instruction, one address and one condition.

        Loads of a dot are copies then, which no iteration waits for: no registers and no stores to shared memory.
        """
        factors: dict[int, float] = {}
        copied: set[int] = set()
        for one in findings:
            factor = max(one.factor, 1.0)
            factors |= {at: factor for at in self._at(one) if at in self._global}
            if one.line in self._loads_of_dots:
                copied |= {*self._at(one)}
            addressing = self._at(replace(one, chain=(), place=()))
            factors |= {at: factor for at in addressing if self._bases[at] in _OF_ADDRESSES}

        def access(index: int, one: Access) -> Access:
            if index not in factors or one.kind not in _GLOBAL:
                return one
            wide = _vector(one, factors[index])
            return replace(wide, missed=0.0) if index in copied else wide

        def keeps(index: int) -> float:
            return 0.0 if index in copied and index not in factors else 1 / factors.get(index, 1.0)

        seconds = self._model.seconds(access=access, keeps=keeps)
        return max(seconds, self._least_of_copies if copied else 0.0, self._least_of_dram * self._aligned_part(factors))

    def _aligned_part(self, wider: Collection[int]) -> float:
        """The part of the bytes of DRAM that is left where each of some accesses has as few sectors as it can."""
        before = after = 0.0
        for index, one in self._model.accesses:
            if one.kind in _GLOBAL:
                before += one.sectors * one.missed
                sectors = min(one.ideal_sectors, one.sectors) if index in wider else one.sectors
                after += min(sectors, one.sectors * one.missed)
        return after / before if before else 1.0


def _left(here: Collection[int], part: float) -> Callable[[int], float]:
    return lambda index: part if index in here else 1.0


def _vector(one: Access, factor: float) -> Access:
    sectors = max(one.ideal_sectors * factor, 1.0)
    missed = min(1.0, one.sectors * one.missed * factor / sectors)
    fronts = 0.0 if one.kind == "load" else one.wavefronts
    lines = max(sectors / 4, 1.0)
    return replace(one, sectors=sectors, ideal_sectors=sectors, lines=lines, missed=missed, wavefronts=fronts)

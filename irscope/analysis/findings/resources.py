"""IRS501 to IRS504: registers that spill or only the end of a kernel needs, occupancy, kernels that do not fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from os.path import basename

from irscope.analysis.findings.model import Cause, Finding, FixChange, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.analysis.source.map import python_line
from irscope.device.occupancy import HIP_LIMITS, REGISTERS, SHARED, TENSOR_MEMORY, Occupancy, occupancy, occupancy_of
from irscope.device.parts import part_of
from irscope.ir.asm.instructions import spill_of
from irscope.ir.asm.opcodes import classify
from irscope.ir.columns import read_body
from irscope.ir.locations.model import Chain, Place, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.registers import LiveValues, live_values, makers_of
from irscope.ir.syntax import Ignored
from irscope.model.capture import Capture, Launch, StageKind


def resource_findings(studied: Studied) -> Iterator[Finding]:
    """The finding of a kernel that does not fit on the device."""
    capture = studied.capture
    if capture.failure is None or capture.failure.kind != "fit":
        return
    from irscope.memory.allocation import allocations_of

    causes = [Cause(capture.failure.headline, "binary", "the compile")]
    place: Place = ()
    stages = _number(capture.launch.option("num_stages"))
    over, fitting = 0, 1 << 30
    for memory in allocations_of(capture):
        if memory.limit is None or memory.total <= memory.limit:
            continue
        over = memory.total - memory.limit
        fitting = min(fitting, memory.limit * stages // memory.total)
        text = f"{memory.total} {memory.unit} of {memory.space} memory, of which the device has {memory.limit}"
        causes.append(Cause(text, "ir", "the allocator"))
        largest = max(memory.buffers, key=lambda one: one.size, default=None)
        if largest is not None:
            text = f"the largest buffer: {largest.size} {memory.unit} of {largest.owner}, {largest.what}"
            causes.append(Cause(text, "ir", f"line {largest.line} of the IR after allocation"))
            file, _, line = largest.place.rpartition(":")
            place = ((file, int(line)),) if line.isdecimal() else ()
    suggestions: list[Suggestion] = []
    if stages > 1:
        causes.append(_set("num_stages", stages))
        suggestions = [_option("num_stages", count) for count in range(min(stages - 1, max(fitting, 1)), 0, -1)]
    suggestions.append(Suggestion("smaller tiles: `irscope layout --memory` compiles each of them"))
    cost = f"{over} more than the device has" if over else "it cannot be launched"
    yield studied.about_kernel(
        "IRS503", "does not fit on the device", cost, max(1, over), causes, suggestions, place=place
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 1


def _option(name: str, value: int) -> Suggestion:
    return Suggestion(f"{name}={value}", (FixChange("option", name, value),))


def _set(name: str, value: object) -> Cause:
    return Cause(f"{name} is {value}", "launch", "the options of the launch")


def _figure(text: str, source: str = "the assembler's figures") -> Cause:
    return Cause(text, "binary", source)


def _more_warps(launch: Launch) -> list[Suggestion]:
    warps = launch.option("num_warps", 4)
    return [_option("num_warps", 2 * warps)] if isinstance(warps, int) and 2 * warps <= _MOST_WARPS else []


_LEAST_SPILLED_BYTES = 32
"""Bytes per thread, stored and loaded: four registers."""
_MOST_WARPS = 32
_MOST_HOLDERS = 4
"""Lines of Python that are named with the registers that hold their values."""
_DOTS = ("mma", "wgmma", "tcgen05.mma", "mfma", "wmma")
_OWN_REGISTERS = "USETMAXREG"
"""Warps of one kernel have different numbers of registers: one number for the kernel means little."""
#     total += tl.load(p)      left, right = …      x: tl.tensor = …
_ASSIGNED = re.compile(r"\s*(?P<names>\w+(?:, ?\w+){0,8})\s*(?::[^=]{1,80})?(?:[-+*/%@&|^]|//|\*\*|<<|>>)?=(?!=)")


def register_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of the registers of the whole kernel."""
    capture = studied.capture
    if (capture.resources.spilled_bytes or 0) >= _LEAST_SPILLED_BYTES:
        yield _spills(studied)
    elif capture.failure is None:
        yield from _epilogue(studied)


def register_peak(capture: Capture) -> tuple[Chain, tuple[Cause, ...]]:
    """Where most of the registers of the machine code that hold a value at once were made, and what they hold."""
    assembly = _Assembly(capture)
    peak = assembly.peak()
    if peak is None:
        return (), ()
    return _most_common(assembly.makers(assembly.live.values(peak))), tuple(assembly.at_peak())


def _most_common(chains: Counter[Chain]) -> Chain:
    return chains.most_common(1)[0][0] if chains else ()


class _Assembly:
    """The text of the machine code, and the contents of its registers."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.stage: StageKind = "amdgcn" if capture.target.backend == "hip" else "sass"
        self.text = capture.texts.get(self.stage, "")
        texts = capture.texts
        self._locations = read_locations(self.text, self.stage, llir=texts.get("llir"), ptx=texts.get("ptx"))

    @cached_property
    def live(self) -> LiveValues:
        return live_values(read_body(self.text, self.stage, frozenset[Ignored]()))

    def chain_at(self, number: int) -> Chain:
        return self._locations.chain_at(number)

    def makers(self, values: Iterable[int]) -> Counter[Chain]:
        """Where some values are computed, and how many there."""
        numbers = self.live.body.numbers
        lines = (self._makers.get(value) for value in values)
        return Counter(chain for line in lines if line is not None and (chain := self.chain_at(numbers[line])))

    @cached_property
    def _makers(self) -> dict[int, int]:
        return makers_of(self.live.body)

    def held(self, values: Iterable[int]) -> str:
        """Which lines of Python computed some values, those of most values first: `12 of total (kernel.py:9)`."""
        places = Counter[tuple[str, int]]()
        for chain, number in self.makers(values).items():
            for place in place_of(chain, self._capture.launch.kernel.file)[:1]:
                places[place] += number
        return ", ".join(f"{number} {self._name(*place)}" for place, number in places.most_common(_MOST_HOLDERS))

    def peak(self, lines: Sequence[int] | None = None) -> int | None:
        """The line, of some or all, at which most registers hold values; None without code."""
        if not self.text:
            return None
        counts = self.live.counts
        return max(range(len(counts)) if lines is None else lines, key=lambda line: counts[line], default=None)

    def at_peak(self, lines: Sequence[int] | None = None) -> Iterator[Cause]:
        """The contents of the registers where most of those of some lines are live."""
        peak = self.peak(lines)
        if peak is not None:
            text = f"at most {self.live.counts[peak]} of its registers are live at once"
            held = self.held(self.live.values(peak))
            where = f"line {self.live.body.numbers[peak]} of {self.stage}"
            yield Cause(f"{text}: {held}" if held else text, "assembly", where)

    def _name(self, file: str, line: int) -> str:
        match = _ASSIGNED.match(python_line(self._capture, file, line))
        where = f"{basename(file)}:{line}"
        return f"of {match['names']} ({where})" if match is not None else f"from {where}"


def _spills(studied: Studied) -> Finding:
    capture = studied.capture
    resources, launch = capture.resources, capture.launch
    stored, loaded = resources.spill_store_bytes or 0, resources.spill_load_bytes or 0
    moved = f"{stored} bytes stored"
    if resources.spill_load_bytes is not None:
        moved += f", {loaded} loaded"
    causes = [_figure(f"{moved}, by each thread")]
    if resources.registers is not None:
        causes.append(_figure(f"a thread has {resources.registers} registers"))
    suggestions: list[Suggestion] = []
    if (most := launch.option("maxnreg")) is not None:
        causes.append(_set("maxnreg", most))
        suggestions.append(_option("maxnreg", 255))
    assembly = _Assembly(capture)
    causes += assembly.at_peak()
    if waves := launch.option("waves_per_eu"):
        causes.append(_set("waves_per_eu", waves))
        suggestions.append(_option("waves_per_eu", 0))
    suggestions += _more_warps(launch)
    stages = launch.option("num_stages", 1)
    if isinstance(stages, int) and stages > 1:
        suggestions.append(_option("num_stages", stages - 1))
    spilling = [number for number, line in enumerate(assembly.text.split("\n"), 1) if spill_of(line) == "store"]
    chains = Counter(chain for number in spilling if (chain := assembly.chain_at(number)))
    size = f"{stored + loaded} bytes per thread"
    text = f"spills registers: {size} stored to and loaded from local memory"
    chain = _most_common(chains)
    return studied.about_kernel("IRS501", text, size, stored + loaded, causes, suggestions, chain=chain)


def _end_of_loops(live: LiveValues) -> int | None:
    """The last line of the last loop with a dot, counted from 0; None without one."""
    body = live.body
    has_mma = [classify(shape.name) in _DOTS for shape in body.shapes]
    loops: list[tuple[int, int]] = []
    for line, following in enumerate(body.following):
        begins = [target for target in following if target <= line]
        if begins and any(has_mma[min(begins) : line + 1]):
            loops.append((min(begins), line))
    # An outer loop of a persistent kernel has the end of each tile inside it: the loop is the innermost one.
    inner = [
        (begin, end)
        for begin, end in loops
        if not any(begin <= other[0] and other[1] <= end and other != (begin, end) for other in loops)
    ]
    return max((end for _, end in inner), default=None)


def _epilogue(studied: Studied) -> Iterator[Finding]:
    """A kernel of which more would fit at once, if the code behind its loop had no more registers than the loop."""
    capture = studied.capture
    found, warps = occupancy_of(capture), capture.launch.option("num_warps", 4)
    registers, assembly = capture.resources.registers, _Assembly(capture)
    if found is None or found.limited_by != (REGISTERS,) or registers is None or not isinstance(warps, int):
        return
    if not assembly.text or _OWN_REGISTERS in assembly.text or _has_few_programs(capture, found):
        return
    live = assembly.live
    end = _end_of_loops(live)
    if end is None:
        return
    inside, behind = max(live.counts[: end + 1], default=0), max(live.counts[end + 1 :], default=0)
    if behind <= inside:
        return
    fewer = replace(capture.resources, registers=max(registers - (behind - inside), 1))
    other = occupancy(fewer, capture.target, found.warps_per_sm // found.ctas_per_sm)
    if other is None or other.ctas_per_sm <= found.ctas_per_sm:
        return
    after = range(end + 1, len(live.counts))
    peak = max(after, key=lambda line: live.counts[line])
    makers = assembly.makers(value for value in live.values(peak) if live.body.definers[value] in after)
    limit = _figure(f"registers alone limit it to {found.ctas_per_sm} CTAs", "the limits of the target")
    parts = Suggestion("split the epilogue: a slice of the accumulator at a time")
    yield studied.about_kernel(
        "IRS504",
        f"needs more registers after its loop than in it: {behind} are live, {inside} in the loop",
        f"{found.warps_per_sm} warps at once on one {found.unit} in place of {other.warps_per_sm}",
        other.warps_per_sm - found.warps_per_sm,
        [limit, *assembly.at_peak(after)],
        [*_more_warps(capture.launch), parts],
        chain=_most_common(makers),
    )


_FEW = 1 / 4
"""Of the warps that there may be, below which memory is waited for."""
_FEW_WITH_DOTS = 8
"""Warps, two for each scheduler: dots keep the matrix units busy with fewer than loads need."""
_MOST_REGISTERS, _LEAST_REGISTERS = 255, 24


def occupancy_findings(studied: Studied) -> Iterator[Finding]:
    """The finding of a kernel of which few warps fit at once, if registers or memory on the chip limit them."""
    capture = studied.capture
    found = occupancy_of(capture) if capture.failure is None else None
    if found is None or not found.ctas_per_sm or not {REGISTERS, SHARED, TENSOR_MEMORY} & set(found.limited_by):
        return
    has_dots = any(one.kind == "dot" for one in studied.operations.values())
    few = _FEW_WITH_DOTS if has_dots else _FEW * found.max_warps
    if found.warps_per_sm >= few or _has_few_programs(capture, found):
        return
    limits = dict(found.limits)
    others = ", ".join(f"{cause} {blocks}" for cause, blocks in limits.items() if cause not in found.limited_by)
    limited = " and ".join(found.limited_by)
    warps = found.warps_per_sm // found.ctas_per_sm
    text = f"{limited} limit it to {found.ctas_per_sm} CTAs of {warps} warps per {found.unit}; other limits: {others}"
    yield studied.about_kernel(
        "IRS502",
        f"few warps fit at once: {found.warps_per_sm} of {found.max_warps} on one {found.unit}",
        f"{found.fraction:.0%} occupancy: few warps hide each other's latency",
        max(1, found.max_warps - found.warps_per_sm),
        [_figure(text, "the limits of the target"), *_used(capture, found)],
        _suggestions(capture, found),
    )


def _has_few_programs(capture: Capture, found: Occupancy) -> bool:
    """Whether a launch has no more programs than fit at once on the part of the target that is known."""
    grid = capture.launch.grid
    return grid is not None and prod(grid) <= found.ctas_per_sm * part_of(str(capture.target)).multiprocessor_count


def _used(capture: Capture, found: Occupancy) -> Iterator[Cause]:
    resources = capture.resources
    if REGISTERS in found.limited_by:
        more = f" and {resources.accumulator_registers} accumulators" if resources.accumulator_registers else ""
        yield _figure(f"a thread has {resources.registers} registers{more}")
    if SHARED in found.limited_by:
        yield _figure(f"a CTA has {resources.shared_bytes} bytes of shared memory", "the allocator's figures")
    if TENSOR_MEMORY in found.limited_by:
        columns = f"a CTA has {resources.tensor_memory_columns} columns of tensor memory"
        yield _figure(columns, "the allocator's figures")


def _suggestions(capture: Capture, found: Occupancy) -> Iterator[Suggestion]:
    launch = capture.launch
    warps, stages = launch.option("num_warps", 4), launch.option("num_stages", 1)
    if SHARED in found.limited_by and isinstance(stages, int) and stages > 1:
        # Most of it is buffers, one for each stage.
        fewer = found.ctas_per_sm * stages // (found.ctas_per_sm + 1)
        yield from (_option("num_stages", count) for count in (fewer, fewer - 1) if count > 0)
    if REGISTERS in found.limited_by and isinstance(warps, int):
        yield from _more_warps(launch)
        if capture.target.arch in HIP_LIMITS:
            yield _option("waves_per_eu", found.warps_per_sm // HIP_LIMITS[capture.target.arch].simds + 1)
        elif (registers := _registers_of_more(capture, found, warps)) is not None:
            yield _option("maxnreg", registers)
    yield Suggestion("smaller tiles")


def _registers_of_more(capture: Capture, found: Occupancy, warps: int) -> int | None:
    for registers in range(min(capture.resources.registers or 0, _MOST_REGISTERS) // 8 * 8, _LEAST_REGISTERS - 1, -8):
        other = occupancy(replace(capture.resources, registers=registers), capture.target, warps)
        if other is not None and other.ctas_per_sm > found.ctas_per_sm:
            return registers
    return None

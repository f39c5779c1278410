"""IRS501 to IRS504: registers that spill or only the end of a kernel needs, occupancy, kernels that do not fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from os.path import basename

from irscope.analysis.findings.model import Cause, Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.analysis.source.map import python_line
from irscope.device.occupancy import HIP_LIMITS, REGISTERS, SHARED, TENSOR_MEMORY, Occupancy, occupancy, occupancy_of
from irscope.device.parts import part_of
from irscope.ir.asm.instructions import spill_of
from irscope.ir.asm.opcodes import classify
from irscope.ir.columns import read_body
from irscope.ir.locations.model import Chain, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.registers import LiveValues, live_values, makers_of
from irscope.ir.syntax import Ignored
from irscope.model.capture import Capture, StageKind

__all__ = ["has_few_programs", "occupancy_findings", "register_findings", "register_peak", "resource_findings"]


def resource_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of the whole kernel."""
    capture = studied.capture
    if capture.failure is not None and capture.failure.kind == "fit":
        yield _does_not_fit(capture)


def _does_not_fit(capture: Capture) -> Finding:
    from irscope.memory.allocation import allocations_of

    causes = [Cause(capture.failure.headline if capture.failure is not None else "", "binary", "the compile")]
    chain, place = (), ()
    stages = _number(capture.launch.option("num_stages"))
    over, fitting = 0, 1 << 30
    for memory in allocations_of(capture):
        if memory.limit is None or memory.total <= memory.limit:
            continue
        over = memory.total - memory.limit
        fitting = min(fitting, memory.limit * stages // memory.total)
        largest = max(memory.buffers, key=lambda one: one.size, default=None)
        causes.append(
            Cause(
                f"{memory.total} {memory.unit} of {memory.space} memory, {memory.limit} are there",
                "ir",
                "the allocator",
            )
        )
        if largest is not None:
            text = f"the largest buffer: {largest.size} {memory.unit} of {largest.owner}, {largest.what}"
            causes.append(Cause(text, "ir", f"line {largest.line} of the IR after allocation"))
            file, _, line = largest.place.rpartition(":")
            place = ((file, int(line)),) if line.isdecimal() else ()
    suggestions: list[Suggestion] = []
    if stages > 1:
        causes.append(Cause(f"num_stages is {stages}", "launch", "the options of the launch"))
        suggestions = [_option("num_stages", count) for count in range(min(stages - 1, max(fitting, 1)), 0, -1)]
    suggestions.append(Suggestion("smaller tiles: `irscope layout --memory` tries each of them with the script"))
    return Finding(
        "IRS503",
        "",
        0,
        (),
        chain,
        place,
        "does not fit on the device",
        f"{over} more than there is" if over else "it cannot be launched",
        max(1, over),
        tuple(causes),
        tuple(suggestions),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 1


def _option(name: str, value: int) -> Suggestion:
    return Suggestion(f"{name}={value}", (Change("option", name, value),))


_LEAST_SPILLED_BYTES = 32
"""Bytes per thread, stored and loaded: four registers."""
_MOST_WARPS = 32
_MOST_HOLDERS = 4
"""Lines of Python that are named with the registers that hold their values."""
_DOTS = ("mma", "wgmma", "tcgen05.mma", "mfma", "wmma")
_OWN_REGISTERS = "USETMAXREG"
"""Warps of one kernel have different numbers of registers: one for the kernel says little."""
#     total += tl.load(p)      left, right = …      x: tl.tensor = …
_ASSIGNED = re.compile(r"\s*(?P<names>\w+(?:, ?\w+){0,8})\s*(?::[^=]{1,80})?(?:[-+*/%@&|^]|//|\*\*|<<|>>)?=(?!=)")


def register_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of the registers of the whole kernel."""
    capture = studied.capture
    if (capture.resources.spilled_bytes or 0) >= _LEAST_SPILLED_BYTES:
        yield _spills(capture)
    elif capture.failure is None:
        yield from _epilogue(studied)


def register_peak(capture: Capture) -> tuple[Chain, tuple[Cause, ...]]:
    """Where most of the registers of the machine code that hold a value at once were made, and what they hold."""
    assembly = _Assembly(capture)
    if not assembly.text:
        return (), ()
    live = assembly.live
    peak = max(range(len(live.counts)), key=lambda line: live.counts[line], default=None)
    makers = assembly.makers(live.values(peak)) if peak is not None else Counter[Chain]()
    chain = makers.most_common(1)[0][0] if makers else ()
    return chain, tuple(_peak(assembly, range(len(live.counts))))


class _Assembly:
    """The text of the machine code, and what its registers hold."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.stage: StageKind = "amdgcn" if capture.target.backend == "hip" else "sass"
        self.text = capture.texts.get(self.stage, "")
        texts = capture.texts
        self._locations = read_locations(self.text, self.stage, llir=texts.get("llir"), ptx=texts.get("ptx"))

    @cached_property
    def live(self) -> LiveValues:
        """The live values of each line of `live.body`."""
        return live_values(read_body(self.text, self.stage, frozenset[Ignored]()))

    def chain_at(self, number: int) -> Chain:
        """Where a line of the text comes from, 1-based."""
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

    def _name(self, file: str, line: int) -> str:
        match = _ASSIGNED.match(python_line(self._capture, file, line))
        where = f"{basename(file)}:{line}"
        return f"of {match['names']} ({where})" if match is not None else f"from {where}"


def _spills(capture: Capture) -> Finding:
    resources = capture.resources
    stored, loaded = resources.spill_store_bytes or 0, resources.spill_load_bytes or 0
    moved = (
        f"{stored} bytes stored, {loaded} loaded"
        if resources.spill_load_bytes is not None
        else f"{stored} bytes stored"
    )
    causes = [Cause(f"{moved}, by each thread", "binary", "the assembler's figures")]
    if resources.registers is not None:
        causes.append(Cause(f"a thread has {resources.registers} registers", "binary", "the assembler's figures"))
    if (most := capture.launch.option("maxnreg")) is not None:
        causes.append(Cause(f"maxnreg is {most}", "launch", "the options of the launch"))
    assembly = _Assembly(capture)
    if assembly.text:
        causes += _peak(assembly, range(len(assembly.live.counts)))
    suggestions = [_option("maxnreg", 255)] if most is not None else []
    if waves := capture.launch.option("waves_per_eu"):
        causes.append(Cause(f"waves_per_eu is {waves}", "launch", "the options of the launch"))
        suggestions.append(_option("waves_per_eu", 0))
    warps, stages = capture.launch.option("num_warps", 4), capture.launch.option("num_stages", 1)
    if isinstance(warps, int) and 2 * warps <= _MOST_WARPS:
        suggestions.append(_option("num_warps", 2 * warps))
    if isinstance(stages, int) and stages > 1:
        suggestions.append(_option("num_stages", stages - 1))
    spills = _spilling_lines(assembly)
    chains = Counter(chain for number in spills if (chain := assembly.chain_at(number)))
    chain = chains.most_common(1)[0][0] if chains else ()
    return Finding(
        "IRS501",
        "",
        0,
        (),
        chain,
        place_of(chain, capture.launch.kernel.file),
        f"spills registers: {stored + loaded} bytes of each thread go to local memory and back",
        f"{stored + loaded} bytes of each thread",
        stored + loaded,
        tuple(causes),
        tuple(suggestions),
    )


def _spilling_lines(assembly: _Assembly) -> list[int]:
    """The lines that store to local memory, 1-based."""
    return [number for number, line in enumerate(assembly.text.split("\n"), 1) if spill_of(line) == "store"]


def _peak(assembly: _Assembly, lines: Sequence[int]) -> Iterator[Cause]:
    """What the registers hold where most of some lines do."""
    live = assembly.live
    peak = max(lines, key=lambda line: live.counts[line], default=None)
    if peak is None:
        return
    number = live.body.numbers[peak]
    text = f"at most {live.counts[peak]} of its registers hold values at once"
    held = assembly.held(live.values(peak))
    yield Cause(f"{text}: {held}" if held else text, "assembly", f"line {number} of {assembly.stage}")


@dataclass(frozen=True, slots=True)
class _Parts:
    """The lines of a kernel up to the end of its last loop with a dot, and those behind it."""

    before: range
    after: range


def _parts(live: LiveValues) -> _Parts | None:
    body = live.body
    has_mma = [classify(shape.name) in _DOTS for shape in body.shapes]
    ends: list[tuple[int, int]] = []
    for line, following in enumerate(body.following):
        if begins := [target for target in following if target <= line]:
            ends.append((min(begins), line))
    # An outer loop of a persistent kernel has the end of each tile inside it: the loop is the innermost one.
    dots = [(first, last) for first, last in ends if any(has_mma[first : last + 1])]
    inner = [one for one in dots if not any(one != other and _contains(one, other) for other in dots)]
    if not inner:
        return None
    last = max(end for _, end in inner)
    return _Parts(range(last + 1), range(last + 1, len(body.following)))


def _contains(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[0] and other[1] <= one[1]


def _epilogue(studied: Studied) -> Iterator[Finding]:
    """A kernel of which more would fit at once, if the code behind its loop had no more registers than the loop."""
    capture = studied.capture
    found, warps = occupancy_of(capture), capture.launch.option("num_warps", 4)
    registers, assembly = capture.resources.registers, _Assembly(capture)
    if found is None or found.limited_by != (REGISTERS,) or registers is None or not isinstance(warps, int):
        return
    if not assembly.text or _OWN_REGISTERS in assembly.text or has_few_programs(capture, found):
        return
    live = assembly.live
    parts = _parts(live)
    if parts is None:
        return
    inside, behind = (max((live.counts[line] for line in part), default=0) for part in (parts.before, parts.after))
    if behind <= inside:
        return
    fewer = replace(capture.resources, registers=max(registers - (behind - inside), 1))
    other = occupancy(fewer, capture.target, found.warps_per_sm // found.blocks_per_sm)
    if other is None or other.blocks_per_sm <= found.blocks_per_sm:
        return
    peak = max(parts.after, key=lambda line: live.counts[line])
    makers = assembly.makers(value for value in live.values(peak) if live.body.definers[value] in parts.after)
    chain = makers.most_common(1)[0][0] if makers else ()
    suggestions = [_option("num_warps", 2 * warps)] if 2 * warps <= _MOST_WARPS else []
    yield Finding(
        "IRS504",
        "",
        0,
        (),
        chain,
        place_of(chain, capture.launch.kernel.file),
        f"needs more registers behind its loop than up to there: {behind} hold values, {inside} in the loop",
        f"{found.warps_per_sm} warps at once on one {found.unit} in place of {other.warps_per_sm}",
        other.warps_per_sm - found.warps_per_sm,
        (
            Cause(f"registers alone limit it to {found.blocks_per_sm} blocks", "binary", "the limits of the target"),
            *_peak(assembly, parts.after),
        ),
        (*suggestions, Suggestion("do what comes after the loop in parts: a slice of the accumulator at a time")),
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
    if found is None or not found.blocks_per_sm or not {REGISTERS, SHARED, TENSOR_MEMORY} & set(found.limited_by):
        return
    has_dots = any(one.kind == "dot" for one, _ in studied.operations.values())
    few = _FEW_WITH_DOTS if has_dots else _FEW * found.max_warps
    if found.warps_per_sm >= few or has_few_programs(capture, found):
        return
    limits = dict(found.limits)
    others = ", ".join(f"{cause} {blocks}" for cause, blocks in limits.items() if cause not in found.limited_by)
    limited = " and ".join(found.limited_by)
    warps = found.warps_per_sm // found.blocks_per_sm
    causes = [
        Cause(
            f"by {limited}, {found.blocks_per_sm} blocks of {warps} warps fit on one {found.unit}; by others: {others}",
            "binary",
            "the limits of the target",
        ),
        *_used(capture, found),
    ]
    yield Finding(
        "IRS502",
        "",
        0,
        (),
        (),
        (),
        f"few warps fit at once: {found.warps_per_sm} of {found.max_warps} on one {found.unit}",
        f"{found.fraction:.0%} occupancy: little runs while a warp waits",
        max(1, found.max_warps - found.warps_per_sm),
        tuple(causes),
        tuple(_suggestions(capture, found)),
    )


def has_few_programs(capture: Capture, found: Occupancy) -> bool:
    """Whether a launch has no more programs than fit at once on the part of the target that is known."""
    grid = capture.launch.grid
    return grid is not None and prod(grid) <= found.blocks_per_sm * part_of(str(capture.target)).multiprocessor_count


def _used(capture: Capture, found: Occupancy) -> Iterator[Cause]:
    resources = capture.resources
    if REGISTERS in found.limited_by:
        more = f" and {resources.accumulator_registers} accumulators" if resources.accumulator_registers else ""
        yield Cause(f"a thread has {resources.registers} registers{more}", "binary", "the assembler's figures")
    if SHARED in found.limited_by:
        yield Cause(f"a block has {resources.shared_bytes} bytes of shared memory", "binary", "the allocator's figures")
    if TENSOR_MEMORY in found.limited_by:
        columns = f"a block has {resources.tensor_memory_columns} columns of tensor memory"
        yield Cause(columns, "binary", "the allocator's figures")


def _suggestions(capture: Capture, found: Occupancy) -> Iterator[Suggestion]:
    launch = capture.launch
    warps, stages = launch.option("num_warps", 4), launch.option("num_stages", 1)
    if SHARED in found.limited_by and isinstance(stages, int) and stages > 1:
        # Most of it is buffers, one for each stage.
        fewer = found.blocks_per_sm * stages // (found.blocks_per_sm + 1)
        yield from (_option("num_stages", count) for count in (fewer, fewer - 1) if count > 0)
    if REGISTERS in found.limited_by and isinstance(warps, int):
        if 2 * warps <= _MOST_WARPS:
            yield _option("num_warps", 2 * warps)
        if capture.target.arch in HIP_LIMITS:
            yield _option("waves_per_eu", found.warps_per_sm // HIP_LIMITS[capture.target.arch].simds + 1)
        elif (registers := _registers_of_more(capture, found, warps)) is not None:
            yield _option("maxnreg", registers)
    yield Suggestion("smaller tiles")


def _registers_of_more(capture: Capture, found: Occupancy, warps: int) -> int | None:
    """The most registers for each thread with which one more block fits; None if no number of them helps."""
    for registers in range(min(capture.resources.registers or 0, _MOST_REGISTERS) // 8 * 8, _LEAST_REGISTERS - 1, -8):
        other = occupancy(replace(capture.resources, registers=registers), capture.target, warps)
        if other is not None and other.blocks_per_sm > found.blocks_per_sm:
            return registers
    return None

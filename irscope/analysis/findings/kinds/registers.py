"""IRS501, IRS504: values that have no register, and registers that only the end of a kernel needs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os.path import basename

from irscope.analysis.findings.kinds.occupancy import has_few_programs
from irscope.analysis.findings.model import Cause, Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.analysis.source.lines import python_line
from irscope.device.occupancy import REGISTERS, occupancy, occupancy_of
from irscope.ir.asm.spills import spill_of
from irscope.ir.body.aliases import Ignored
from irscope.ir.body.live import LiveValues, live_values, makers_of
from irscope.ir.body.reader import read_body
from irscope.ir.locations.model import Chain
from irscope.ir.locations.stages import read_locations
from irscope.ir.locations.user import place_of
from irscope.model.capture import Capture, StageKind

__all__ = ["register_findings", "register_peak"]

_LEAST_SPILLED_BYTES = 32
"""Bytes per thread, stored and loaded: four registers."""
_MOST_WARPS = 32
_MOST_HOLDERS = 4
"""Lines of Python that are named with the registers that hold their values."""
# HMMA.16816.F32 R4, R8, …      HGMMA.64x64x16.F32 R24, gdesc[UR8]      v_mfma_f32_32x32x8_f16 a[0:15], …
_MMA = re.compile(r"\b[HIQDO]G?MMA\.|\bUTC\w{0,16}MMA|\bv_(?:s?mfmac?|s?wmmac?)_")
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
    has_mma = [_MMA.search(line) is not None for line in body.lines]
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


def _option(name: str, value: int) -> Suggestion:
    return Suggestion(f"{name}={value}", (Change("option", name, value),))

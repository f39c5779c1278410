"""IRS501, IRS503: registers that are spilled, and kernels that do not fit on the device."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from irscope.analysis.findings.model import Cause, Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.locations.model import Chain
from irscope.ir.locations.stages import read_locations
from irscope.ir.locations.user import Place, place_of
from irscope.model.capture import Capture

__all__ = ["resource_findings"]

_MOST_WARPS = 32
# @P0 STL.64 [R1+0x10], R4 ;      /*0010*/ STL [R1], R2 ;
_SPILL = re.compile(r"\bSTL\b")


def resource_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of the whole kernel."""
    capture = studied.capture
    if capture.failure is not None and capture.failure.kind == "fit":
        yield _does_not_fit(capture)
    if capture.resources.spilled_bytes:
        yield _spills(capture)


def _spills(capture: Capture) -> Finding:
    resources = capture.resources
    stored, loaded = resources.spill_store_bytes or 0, resources.spill_load_bytes or 0
    causes = [Cause(f"{stored} bytes stored, {loaded} loaded, by each thread", "binary", "the assembler's figures")]
    if resources.registers is not None:
        causes.append(Cause(f"a thread has {resources.registers} registers", "binary", "the assembler's figures"))
    if (most := capture.launch.option("maxnreg")) is not None:
        causes.append(Cause(f"maxnreg is {most}", "launch", "the options of the launch"))
    suggestions = [_option("maxnreg", 255)] if most is not None else []
    warps, stages = capture.launch.option("num_warps", 4), capture.launch.option("num_stages", 1)
    if isinstance(warps, int) and 2 * warps <= _MOST_WARPS:
        suggestions.append(_option("num_warps", 2 * warps))
    if isinstance(stages, int) and stages > 1:
        suggestions.append(_option("num_stages", stages - 1))
    chain, place = _spilling_line(capture)
    return Finding(
        "IRS501",
        "",
        0,
        (),
        chain,
        place,
        f"spills registers: {stored + loaded} bytes of each thread go to local memory and back",
        f"{stored + loaded} bytes of each thread",
        stored + loaded,
        tuple(causes),
        tuple(suggestions),
    )


def _spilling_line(capture: Capture) -> tuple[Chain, Place]:
    """Where most instructions are that store to local memory; nothing if that is not known."""
    sass = capture.texts.get("sass", "")
    if not sass:
        return (), ()
    locations = read_locations(sass, "sass")
    lines = (number for number, line in enumerate(sass.split("\n"), 1) if _SPILL.search(line))
    chains = Counter(chain for number in lines if (chain := locations.chain_at(number)))
    if not chains:
        return (), ()
    chain = chains.most_common(1)[0][0]
    return chain, place_of(chain, capture.launch.kernel.file)


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

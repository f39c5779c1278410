"""IRS602: atomics that became a loop around a compare-and-swap."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.analysis.findings.model import Cause, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.locations.stages import read_locations
from irscope.ir.locations.user import Place, place_of
from irscope.ir.mlir.model import Operation
from irscope.model.capture import Capture

__all__ = ["atomic_findings"]

_ATOMICS = ("tt.atomic_rmw", "amdg.buffer_atomic_rmw", "amdgpu.buffer_atomic_rmw")
_SWAP = "tt.atomic_cas"
# atom.relaxed.gpu.global.cas.b32      global_atomic_cmpswap v6      ATOMG.E.CAS.STRONG.GPU PT
_LOOPED = {
    "ptx": re.compile(r"\batom\.[\w.]{0,80}\bcas\b"),
    "amdgcn": re.compile(r"\b(?:global|buffer|flat)_atomic_cmpswap"),
    "sass": re.compile(r"\bATOM[GS]?\.[\w.]{0,80}\bCAS\b"),
}
# global_atomic_pk_add_f16 v[6:7], v10, off
_PAIRS = re.compile(r"_atomic_pk_add_")
# !tt.ptr<bf16>
_POINTEE = re.compile(r"!tt\.ptr<(\w{1,16})")
# tt.atomic_rmw fadd, acq_rel, gpu, %1
_ACTION = re.compile(r"atomic_rmw (\w{1,16}),")
_SMALL = ("f16", "bf16")


def atomic_findings(studied: Studied) -> Iterator[Finding]:
    """The atomics other than a compare-and-swap whose instructions have one."""
    for line, (operation, _) in studied.operations.items():
        if operation.name not in _ATOMICS:
            continue
        stage, count = _swaps_of(studied, line)
        if count:
            yield _finding(studied, operation, stage, count)


def _finding(studied: Studied, operation: Operation, stage: str, count: int) -> Finding:
    line, target = operation.first_line, studied.capture.target
    pointee, action = _POINTEE.search(operation.text), _ACTION.search(operation.text)
    element = pointee[1] if pointee is not None else ""
    what = f"{action[1] if action is not None else 'operation'} of {element}"
    is_small_sum = element in _SMALL and "add" in what
    why, mends = f"it is an atomic {what}, which the compiler makes no instruction of on {target}", list[str]()
    if is_small_sum and (stage == "sass" or any(map(_PAIRS.search, studied.instructions_of(line)))):
        why = f"it is an atomic {what}: an instruction of {target} adds adjacent pairs of {element}"
        why += ", and a single one in a lane takes the loop"
        mends.append(
            "let each lane add adjacent pairs: a larger block or fewer warps, and addresses that are contiguous"
        )
    elif stage == "sass":
        why = f"it is an atomic {what}, an instruction in the PTX, of which ptxas makes that loop"
    if is_small_sum:
        mends.append("add up in float32: the atomic addition of it is an instruction")
    causes = [
        Cause(f"its instructions: {count} compare-and-swap", "assembly", f"{stage} of line {line} of ttgir"),
        studied.in_ir(why, line),
    ]
    return studied.finding(
        "IRS602",
        line,
        "is a loop around a compare-and-swap, not one instruction",
        "a load, and a turn of the loop for each lane or warp that meets another one",
        count,
        causes,
        [Suggestion(text) for text in mends],
    )


def _swaps_of(studied: Studied, line: int) -> tuple[str, int]:
    """(stage, how many) of the compare-and-swaps of an operation: by its own instructions, or its place in SASS."""
    stage = studied.machine.text_stage
    place = studied.place_at(line)
    swaps = (studied.place_at(at) for at, (one, _) in studied.operations.items() if one.name == _SWAP)
    is_alone = bool(place) and place not in swaps
    own = studied.instructions_of(line) if is_alone or studied.machine.by_operation else ()
    if count := sum(_LOOPED[stage].search(text) is not None for text in own):
        return stage, count
    # ptxas makes loops of atomics that PTX has. Its SASS has lines, and no columns.
    return "sass", _swaps_in_sass(studied.capture, place) if is_alone else 0


def _swaps_in_sass(capture: Capture, place: Place) -> int:
    texts, pattern = capture.texts, _LOOPED["sass"]
    sass = texts.get("sass", "")
    locations = read_locations(sass, "sass", llir=texts.get("llir"), ptx=texts.get("ptx"))
    numbers = [number for number, text in enumerate(sass.split("\n"), 1) if pattern.search(text)]
    return sum(place_of(locations.chain_at(number), capture.launch.kernel.file) == place for number in numbers)

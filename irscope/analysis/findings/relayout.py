"""Other layouts than `coalesce` chose: one for both sides of a conversion, or one along the contiguous dimension.

One layout for both only where that makes no access narrower, and leaves no gaps; what is done less often than the
conversion does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.analysis.findings.model import Change, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.uses import OperationUse
from irscope.layout.maps import ThreadMap
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Capture, PassSnapshot

__all__ = ["CHOSEN_BY", "along_dimension", "edited", "laid_along", "one_layout", "snapshot_of"]

CHOSEN_BY = "coalesce"
"""The pass that gives each access a layout of its own."""
_BLOCKED = "#ttg.blocked<"
# %v = tt.load %p, %m, %o : tensor<64x64x!tt.ptr<f32>, #blocked> loc(#loc9)
# tt.store %p, %v, %m {x = 1 : i32} : tensor<64x64x!tt.ptr<f32>, #blocked> loc(#loc9)
_ACCESS = re.compile(
    r"(?P<space> *)(?:(?P<result>%[\w.$-]+) = )?tt\.(?P<what>load|store) (?P<operands>%[\w.$-]+(?:, %[\w.$-]+){0,2})"
    r"(?P<rest>[^\n]*) : tensor<(?P<shape>[\dx]+)x!tt\.ptr<(?P<element>\w+)(?P<memory>, \d+)?>, "
    r"(?P<layout>#[^\n]+)>(?P<place>(?: loc\([^\n]*\))?)"
)


def snapshot_of(capture: Capture) -> PassSnapshot | None:
    """The pass after which layouts are changed; None without one."""
    found = (one for one in capture.passes() if (one.stage, one.name) == ("ttgir", CHOSEN_BY))
    return next((one for one in found if one.outcome == "ran"), None)


def edited(capture: Capture, change: Change) -> str | None:
    """The IR after that pass with one layout in place of another, everywhere or in one access; None if it has none."""
    snapshot = snapshot_of(capture)
    text = capture.text_after(snapshot) if snapshot is not None else None
    if text is None or f" = {change.name}\n" not in text:
        return None
    if change.was:
        return _with_access(text, change.was, str(change.value))
    return text.replace(f" = {change.name}\n", f" = {change.value}\n")


def _with_access(text: str, number: int, layout: str) -> str | None:
    """The text with another layout of the access on a line: what it takes and gives is converted around it."""
    lines = text.split("\n")
    match = _ACCESS.fullmatch(lines[number - 1])
    if match is None:
        return None
    pointer = f"!tt.ptr<{match['element']}{match['memory'] or ''}>"
    kinds = (pointer, "i1", match["element"]) if match["what"] == "load" else (pointer, match["element"], "i1")
    space, place, own = match["space"], match["place"], match["layout"]

    def converted(result: str, value: str, kind: str, was: str, now: str) -> str:
        of = f"tensor<{match['shape']}x{kind}, "
        return f"{space}{result} = ttg.convert_layout {value} : {of}{was}> -> {of}{now}>{place}"

    operands = match["operands"].split(", ")
    laid = [f"%relaid_{number}_{index}" for index in range(len(operands))]
    rows = [converted(*row, own, layout) for row in zip(laid, operands, kinds, strict=False)]
    access = (
        f"tt.{match['what']} {', '.join(laid)}{match['rest']} : tensor<{match['shape']}x{pointer}, {layout}>{place}"
    )
    if match["result"] is None:
        rows.append(f"{space}{access}")
    else:
        rows += [
            f"{space}%relaid_{number} = {access}",
            converted(match["result"], f"%relaid_{number}", match["element"], layout, own),
        ]
    return "\n".join([*lines[: number - 1], *rows, *lines[number:]])


def along_dimension(studied: Studied, operation: Operation, axis: int, run: int) -> Change | None:
    """Another layout for one access, along a dimension; None where its own is none that `coalesce` chose.

    `run`: how many elements in a row a thread has then.
    """
    layout, snapshot = studied.layout_of(operation), snapshot_of(studied.capture)
    text = studied.capture.text_after(snapshot) if snapshot is not None else None
    threads = layout.threads if layout is not None else None
    if layout is None or threads is None or threads.blocks > 1 or text is None:
        return None
    other = laid_along(layout.encoding.text, threads, axis, run)
    module, locations, chain = parse_mlir(text), read_locations(text, "mlir"), studied.chain_at(operation.first_line)
    found = [
        one.first_line
        for one in module.walk()
        if one.name in ("tt.load", "tt.store") and chain and locations.chain_at(one.first_line) == chain
    ]
    if other in ("", layout.encoding.text) or len(found) != 1:
        return None
    match = _ACCESS.fullmatch(text.split("\n")[found[0] - 1])
    if match is None or module.resolve(match["layout"]) != layout.encoding.text:
        return None
    return Change("snapshot", layout.encoding.text, other, found[0])


def laid_along(layout: str, threads: ThreadMap, axis: int, run: int) -> str:
    """A blocked layout with its threads along a dimension first, as Triton's builder gives them out; empty for others.

    Args:
        layout: the layout, as text.
        threads: its map for the tensor's shape.
        axis: the dimension.
        run: how many elements in a row of it a thread has.

    Source: the builder of BlockedEncodingAttr with a shape, TritonGPUAttrDefs.td.
    """
    rank, left_lanes, left_warps = len(threads.shape), threads.lanes, threads.warps
    if not layout.startswith(_BLOCKED):
        return ""
    order = [axis, *(one for one in reversed(range(rank)) if one != axis)]
    sizes, per_warp, per_block = ([1] * rank for _ in range(3))
    sizes[axis] = run
    for one in order[:-1]:
        room = min(max(threads.shape[one] // sizes[one], 1), left_lanes * left_warps)
        per_warp[one] = min(room, left_lanes)
        per_block[one] = min(max(room // per_warp[one], 1), left_warps)
        left_lanes, left_warps = left_lanes // per_warp[one], left_warps // per_block[one]
    per_warp[order[-1]], per_block[order[-1]] = left_lanes, left_warps
    given = {"sizePerThread": sizes, "threadsPerWarp": per_warp, "warpsPerCTA": per_block, "order": order}
    for name, numbers in given.items():
        layout = re.sub(rf"\b{name} = \[[\d, ]+\]", f"{name} = {numbers}", layout)
    return layout


def one_layout(studied: Studied, use: OperationUse) -> Iterator[Suggestion]:
    """What gives both sides of a conversion one layout, if every access that gets another is as good with it."""
    if len(use.types) != 2 or snapshot_of(studied.capture) is None:
        return
    source, destination = (studied.uses.module.resolve(kind.encoding) for kind in use.types)
    if not (source.startswith(_BLOCKED) and destination.startswith(_BLOCKED)):
        return
    for given, kept in ((source, destination), (destination, source)):
        if _is_as_good(studied, given, kept, studied.operations[use.line][1]):
            change = Change("snapshot", given, kept)
            text = (
                f"one layout for both, {change}: Triton chooses it, so this takes Gluon, or an edit of the IR after "
                f"{CHOSEN_BY} (irscope dump --from-pass {CHOSEN_BY} --edited FILE)"
            )
            yield Suggestion(text, (change,))
            return


def _is_as_good(studied: Studied, given: str, kept: str, loops: int) -> bool:
    """Whether the accesses of one layout, in so many loops, would be as good with another."""
    accesses = [
        (one, depth)
        for one, depth in studied.operations.values()
        if one.name in ACCESSES and (layout := studied.layout_of(one)) is not None and layout.encoding.text == given
    ]
    return bool(accesses) and all(depth < loops or _is_access_as_good(studied, one, kept) for one, depth in accesses)


def _is_access_as_good(studied: Studied, operation: Operation, kept: str) -> bool:
    """Whether an access would be as wide, and each of its instructions without gaps between the lanes."""
    own = studied.layout_of(operation)
    other = studied.described(kept, own.shape) if own is not None else None
    if own is None or other is None or own.threads is None or other.threads is None:
        return False
    width = studied.limits.width(operation, other.threads)
    now = max(studied.machine.widths_of(operation), default=0)
    bits = studied.limits.element_bits(operation)
    return 0 < now <= width and _longest_run(other.threads) * bits <= width


def _longest_run(threads: ThreadMap) -> int:
    return max(threads.contiguous(axis) for axis in range(len(threads.shape)))

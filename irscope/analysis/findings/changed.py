"""The changes of a capture's IR by a suggestion: facts about arguments, constants, hints, and layouts.

One layout for both sides of a conversion only where that makes no access narrower, and leaves no gaps; what is done
less often than the conversion does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irscope.analysis.findings.model import FixChange, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.attributes import read_encoding, with_numbers
from irscope.ir.mlir.edits import (
    access_at,
    sites_of,
    with_constant,
    with_divisibility,
    with_factor,
    with_hint,
    with_layout_of_access,
    with_narrow_operand,
    with_stages,
    with_strict_comparisons,
)
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import parse_type
from irscope.layout.maps import ThreadMap
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Capture, PassSnapshot

CHOSEN_BY = "coalesce"
"""The pass that gives each access a layout of its own."""


def with_run(encoding: str, axis: int, run: int) -> str:
    """A blocked layout with so many elements in a row of a dimension, and that dimension first; empty if it is none."""
    known = read_encoding(encoding)
    numbers = dict(known.numbers)
    sizes, order = numbers.get("sizePerThread"), numbers.get("order")
    if not known.is_blocked or sizes is None or order is None:
        return ""
    given = [*sizes]
    given[axis] = run
    return with_numbers(encoding, {"sizePerThread": given, "order": [axis, *(one for one in order if one != axis)]})


def with_changes(source: str, names: Iterable[str], changes: Iterable[FixChange]) -> str | None:
    """The text with the changes; None if what is to be changed cannot be found in it.

    `names`: the parameters of the kernel in the TTGIR, by whose names the changes call them.
    """
    kernel = parse_mlir(source).kernel
    called = [name.removeprefix("%") for name in names]
    if kernel is None or len(called) != len(kernel.parameters):
        return None
    text: str | None = source
    for change in changes:
        text = _with_change(text, called, change)
        if text is None:
            return None
    return text


def _with_change(text: str, names: list[str], change: FixChange) -> str | None:
    if change.kind == "option":
        return text
    if change.kind == "layout":
        return text.replace(change.name, str(change.value)) if change.name in text else None
    if change.kind == "compare":
        return with_strict_comparisons(text)
    if change.kind == "factor":
        return with_factor(text, change.was, change.value)
    if change.kind == "stages":
        return with_stages(text, int(change.name), change.value)
    if change.kind == "narrow":
        return with_narrow_operand(text, int(change.name), change.was)
    if names.count(change.name) != 1:
        return None
    number = names.index(change.name)
    if change.kind == "divisible":
        return with_divisibility(text, number, change.value)
    if change.kind not in ("hint", "contiguous"):
        return with_constant(text, number, change.value)
    module = parse_mlir(text)
    if module.kernel is None:
        return None
    sites = sites_of(module, module.kernel.parameters[number][0])
    hinted = sites.products if change.kind == "hint" else sites.remainders
    is_contiguous = change.kind == "contiguous"
    return with_hint(text, hinted, module, change.value, contiguous=is_contiguous) if hinted else None


def snapshot_of(capture: Capture) -> PassSnapshot | None:
    """The pass after which layouts are changed; None without one."""
    found = (one for one in capture.passes() if (one.stage, one.name) == ("ttgir", CHOSEN_BY))
    return next((one for one in found if one.outcome == "ran"), None)


def edited(capture: Capture, change: FixChange) -> str | None:
    """The IR after that pass with one layout in place of another, everywhere or in one access; None if it has none."""
    snapshot = snapshot_of(capture)
    text = capture.text_after(snapshot) if snapshot is not None else None
    if text is None or f" = {change.name}\n" not in text:
        return None
    if change.was:
        return with_layout_of_access(text, change.was, str(change.value))
    return text.replace(f" = {change.name}\n", f" = {change.value}\n")


def along_dimension(studied: Studied, operation: Operation, axis: int, run: int) -> FixChange | None:
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
        if one.opcode in ("load", "store") and chain and locations.chain_at(one.first_line) == chain
    ]
    if other in ("", layout.encoding.text) or len(found) != 1:
        return None
    access = access_at(module, found[0])
    if access is None or module.resolve(parse_type(access.types).encoding) != layout.encoding.text:
        return None
    return FixChange("snapshot", layout.encoding.text, other, found[0])


def laid_along(layout: str, threads: ThreadMap, axis: int, run: int) -> str:
    """A blocked layout with its threads along a dimension first, as Triton's builder gives them out; empty for others.

    `run`: how many elements in a row of it a thread has.
    Source: the builder of BlockedEncodingAttr with a shape, TritonGPUAttrDefs.td.
    """
    rank, left_lanes, left_warps = len(threads.shape), threads.lanes, threads.warps
    if not read_encoding(layout).is_blocked:
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
    return with_numbers(layout, given)


def one_layout(studied: Studied, operation: Operation) -> Iterator[Suggestion]:
    """What gives both sides of a conversion one layout, if every access that gets another is as good with it."""
    if len(operation.layout_types) != 2 or snapshot_of(studied.capture) is None:
        return
    source, destination = (studied.module.resolve(kind.encoding) for kind in operation.layout_types)
    if not (read_encoding(source).is_blocked and read_encoding(destination).is_blocked):
        return
    for given, kept in ((source, destination), (destination, source)):
        if _is_as_good(studied, given, kept, operation.loops):
            change = FixChange("snapshot", given, kept)
            text = (
                f"one layout for both, {change}: Triton chooses it, so this takes Gluon, or an edit of the IR after "
                f"{CHOSEN_BY} (irscope edit --at {CHOSEN_BY} --edited FILE)"
            )
            yield Suggestion(text, (change,))
            return


def _is_as_good(studied: Studied, given: str, kept: str, loops: int) -> bool:
    accesses = [
        one
        for one in studied.operations.values()
        if one.opcode in ACCESSES and (layout := studied.layout_of(one)) is not None and layout.encoding.text == given
    ]
    return bool(accesses) and all(one.loops < loops or _is_access_as_good(studied, one, kept) for one in accesses)


def _is_access_as_good(studied: Studied, operation: Operation, kept: str) -> bool:
    own = studied.layout_of(operation)
    other = studied.described(kept, own.shape) if own is not None else None
    if own is None or other is None or own.threads is None or other.threads is None:
        return False
    width = studied.limits.width(operation, other.threads)
    now = max(studied.machine.widths_of(operation), default=0)
    bits = studied.limits.element_bits(operation)
    return 0 < now <= width and max(map(other.threads.contiguous, range(len(other.threads.shape)))) * bits <= width

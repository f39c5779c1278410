"""One layout for what two are converted between, where that makes no access narrower, and leaves no gaps.

What is done less often than the conversion does not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.findings.model import Change, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.uses import OperationUse
from irscope.layout.thread_map import ThreadMap
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Capture, PassSnapshot

__all__ = ["edited", "one_layout", "snapshot_of"]

_CHOSEN_BY = "coalesce"
"""The pass that gives each access a layout of its own."""
_BLOCKED = "#ttg.blocked<"


def snapshot_of(capture: Capture) -> PassSnapshot | None:
    """The pass after which layouts are changed; None without one."""
    found = (one for one in capture.passes() if (one.stage, one.name) == ("ttgir", _CHOSEN_BY))
    return next((one for one in found if one.outcome == "ran"), None)


def edited(capture: Capture, change: Change) -> str | None:
    """The IR after that pass with one layout in place of another; None where it is not there."""
    snapshot = snapshot_of(capture)
    text = capture.text_after(snapshot) if snapshot is not None else None
    if text is None or f" = {change.name}\n" not in text:
        return None
    return text.replace(f" = {change.name}\n", f" = {change.value}\n")


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
                f"{_CHOSEN_BY} (irscope dump --from-pass {_CHOSEN_BY} --edited FILE)"
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

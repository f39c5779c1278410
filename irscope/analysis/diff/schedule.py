"""The schedules of two SASS texts compared: stall, yield, barriers, waits and reuse of the same instructions."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.analysis.diff.entries import TextDiff
from irscope.ir.asm.control import ControlInfo
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.sass import parse_sass

__all__ = ["FieldChange", "InstructionSchedule", "ScheduleDiff", "diff_schedules"]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of an instruction's schedule, as text; `–` where it has none."""

    name: str
    """`stall`, `yield`, `write barrier`, `read barrier`, `waits` or `reuse`."""
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class InstructionSchedule:
    """An instruction whose schedule differs."""

    text: str
    """As the left side has it, without `.reuse`."""
    left_offset: int
    """Bytes from the start of its section."""
    right_offset: int
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class ScheduleDiff:
    """How the schedules of two SASS texts differ."""

    compared: int
    """Instructions that are on both sides, whether or not their registers are called the same."""
    unpaired: int
    """Instructions of either side that have no partner: they are not compared."""
    changes: tuple[InstructionSchedule, ...]

    @property
    def is_empty(self) -> bool:
        """Whether all instructions on both sides are scheduled alike."""
        return not self.changes


def diff_schedules(left: str, right: str, text_diff: TextDiff | None) -> ScheduleDiff:
    """Compare the schedules of two SASS texts, instruction by instruction.

    Args:
        left: SASS in irscope's normal form, or as nvdisasm writes it with encodings.
        right: the other one.
        text_diff: the comparison of both, which says what are partners; None where the texts are identical.
    """
    ours, theirs = _by_line(left), _by_line(right)
    if text_diff is None:
        return ScheduleDiff(len(ours), 0, ())
    changes: list[InstructionSchedule] = []
    compared = 0
    for one, other in sorted(_partners(text_diff)):
        before, after = ours.get(one), theirs.get(other)
        if before is None or after is None:
            continue
        compared += 1
        values, new = _values(before), _values(after)
        fields = tuple([FieldChange(name, values[name], new[name]) for name in values if values[name] != new[name]])
        if fields:
            text = before.text.replace(".reuse", "")
            changes.append(InstructionSchedule(text, before.offset, after.offset, fields))
    return ScheduleDiff(compared, len(ours) + len(theirs) - 2 * compared, tuple(changes))


def _by_line(text: str) -> dict[int, Instruction]:
    return {item.line: item for function in parse_sass(text) for item in function.instructions}


def _partners(text_diff: TextDiff) -> list[tuple[int, int]]:
    """The 1-based lines of both texts that are partners."""
    found: list[tuple[int, int]] = []
    for entry in text_diff.entries:
        right = entry.partner if entry.op == "moved" and entry.left else entry.right
        if entry.left and right is not None:
            numbers = zip(entry.left, right, strict=False)
            found += [(text_diff.left_numbers[one], text_diff.right_numbers[other]) for one, other in numbers]
    return found


def _values(item: Instruction) -> dict[str, str]:
    control = item.control or ControlInfo()
    # Which operands are kept counts by their place: registers may have other names.
    kept = [str(place) for place, operand in enumerate(item.operands, 1) if ".reuse" in operand]
    return {
        "stall": str(control.stall),
        "yield": "yes" if control.yields else "no",
        "write barrier": "–" if control.write_barrier is None else str(control.write_barrier),
        "read barrier": "–" if control.read_barrier is None else str(control.read_barrier),
        "waits": ",".join(map(str, control.waits_for)) or "–",
        "reuse": ",".join(f"operand {place}" for place in kept) or "–",
    }

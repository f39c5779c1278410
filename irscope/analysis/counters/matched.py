"""Finds a capture's own instructions in a profile, by offset, and refuses a profile of other code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.errors import UsageError
from irscope.ir.asm.operands import register_names
from irscope.ir.asm.sass import SassFunction, parse_sass, parse_sass_instruction
from irscope.ir.logs.source_page import CountedInstruction, CountedKernel, Counters, read_source_page
from irscope.model.capture import Capture

_PADDING = frozenset({"NOP", "BRA"})


@dataclass(frozen=True, slots=True)
class MatchedInstruction:
    """One instruction of a capture's SASS with its counters."""

    line: int
    """In the capture's SASS, 1-based."""
    offset: int
    text: str
    """As the capture's SASS has it."""
    opcode: str
    """Without suffixes: `LDG`."""
    access_bits: int
    """Bits per lane of a memory access; 0 for other instructions."""
    counters: Counters


def kernel_of_page(capture: Capture, page: str) -> CountedKernel:
    """The launch of an export that is of a capture's own code; raises UsageError if none is.

    Of several launches of that code it is the first.
    """
    kernels = read_source_page(page)
    if not kernels:
        raise UsageError(
            "it is no source page of Nsight Compute: write it with 'ncu -i REPORT.ncu-rep --page source --csv "
            "--print-source sass'."
        )
    function = _function(capture)
    reasons: list[str] = []
    for kernel in kernels:
        if not (why := _difference(function, kernel.instructions)):
            return kernel
        reasons.append(f"{kernel.name}: {why}")
    # Of the kernel that bears the name, the reason tells more.
    reasons.sort(key=lambda reason: not reason.startswith(capture.name))
    raise UsageError(f"it profiled other code than that of {capture.name} ({capture.id[:8]}): {reasons[0]}.")


def matched_instructions(capture: Capture) -> tuple[MatchedInstruction, ...]:
    """The instructions of a capture that has a profile; raises UsageError if it is of other code."""
    if capture.profile is None:
        raise UsageError(f"{capture!r} has no profile: 'irscope profile' makes one.")
    counted = kernel_of_page(capture, capture.profile.page).instructions
    return tuple(
        MatchedInstruction(
            own.line, own.offset, own.text, own.opcode.partition(".")[0], other.access_bits, other.counters
        )
        for own, other in zip(_function(capture).instructions, counted, strict=False)
    )


def _function(capture: Capture) -> SassFunction:
    functions = parse_sass(capture.text("sass"))
    if not functions:
        raise UsageError(f"{capture!r} has no machine code to join a profile to.")
    return next((one for one in functions if one.name == capture.name), functions[0])


def _difference(function: SassFunction, counted: Sequence[CountedInstruction]) -> str:
    """The first difference of code, in words; empty if there is none.

    Other versions of the disassembler write suffixes and the order of operands otherwise: offsets, predicates, opcodes
    without suffixes and the registers that they name are compared.
    """
    own = function.instructions
    if len(counted) < len(own):
        return f"it has {len(counted)} instructions, the capture {len(own)}"
    for instruction, other in zip(own, counted, strict=False):
        if instruction.offset - own[0].offset != other.offset or _key(instruction.text) != _key(other.text):
            return f"at {instruction.offset:04x} it has {other.text!r}, the capture {instruction.text!r}"
    more = next((one for one in counted[len(own) :] if _key(one.text)[1] not in _PADDING), None)
    return "" if more is None else f"at {more.offset:04x} it has {more.text!r}, the capture nothing"


def _key(text: str) -> tuple[str, str, tuple[str, ...]]:
    item = parse_sass_instruction(text.partition(";")[0])
    if item is None:
        return "", text, ()
    registers = [name for name in register_names(", ".join(item.operands), "sass") if name.startswith("R")]
    return item.predicate, item.opcode.partition(".")[0], tuple(sorted(registers))

"""Annotations of each instruction of machine code: live registers, spills, dots and barriers, and stalls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from irscope.analysis.counters.operations import matched_instructions
from irscope.analysis.source.map import read_stage_operations
from irscope.errors import UsageError
from irscope.ir.asm.instructions import Spill, spill_of
from irscope.ir.columns import read_body
from irscope.ir.logs.source_page import Counters
from irscope.ir.registers import live_values
from irscope.ir.syntax import Ignored
from irscope.model.capture import Capture, StageKind, stage_named

MACHINE_CODE: tuple[StageKind, ...] = ("sass", "amdgcn")
"""The languages whose registers are the device's."""
# Families of irscope.ir.asm.opcodes.
_MATRIX = ("wgmma", "mma", "mfma", "wmma", "tcgen05.mma")
_BARRIERS = ("barrier", "mbarrier", "wgmma.control", "cp.async.wait", "tcgen05.control")


@dataclass(frozen=True, slots=True)
class AnnotatedInstruction:
    """One instruction of a stage's text."""

    line: int
    """In the text, 1-based."""
    live: int | None
    """Registers of a thread that hold a value at it, those that it reads and writes among them (on AMD VGPRs and AGPRs,
    where a write to some of the lanes counts as one to all). None if that is not known."""
    spill: Spill
    """Whether it stores a spilled register, or loads one."""
    tick: str
    """The family of a matrix instruction or of one that synchronises: `wgmma`, `barrier`; empty for any other."""
    counters: Counters | None
    """The hardware's counters there; None without a profile."""

    @property
    def is_matrix(self) -> bool:
        return self.tick in _MATRIX


@dataclass(frozen=True, slots=True)
class AnnotatedLines:
    """Some instructions together: those of a line of Python."""

    live: int | None
    """The most registers that hold a value at one of them."""
    spills: int
    """Instructions that store or load spilled registers."""
    ticks: tuple[tuple[str, int], ...]
    """(family, how many), the most frequent first."""
    counters: Counters | None


@dataclass(frozen=True)
class AnnotatedCode:
    """The instructions of one stage, each with its annotations."""

    stage: str
    instructions: tuple[AnnotatedInstruction, ...]
    registers: int | None
    counted_by: Literal["nvdisasm", "irscope", ""]
    """Who counted the live registers; empty where nobody could."""

    @cached_property
    def at_line(self) -> dict[int, AnnotatedInstruction]:
        return {one.line: one for one in self.instructions}

    @cached_property
    def peak(self) -> AnnotatedInstruction | None:
        """The first instruction with the most live registers; None if they are not known."""
        known = [one for one in self.instructions if one.live is not None]
        return max(known, key=lambda one: one.live or 0, default=None)

    @cached_property
    def stalled(self) -> int | None:
        """Samples of warps that waited, at all instructions; None without a profile."""
        known = [one.counters.stalled for one in self.instructions if one.counters is not None]
        return sum(known) if known else None

    def together(self, lines: Iterable[int]) -> AnnotatedLines:
        """Those of some lines of the text."""
        found = [self.at_line[line] for line in lines if line in self.at_line]
        counters = [one.counters for one in found if one.counters is not None]
        return AnnotatedLines(
            max((one.live for one in found if one.live is not None), default=None),
            sum(bool(one.spill) for one in found),
            tuple(Counter(one.tick for one in found if one.tick).most_common()),
            Counters.sum(counters) if counters else None,
        )


def _machine_code_stage(capture: Capture) -> str:
    if (found := next((name for name in MACHINE_CODE if name in capture.texts), None)) is not None:
        return found
    held = ", ".join(capture.stages) or "no stage"
    raise UsageError(f"{capture.name} ({capture.target}) holds no machine code as text: sass or amdgcn; it has {held}.")


def annotate(capture: Capture, stage: str = "") -> AnnotatedCode:
    """The annotations of a stage's text, by default of the capture's machine code.

    Live registers of SASS are nvdisasm's where the text has them: it counts none of a kernel with 255 registers. Raises
    UsageError for a stage that is no machine code, and if the capture's profile is of other code.
    """
    stage = stage or _machine_code_stage(capture)
    kind = stage_named(stage).kind
    if kind not in MACHINE_CODE:
        raise UsageError(f"stage {stage!r} is not machine code: registers and stalls are of sass and amdgcn.")
    text = capture.text(stage)
    found = read_stage_operations(text, kind)
    counted_by: Literal["nvdisasm", "irscope", ""] = "nvdisasm"
    live: dict[int, int] = dict(zip(found.lines, found.live, strict=False))
    if not live:
        counted_by = "irscope"
        live = _counted(text, kind)
    counters: dict[int, Counters] = {}
    if capture.profile is not None and stage == "sass":
        counters = {one.line: one.counters for one in matched_instructions(capture)}
    instructions: list[AnnotatedInstruction] = []
    for index, line in enumerate(found.lines):
        family = found.kind_names[found.kinds[index]]
        tick = family if family in _MATRIX or family in _BARRIERS else ""
        count = live.get(line, -1)
        instructions.append(
            AnnotatedInstruction(
                line, count if count >= 0 else None, spill_of(found.text[line - 1]), tick, counters.get(line)
            )
        )
    resources = capture.resources
    registers = resources.registers
    if registers is not None and kind == "amdgcn":
        registers += resources.accumulator_registers or 0
    return AnnotatedCode(stage, tuple(instructions), registers, counted_by if live else "")


def _counted(text: str, kind: StageKind) -> dict[int, int]:
    """Line of the text -> its live registers, by irscope's own reading of the instructions."""
    found = live_values(read_body(text, kind, frozenset[Ignored]()))
    counts = dict(zip(found.body.numbers, found.counts, strict=True))
    if kind != "sass":
        return counts
    # The stack pointer counts everywhere, as nvdisasm does it.
    pointers = sum(1 << value for value, name in enumerate(found.body.names) if name == "R1")
    return {
        number: counts[number] + (not live & pointers)
        for number, live in zip(found.body.numbers, found.at, strict=True)
    }

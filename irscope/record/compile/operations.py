"""Finds the TTGIR operation of each instruction of a capture, by a compile whose locations are the operations' own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from irscope.ir.asm.elf import parse_elf
from irscope.ir.body.clean import clean
from irscope.ir.locations.operations import read_operation_lines, with_operation_locations
from irscope.ir.locations.split_loads import with_loads_of_readers
from irscope.model.capture import Capture, stage_named
from irscope.model.evidence import OperationLines
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import compiled

__all__ = ["STAGES_OF_OPERATIONS", "find_operations", "loaded_sections"]

STAGES_OF_OPERATIONS = {"ptx": "", "sass": "cubin", "amdgcn": "hsaco"}
"""Stages whose lines have operations, each with the binary that must be the same beside its text."""

_ATTEMPTS = 3


def find_operations(
    capture: Capture,
    run: Callable[[RecordRequest], Capture] = compiled,
    stages: Collection[str] = tuple(STAGES_OF_OPERATIONS),
) -> tuple[OperationLines, ...]:
    """Compile a capture's TTGIR again, and read which operation each line of its assembly is from.

    A stage whose code is not the same, but for locations and debug information, has a reason instead. Raises what
    `run` raises.

    Args:
        capture: a capture with TTGIR.
        run: does the request.
        stages: the stages that are asked for; of PTX alone no code is assembled.
    """
    whole = request_from_capture(capture, RecordingOptions(plan=capture.plan, snapshots="none", layouts=False))
    text = with_operation_locations(capture.text("ttgir"))
    wanted = [stage for stage in STAGES_OF_OPERATIONS if stage in stages and stage in capture.stages]
    last = "ptx" if wanted == ["ptx"] else ""
    rows: tuple[OperationLines, ...] = ()
    for _ in range(_ATTEMPTS):
        again = run(replace(whole, stage="ttgir", text=text, last_stage=last))
        rows = tuple(_operations_of(capture, again, stage) for stage in wanted)
        # Of one and the same PTX, ptxas may make other code the next time.
        if {row.stage for row in rows if row.reason} != {"sass"}:
            break
    return rows


def _operations_of(capture: Capture, again: Capture, stage: str) -> OperationLines:
    if stage not in again.stages:
        verdict = f"it {again.failure.verdict}" if again.failure is not None else f"it made no {stage}"
        return OperationLines(stage, reason=f"the TTGIR was compiled again for that, and {verdict}")
    binary, kind = STAGES_OF_OPERATIONS[stage], stage_named(stage).kind
    lines, numbers = clean(capture.text(stage), kind, frozenset({"locations"}))
    other_lines, other_numbers = clean(again.text(stage), kind, frozenset({"locations"}))
    if lines != other_lines or (
        binary in capture.stages and loaded_sections(capture, binary) != loaded_sections(again, binary)
    ):
        made = binary if lines == other_lines else stage
        return OperationLines(stage, reason=f"the TTGIR was compiled again for that, and gave another {made}")
    ptx = again.text("ptx") if stage == "sass" else None
    operations = read_operation_lines(again.text(stage), kind, ptx=ptx)
    by_line = [0] * (capture.text(stage).count("\n") + 1)
    for number, other in zip(numbers, other_numbers, strict=True):
        by_line[number - 1] = operations[other - 1]
    return OperationLines.of(stage, with_loads_of_readers(by_line, capture.text(stage), capture.text("ttgir")))


def loaded_sections(capture: Capture, binary: str) -> dict[str, bytes]:
    """The sections of a binary that a device loads: code and constants, and nothing for debuggers."""
    data = capture.artifact(binary).data
    elf = parse_elf(data if isinstance(data, bytes) else b"")
    return {section.name: elf.contents(section) for section in elf.sections if "A" in section.flag_letters}

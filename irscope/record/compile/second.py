"""Second compiles of a capture that tell more: the compiler's reasons, and the operation of each instruction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from irscope.errors import RecordingError
from irscope.ir.asm.resources import parse_elf
from irscope.ir.columns import clean
from irscope.ir.locations.operations import read_operation_lines, with_loads_of_readers, with_operation_locations
from irscope.model.capture import Capture, stage_named
from irscope.model.evidence import CompilerLog, OperationLines
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import compiled
from irscope.record.triton.versions import triton_version

STAGES_OF_OPERATIONS = {"ptx": "", "sass": "cubin", "amdgcn": "hsaco"}
"""Stages whose lines have operations, each with the binary that must be the same beside its text."""

_ATTEMPTS = 3


def find_operations(
    capture: Capture,
    run: Callable[[RecordRequest], Capture] = compiled,
    stages: Collection[str] = tuple(STAGES_OF_OPERATIONS),
) -> tuple[OperationLines, ...]:
    """Compile a capture's TTGIR again, and read which operation each line of its assembly is from, of some `stages`.

    A stage whose code is not the same, but for locations and debug information, has a reason instead.
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
        binary in capture.stages and _loaded_sections(capture, binary) != _loaded_sections(again, binary)
    ):
        made = binary if lines == other_lines else stage
        return OperationLines(stage, reason=f"compiling the TTGIR again for this gave another {made}")
    ptx = again.text("ptx") if stage == "sass" else None
    operations = read_operation_lines(again.text(stage), kind, ptx=ptx)
    by_line = [0] * (capture.text(stage).count("\n") + 1)
    for number, other in zip(numbers, other_numbers, strict=True):
        by_line[number - 1] = operations[other - 1]
    return OperationLines.of(stage, with_loads_of_readers(by_line, capture.text(stage), capture.text("ttgir")))


def _loaded_sections(capture: Capture, binary: str) -> dict[str, bytes]:
    data = capture.artifact(binary).data
    elf = parse_elf(data if isinstance(data, bytes) else b"")
    return {section.name: elf.contents(section) for section in elf.sections if "A" in section.flag_letters}


def find_log(
    capture: Capture,
    run: Callable[[RecordRequest], Capture] = compiled,
    *,
    parts: Sequence[str] = (),
    last_stage: str = "",
) -> CompilerLog:
    """Compile a capture's source again with the compiler's debug output and remarks on, of some `parts` of Triton.

    Raises RecordingError if the capture is of another Triton than the installed one, or was compiled by other passes.
    """
    request = replace(_request(capture), log_parts=tuple(parts), last_stage=last_stage)
    again = run(request)
    is_aborted = again.failure is not None and again.failure.kind == "abort"
    if not again.has_compiled and (capture.has_compiled or is_aborted):
        # It may have ended where it printed what a pass had half built, and what it printed last is lost.
        again = run(replace(request, verifies_log=True))
    known = {snapshot.index: snapshot.label for snapshot in capture.passes()}
    logged = {snapshot.index: snapshot.label for snapshot in again.passes()}
    if any(known.get(index, label) != label for index, label in logged.items()):
        raise RecordingError(f"{capture.name} went through other passes when it was compiled again for its log.")
    log = again.log or CompilerLog()
    kept = tuple(item for item in log.passes if item.index is None or item.index in known)
    stages = capture.stages
    made = stages[: stages.index(last_stage) + 1] if last_stage in stages else stages
    return CompilerLog(kept, tuple(stage for stage in made if not _same(capture, again, stage)))


def find_assembler_log(capture: Capture, run: Callable[[RecordRequest], Capture] = compiled) -> CompilerLog:
    """What ptxas says of a capture's PTX, which alone is assembled again; raises as `find_log`."""
    again = run(replace(_request(capture), stage="ptx", text=capture.text("ptx")))
    said = tuple(replace(item, index=None) for item in (again.log or CompilerLog()).passes if item.stage == "cubin")
    return CompilerLog(said, () if _same(capture, again, "cubin") else ("cubin",))


def _request(capture: Capture) -> RecordRequest:
    made, here = capture.environment.triton_version, triton_version()
    if made != here:
        raise RecordingError(
            f"{capture.name} was compiled by Triton {made or 'of an unknown version'}, and {here} is installed, which "
            "may decide otherwise. Record it again, or ask where that Triton is."
        )
    asked = RecordingOptions(plan=capture.plan, snapshots="none", layouts=False, disassemble=False)
    return replace(request_from_capture(capture, asked), compiler_log=True)


def _same(capture: Capture, again: Capture, stage: str) -> bool:
    if stage == "sass":
        # Made of the cubin, which is compared.
        return True
    if stage not in again.stages:
        return False
    if stage_named(stage).is_binary:
        return _loaded_sections(capture, stage) == _loaded_sections(again, stage)
    return capture.artifact(stage).data == again.artifact(stage).data

"""Finds what the compiler says of its reasons, by a second compile of a capture, or a part of one, that prints them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from irscope.errors import RecordingError
from irscope.model.capture import Capture, stage_named
from irscope.model.evidence import CompilerLog
from irscope.model.recording_options import RecordingOptions
from irscope.record.compile.operations import loaded_sections
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import compiled
from irscope.record.triton.versions import triton_version

__all__ = ["find_assembler_log", "find_log"]


def find_log(
    capture: Capture,
    run: Callable[[RecordRequest], Capture] = compiled,
    *,
    parts: Sequence[str] = (),
    last_stage: str = "",
) -> CompilerLog:
    """Compile a capture's source again with the compiler's debug output and remarks on.

    Raises RecordingError if the capture is of another Triton than the installed one, or was compiled by other passes,
    and what `run` raises.

    Args:
        capture: the capture.
        run: does the request.
        parts: the debug types of the parts of Triton that print; by default all.
        last_stage: the stage after which the compile stops; by default it makes them all.
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
        raise RecordingError(f"{capture.name} was compiled again for its log, and by other passes than the first time.")
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
        return loaded_sections(capture, stage) == loaded_sections(again, stage)
    return capture.artifact(stage).data == again.artifact(stage).data

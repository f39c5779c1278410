"""`irscope dump --via mlir-dump`: the passes as MLIR_ENABLE_DUMP prints them, in place of the tap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from irscope.capture import Capture, stage_named
from irscope.cli.endings import tell_stops
from irscope.cli.subject import How, nth_launch, run_request, tell_origin
from irscope.cli.talk import say
from irscope.errors import RecordingError, UsageError, did_you_mean
from irscope.recent import CaptureStore
from irscope.store import SUFFIX

if TYPE_CHECKING:
    from irscope.ir.dump import DumpedCompile
    from irscope.record.request import RecordRequest

_NOTE = "The passes were read from what MLIR_ENABLE_DUMP printed: it tells no times, and not what the last pass made."


def captures_via_mlir_dump(subject: str | None, asked: How) -> list[Capture]:
    """Record what a subject names, with the tap off and MLIR's own dump on; never empty.

    The passes come from the log, everything else from the recording. Raises UsageError for a plan (without the tap
    nothing can be switched off) and RecordingError where nothing was compiled.
    """
    if asked.plan:
        raise UsageError("--via mlir-dump watches only: leave out --disable-pass, --enable-only and --plan.")
    from irscope.record.own_folder import own_folder
    from irscope.record.request import one_for_each_target

    file, _, kernel = (subject or "last").partition("::")
    captures: list[Capture] = []
    # MLIR's dump is one file a process.
    for request in one_for_each_target(_request(file, kernel, asked)):
        with own_folder() as folder:
            log = folder / "mlir.log"
            recording = run_request(replace(request, mlir_dump_path=str(log)), asked)
            text = log.read_text("utf-8", "replace") if log.exists() else ""
        tell_stops(file, recording, asked)
        for note in recording.notes:
            say(note)
        captures += _joined(recording.captures, text)
    made = {capture.name for capture in captures}
    captures = [capture for capture in captures if not kernel or capture.name == kernel]
    if not captures:
        which = f"kernel {kernel!r}" if kernel else "kernel"
        raise RecordingError(f"{file} compiled no {which}.{did_you_mean(kernel, made)}")
    store = CaptureStore()
    for capture in captures:
        store.add(capture)
    return captures if asked.launch is None else nth_launch(captures, asked)


def _request(file: str, kernel: str, asked: How) -> RecordRequest:
    from irscope.record.requests import request_for, request_from_capture

    path = Path(file)
    level = cast("Any", asked.snapshots)
    if path.suffix == SUFFIX or (not path.exists() and not path.suffix and "/" not in file):
        capture = CaptureStore().load(file)
        tell_origin(capture)
        return request_from_capture(
            capture,
            targets=asked.targets,
            options=asked.options,
            snapshots=level,
            llvm_passes=asked.llvm_passes,
        )
    return request_for(
        file,
        kernel=kernel,
        targets=asked.targets,
        signature=asked.signature,
        constexprs=_constexprs(asked.constexprs),
        options=asked.options,
        arguments=asked.arguments,
        configs=asked.config,
        snapshots=level,
        llvm_passes=asked.llvm_passes,
        virtual=asked.virtual,
    )


def _constexprs(rows: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for row in rows:
        name, equals, value = row.partition("=")
        if not equals or not name:
            raise UsageError(f"--constexpr {row!r}: write NAME=VALUE.")
        pairs[name.strip()] = value.strip()
    return pairs


def _joined(captures: Sequence[Capture], text: str) -> list[Capture]:
    from irscope.ir.dump import read_mlir_dump

    waiting = list(read_mlir_dump(text))
    joined: list[Capture] = []
    for capture in captures:
        dumped = _dump_of(capture, waiting)
        if dumped is None:
            joined.append(replace(capture, notes=(*capture.notes, "MLIR_ENABLE_DUMP printed nothing of this compile.")))
            continue
        waiting.remove(dumped)
        joined.append(_with_passes(capture, dumped))
    return joined


def _dump_of(capture: Capture, waiting: Sequence[DumpedCompile]) -> DumpedCompile | None:
    """The dump that begins with the very text this compile began with; the first of its kernel where none does."""
    named = [item for item in waiting if item.kernel == capture.name]
    start = capture.artifacts[0].data if capture.artifacts else None
    same = [item for item in named if item.first_text == start]
    return (same or named or [None])[0]


def _with_passes(capture: Capture, dumped: DumpedCompile) -> Capture:
    from irscope.ir.dump import completed

    texts = {
        artifact.stage: artifact.data
        for artifact in capture.artifacts
        if isinstance(artifact.data, str) and stage_named(artifact.stage).kind == "mlir"
    }
    dumped = completed(dumped, texts)
    # What the recording knows without the tap: the assembler's step, and LLVM's passes.
    mlir = [*dumped.snapshots]
    steps = [replace(step, index=len(mlir) + number) for number, step in enumerate(capture.passes())]
    return replace(
        capture,
        snapshots=(*mlir, *steps, *capture.passes("llvm")),
        status="failed" if dumped.failure else capture.status,
        failure=_failure(capture, dumped),
        notes=(*capture.notes, _NOTE, *dumped.notes),
        snapshot_level="all",
    )


def _failure(capture: Capture, dumped: DumpedCompile) -> Any:
    if capture.failure is None or dumped.failure is None:
        return capture.failure or dumped.failure
    # The recording knows what was said, the log which pass it was.
    return replace(capture.failure, kind="pass", stage=dumped.failure.stage, pass_label=dumped.failure.pass_label)

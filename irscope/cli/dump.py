"""`irscope dump`: records a kernel and shows any stage, or the IR around any pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.cli.captures import (
    captures_of,
    is_capture,
    nth_launch,
    run_request,
    split_subject,
    stored_capture,
    tell_failures,
)
from irscope.cli.command import Subject
from irscope.cli.keeping import kept_captures, tell_stops
from irscope.cli.output import Destination, emit
from irscope.cli.show import NONE_EXPLAINED, View, show_captures
from irscope.cli.streams import say
from irscope.errors import RecordingError, UsageError, did_you_mean
from irscope.machine import has_machine
from irscope.model.capture import Capture, stage_named
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import tell_origin
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.api.explain import Explanation
    from irscope.ir.logs.dump_mlir import DumpedCompile
    from irscope.record.process.requests import RecordRequest


def dump(
    subject: Subject = None, *, view: View, to: Destination, record_options: RecordingOptions, via: str | None = None
) -> int:
    """Record any Triton kernel on any machine, and show any stage of its compilation.

    Without --stage it prints a summary. A capture can be compiled again with other passes, options or targets.

    Options:
        --via mlir-dump: Read the passes from what MLIR_ENABLE_DUMP prints.
    """
    if to.path is None and not to.as_json and not view.needs_sass:
        record_options = replace(record_options, disassemble=False)
    if via not in (None, "mlir-dump"):
        raise UsageError(f"--via {via!r}: the only other way to record is mlir-dump.")
    captures = (captures_of if via is None else captures_via_mlir_dump)(subject, record_options)
    has_summary = view.is_summary and to.path is None and not to.as_json
    is_studied = has_summary and has_machine()
    code = show_captures(captures, view, to, explained=_explained(captures) if is_studied else NONE_EXPLAINED)
    if is_studied and (text := _safety(captures)):
        emit(text)
    return tell_failures(captures) or code


def _explained(captures: StoredCaptures) -> Mapping[str, Explanation]:
    """Explanations of a few captures, without another compile: predictions and findings in the order of `why`."""
    from irscope.verify.launches import MOST_BRIEFLY

    if len(captures) > MOST_BRIEFLY:
        return NONE_EXPLAINED
    from irscope.api.explain import Explainer

    return {one.id: Explainer().explain(one) for one in captures if one.failure is None}


def _safety(captures: StoredCaptures) -> str:
    """A line of `irscope verify`: the answers, and what is wrong."""
    from irscope.verify.launches import MOST_BRIEFLY, verify_briefly

    launched = [one for one in captures if one.launch.record is not None and one.failure is None]
    if not launched or len(captures) > MOST_BRIEFLY:
        return ""
    summaries: list[str] = []
    left = MOST_BRIEFLY - len(launched)
    for one in launched:
        others = len(one.launch.others)
        verdict = verify_briefly(one, [*captures], left + 1)
        left -= others if others <= left else 0
        summaries.append("; ".join((verdict.summary, *(verdict.notes if others else ()))))
    return "".join(f"verify: {text}\n" for text in dict.fromkeys(summaries))


_NOTE = (
    "The passes were read from what MLIR_ENABLE_DUMP printed: without times, and without the result of the last pass."
)


def captures_via_mlir_dump(subject: str | None, record_options: RecordingOptions) -> StoredCaptures:
    """Record what a subject names with MLIR's own dump instead of the tap; at least one capture.

    The passes come from the log, everything else from the recording. Raises UsageError for a plan (no pass can be
    switched off without the tap) and RecordingError if nothing was compiled.
    """
    if record_options.plan:
        raise UsageError(
            "--via mlir-dump cannot switch passes off: leave out --disable-pass, --enable-only and --plan."
        )
    from irscope.record.process.own_folder import own_folder
    from irscope.record.process.requests import one_for_each_target

    file, kernel = split_subject(subject, record_options)
    captures: list[Capture] = []
    # MLIR writes one dump file per process.
    for request in one_for_each_target(_request(file, kernel, record_options)):
        with own_folder() as folder:
            log = folder / "mlir.log"
            recording = run_request(replace(request, mlir_dump_path=str(log)))
            text = log.read_text("utf-8", "replace") if log.exists() else ""
        tell_stops(file, recording)
        for note in recording.notes:
            say(note)
        captures += _joined(recording.captures, text)
    made = {capture.name for capture in captures}
    captures = [capture for capture in captures if not kernel or capture.name == kernel]
    if not captures:
        which = f"kernel {kernel!r}" if kernel else "kernel"
        raise RecordingError(f"{file} compiled no {which}.{did_you_mean(kernel, made)}")
    with kept_captures() as keep:
        for capture in captures:
            keep(capture)
    made_of = StoredCaptures.of(captures)
    return made_of if record_options.launch is None else nth_launch(made_of, record_options)


def _request(file: str, kernel: str, record_options: RecordingOptions) -> RecordRequest:
    from irscope.record.process.requests import request_for, request_from_capture

    if is_capture(file):
        capture = stored_capture(f"{file}::{kernel}" if kernel else file)
        tell_origin(capture)
        return request_from_capture(capture, record_options)
    return request_for(file, record_options, kernel=kernel)


def _joined(captures: Sequence[Capture], text: str) -> list[Capture]:
    from irscope.ir.logs.dump_mlir import read_mlir_dump

    waiting = list(read_mlir_dump(text))
    joined: list[Capture] = []
    for capture in captures:
        # The dump that begins with the first text of this compile, or else the first dump of the kernel.
        named = [item for item in waiting if item.kernel == capture.name]
        start = capture.artifacts[0].data if capture.artifacts else None
        dumped = next((item for item in named if item.first_text == start), next(iter(named), None))
        if dumped is None:
            joined.append(replace(capture, notes=(*capture.notes, "MLIR_ENABLE_DUMP printed nothing of this compile.")))
            continue
        waiting.remove(dumped)
        joined.append(_with_passes(capture, dumped))
    return joined


def _with_passes(capture: Capture, dumped: DumpedCompile) -> Capture:
    from irscope.ir.logs.dump_mlir import completed

    texts = {stage: text for stage, text in capture.texts.items() if stage_named(stage).kind == "mlir"}
    dumped = completed(dumped, texts)
    failure = capture.failure or dumped.failure
    if capture.failure is not None and dumped.failure is not None:
        # The recording has the message, the log the pass.
        of_pass = dumped.failure
        failure = replace(capture.failure, kind="pass", stage=of_pass.stage, pass_label=of_pass.pass_label)
    # The recording has the assembler's step and LLVM's passes, which need no tap.
    mlir = [*dumped.snapshots]
    steps = [replace(step, index=len(mlir) + number) for number, step in enumerate(capture.passes())]
    return replace(
        capture,
        snapshots=(*mlir, *steps, *capture.passes("llvm")),
        status="failed" if dumped.failure else capture.status,
        failure=failure,
        notes=(*capture.notes, _NOTE, *dumped.notes),
        snapshot_level="all",
    )

"""`irscope dump`: records a kernel and shows any stage, or the IR around any pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from irscope.cli import app, options
from irscope.cli.dump.stages import one_pass
from irscope.cli.dump.view import View, show_captures, with_view
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, run_request, tell_failures
from irscope.cli.subject.keeping import kept_captures
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.store.shelf import StoredCaptures

_passes = options.in_panel("Passes")


@app.command(rich_help_panel="Record and read")
@recorded()
@with_destination
@with_view
def dump(
    subject: options.Subject = None,
    *,
    view: View,
    to: Destination,
    record_options: RecordingOptions,
    from_pass: Annotated[
        str | None,
        _passes("--from-pass", metavar="PASS[#N]", help="Compile on after this pass, from the IR of --edited."),
    ] = None,
    edited: Annotated[Path | None, _passes("--edited", metavar="FILE", help="The edited IR for --from-pass.")] = None,
    via: Annotated[
        str | None, _passes("--via", metavar="mlir-dump", help="Read the passes from what MLIR_ENABLE_DUMP prints.")
    ] = None,
) -> int:
    """Record any Triton kernel on any machine, and show any stage of its compilation.

    Without --stage it prints a summary. A capture can be compiled again with other passes, options or targets.
    """
    if to.path is None and not to.as_json and not view.needs_sass:
        record_options = replace(record_options, disassemble=False)
    if (from_pass is None) != (edited is None):
        raise UsageError(
            "--from-pass PASS and --edited FILE go together: the pass after which to go on, and its edited IR."
        )
    if via not in (None, "mlir-dump"):
        raise UsageError(f"--via {via!r}: the only other way to record is mlir-dump.")
    if from_pass is not None and edited is not None:
        captures = StoredCaptures.of([_resumed(subject, record_options, from_pass, edited)])
    elif via is not None:
        from irscope.cli.dump.via import captures_via_mlir_dump

        captures = captures_via_mlir_dump(subject, record_options)
    else:
        captures = captures_of(subject, record_options)
    code = show_captures(captures, view, to)
    return tell_failures(captures) or code


def _resumed(subject: str | None, record_options: RecordingOptions, from_pass: str, edited: Path) -> Capture:
    from irscope.api.edits import EditPlace

    captures = captures_of(subject, replace(record_options, options=(), targets=()), of_one=True)
    if len(captures) > 1:
        raise UsageError(f"{subject} made {len(captures)} launches: choose one with --launch N.")
    place = EditPlace(captures[0], one_pass(captures[0], from_pass), record=run_request, tell=say)
    text = edited.read_bytes().decode("utf-8", "surrogateescape")
    fresh = place.compiled(text, edited, replace(record_options, targets=record_options.targets[:1]))
    with kept_captures() as keep:
        keep(fresh)
    return fresh

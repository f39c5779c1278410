"""`irscope edit`: opens an editor on a text of a capture, resumes the compile from it, and shows the changes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irscope.api.texts import PYTHON, EditPlace, place_at
from irscope.cli.captures import captures_of, only_one
from irscope.cli.command import Context, Subject
from irscope.cli.keeping import kept_captures, refuse_untrusted
from irscope.cli.launches import session_without_gpu
from irscope.cli.output import Destination, emit, is_terminal
from irscope.cli.recording import split_words
from irscope.cli.streams import say
from irscope.errors import MissingTool, RecordingError, UsageError
from irscope.interruption import noted_signals
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.render.text.failure import edited_failure_text
from irscope.store.disk import write_atomically
from irscope.store.recent import edits_folder, free_name, named, refuse_taken

if TYPE_CHECKING:
    from irscope.analysis.diff.captures import Comparison
    from irscope.device.measurement import Agreement


@dataclass(frozen=True, slots=True)
class _Edit:
    place: EditPlace
    path: Path
    name: str = ""
    """Of the variant; empty if none is kept."""
    variant: Capture | None = None
    error: str = ""


def edit(
    subject: Subject = None,
    name: str = "",
    edited: Path | None = None,
    as_text: bool = False,
    trust: bool = False,
    stage: list[str] | None = None,
    stat: bool = False,
    result: bool = False,
    context: Context = 3,
    *,
    at: str,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Edit a text of a capture in your editor, resume the compile from it, and show the changes.

    The result is kept as a variant, whose name is a CAPTURE for every command. The editor is $VISUAL, or else $EDITOR;
    without a terminal, --text prints the text and --edited FILE takes it back.

    Options:
        --name NAME: The variant's name. Default: the place and a number.
        --edited FILE: The edited text, in place of an editor.
        as_text = --text: Only print the text that is edited.
        --trust: Run the Python text of a capture that was not recorded here.
        --stage, -s STAGE: Diff these stages. Default: the first that differs.
        --stat: Only the tables.
        --result: Run both on the CPU, and compare the memory after them.
        --at PASS|STAGE: The text: the IR after a pass, what a stage made, or with 'source' the kernel's Python text.
    """
    capture = only_one(captures_of(subject, replace(record_options, disassemble=False)), subject)
    place = place_at(capture, at)
    if as_text and to.as_json:
        raise UsageError("--text and --json do not go together: give one.")
    if as_text:
        emit(place.text(), to.path, exact=True)
        return 0
    if place.is_python and not trust:
        refuse_untrusted(capture, "--at source runs", "what --text prints")
    if name:
        refuse_taken(name)
    judge = None
    if result:
        if not place.is_above_llvm:
            raise UsageError(
                f"--result: the CPU runs the TTGIR, which is not compiled from {place.label}. Leave it out."
            )
        judge = session_without_gpu(capture, "--result")
    # As the capture was compiled: what the options say of that is in it already.
    asked = RecordingOptions(
        plan=capture.plan, targets=(str(capture.target),), disassemble=False, timeout_s=record_options.timeout_s
    )
    made = _made(place, name, edited, asked)
    shown = split_words(stage)
    comparison = None if made.variant is None else _compared(made, shown)
    agreement = judge.check(made.variant) if judge is not None and made.variant is not None else None
    to.emit(
        partial(_as_json, made, comparison, shown, agreement),
        partial(_as_text, made, comparison, shown, agreement, stat=stat, context=context),
    )
    return int(bool(made.error) or (agreement is not None and not agreement.passes))


def _made(place: EditPlace, name: str, edited: Path | None, asked: RecordingOptions) -> _Edit:
    """Have the text edited until it compiles or the user gives up."""
    before = place.text()
    if edited is not None:
        return _compiled(place, name, edited, before, asked)
    command = _editor_command()
    if not (sys.stdin.isatty() and is_terminal()):
        raise UsageError(
            "an editor needs a terminal, and there is none: write the text with --text, edit it, and give it with "
            "--edited FILE."
        )
    path = edits_folder() / f"{name or free_name(place.short)}{place.suffix}"
    write_atomically(path, before.encode("utf-8", "surrogateescape"))
    while True:
        _edit_file(command, path)
        made = _compiled(place, name, path, before, asked)
        if not made.error or not click.confirm(f"{made.error}\nEdit again?", default=True, err=True):
            break
    if made.variant is None and not made.error:
        path.unlink(missing_ok=True)
    return made


def _compiled(place: EditPlace, name: str, path: Path, before: str, asked: RecordingOptions) -> _Edit:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    if text == before:
        return _Edit(place, path)
    try:
        fresh = place.compiled(text, path, asked)
    except RecordingError as error:
        return _Edit(place, path, error=str(error))
    error = "" if fresh.status == "ok" else edited_failure_text(fresh, text, path)
    if fresh.failure is not None and fresh.failure.kind in ("parse", "python", "compile"):
        # No compile of the text began, and there is nothing to look at.
        return _Edit(place, path, error=error)
    name, fresh = named(fresh, name, place.short)
    with kept_captures(becomes_last=False) as keep:
        keep(fresh)
    return _Edit(place, path, name, fresh, error)


def _compared(made: _Edit, stages: list[str]) -> Comparison:
    from irscope.analysis.diff.captures import diff

    assert made.variant is not None
    for name in stages:
        made.variant.artifact(name)
    compared = diff(made.place.capture, made.variant, stages=stages or None)
    # The lines of edited Python are those of another file.
    return replace(compared, lines=()) if made.place.is_python else compared


def _shown(comparison: Comparison, stages: list[str]) -> list[str]:
    differing = [row.stage for row in comparison.stages if row.state == "differs" and comparison.diff(row.stage)]
    return stages or differing[:1]


def _as_text(
    made: _Edit,
    comparison: Comparison | None,
    stages: list[str],
    agreement: Agreement | None,
    *,
    stat: bool,
    context: int,
    width: int | None,
    color: bool,
) -> str:
    from irscope.render.text.bench import render_agreements
    from irscope.render.text.diff import render_comparison

    if made.error:
        say(f"{made.error}\nThe text is in {made.path}.")
    if comparison is None or made.variant is None:
        return "" if made.error else f"{made.place.label} is unchanged: nothing was compiled or stored.\n"
    shown = _shown(comparison, stages)
    text = render_comparison(comparison, stages=shown, width=width, color=color, stat=stat, context=context)
    of = "the Python text" if made.place.label == PYTHON else made.place.label
    if agreement is not None:
        launch = made.place.capture.launch
        row = (1, made.place.capture.name, launch.grid, 1, agreement)
        text = f"{text}\n\n{render_agreements([row], width=width, color=color)}"
    kept = f"Kept as {made.name} ({made.variant.id[:8]}), edited at {of}: irscope show {made.name}\n"
    return f"{text}\n{kept}"


def _as_json(
    made: _Edit, comparison: Comparison | None, stages: list[str], agreement: Agreement | None
) -> dict[str, Any]:
    from irscope.render.text.diff import comparison_json

    return {
        "capture": made.place.capture.id,
        "at": made.place.label,
        "file": str(made.path),
        "name": made.name,
        "variant": None if made.variant is None else made.variant.id,
        "error": made.error,
        "result": None if agreement is None else agreement.as_json(),
        "comparison": None if comparison is None else comparison_json(comparison, _shown(comparison, stages)),
    }


def _editor_command() -> list[str]:
    """The words of `$VISUAL`, or else `$EDITOR`; raises UsageError where neither is set."""
    for name in ("VISUAL", "EDITOR"):
        text = os.environ.get(name, "").strip()
        if not text:
            continue
        try:
            return shlex.split(text)
        except ValueError as error:
            raise UsageError(f"{name}={text!r} is not a command: {error}.") from error
    raise UsageError(
        "neither VISUAL nor EDITOR names an editor: EDITOR=vi irscope edit …, or write the text with --text, edit it, "
        "and give it with --edited FILE."
    )


def _edit_file(command: list[str], path: Path) -> None:
    """Wait until the editor ends; raises MissingTool if it cannot be started, and UsageError if it fails."""
    kept = f"The text is in {path}: --edited {path} compiles it."
    try:
        # What is typed is the editor's, Ctrl-C too.
        with noted_signals():
            code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise MissingTool(
            f"the editor {command[0]!r} cannot be started: {error.strerror}. Set VISUAL or EDITOR. {kept}"
        ) from error
    if code:
        raise UsageError(f"the editor {command[0]!r} ended with {code}, so nothing was compiled. {kept}")

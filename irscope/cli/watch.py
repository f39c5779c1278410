"""`irscope diff --watch`: records a file again whenever it is saved, and shows what that changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irscope.cli.captures import captures_of
from irscope.cli.keeping import noted_incomplete
from irscope.cli.output import JSON_VERSION, Destination, is_terminal, table_width
from irscope.cli.streams import say, standard_output
from irscope.cli.subject import is_program, split_subject
from irscope.errors import IrscopeError, UsageError
from irscope.interruption import Interrupted
from irscope.model.recording_options import RecordingOptions
from irscope.render.text.terminal import harmless

if TYPE_CHECKING:
    from irscope.api.watching import KernelRound, LastGood


def watched(
    subject: str | None,
    stages: Sequence[str],
    stat: bool,
    context: int,
    recordings: int | None,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Record a file again whenever it is saved, and show what that changed, until Ctrl-C or so many recordings.

    A module next to it that it imports counts as well. Each kernel is compared with its last good state, which an error
    in the file leaves as it is. Recordings are forks of a process that has imported Triton, and torch where the file
    does.
    """
    file, kernel = split_subject(subject, record_options)
    if not is_program(subject, record_options) or file == "-":
        raise UsageError(f"{subject or 'last'!r} is no file to watch: give a Python file, or an IR file.")
    from irscope.api.watching import LastGood, Watched, program_files
    from irscope.record.process.child import warm_children
    from irscope.record.process.requests import request_for

    # What is wrong from the start is refused; errors that edits make are told, and the watch goes on.
    request_for(file, record_options, kernel=kernel)
    asked = replace(record_options, disassemble=False)
    stages = stages or ["ttgir"]
    state, files, number = LastGood(stages), Watched(), 0
    beside: dict[Path, None] = {}
    paint = to.is_colored
    with warm_children():
        try:
            while True:
                number += 1
                beside.update(dict.fromkeys(program_files(Path(file)) if Path(file).is_file() else ()))
                # Before the recording: what is saved meanwhile is recorded next.
                files.look(beside)
                made = _recorded(subject, asked, state, beside)
                if made is not None:
                    files.look(beside)
                _emit(made, number, to.as_json, lambda made=made: _text(made or [], stages, stat, context, paint))
                if recordings is not None and number >= recordings:
                    return 0
                if is_terminal():
                    say(f"watching {len(beside)} file{'s' * (len(beside) != 1)}: save one, or end with Ctrl-C")
                changed = files.wait()
                say(f"saved: {', '.join(os.path.basename(one) for one in changed)}")
        except (Interrupted, KeyboardInterrupt):
            return 0


def _recorded(
    subject: str | None, asked: RecordingOptions, state: LastGood, beside: dict[Path, None]
) -> list[KernelRound] | None:
    """What came of one recording; None if nothing was recorded, and the last good state stays."""
    kept = "; the last good state stays" if state else ""
    with noted_incomplete() as incomplete:
        try:
            captures = list(captures_of(subject, asked))
        except IrscopeError as error:
            say(f"{error}{kept}")
            return None
    for capture in captures:
        beside.update({Path(one.path): None for one in capture.sources if _is_own(one.path)})
    return state.take(captures, is_whole=not incomplete)


def _is_own(path: str) -> bool:
    """Whether a file is one that is edited: no installed package's, and no text that never was a file."""
    return os.path.isabs(path) and "site-packages" not in path and os.path.isfile(path)


def _emit(made: Sequence[KernelRound] | None, number: int, as_json: bool, text: Callable[[], str]) -> None:
    if as_json:
        row: dict[str, Any] = {"irscope_json": JSON_VERSION, "round": number, "recorded": made is not None}
        row["kernels"] = [_as_json(one) for one in made or ()]
        print(json.dumps(row, default=str), flush=True)
    elif made is not None:
        # No pager: it would have to be left before the next save is seen.
        standard_output().write(harmless(text()))
        standard_output().flush()


def _text(made: Sequence[KernelRound], stages: Sequence[str], stat: bool, context: int, color: bool) -> str:
    from irscope.render.text.diff import render_comparison
    from irscope.render.text.findings import line_of_finding

    bold, red, green, plain = ("\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m") if color else ("",) * 4
    paints = {"worse": red, "better": green, "other": ""}
    lines: list[str] = []
    for one in made:
        lines.append(f"{bold}{one.kernel}{plain} {one.variant}: {one.state}")
        lines += [f"  {line}" for line in one.failure.splitlines()]
        lines += [f"  {paints[change.verdict]}{change.verdict}{plain} {change.text}" for change in one.facts]
        lines += [f"  {red}came{plain} {line_of_finding(finding)}" for finding in one.came]
        lines += [f"  {green}went{plain} {line_of_finding(finding)}" for finding in one.went]
        if one.comparison is not None and one.state == "changed":
            shown = [name for name in stages if one.comparison.diff(name) is not None]
            lines.append(
                render_comparison(
                    one.comparison, stages=shown, width=table_width(), color=color, stat=stat, context=context
                )
            )
    return "\n".join(lines) + "\n"


def _as_json(one: KernelRound) -> dict[str, Any]:
    from irscope.render.text.findings import findings_json
    from irscope.render.text.tables import picked

    compared = one.comparison.stages if one.comparison is not None else ()
    return picked(
        one,
        "kernel variant state failure",
        facts=[picked(change, "name before after verdict") for change in one.facts],
        findings_came=findings_json(one.came),
        findings_went=findings_json(one.went),
        stages=[picked(row, "stage state summary") for row in compared],
    )

"""`irscope source`: the kernel's Python with what each line was compiled to at every stage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from irscope.api.texts import parse_lines
from irscope.cli.captures import captures_of, tell_incomplete
from irscope.cli.command import Annotations, Lines, Subject
from irscope.cli.output import Destination, emit_report, is_page
from irscope.cli.texts import annotation_columns, annotations_json, columns_of
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

if TYPE_CHECKING:
    from irscope.render.text.source import Column

_Pattern = re.Pattern[str] | None


def source(
    subject: Subject = None,
    stage: str | None = None,
    match: str | None = None,
    lines: Lines = None,
    annotate: Annotations = None,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Show the kernel's Python with, for each line, its operations at every stage, instructions and live registers.

    --stage shows below each line its code at that stage. Lines of Triton's library count for their caller.

    Options:
        --stage, -s STAGE: Show this stage between the lines of Python.
        --match REGEX: Only lines compiled to such an instruction: wgmma, 'ld.global.128'.
    """
    shown = _Shown(stage, _pattern_of(match), lines, annotation_columns(annotate))
    captures = captures_of(subject, record_options)
    if is_page(to.path) and not to.as_json:
        if shown.pattern is not None:
            raise UsageError("--match does not go with a page: search in its panes instead, with Ctrl F.")
        panes = {} if stage is None else {"panes": f"py0,{stage}"}
        at = {} if lines is None else {"at": f"py0:{min(parse_lines(lines))}"}
        emit_report(captures, {"tab": "stages", **panes, **at}, to.path)
        return tell_incomplete(captures)
    to.emit_each(captures, partial(_json, shown), partial(_text, shown))
    return tell_incomplete(captures)


@dataclass(frozen=True, slots=True)
class _Shown:
    stage: str | None
    pattern: _Pattern
    lines: str | None
    columns: tuple[Column, ...]


def _pattern_of(text: str | None) -> _Pattern:
    try:
        return None if text is None else re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise UsageError(
            f"--match {text!r} is not a regular expression: {error}. Write '\\.' for a dot, for instance."
        ) from error


def _text(shown: _Shown, capture: Capture, width: int | None, color: bool) -> str:
    from irscope.analysis.source.map import source_map
    from irscope.render.text.source import render_interleaved, render_table

    stage, pattern = shown.stage, shown.pattern
    found = source_map(capture)
    only = _only(capture, found, stage, pattern, shown.lines)
    if only is not None and not only:
        return f"{capture.name} ({capture.target}): {_nothing(pattern, shown.lines, stage)}\n"
    columns = columns_of(capture, stage, shown.columns) if shown.columns else None
    if stage is None:
        table = render_table(capture, found, only=only, columns=columns, width=width, color=color)
        if pattern is None:
            return table
        counts = ", ".join(f"{name} {len(indices)}" for name, indices in found.matching(pattern).items())
        return f"{table}\n{pattern.pattern!r} is in {counts}.\n"
    matching = found.stage(stage).operations.matching(pattern) if pattern is not None else None
    return render_interleaved(capture, found, stage, only=only, matching=matching, columns=columns, color=color)


def _only(
    capture: Capture, found: Any, stage: str | None, pattern: _Pattern, lines: str | None
) -> set[tuple[str, int]] | None:
    only: set[tuple[str, int]] | None = None
    if lines is not None:
        wanted = parse_lines(lines)
        file = capture.launch.kernel.file
        only = {(path, line) for path, line in found.python_lines if path == file and line in wanted}
    if pattern is None:
        return only
    wrote: set[tuple[str, int]] = set()
    for name, indices in found.matching(pattern, [stage] if stage else ()).items():
        the_map = found.stage(name)
        for index in indices:
            places = the_map.places_at(the_map.operations.lines[index])
            wrote.update(found.places[place][0] for place in places)
    return wrote if only is None else wrote & only


def _nothing(pattern: _Pattern, lines: str | None, stage: str | None) -> str:
    where = f"stage {stage}" if stage else "any stage"
    if pattern is not None:
        return f"no instruction of {where} matches {pattern.pattern!r}" + (f" on lines {lines}." if lines else ".")
    return f"nothing at {where} comes from lines {lines}."


def _json(shown: _Shown, capture: Capture) -> dict[str, Any]:
    from irscope.analysis.source.map import source_map
    from irscope.render.text.source import counts_json, operations_json

    found = source_map(capture)
    only = _only(capture, found, shown.stage, shown.pattern, shown.lines)
    result = counts_json(capture, found, only)
    if shown.stage is not None:
        result["stage"] = shown.stage
        result["operations"] = operations_json(found, shown.stage, only, shown.pattern)
    if shown.columns:
        result["annotations"] = annotations_json(capture, shown.stage)
    return result

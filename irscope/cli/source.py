"""`irscope source`: the kernel's Python, and what became of each line at every stage."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from irscope.capture import Capture
from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json, width
from irscope.cli.recording import recorded
from irscope.cli.subject import How, captures_of, tell_failures
from irscope.errors import UsageError


@app.command(rich_help_panel="Look into it")
@recorded(without=("snapshots", "llvm"))
def source(
    subject: options.Subject = None,
    stage: Annotated[
        str | None,
        typer.Option(
            "--stage", "-s", metavar="STAGE", help="Show this stage among the lines of Python.", show_default=False
        ),
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(
            "--around",
            metavar="REGEX",
            help="Only lines that became such an instruction: wgmma, 'ld.global.128'.",
            show_default=False,
        ),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option("--lines", metavar="23-31", help="Only these lines of the kernel's file.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
    output: options.Output = None,
    *,
    asked: How,
) -> int:
    """The kernel's Python with, for each line, its operations at every stage, its instructions and live registers.

    With --stage, what each line became there stands below it. Lines of Triton's library count for the line that called.
    """
    pattern = pattern_of(around)
    captures = captures_of(subject, asked)
    paint = colored(color) and output is None
    if as_json:
        emit_json([_json(capture, stage, pattern, lines) for capture in captures], output)
    else:
        head = len(captures) > 1
        emit(
            "\n".join(_text(capture, stage, pattern, lines, head, paint) for capture in captures), output, painted=paint
        )
    return tell_failures(captures)


def pattern_of(text: str | None) -> re.Pattern[str] | None:
    """The pattern that `--around` gives; raises UsageError where it is none."""
    if text is None:
        return None
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise UsageError(
            f"--around {text!r} is no regular expression: {error}. Write '\\.' for a dot, for instance."
        ) from error


def _text(
    capture: Capture, stage: str | None, pattern: re.Pattern[str] | None, lines: str | None, head: bool, color: bool
) -> str:
    from irscope.analysis.source_map import source_map
    from irscope.render.source import render_interleaved, render_table

    found = source_map(capture)
    only = _only(capture, found, stage, pattern, lines)
    title = f"{capture.id[:8]} {capture.name} {capture.target}\n" if head else ""
    if only is not None and not only:
        return f"{title}{capture.name} ({capture.target}): {_nothing(pattern, lines, stage)}\n"
    if stage is None:
        body = render_table(capture, found, only=only, width=width(), color=color)
        return title + body + _matches(found, pattern)
    matching = found.stage(stage).operations.matching(pattern) if pattern is not None else None
    return title + render_interleaved(capture, found, stage, only=only, matching=matching, color=color)


def _only(
    capture: Capture, found: Any, stage: str | None, pattern: re.Pattern[str] | None, lines: str | None
) -> set[tuple[str, int]] | None:
    """The lines of Python that are asked for; None for all of them."""
    from irscope.cli.stages import parse_lines

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


def _nothing(pattern: re.Pattern[str] | None, lines: str | None, stage: str | None) -> str:
    where = f"stage {stage}" if stage else "any stage"
    if pattern is not None:
        return f"no instruction of {where} matches {pattern.pattern!r}" + (f" on lines {lines}." if lines else ".")
    return f"nothing at {where} comes from lines {lines}."


def _matches(found: Any, pattern: re.Pattern[str] | None) -> str:
    if pattern is None:
        return ""
    counts = ", ".join(f"{name} {len(indices)}" for name, indices in found.matching(pattern).items())
    return f"\n{pattern.pattern!r} is in {counts}.\n"


def _json(capture: Capture, stage: str | None, pattern: re.Pattern[str] | None, lines: str | None) -> dict[str, Any]:
    from irscope.analysis.source_map import source_map
    from irscope.render.source_json import counts_json, operations_json

    found = source_map(capture)
    only = _only(capture, found, stage, pattern, lines)
    result = counts_json(capture, found, only)
    if stage is not None:
        result["stage"] = stage
        result["operations"] = operations_json(found, stage, only, pattern)
    return result

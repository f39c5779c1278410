"""What `dump` and `show` show of captures: a summary, stages, or the IR around a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from irscope.cli import options
from irscope.cli.beside import beside_columns, beside_json, beside_text
from irscope.cli.dump import stages
from irscope.cli.dump.summary import summary
from irscope.cli.grouped import grouped
from irscope.cli.output.destination import STANDARD_OUTPUT, Destination, emit, emit_json, table_width, write_output
from irscope.cli.output.talk import say
from irscope.errors import StageNotFound, UsageError
from irscope.model.capture import Capture
from irscope.render.capture.plain import capture_json
from irscope.store.file import SUFFIX
from irscope.store.shelf import StoredCaptures

_output = options.in_panel("Output")


@dataclass(frozen=True, slots=True)
class View:
    """What to show of each capture; with nothing chosen, its summary."""

    stage: options.Stages = None
    after: options.After = None
    before: Annotated[str | None, _output("--before", metavar="PASS[#N]", help="The IR before a pass.")] = None
    each: Annotated[
        Path | None,
        _output(
            "--each",
            metavar="DIR",
            help="Write a numbered file for each pass that changed the IR; diff -r compares two such folders.",
        ),
    ] = None
    lines: options.Lines = None
    loc: Annotated[bool, _output("--loc", help="Show locations: the text whose lines `why` and `layout` name.")] = False
    beside: options.Beside = None

    def __post_init__(self) -> None:
        chosen = {"--stage": self.stage, "--after": self.after, "--before": self.before, "--each": self.each}
        if len(given := [name for name, value in chosen.items() if value]) > 1:
            raise UsageError(f"{' and '.join(given)} do not go together: give one.")
        if beside_columns(self.beside) and not self.stages:
            raise UsageError("--beside stands beside a stage: --stage sass, on AMD --stage amdgcn.")
        if self.lines and not (self.stages or self.after or self.before):
            raise UsageError("--lines chooses of a text: give --stage, --after or --before with it.")

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of stages, or `all`."""
        return tuple(options.split_words(self.stage))

    @property
    def is_summary(self) -> bool:
        """Whether nothing is chosen."""
        return self == View(self.stage or None) and not self.stages

    @property
    def needs_sass(self) -> bool:
        """Whether the view includes the SASS of the cubin."""
        return not (self.after or self.before or self.each) and bool({"sass", "all"} & {*self.stages})


with_view = grouped("view", View)
"""The decorator of a command that takes the View as its parameter `view`."""


def show_captures(captures: StoredCaptures, view: View, to: Destination, *, has_page: bool = False) -> int:
    """Print or write the view of each capture; returns the exit code.

    `has_page`: the summary of one capture alone is a page.
    """
    painted = to.is_colored
    if view.each is not None:
        stages.write_each(captures, view.each)
    elif to.as_json:
        emit_json([_as_json(capture, view) for capture in captures], to.path)
    elif to.path is not None and stages.is_folder(to.path):
        stages.write_folder(captures, to.path, view.stages)
    elif view.after is not None or view.before is not None:
        text = stages.snapshot_texts(captures, view.after, view.before, view.loc, view.lines, painted)
        emit(text, to.path, painted=painted)
    elif to.path is not None and to.path.suffix == SUFFIX:
        stages.save_captures(captures, to.path)
    elif view.stages:
        return _show_stages(captures, view, to)
    elif has_page and len(captures) == 1:
        from irscope.analysis.findings.quick import quick_findings
        from irscope.render.capture.page import render_capture

        one = captures[0]
        text = render_capture(one, quick_findings(one), width=table_width(to.path), color=painted)
        emit(text, to.path, painted=painted)
    else:
        emit(summary(captures, painted), to.path, painted=painted)
    return 0


def _as_json(capture: Capture, view: View) -> dict[str, Any]:
    row = capture_json(capture, view.stages)
    if beside_columns(view.beside):
        row["beside"] = [beside_json(capture, name) for name in view.stages if name in capture.stages]
    return row


def _show_stages(captures: Sequence[Capture], view: View, to: Destination) -> int:
    parts: list[str] = []
    missing: list[str] = []
    columns = beside_columns(view.beside)
    for capture in captures:
        for name in capture.stages if view.stages == ("all",) else view.stages:
            try:
                artifact = capture.artifact(name)
            except StageNotFound as error:
                missing.append(str(error))
                continue
            several = len(captures) > 1 or len(view.stages) > 1
            if to.path is not None and isinstance(artifact.data, bytes):
                if several:
                    raise UsageError("one file holds one binary: choose --launch N and one --stage, or -o DIR/.")
                write_output(to.path, artifact.data)
                if to.path != STANDARD_OUTPUT:
                    say(f"wrote {to.path}")
                return 0
            head = several or view.stages == ("all",)
            if columns and isinstance(artifact.data, str):
                parts.append(beside_text(capture, name, columns, view.loc, view.lines, to.is_colored))
            else:
                parts.append(stages.stage_text(capture, artifact, view.loc, view.lines, to.is_colored, head))
    if parts or not missing:
        text = "\n".join(part.rstrip("\n") for part in parts)
        emit(text, to.path, exact=not to.is_colored, painted=to.is_colored)
    for message in missing:
        say(f"irscope: {message}")
    return 1 if missing else 0

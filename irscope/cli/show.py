"""`irscope show`: shows captures, with neither Triton nor torch: a summary, stages, or the IR around a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from irscope.cli import texts
from irscope.cli.captures import stored_captures
from irscope.cli.command import After, Annotations, Lines, Stages
from irscope.cli.launches import Values, show_values
from irscope.cli.output import (
    STANDARD_OUTPUT,
    Destination,
    colored,
    emit,
    emit_json,
    is_folder,
    is_terminal,
    table_width,
    write_output,
)
from irscope.cli.recording import split_words
from irscope.cli.streams import say
from irscope.cli.texts import annotated_text, annotation_columns, annotations_json
from irscope.errors import StageNotFound, UsageError
from irscope.model.capture import Capture
from irscope.model.facts import Outline
from irscope.record.variants.completing import with_sass
from irscope.render.capture import capture_json, render_capture
from irscope.render.text.failure import failure_text
from irscope.store.file import SUFFIX
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    # It imports NumPy, without which captures can be shown.
    from irscope.api.explain import Explanation

NONE_EXPLAINED: Mapping[str, Explanation] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class View:
    """The views of each capture; without any, its summary.

    Options:
        --before PASS[#N]: The IR before a pass.
        --each DIR: Write a numbered file for each pass that changed the IR; diff -r compares two such folders.
        --loc: Show locations: the text whose lines why and layout name.
    """

    stage: Stages = None
    after: After = None
    before: str | None = None
    each: Path | None = None
    lines: Lines = None
    loc: bool = False
    annotate: Annotations = None

    def __post_init__(self) -> None:
        chosen = {"--stage": self.stage, "--after": self.after, "--before": self.before, "--each": self.each}
        if len(given := [name for name, value in chosen.items() if value]) > 1:
            raise UsageError(f"{' and '.join(given)} do not go together: give one.")
        if annotation_columns(self.annotate) and not self.stages:
            raise UsageError("--annotate needs a stage: --stage sass, on AMD --stage amdgcn.")
        if self.lines and not (self.stages or self.after or self.before):
            raise UsageError("--lines chooses of a text: give --stage, --after or --before with it.")

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of stages, or `all`."""
        return tuple(split_words(self.stage))

    @property
    def is_summary(self) -> bool:
        """Whether nothing is chosen."""
        return self == View(self.stage or None) and not self.stages

    @property
    def needs_sass(self) -> bool:
        """Whether the view includes the SASS of the cubin."""
        return not (self.after or self.before or self.each) and bool({"sass", "all"} & {*self.stages})


def show_captures(
    captures: StoredCaptures, view: View, to: Destination, *, has_page: bool = False,
    explained: Mapping[str, Explanation] = NONE_EXPLAINED,
) -> int:  # fmt: skip
    """Print or write the view of each capture; returns the exit code.

    `has_page`: the summary of one capture alone is a page. `explained`: id → the explanation of a capture, for a
    summary.
    """
    painted = to.is_colored
    is_long = view.each is None and not view.is_summary and len(captures) > 1
    if is_long and to.path is None and not to.as_json and is_terminal():
        _show_how(captures, view, painted)
        return 0
    if view.each is not None:
        texts.write_each(captures, view.each)
    elif to.as_json:
        emit_json([_as_json(capture, view) for capture in captures], to.path)
    elif to.path is not None and is_folder(to.path):
        texts.write_folder(captures, to.path, view.stages)
    elif view.after is not None or view.before is not None:
        text = texts.snapshot_texts(captures, view.after, view.before, view.loc, view.lines, painted)
        emit(text, to.path, painted=painted)
    elif to.path is not None and to.path.suffix == SUFFIX:
        texts.save_captures(captures, to.path)
    elif view.stages:
        return _show_stages(captures, view, to)
    elif has_page and len(captures) == 1:
        from irscope.analysis.findings.quick import quick_findings

        one = captures[0]
        text = render_capture(one, quick_findings(one), width=table_width(to.path), color=painted)
        emit(text, to.path, painted=painted)
    else:
        emit(summary(captures, painted, explained), to.path, painted=painted)
    return 0


def _show_how(captures: StoredCaptures, view: View, painted: bool) -> None:
    """Show, on a terminal, the summary of several captures in place of a screen of text of each, and how to get one."""
    emit(summary(captures, painted), painted=painted)
    chosen = [("--stage", ",".join(view.stages)), ("--after", view.after or ""), ("--before", view.before or "")]
    what = " ".join(f"{option} {value}" for option, value in chosen if value)
    first = captures.files[0]
    say(f"{len(captures)} captures: irscope show {first.facts.id[:8]} {what} prints one; | less or -o FILE gives all.")


def _as_json(capture: Capture, view: View) -> dict[str, Any]:
    row = capture_json(capture, view.stages)
    if annotation_columns(view.annotate):
        row["annotations"] = [annotations_json(capture, name) for name in view.stages if name in capture.stages]
    return row


def _show_stages(captures: Sequence[Capture], view: View, to: Destination) -> int:
    parts: list[str] = []
    missing: list[str] = []
    columns = annotation_columns(view.annotate)
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
                parts.append(annotated_text(capture, name, columns, view.loc, view.lines, to.is_colored))
            else:
                parts.append(texts.stage_text(capture, artifact, view.loc, view.lines, to.is_colored, head))
    if parts or not missing:
        text = "\n".join(part.rstrip("\n") for part in parts)
        emit(text, to.path, exact=not to.is_colored, painted=to.is_colored)
    for message in missing:
        say(f"irscope: {message}")
    return 1 if missing else 0


_MOST_STUDIED = 100
"""In a summary of more captures, findings are left to `irscope why`: they take the texts of each."""


def summary(captures: StoredCaptures, color: bool | None, explained: Mapping[str, Explanation] = NONE_EXPLAINED) -> str:
    """The worst findings, and a table of captures: kernel, target, what distinguishes variants, options, resources."""
    from irscope.analysis.findings.quick import quick_findings
    from irscope.render.text.captures import Findings, note_findings, render_summary

    findings: Findings = {}
    outlines: list[Outline] = []
    for file in captures.files:
        # What the manifest states, once: a capture that is loaded would stay with its texts.
        outlines.append(file.outline())
        if len(captures) <= _MOST_STUDIED:
            capture, known = file.load(), explained.get(outlines[-1].facts.id)
            note_findings(capture, quick_findings(capture) if known is None else known.findings, findings)
    predicted = {id_: time.seconds for id_, one in explained.items() if (time := one.time.prediction) is not None}
    return render_summary(outlines, findings, predicted, width=table_width(), color=colored(color))


def show(captures: list[str] | None = None, *, view: View, values: Values, to: Destination) -> int:
    """Show captures: their summary, a stage, the IR around a pass, or values. Runs anywhere.

    Options:
        captures = [CAPTURE…]: Files, collections (FOLDER, FOLDER::KERNEL), ids of stored captures, or 'last': the last
            recording.
    """
    chosen = StoredCaptures(file for text in captures or ["last"] for file in stored_captures(text).files)
    if values.values:
        return show_values(chosen, values, view.stages, to)
    if to.path is not None or to.as_json or view.needs_sass:
        for file in chosen.files:
            if "cubin" in file.facts.stages and "sass" not in file.facts.stages:
                file.put(with_sass(file.load()), None)
    code = show_captures(chosen, view, to, has_page=True)
    has_summary = view.is_summary and not to.as_json
    if has_summary and to.path is None and len(chosen) == 1:
        # The failure and the notes are on its page.
        return code
    said: set[str] = set()
    for file in chosen.files:
        capture = file.outline().head
        if capture.status == "failed":
            say(failure_text(capture))
        said |= set(capture.launch.assumption_notes if has_summary else ())
        for note in capture.notes:
            if note not in said:
                # A recording's notes are those of each of its captures.
                say(note)
                said.add(note)
    return code

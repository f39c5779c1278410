"""The IR around passes, compared: `irscope diff --pass` and `--between`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irscope.analysis.diff import Ignored, diff_texts
from irscope.capture import StageKind
from irscope.cli.output import width
from irscope.cli.stages import one_pass as find_pass
from irscope.cli.stages import snapshot_text
from irscope.cli.subject import How, captures_of
from irscope.render.diff import render_side_by_side, render_unified

if TYPE_CHECKING:
    from irscope.capture import Capture


def diff_around_passes(
    subject: str | None,
    asked: How,
    one_pass: str | None,
    between: tuple[str, str] | None,
    ignore: list[Ignored],
    side_by_side: bool,
    context: int,
    color: bool,
) -> tuple[str, bool]:
    """The diff of each capture that the subject names, and whether there is any difference."""
    parts: list[str] = []
    differs = False
    for capture in captures_of(subject, asked):
        title, before, after, kind = _sides(capture, one_pass, between)
        text_diff = diff_texts(before, after, kind, ignore=frozenset(ignore))
        differs = differs or not text_diff.is_empty
        if side_by_side:
            body = render_side_by_side(text_diff, width=width(), color=color, context=context)
        else:
            body = render_unified(text_diff, color=color, context=context)
        parts.append(f"{capture.id[:8]} {capture.name} {capture.target}: {title}: {text_diff.summary}\n{body}")
    return "\n".join(parts), differs


def _sides(capture: Capture, one_pass: str | None, between: tuple[str, str] | None) -> tuple[str, str, str, StageKind]:
    if between is not None:
        first, second = find_pass(capture, between[0]), find_pass(capture, between[1])
        title = f"after {first.label} against after {second.label}"
        kind: StageKind = "llvm" if first.group == "llvm" else "mlir"
        return title, snapshot_text(capture, first, before=False), snapshot_text(capture, second, before=False), kind
    snapshot = find_pass(capture, one_pass or "")
    title = f"before and after {snapshot.label}"
    kind = "llvm" if snapshot.group == "llvm" else "mlir"
    return title, snapshot_text(capture, snapshot, before=True), snapshot_text(capture, snapshot, before=False), kind

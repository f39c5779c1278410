"""`irscope diff --pass` and `--between`: compares the IR around passes of one capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irscope.analysis.diff.texts import Ignored, TextDiff, diff_texts
from irscope.cli.dump.stages import one_pass as find_pass
from irscope.cli.dump.stages import snapshot_text
from irscope.model.capture import Capture, StageKind
from irscope.render.text.diff import render_diff, text_diff_json


@dataclass(frozen=True, slots=True)
class _PassDiff:
    """The IR of one capture at two points of the pipeline, compared."""

    capture: Capture
    title: str
    """`before and after ttgir:coalesce#1`."""
    text_diff: TextDiff

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        capture = self.capture
        head = {"id": capture.id, "kernel": capture.name, "target": str(capture.target), "title": self.title}
        return head | {"empty": self.text_diff.is_empty, **text_diff_json(self.text_diff)}

    def as_text(self, *, side_by_side: bool, context: int, width: int | None, color: bool) -> str:
        """As text, under a title."""
        body = render_diff(self.text_diff, side_by_side=side_by_side, width=width, color=color, context=context)
        capture = self.capture
        return f"{capture.id[:8]} {capture.name} {capture.target}: {self.title}: {self.text_diff.summary}\n{body}"


def diff_around_passes(
    captures: Sequence[Capture], one_pass: str | None, between: tuple[str, str] | None, ignore: Sequence[Ignored]
) -> list[_PassDiff]:
    """The IR of each capture before and after one pass, or after each of two passes, compared."""
    found: list[_PassDiff] = []
    for capture in captures:
        title, before, after, kind = _sides(capture, one_pass, between)
        found.append(_PassDiff(capture, title, diff_texts(before, after, kind, ignore=frozenset(ignore))))
    return found


def _sides(capture: Capture, one_pass: str | None, between: tuple[str, str] | None) -> tuple[str, str, str, StageKind]:
    if between is not None:
        first, second = find_pass(capture, between[0]), find_pass(capture, between[1])
        title = f"after {first.label} against after {second.label}"
    else:
        first = second = find_pass(capture, one_pass or "")
        title = f"before and after {first.label}"
    left = snapshot_text(capture, first, before=between is None)
    return title, left, snapshot_text(capture, second, before=False), first.group

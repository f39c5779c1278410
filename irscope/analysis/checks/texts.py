"""Assertions about the text of a stage: patterns of FileCheck, and golden IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os.path import basename
from typing import ClassVar

from irscope.analysis.checks.subject import Breach, Subject, of_kernel
from irscope.analysis.diff.texts import diff_texts
from irscope.model.capture import stage_named

__all__ = ["FileChecked", "Golden"]

_MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class FileChecked:
    """The text of a stage has what a file of FileCheck's patterns says."""

    path: str
    stage: str
    run: Callable[[str, str], str]
    """(file of patterns, text) → what FileCheck says against it; empty if it accepts the text."""
    rule: ClassVar[str] = "filecheck"

    def __str__(self) -> str:
        return f"--filecheck {self.path}:{self.stage}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        """What FileCheck says."""
        if self.stage not in subject.capture.texts:
            return (_without_stage(self, subject, self.stage),)
        said = self.run(self.path, subject.capture.text(self.stage))
        if not said:
            return ()
        text = f"FileCheck rejects its {self.stage} by {basename(self.path)}"
        return (_with_lines(of_kernel(self, subject, text), said.splitlines()),)


@dataclass(frozen=True, slots=True)
class Golden:
    """The text of a stage is that of a file, but for names, numbers, locations and the order of what is independent."""

    path: str
    stage: str
    text: str
    """Of the file."""
    rule: ClassVar[str] = "golden"

    def __str__(self) -> str:
        return f"--golden {self.path}:{self.stage}"

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        """How the text differs."""
        if self.stage not in subject.capture.texts:
            return (_without_stage(self, subject, self.stage),)
        found = diff_texts(self.text, subject.capture.text(self.stage), stage_named(self.stage).kind)
        if found.is_empty:
            return ()
        diff = found.unified(2, basename(self.path), f"{self.stage} of {subject.capture.name}")
        text = f"its {self.stage} is not that of {basename(self.path)}: {found.summary}"
        return (_with_lines(of_kernel(self, subject, text), diff.splitlines()),)


def _without_stage(assertion: FileChecked | Golden, subject: Subject, stage: str) -> Breach:
    return of_kernel(
        assertion, subject, f"it has no text of stage {stage}: it holds {', '.join(subject.capture.texts)}"
    )


def _with_lines(breach: Breach, lines: Sequence[str]) -> Breach:
    left_out = [f"… {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    return replace(breach, causes=(*lines[:_MOST_LINES], *left_out))

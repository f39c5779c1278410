"""Assertion: what must hold of a capture. Breach: one place where it does not, with its line, cause and IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from irscope.analysis.checks.subject import Subject
from irscope.analysis.findings.model import Finding
from irscope.ir.locations.user import Place

__all__ = ["Assertion", "Breach"]


@dataclass(frozen=True, slots=True)
class Breach:
    """One way in which a capture breaks an assertion."""

    rule: str
    """The kind of the assertion: `max-regs`."""
    assertion: str
    """The assertion as the command line states it: `--max-regs 128`."""
    text: str
    """What is the case instead, with its figures."""
    place: Place = ()
    """(file, line) of the frames of the user's code, innermost first; the kernel's own if it is about all of it."""
    python: str = ""
    """The line of Python there."""
    causes: tuple[str, ...] = ()
    """What is known of the reason, each with its evidence."""
    finding: Finding | None = None
    """The finding that the causes are from."""
    stage: str = ""
    """The stage that the excerpt is of."""
    excerpt: tuple[tuple[int, str], ...] = ()
    """(1-based line, its text without the location) around the operation."""
    line: int = 0
    """The operation's, of the stage; 0 if it is about the whole kernel."""


class Assertion(Protocol):
    """What must hold of a capture."""

    rule: ClassVar[str]
    """The kind of assertion: `max-regs`."""

    def __str__(self) -> str:
        """As the command line states it: `--max-regs 128`."""
        ...

    def breaches(self, subject: Subject) -> Sequence[Breach] | None:
        """Where a capture breaks it; none where it holds; None if it says nothing of such a kernel."""
        ...

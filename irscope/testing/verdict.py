"""What is asserted of a kernel: a verdict that is true or false, a figure that compares as a number; each explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irscope.analysis.checks.model import Assertion, Breach
from irscope.analysis.checks.subject import Subject
from irscope.render.checks.forms import breach_lines

__all__ = ["Figure", "Verdict"]


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """Whether an assertion holds of a capture; true where it does."""

    assertion: str
    """As the command line states it: `--uses wgmma`."""
    kernel: str
    breaches: tuple[Breach, ...] | None
    """None if it says nothing of such a kernel, which counts as broken."""

    def __bool__(self) -> bool:
        return self.breaches == ()

    @property
    def text(self) -> str:
        """Each breach with its line, causes and IR."""
        if self.breaches is None:
            return f"{self.kernel} has nothing that this is about"
        return "\n".join(
            [self.kernel, *(line for one in self.breaches for line in breach_lines(one))]
            if self.breaches
            else [f"{self.kernel}: it holds"]
        )

    def __repr__(self) -> str:
        if self.breaches is None:
            return f"<{self.assertion} says nothing of {self.kernel}>"
        if not self.breaches:
            return f"<{self.assertion} holds of {self.kernel}>"
        first = self.breaches[0]
        where = f" ({first.place[0][0].rpartition('/')[2]}:{first.place[0][1]})" if first.place else ""
        return f"<{self.kernel} {first.text}{where}>"


class Figure(int):
    """A number that a compile gave, which knows where it comes from."""

    subject: Subject
    asserting: Callable[[int], Assertion]

    @staticmethod
    def of(value: int, subject: Subject, asserting: Callable[[int], Assertion]) -> Figure:
        """A figure; `asserting`: the assertion that it keeps within a limit, which explains where it does not."""
        figure = Figure(value)
        figure.subject, figure.asserting = subject, asserting
        return figure

    def explained(self, op: str, right: object) -> list[str] | None:
        """The lines of a message about a comparison that does not hold; None where there is nothing to say."""
        shift = {"<=": 0, ">=": 0, "==": 0, "<": -1, ">": 1}.get(op)
        if shift is None or not isinstance(right, int):
            return None
        found = self.asserting(right + shift).breaches(self.subject)
        lines = [line for one in found or () for line in breach_lines(one)]
        return [f"{int(self)} {op} {right}", *lines]

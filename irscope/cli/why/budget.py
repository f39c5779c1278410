"""How many compiles try what mends a kernel: `--tries`."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.errors import UsageError

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """How many compiles try what mends a kernel."""

    findings: int | None = 3
    """Only of so many findings, the worst; None for all."""
    compiles: int | None = 3
    """At most so many; None without a limit."""
    long: int | None = 1
    """At most so many that go on from the TTGIR, which takes ten times as long; None without a limit."""

    @staticmethod
    def of(most: int | None) -> Budget:
        """At most so many compiles of any length, of all findings; None for all there are."""
        return Budget(None, most, most)

    @staticmethod
    def parse(text: str | None) -> Budget:
        """What `--tries` says; raises UsageError for what is no number, nor `all`."""
        if text is None:
            return Budget()
        if text != "all" and not (text.isdecimal() and len(text) < 6):
            raise UsageError(f"--tries {text!r} is no number of compiles: write one, such as 8, or all.")
        return Budget.of(None if text == "all" else int(text))

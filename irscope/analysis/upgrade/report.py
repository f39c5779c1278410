"""What an upgrade gives as a whole: the versions, a row for each variant, and what is to be known of all of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from irscope.analysis.upgrade.model import Row

__all__ = ["Upgrade"]


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What came of one."""

    versions: tuple[str, str]
    """Of Triton: (before, after)."""
    rows: tuple[Row, ...]
    """As the captures come."""
    source_versions: tuple[str, ...] = ()
    """Of the Tritons whose front ends made the IR that both compiled; empty where each one's own front end ran."""
    grafts: int = 0
    """Compiles beside those of all variants."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of all rows."""
        if not self.source_versions:
            return ()
        made = ", ".join(self.source_versions)
        return (
            f"Both compiled the IR of Triton {made}'s front end, so the front ends are not compared: "
            "irscope upgrade FILE runs the script under both.",
        )

    def regressions(self, facts: Collection[str] = ()) -> int:
        """How many variants got worse; `facts`: only by these."""
        return sum(
            any(one.verdict == "worse" and (not facts or one.name in facts) for one in row.changes) for row in self.rows
        )

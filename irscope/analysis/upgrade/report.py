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
    device: str = ""
    """The GPU that launches were made on; empty if none were asked for."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of all rows."""
        said: list[str] = []
        if self.source_versions:
            made = ", ".join(self.source_versions)
            said.append(
                f"Both compiled the IR of Triton {made}'s front end, so the front ends are not compared: "
                "irscope upgrade FILE runs the script under both."
            )
        if self.device and all(one.measured is None for one in self.rows):
            said.append(
                "No launch was timed: binaries are the same, or a launch could not be made, which its row says."
            )
        elif self.device:
            said.append(
                f"Timed on {self.device}, by each environment's own interpreter, in turns: a ratio is of blocks that "
                "follow each other, with the 95 % confidence interval of its median. Results are those on the inputs "
                "of --from, held against its own noise (docs/gpu.md)."
            )
        return tuple(said)

    def regressions(self, facts: Collection[str] = ()) -> int:
        """How many variants got worse; `facts`: only by these."""
        return sum(
            any(one.verdict == "worse" and (not facts or one.name in facts) for one in row.changes) for row in self.rows
        )

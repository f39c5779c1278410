"""Cost: what one operation costs because of its layouts or its addresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from irscope.memory.access import Access

__all__ = ["Cost"]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one operation because of its layouts or its addresses."""

    kind: Literal["global", "shared", "conversion"]
    operation: str
    line: int
    """In the TTGIR text, 1-based."""
    place: str
    """`file:line` of the Python source: the innermost line that is not Triton's library."""
    layouts: tuple[str, ...]
    values: tuple[str, ...]
    excess: int
    """Sectors or wavefronts per warp above the minimum, which decide the order."""
    loops: int
    """The number of loops around it."""
    summary: str
    hint: str = ""
    """Where the assembly differs and the likely cause, or why a conversion is there; or an empty string."""
    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    pair: tuple[str, str] | None = None
    """The types in registers and in shared memory whose bank conflicts the compiler can count; or None."""
    chain: tuple[str, ...] = ()
    """`file:line` of every frame, innermost first."""
    by_operation: bool = False
    """Whether the instructions are the operation's own; otherwise those of all operations on its line of Python."""
    access: Access | None = None
    """What it asks of global memory; None for shared memory and conversions."""

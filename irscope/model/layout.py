"""LayoutRow: one layout of a module, the operations that use it, and what the compiler answered for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irscope.model.linear_layout import LinearLayout

__all__ = ["UNASKED", "LayoutAnswer", "LayoutMap", "LayoutRefusal", "LayoutRow", "LayoutUse", "RefusalCode"]

RefusalCode = Literal[
    "unasked", "no-triton", "unknown-encoding", "shape", "unreadable", "unsupported", "crash", "error", "damaged"
]
"""`unasked`: the compiler was not asked, or could not be. `no-triton`: no Triton is installed there.
`unknown-encoding`: irscope does not know where such an encoding puts its elements. `shape`: a size is not a power of
two. `unreadable`: the compiler does not parse the type. `unsupported`: this version of Triton gives no map of it.
`crash`: the compiler's process ended or hung at the question. `error`: the compiler raised. `damaged`: the stored bases
are not a linear layout."""


@dataclass(frozen=True, slots=True)
class LayoutMap:
    """The compiler's own map of a layout. A swizzle is part of the bases."""

    layout: LinearLayout
    """In registers from register, lane, warp and block; in shared memory from offset (in elements) and block; in tensor
    memory from row and column; to the element of the tensor."""
    padding: tuple[tuple[int, int], ...] = ()
    """(interval, padding) in elements: after each interval of offsets so many elements of memory hold nothing."""
    note: str = ""
    """What the map leaves out; or an empty string."""


@dataclass(frozen=True, slots=True)
class LayoutRefusal:
    """Why there is no map of a layout."""

    code: RefusalCode
    message: str
    """For people: no decision depends on it."""


LayoutAnswer = LayoutMap | LayoutRefusal

UNASKED = LayoutRefusal("unasked", "the compiler was not asked")


@dataclass(frozen=True, slots=True)
class LayoutUse:
    """All operations of one name that use a layout."""

    name: str = ""
    """`tt.load`."""
    lines: tuple[int, ...] = ()
    """Their lines in the TTGIR, 1-based."""
    values: tuple[str, ...] = ()
    """Their results that have the layout: `%acc`."""
    python: tuple[str, ...] = ()
    """Their lines of Python, `file:line`: of each the innermost one outside Triton's library."""
    chains: tuple[tuple[str, ...], ...] = ()
    """The chains of calls that lead to them, `file:line` per frame, innermost first; empty in older captures."""


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """One (encoding, shape) of a TTGIR module."""

    alias: str = ""
    """As the module writes it: `#blocked1`, or the whole encoding; or an empty string for a layout given as text."""
    encoding: str = ""
    """The text of the encoding, without aliases."""
    shape: tuple[int, ...] = ()
    """The shape that the layout covers: of a memory descriptor, one buffer of its whole allocation."""
    elements: tuple[str, ...] = ()
    """The element types it is used with, the first one first."""
    buffers: int = 1
    """The buffers of a memory descriptor with a leading dimension; 1 otherwise."""
    operations: tuple[LayoutUse, ...] = ()
    answer: LayoutAnswer = UNASKED

    @property
    def map(self) -> LayoutMap | None:
        """The compiler's map, or None."""
        return self.answer if isinstance(self.answer, LayoutMap) else None

    @property
    def reason(self) -> str:
        """Why there is no map, or an empty string."""
        return self.answer.message if isinstance(self.answer, LayoutRefusal) else ""

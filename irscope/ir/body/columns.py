"""The columns of a text as the comparison reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

from irscope.ir.body.aliases import Definition, Resolver
from irscope.ir.body.tokens import Shape, Syntax, syntax_of
from irscope.model.capture import StageKind


@dataclass(frozen=True, slots=True)
class Body:
    """One side of a comparison; every list has one item per line, unless its description says otherwise."""

    kind: StageKind
    lines: list[str]
    """As they are shown."""
    numbers: list[int]
    """1-based line numbers in the text."""
    head: list[Definition]
    """The alias definitions before the lines."""
    tail: list[Definition]
    """The alias definitions behind the lines."""
    resolver: Resolver
    shapes: list[Shape] = field(default_factory=list[Shape])
    keys: list[int] = field(default_factory=list[int])
    """Of the line alone: its template, aliases resolved."""
    deep_keys: list[int] = field(default_factory=list[int])
    """Of the line and everything its operands are computed from."""
    values: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    """The values in the line's holes, then those of registers it does not name; a value is its index in `names`."""
    uses: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    """The values that the line does not define."""
    parents: list[int] = field(default_factory=list[int])
    """The line that opened the region this line stands in; -1 at the top."""
    openers: list[int] = field(default_factory=list[int])
    """For a line that closes a region, the line that opened it; otherwise -1."""
    following: list[list[int]] = field(default_factory=list[list[int]])
    """The lines that may run after it, where its registers are physical ones; otherwise the list is empty."""
    names: list[str] = field(default_factory=list[str])
    """One item per value: how it is written."""
    definers: list[int] = field(default_factory=list[int])
    """One item per value: the first line that defines it; -1 if none does."""

    @property
    def syntax(self) -> Syntax:
        """How its names are written."""
        return syntax_of(self.kind)

"""The questions to the child processes that ask the compiler, or the hardware, for layouts, and their messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irscope.model.capture import Target
from irscope.model.layout import LayoutAnswer, LayoutRow
from irscope.record.process.events import Done, Refused


@dataclass(frozen=True, slots=True)
class Module:
    """The attributes of the module around a type."""

    target: str
    warp_size: int
    num_warps: int = 4
    num_ctas: int = 1

    @staticmethod
    def of(target: Target, num_warps: int = 4, num_ctas: int = 1) -> Module:
        """A module for a target."""
        return Module(str(target), target.warp_size, num_warps, num_ctas)


@dataclass(frozen=True, slots=True)
class Question:
    """One of: the layouts of a module's text, the layouts of some types, the bank conflicts of pairs of types."""

    module: Module
    text: str | None = None
    """A TTGIR module; its own attributes take precedence over `module`."""
    types: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """(type in registers, type in shared memory)."""
    job: int = 0
    """The number that the messages about it carry."""


@dataclass(frozen=True, slots=True)
class Message:
    """One step of the answer to a question."""

    job: int
    state: Literal["rows", "begin", "answer", "conflicts", "end"]
    """`rows`: the layouts of a text. `begin`: before a type that may end the process. `answer`: of that type.
    `conflicts`: of all pairs. `end`: nothing more follows."""
    index: int = 0
    """Of the row or type."""
    rows: tuple[LayoutRow, ...] = ()
    answer: LayoutAnswer | None = None
    """Of a type; at the end, the refusal for all types without an answer."""
    conflicts: tuple[int | None, ...] = ()


MESSAGES = (Message, Done, Refused)
"""What the process sends."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Asks the hardware for the map of one layout."""

    target: str
    type: str
    """The type whose layout it is."""
    shape: tuple[int, ...]
    element_bits: int
    in_registers: bool
    """Otherwise in shared memory."""
    num_warps: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What the hardware said."""

    values: tuple[int, ...] = ()
    """The thread of each element, or the element at each offset in shared memory."""
    error: str = ""
    """Why there are none; or an empty string."""

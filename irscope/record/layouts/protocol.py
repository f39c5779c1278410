"""The questions to the child process that asks the compiler, and its messages: values, and a line of JSON for each.

The child may run in another interpreter, so this needs the standard library alone.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from irscope.model.capture import Target
from irscope.model.layout import LayoutAnswer, LayoutRow
from irscope.model.layout_json import answer_from_json, answer_to_json, layout_from_json, layout_to_json
from irscope.model.plain import built


@dataclass(frozen=True, slots=True)
class Module:
    """What the module around a type says of itself."""

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

    def to_line(self) -> bytes:
        """A line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def from_line(line: bytes) -> Question:
        """Read what `to_line` wrote."""
        data: dict[str, Any] = json.loads(line)
        return built(Question, data, module=built(Module, data["module"]))


@dataclass(frozen=True, slots=True)
class Message:
    """What the child says about one question."""

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

    def to_line(self) -> bytes:
        """A line of JSON."""
        data: dict[str, Any] = {"job": self.job, "state": self.state, "index": self.index, "conflicts": self.conflicts}
        data["rows"] = [layout_to_json(row) for row in self.rows]
        if self.answer is not None:
            data["answer"] = answer_to_json(self.answer)
        return json.dumps(data).encode() + b"\n"

    @staticmethod
    def from_line(line: bytes) -> Message:
        """Read what `to_line` wrote."""
        data: dict[str, Any] = json.loads(line)
        answer = answer_from_json(data["answer"]) if "answer" in data else None
        return built(Message, data, rows=tuple(map(layout_from_json, data.get("rows", ()))), answer=answer)

"""Reads PTX: functions with their parameters and registers, labels and instructions.

Source: NVIDIA's "PTX ISA" manual, chapters 4 (syntax) and 11 (directives).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import accumulate

from irscope.ir.asm.instructions import Function, Instruction, Label
from irscope.ir.asm.operands import split_operands

__all__ = ["PtxFunction", "parse_ptx"]

# // to the end of the line      /* over lines */
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# .section .debug_info {…}      .visible .entry matmul_kernel(      .func  (.param .b32 func_retval0) helper(
_OUTSIDE = re.compile(r"\.(?P<what>section|entry|func)\b")
# .entry k(      .func  (.param .b32 func_retval0) helper(
_HEADER = re.compile(r"\.(?:entry|func)\b\s*(?:\([^()]*\)\s*)?(?P<name>[\w$.%]+)")
# {      }      .loc 1 16 15      $L__BB0_2:
_BEFORE = re.compile(r"\s*(?:(?P<brace>[{}])|\.(?:loc|file)\b[^\n]*|(?P<label>[\w$%.]+)\s*:(?!:))")
# @!%p1 bra $L__BB0_2
_INSTRUCTION = re.compile(r"(?:(?P<predicate>@!?[\w$%]+)\s+)?(?P<opcode>[a-z][\w.:]*)(?:\s+(?P<operands>.*))?$")
# Of debuggers: they begin and end no block.
_DEBUG_LABELS = ("$L__tmp", "$L__func_begin", "$L__func_end")


@dataclass(frozen=True, slots=True)
class PtxFunction(Function):
    """One function that has a body."""

    parameters: tuple[tuple[str, str], ...] = ()
    """(name, type): `("matmul_kernel_param_0", ".u64 .ptr .global .align 1")`."""
    registers: tuple[tuple[str, str], ...] = ()
    """(name, type) of each register that is declared: `("p", "pred")`, and `("%r", "b32")` for all of `%r<53>`."""
    directives: tuple[str, ...] = ()
    """What stands between its parameters and its body: `reqntid 128`."""

    def type_of(self, register: str) -> str:
        """The type that a register was declared with, such as `b32`; empty for a name that is no register."""
        types = dict(self.registers)
        return types.get(register) or types.get(register.rstrip("0123456789"), "")

    @property
    def threads(self) -> int | None:
        """The threads of a CTA, or the most that it may have; None if neither is stated."""
        for directive in self.directives:
            name, *numbers = directive.replace(",", " ").split()
            if name in ("reqntid", "maxntid") and numbers and numbers[0].isdecimal():
                return int(numbers[0][:6])
        return None


def parse_ptx(text: str) -> tuple[PtxFunction, ...]:
    """The functions of a PTX text that have a body. Never raises: unknown statements are skipped."""
    return _Reader(_COMMENT.sub(_blank, text)).read()


def _blank(comment: re.Match[str]) -> str:
    """Blanks in the place of a comment: what stands behind it stays where it is."""
    return "\n".join([" " * len(line) for line in comment[0].split("\n")])


@dataclass(slots=True)
class _Draft:
    """What was seen of the function that is being read."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    directives: tuple[str, ...]
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: list[Label] = field(default_factory=list[Label])
    registers: dict[str, str] = field(default_factory=dict[str, str])

    def finished(self) -> PtxFunction:
        code = tuple(self.instructions), tuple(self.labels)
        return PtxFunction(self.name, *code, self.parameters, tuple(self.registers.items()), self.directives)


class _Reader:
    """Reads a text without comments."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = list(accumulate(len(line) + 1 for line in text.split("\n")))
        """Where each line ends."""
        self.functions: list[PtxFunction] = []

    def read(self) -> tuple[PtxFunction, ...]:
        found = _OUTSIDE.search(self.text)
        while found is not None:
            end = self._skipped(found) if found["what"] == "section" else self._declared(found)
            found = _OUTSIDE.search(self.text, end) if end >= 0 else None
        return tuple(self.functions)

    def _skipped(self, section: re.Match[str]) -> int:
        """Where a section of debug data ends; -1 if it does not."""
        return self.text.find("}", section.end())

    def _declared(self, header: re.Match[str]) -> int:
        """Where a declaration, or a function with its body, ends; -1 if that does not stand there."""
        brace, semicolon = self.text.find("{", header.end()), self.text.find(";", header.end())
        if brace < 0 or 0 <= semicolon < brace:
            return semicolon
        head = self.text[header.start() : brace]
        name = _HEADER.match(head)
        _, opened, behind = head.rpartition(")")
        given = head[: head.rfind(")")].rpartition("(")[2] if opened else ""
        parameters = [parameter.split() for parameter in split_operands(given)]
        draft = _Draft(
            name["name"] if name is not None else "",
            tuple([(words[-1], " ".join(words[1:-1])) for words in parameters if words[0] == ".param"]),
            tuple([" ".join(part.split()) for part in behind.split(".")[1:]]) if opened else (),
        )
        end = self._body(draft, brace + 1)
        if draft.name:
            self.functions.append(draft.finished())
        return end

    def _body(self, draft: _Draft, place: int) -> int:
        """Read statements up to the brace that ends the function; where that is, or -1 for none."""
        opened: list[tuple[int, int]] = []
        """Of each block that is open: how many instructions and labels stand before it."""
        while True:
            before = _BEFORE.match(self.text, place)
            if before is None:
                end = self.text.find(";", place)
                if end < 0:
                    return -1
                self._statement(draft, place, end)
                place = end + 1
                continue
            place = before.end()
            if before["label"] and not before["label"].startswith(_DEBUG_LABELS):
                draft.labels.append(Label(before["label"], len(draft.instructions)))
            if before["brace"] == "{":
                opened.append((len(draft.instructions), len(draft.labels)))
            elif before["brace"] == "}" and not opened:
                return place
            elif before["brace"] == "}":
                first, labels = opened.pop()
                scope = first, len(draft.instructions)
                inner = [replace(one, scope=one.scope or scope) for one in draft.labels[labels:]]
                draft.labels[labels:] = inner

    def _statement(self, draft: _Draft, start: int, end: int) -> None:
        raw = self.text[start:end]
        start += len(raw) - len(raw.lstrip())
        text = " ".join(raw.split())
        if text.startswith(".reg "):
            _, kind, names = (*text.split(maxsplit=2), "", "")[:3]
            for name in split_operands(names):
                draft.registers[name.partition("<")[0]] = kind.lstrip(".")
            return
        match = _INSTRUCTION.match(text)
        if match is None:
            return
        operands = split_operands(match["operands"] or "")
        line = bisect_right(self.lines, start) + 1
        draft.instructions.append(
            Instruction(match["opcode"], operands, match["predicate"] or "", line, "ptx", (start, end))
        )

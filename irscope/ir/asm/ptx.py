"""Reads PTX: functions, their labels and instructions.

Source: NVIDIA's "PTX ISA" manual, chapters 4 (syntax) and 11 (directives).
"""

from __future__ import annotations

import re

from irscope.ir.asm.instructions import Function, Instruction, Label, split_operands

# .visible .entry matmul_kernel(      .func  (.param .b32 func_retval0) helper(
_HEADER = re.compile(r"\.(?:entry|func)\b\s*(?:\([^()]*\)\s*)?(?P<name>[\w$.%]+)")
# $L__BB0_2:
_LABEL = re.compile(r"(?P<name>[\w$%.]+)\s*:(?!:)\s*")
# a comment's ends: // to the end of the line, /* over lines */
_COMMENT = re.compile(r"//|/\*|\*/")
# $L__tmp12      $L__func_begin0
_DEBUG_LABEL = re.compile(r"\$L__(?:tmp|func_begin|func_end)\d")
# @!%p1 bra $L__BB0_2
_INSTRUCTION = re.compile(r"(?:(?P<predicate>@!?[\w$%]+)\s+)?(?P<opcode>[a-z][\w.:]*)(?:\s+(?P<operands>.*))?$")


def parse_ptx(text: str) -> tuple[Function, ...]:
    """The functions of a PTX text that have a body. Never raises: unknown statements are skipped."""
    reader = _Reader()
    inside_comment = False
    for number, line in enumerate(text.split("\n"), 1):
        code, inside_comment = _without_comments(line, inside_comment)
        if code and not code.isspace():
            reader.read(code.strip(), number)
    reader.close()
    return tuple(reader.functions)


def _without_comments(line: str, inside: bool) -> tuple[str, bool]:
    """A line without its comments, and whether a block comment goes on behind it."""
    if not inside and "/" not in line:
        return line, False
    kept: list[str] = []
    start = 0
    for mark in _COMMENT.finditer(line):
        if inside:
            if mark[0] == "*/":
                inside, start = False, mark.end()
        elif mark[0] == "//":
            return "".join(kept) + line[start : mark.start()], False
        elif mark[0] == "/*":
            kept.append(line[start : mark.start()])
            inside = True
    return "".join(kept) + ("" if inside else line[start:]), inside


class _Reader:
    """Reads statements; the fields are what it has seen of the function it is in."""

    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.skipping = False
        self._begin(None)

    def _begin(self, header: re.Match[str] | None) -> None:
        self.name = header["name"] if header else None
        self.header = ""
        self.depth = 0
        self.statement: list[str] = []
        self.statement_line = 0
        self.instructions: list[Instruction] = []
        self.labels: list[Label] = []

    def read(self, code: str, number: int) -> None:
        if self.name is None:
            self._read_outside(code, number)
            return
        if not self.statement and code.startswith((".loc ", ".loc\t", ".file ", ".file\t")):
            return
        *whole, rest = code.split(";")
        for piece in whole:
            if not self._read_piece(piece.strip(), number):
                return
            self._end_statement()
        if rest.strip():
            self._read_piece(rest.strip(), number)

    def _read_outside(self, code: str, number: int) -> None:
        if self.skipping:  # a section of debug data, between braces
            self.skipping = "}" not in code
            return
        if not self.header and code.startswith(".section"):
            self.skipping = "}" not in code
            return
        if not self.header and not re.search(r"\.(?:entry|func)\b", code):
            return
        before, brace, body = code.partition("{")
        if not brace and ";" in before:  # a declaration
            self.header = ""
            return
        self.header += f"{before} "
        if not brace:
            return
        self._begin(_HEADER.search(self.header))
        if body.strip():
            self.read(body.strip(), number)

    def _read_piece(self, code: str, number: int) -> bool:
        """Take a statement, or a part of one, with the braces and labels before it; False where the function ended."""
        while code and not self.statement:
            label = _LABEL.match(code)
            if code[0] == "{":
                self.depth += 1
                code = code[1:].lstrip()
            elif code[0] == "}":
                self.depth -= 1
                code = code[1:].lstrip()
                if self.depth < 0:
                    self.close()
                    return False
            elif label is not None:
                if not _DEBUG_LABEL.match(label["name"]):
                    self.labels.append(Label(label["name"], len(self.instructions)))
                code = code[label.end() :]
            else:
                break
        if code and not self.statement:
            self.statement_line = number
        if code:
            self.statement.append(code)
        return True

    def _end_statement(self) -> None:
        text = " ".join(" ".join(self.statement).split())
        self.statement = []
        match = _INSTRUCTION.match(text)
        if match is not None:
            operands = split_operands(match["operands"] or "")
            self.instructions.append(
                Instruction(match["opcode"], operands, match["predicate"] or "", self.statement_line)
            )

    def close(self) -> None:
        if self.name is not None:
            self.functions.append(Function(self.name, tuple(self.instructions), tuple(self.labels)))
        self._begin(None)

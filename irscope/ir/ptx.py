"""Reads PTX: functions, their registers, labels, instructions and directives.

Source: NVIDIA's "PTX ISA" manual, chapters 4 (syntax) and 11 (directives).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from irscope.ir.instructions import Instruction, Label, OpaqueLine, split_operands

# .version 9.4      .target sm_90a, texmode_independent
_MODULE_DIRECTIVE = re.compile(r"\.(?P<name>version|target|address_size)\s+(?P<value>[^\n]*)")
# .visible .entry matmul_kernel(      .func  (.param .b32 func_retval0) helper(
_HEADER = re.compile(
    r"(?:\.(?P<linkage>visible|weak|extern|common)\s+)?\.(?P<kind>entry|func)\b\s*(?:\([^()]*\)\s*)?(?P<name>[\w$.%]+)"
)
# .reqntid 128      .maxnreg 64      .minnctapersm 2
_PERFORMANCE = re.compile(r"\.(?P<name>reqntid|maxntid|maxnreg|minnctapersm|reqnctapercluster)\s+(?P<values>\d[\d, ]*)")
# .reg .b32 %r<100>      .reg .pred p, q
_REGISTER = re.compile(r"\.reg\s+\.(?P<type>\w+)\s+(?P<names>.+)$")
# %r<100>
_RANGE = re.compile(r"[\w$%]+<(?P<count>\d{1,9})>$")
# $L__BB0_2:
_LABEL = re.compile(r"(?P<name>[\w$%.]+)\s*:(?!:)\s*")
# a comment's ends: // to the end of the line, /* over lines */
_COMMENT = re.compile(r"//|/\*|\*/")
# $L__tmp12      $L__func_begin0
_DEBUG_LABEL = re.compile(r"\$L__(?:tmp|func_begin|func_end)\d")
# @!%p1 bra $L__BB0_2
_INSTRUCTION = re.compile(r"(?:(?P<predicate>@!?[\w$%]+)\s+)?(?P<opcode>[a-z][\w.:]*)(?:\s+(?P<operands>.*))?$")


@dataclass(frozen=True, slots=True)
class PtxFunction:
    """One `.entry` or `.func` with a body."""

    name: str
    kind: str
    """`entry` or `func`."""
    linkage: str = ""
    """`visible`, `weak`, `extern` or empty."""
    registers: tuple[tuple[str, int], ...] = ()
    """(type, how many are declared), in the order of the text; virtual ones: ptxas decides on the real ones."""
    bounds: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Performance directives: (`reqntid`, (128,)), (`maxnreg`, (64,)), …"""
    instructions: tuple[Instruction, ...] = ()
    labels: tuple[Label, ...] = ()
    directives: tuple[OpaqueLine, ...] = ()
    """Other directives of the body, such as `.pragma "nounroll"`, as they are written."""
    opaque: tuple[OpaqueLine, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class PtxModule:
    """A PTX text."""

    version: str = ""
    """Of the PTX ISA: `9.4`."""
    target: str = ""
    """`sm_90a`."""
    functions: tuple[PtxFunction, ...] = ()


def parse_ptx(text: str) -> PtxModule:
    """Read a PTX text. Never raises: a statement that it does not know becomes an OpaqueLine of its function."""
    reader = _Reader()
    inside_assembly = False
    inside_comment = False
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped in ("// begin inline asm", "// end inline asm"):
            inside_assembly = stripped.startswith("// begin")
            continue
        code, inside_comment = _without_comments(line, inside_comment)
        if code and not code.isspace():
            reader.read(code.strip(), number, inside_assembly)
    reader.close()
    return PtxModule(reader.module.get("version", ""), reader.module.get("target", ""), tuple(reader.functions))


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
        self.module: dict[str, str] = {}
        self.functions: list[PtxFunction] = []
        self.header = ""
        self.header_line = 0
        self.skipping = False
        self._begin(None)

    def _begin(self, header: re.Match[str] | None) -> None:
        self.function: re.Match[str] | None = header
        self.depth = 0
        self.statement: list[str] = []
        self.statement_line = 0
        self.registers: dict[str, int] = {}
        self.bounds = tuple(
            (
                match["name"],
                tuple(int(value) for value in match["values"].replace(",", " ").split()[:3] if len(value) < 10),
            )
            for match in _PERFORMANCE.finditer(self.header if header else "")
        )
        self.instructions: list[Instruction] = []
        self.labels: list[Label] = []
        self.directives: list[OpaqueLine] = []
        self.opaque: list[OpaqueLine] = []

    def read(self, code: str, number: int, inside_assembly: bool) -> None:
        if self.function is None:
            self._read_outside(code, number)
            return
        if not self.statement and code.startswith((".loc ", ".loc\t", ".file ", ".file\t")):
            return
        *whole, rest = code.split(";")
        for piece in whole:
            if not self._read_piece(piece.strip(), number):
                return
            self._end_statement(inside_assembly)
        if rest.strip():
            self._read_piece(rest.strip(), number)

    def _read_outside(self, code: str, number: int) -> None:
        if self.skipping:  # a section of debug data, between braces
            self.skipping = "}" not in code
            return
        directive = _MODULE_DIRECTIVE.match(code)
        if directive is not None:
            self.module[directive["name"]] = directive["value"].split(",")[0].strip()
            return
        if not self.header and code.startswith(".section"):
            self.skipping = "}" not in code
            return
        if not self.header and not re.search(r"\.(?:entry|func)\b", code):
            return
        self.header_line = self.header_line if self.header else number
        before, brace, body = code.partition("{")
        if not brace and ";" in before:  # a declaration
            self.header = ""
            return
        self.header += f"{before} "
        if not brace:
            return
        self._begin(_HEADER.search(self.header))
        self.header = ""
        if body.strip():
            self.read(body.strip(), number, False)

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
                    self.labels.append(Label(label["name"], len(self.instructions), number))
                code = code[label.end() :]
            else:
                break
        if code and not self.statement:
            self.statement_line = number
        if code:
            self.statement.append(code)
        return True

    def _end_statement(self, inside_assembly: bool) -> None:
        text = " ".join(" ".join(self.statement).split())
        self.statement = []
        index, line = len(self.instructions), self.statement_line
        register = _REGISTER.match(text)
        if register is not None:
            self._declare(register["type"], register["names"])
            return
        if text.startswith("."):
            self.directives.append(OpaqueLine(text, index, line))
            return
        match = _INSTRUCTION.match(text)
        if match is None:
            self.opaque.extend([OpaqueLine(text, index, line)] if text else [])
            return
        operands = split_operands(match["operands"] or "")
        self.instructions.append(
            Instruction(match["opcode"], operands, match["predicate"] or "", line, inside_assembly)
        )

    def _declare(self, kind: str, names: str) -> None:
        for name in names.split(","):
            many = _RANGE.match(name.strip())
            self.registers[kind] = self.registers.get(kind, 0) + (int(many["count"]) if many else 1)

    def close(self) -> None:
        if self.function is not None:
            self.functions.append(
                PtxFunction(
                    self.function["name"],
                    self.function["kind"],
                    self.function["linkage"] or "",
                    tuple(self.registers.items()),
                    self.bounds,
                    tuple(self.instructions),
                    tuple(self.labels),
                    tuple(self.directives),
                    tuple(self.opaque),
                    self.header_line,
                )
            )
        self.header = ""
        self._begin(None)

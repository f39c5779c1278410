"""Which lines of a stage's text begin an operation or an instruction, of what kind it is, and what is live there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from irscope.capture import StageKind
from irscope.ir.instructions import split_operands
from irscope.ir.locations_model import text_lines
from irscope.ir.opcodes import classify

#   %12:2 = tt.load %a    "tt.reduce"(%x)    %a, %b = "tt.split"    module attributes {
_MLIR = re.compile(
    r"\s*(?:%[\w$.-]+(?::\d+)?(?:, %[\w$.-]+(?::\d+)?)* = )?"
    r'"?(?P<name>module(?= )|[A-Za-z_]\w*(?:\.\w+)+)"?(?=[ (<@{]|$)'
)
#   %12 = tail call float @llvm.exp2.f32(    ret void     define void @kernel(
_LLVM = re.compile(r'(?:  (?:%(?:"[^"]*"|[\w$.-]+) = )?(?:tail |musttail |notail )?(?P<name>[a-z]\w*)\b)')
# @llvm.nvvm.ex2.approx.ftz.f32(
_CALLEE = re.compile(r'@(?:"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+))\(')
#   @%p1 ld.global.v4.b32 	{%r1, …     	wgmma.mma_async.sync.aligned…    { setp.ne.b32 p, %r1, 0;
_PTX = re.compile(
    r"[\t ]*(?:[{}] *)?(?:@!?%?\w+[\t ]+)?(?P<name>[a-z]\w*(?:(?:::|\.)\w+)*)(?=[\t ;])(?P<operands>[^;]*)"
)
_PTX_NONE = re.compile(r"\s*(?:\.|//|\$?\w+:|[)}\]]|\(|$)")
#         00f0  B------:R-:W-:-:S01  G020:P0:U06:Q0  @!P0 LDG.E.128 R4, desc[UR6][R4.64]
_SASS = re.compile(
    r"\s*(?:/\*[0-9a-f]{4,}\*/|[0-9a-f]{4,}  (?:B\S*|-))\s+(?:G(?P<live>\d+)\S*\s+)?"
    r"(?:@!?U?P\w+\s+)?(?P<name>[A-Z][\w.]*)"
)
# 	v_add_f32_e32 v0, v1, v2
_AMDGCN = re.compile(r"[\t ]+(?P<name>[a-z]\w*)(?P<operands>[^;]*)")
_AMDGCN_END = re.compile(r"\s*\.section|\.Lfunc_end\d+:|.*-- (?:End|Begin) function")


@dataclass(frozen=True)
class Operations:
    """The operations of one text, column by column: every tuple has one item an operation, unless said otherwise."""

    lines: tuple[int, ...] = ()
    """The text line it begins on, 1-based."""
    kinds: tuple[int, ...] = ()
    """An index into `kind_names`."""
    names: tuple[int, ...] = ()
    """An index into `full_names`."""
    kind_names: tuple[str, ...] = ()
    """What is counted: `tt.load`, `fadd`, and for instructions the family with its width, `ld.global.128`."""
    full_names: tuple[str, ...] = ()
    """Operations and opcodes as they are written."""
    live: tuple[int, ...] = ()
    """General registers that hold a value; empty where the text does not say."""
    text: Sequence[str] = field(default=(), repr=False)
    """The lines of the text: one item a line."""

    def matching(self, pattern: re.Pattern[str]) -> tuple[int, ...]:
        """The operations whose text, name or family a pattern is found in, as indices."""
        by_kind = [pattern.search(name) is not None for name in self.kind_names]
        return tuple(
            index
            for index, line in enumerate(self.lines)
            if by_kind[self.kinds[index]] or pattern.search(without_location(self.text[line - 1]))
        )


def without_location(line: str) -> str:
    """A line without the location at its end, so that names of files are not searched."""
    for mark in (" loc(", ", !dbg "):
        line = line.partition(mark)[0]
    return line


def read_stage_operations(text: str, kind: StageKind) -> Operations:
    """Find the operations of a text. Never raises: a line that cannot be read is none."""
    lines = text_lines(text)
    reader = _Reader(lines)
    if kind == "mlir":
        for number, line in enumerate(lines, 1):
            match = _MLIR.match(line)
            if match is not None and line[:1] not in "#!":
                reader.add(number, match["name"])
    elif kind == "llvm":
        reader.read_llvm()
    elif kind == "ptx":
        reader.read_ptx()
    elif kind == "sass":
        for number, line in enumerate(lines, 1):
            match = _SASS.match(line)
            if match is not None:
                reader.add(number, match["name"], "", reader.family(match["name"], ""), int(match["live"] or -1))
    elif kind == "amdgcn":
        reader.read_amdgcn()
    return reader.operations()


class _Reader:
    def __init__(self, text: list[str]) -> None:
        self.text = text
        self.lines: list[int] = []
        self.kinds: list[int] = []
        self.names: list[int] = []
        self.live: list[int] = []
        self.kind_names: dict[str, int] = {}
        self.full_names: dict[str, int] = {}
        self._families: dict[str, str | None] = {}

    def add(self, number: int, name: str, operands: str = "", family: str | None = None, live: int = -1) -> None:
        """Take in one operation."""
        self.lines.append(number)
        self.kinds.append(self.kind_names.setdefault(family or name, len(self.kind_names)))
        self.names.append(self.full_names.setdefault(name, len(self.full_names)))
        self.live.append(live)

    def read_llvm(self) -> None:
        inside = False
        for number, line in enumerate(self.text, 1):
            if line[:1] != " ":
                inside = line.startswith("define ") or (inside and line[:1] != "}")
                continue
            match = _LLVM.match(line) if inside else None
            if match is None or line[2:3] in " ]":
                continue
            name = match["name"]
            callee = _CALLEE.search(line) if name in ("call", "invoke") else None
            if name == "call" and callee is None and " asm " in line:
                name = "call asm"
            self.add(number, f"call {callee['quoted'] or callee['name']}" if callee else name)

    def read_ptx(self) -> None:
        in_head = False
        for number, line in enumerate(self.text, 1):
            if ".entry" in line or ".func" in line:
                in_head = True
            if in_head:
                in_head = not line.startswith("{")
                continue
            match = _PTX.match(line) if not _PTX_NONE.match(line) else None
            if match is not None:
                self.add(number, match["name"], "", self.family(match["name"], match["operands"]))

    def read_amdgcn(self) -> None:
        inside = False
        for number, line in enumerate(self.text, 1):
            if _AMDGCN_END.match(line):
                inside = False
            elif line[:1] not in " \t." and ":" in line:
                inside = True
            match = _AMDGCN.match(line) if inside else None
            if match is not None:
                self.add(number, match["name"], "", self.family(match["name"], match["operands"]))

    def family(self, name: str, operands: str) -> str | None:
        """The family of an opcode."""
        # Only of copies do the operands tell the width; all others are classified once a name.
        if name.startswith("cp.async") or "lds" in operands:
            return classify(name, split_operands(operands))
        if name not in self._families:
            self._families[name] = classify(name)
        return self._families[name]

    def operations(self) -> Operations:
        """The finished value."""
        known = any(live >= 0 for live in self.live)
        return Operations(
            tuple(self.lines),
            tuple(self.kinds),
            tuple(self.names),
            tuple(self.kind_names),
            tuple(self.full_names),
            tuple(self.live) if known else (),
            self.text,
        )

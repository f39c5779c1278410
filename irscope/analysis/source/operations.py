"""Which lines of a stage's text begin an operation or an instruction, its kind, and the live registers there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from irscope.ir.asm.instructions import split_operands
from irscope.ir.asm.opcodes import classify
from irscope.ir.locations.model import text_lines
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import StageKind

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
    r"\s*(?:/\*[0-9a-f]{4,}\*/|[0-9a-f]{4,}  (?:B\S*|-))\s+(?:G(?P<live>\d{1,9})\S*\s+)?"
    r"(?:@!?U?P\w+\s+)?(?P<name>[A-Z][\w.]*)"
)
# 	v_add_f32_e32 v0, v1, v2
_AMDGCN = re.compile(r"[\t ]+(?P<name>[a-z]\w*)(?P<operands>[^;]*)")
_AMDGCN_END = re.compile(r"\s*\.section|\.Lfunc_end\d+:|.*-- (?:End|Begin) function")


@dataclass(frozen=True)
class Operations:
    """The operations of one text, column by column: every tuple has one item per operation unless it says otherwise."""

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
    """General registers that hold a value; empty if the text does not state them."""
    text: Sequence[str] = field(default=(), repr=False)
    """The lines of the text, one item per line."""

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
    """Find the operations of a text. Never raises: lines that cannot be read are skipped."""
    lines = text_lines(text)
    found = _mlir(text) if kind == "mlir" else _FINDERS[kind](lines) if kind in _FINDERS else ()
    numbers: list[int] = []
    kinds: list[int] = []
    names: list[int] = []
    live: list[int] = []
    kind_names: dict[str, int] = {}
    full_names: dict[str, int] = {}
    families: dict[str, str | None] = {}
    for number, name, operands, registers in found:
        family = None
        if kind in _ASSEMBLY:
            # Only of copies do the operands tell the width; all others are classified once per name.
            if name.startswith("cp.async") or "lds" in operands:
                family = classify(name, split_operands(operands))
            else:
                family = families[name] if name in families else families.setdefault(name, classify(name))
        numbers.append(number)
        kinds.append(kind_names.setdefault(family or name, len(kind_names)))
        names.append(full_names.setdefault(name, len(full_names)))
        live.append(registers)
    known = tuple(live) if any(count >= 0 for count in live) else ()
    return Operations(tuple(numbers), tuple(kinds), tuple(names), tuple(kind_names), tuple(full_names), known, lines)


def _mlir(text: str) -> Iterator[_Found]:
    for operation in parse_mlir(text).walk():
        if "." in operation.name:
            # As it is written, which is how people search for it.
            yield operation.first_line, operation.name.replace("builtin.module", "module"), "", -1


def _llvm(lines: list[str]) -> Iterator[_Found]:
    inside = False
    for number, line in enumerate(lines, 1):
        if line[:1] != " ":
            inside = line.startswith("define ") or (inside and line[:1] != "}")
            continue
        match = _LLVM.match(line) if inside else None
        if match is None or line[2:3] in " ]":
            continue
        name = match["name"]
        callee = _CALLEE.search(line) if name in ("call", "invoke") else None
        if callee is not None:
            name = f"call {callee['quoted'] or callee['name']}"
        elif name == "call" and " asm " in line:
            name = "call asm"
        yield number, name, "", -1


def _ptx(lines: list[str]) -> Iterator[_Found]:
    in_head = False
    for number, line in enumerate(lines, 1):
        if ".entry" in line or ".func" in line:
            in_head = True
        if in_head:
            in_head = not line.startswith("{")
            continue
        match = _PTX.match(line) if not _PTX_NONE.match(line) else None
        if match is not None:
            yield number, match["name"], match["operands"], -1


def _sass(lines: list[str]) -> Iterator[_Found]:
    for number, line in enumerate(lines, 1):
        match = _SASS.match(line)
        if match is not None:
            yield number, match["name"], "", int(match["live"] or -1)


def _amdgcn(lines: list[str]) -> Iterator[_Found]:
    inside = False
    for number, line in enumerate(lines, 1):
        if _AMDGCN_END.match(line):
            inside = False
        elif line[:1] not in " \t." and ":" in line:
            inside = True
        match = _AMDGCN.match(line) if inside else None
        if match is not None:
            yield number, match["name"], match["operands"], -1


_ASSEMBLY = ("ptx", "sass", "amdgcn")
_Found = tuple[int, str, str, int]
"""Line, name as it is written, operands as far as they matter, and live registers or -1."""
_FINDERS = {"llvm": _llvm, "ptx": _ptx, "sass": _sass, "amdgcn": _amdgcn}

"""The Python frames that each line of a stage's text comes from, for every stage.

MLIR has locations in `loc(...)`, LLVM IR in metadata, PTX and AMDGCN in `.loc`, SASS in the comments of nvdisasm. All
of them become one value, `TextLocations`. An operation without a location inherits none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container

from irscope.ir.locations.assembly import read_amdgcn, read_ptx, read_sass
from irscope.ir.locations.llvm import read_llvm
from irscope.ir.locations.mlir import read_mlir
from irscope.ir.locations.model import ChainTable, TextLocations, text_lines
from irscope.ir.locations.strip import is_location_line
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.tokens import ALIAS, reachable
from irscope.model.capture import Capture, StageKind


def read_locations(text: str, kind: StageKind, *, llir: str | None = None, ptx: str | None = None) -> TextLocations:
    """The chain of every line of a stage's text, in time linear in its length; never raises, and a binary has no lines.

    `llir`: for PTX, SASS and AMDGCN, the LLVM IR that the assembly was compiled from, to complete its locations (see
    `read_ptx`, `read_sass` and `read_amdgcn`). `ptx`: for SASS, to recognise lines that LLVM made up.
    """
    if kind == "mlir":
        return read_mlir(text)
    if kind == "llvm":
        return read_llvm(text)
    if kind == "ptx":
        return read_ptx(text, llir)
    if kind == "sass":
        return read_sass(text, llir, ptx)
    if kind == "amdgcn":
        return read_amdgcn(text, llir)
    return TextLocations()


def capture_locations(capture: Capture, text: str, kind: StageKind) -> TextLocations:
    """The locations of one of a capture's texts.

    Those of assembly are of the operations in the TTGIR where the capture holds these: SASS has no columns, and before
    Triton 3.8 no callers. Otherwise they are completed from the earlier stages.
    """
    stated = read_locations(text, kind, llir=capture.texts.get("llir"), ptx=capture.texts.get("ptx"))
    operations = next((row.by_line for row in capture.operations if row.stage == kind and row.runs), ())
    if not operations:
        return stated
    ttgir = read_mlir(capture.text("ttgir"))
    table = ChainTable()
    numbers = {operation: table.add(ttgir.chain_at(operation)) for operation in dict.fromkeys(operations)}
    own = [*map(table.add, stated.chains), -1]
    lines = zip(stated.by_line, operations, strict=False)
    return table.locations(numbers[operation] if operation else own[index] for index, operation in lines)


def lines_selected(locations: TextLocations, in_file: Callable[[str], bool], lines: Container[int]) -> set[int]:
    """The text lines, 1-based, with a frame (the innermost or a caller) on given lines of a Python file."""
    wanted = [any(frame.line in lines and in_file(frame.file) for frame in chain) for chain in locations.chains]
    return {number for number, index in enumerate(locations.by_line, 1) if index >= 0 and wanted[index]}


# ── Keeps selected lines of a text with their context, and replaces the rest by comments ────────────────────────────

_COMMENT: dict[str, str] = {"llvm": ";", "amdgcn": ";"}


# The role of a line of each language; the first that matches.
_ROLES: dict[str, re.Pattern[str]] = {
    # define ptx_kernel void @kernel(ptr addrspace(1) %0) {        47:             ; preds = %4        }
    "llvm": re.compile(r'(?P<head>define )|(?P<label>(?:[\w.$-]+|"[^"]*"):)|(?P<end>\})'),
    # .visible .entry kernel(      .func  (.param .b32 func_retval0) helper(      $L__BB0_1:      .loc 1 16 15
    "ptx": re.compile(
        r"(?P<head>(?:\.(?:visible|weak|extern|noreturn) +)*\.(?:entry|func)\b)|(?P<head_end>\{)"
        r"|(?P<label>\s*(?:(?!\$L__(?:tmp|func))[\w$.]+:|// %bb\.\d+:))|(?P<mark>\s*\.loc\s)|(?P<end>\})"
    ),
    # 	.section	.text.kernel,"ax",@progbits        .L_x_0:        //## File "kernel.py", line 16
    "sass": re.compile(r"(?P<head>\s*\.section\s+\.text\.)|(?P<label>\s*\S+:\s*$)|(?P<mark>\s*//## File)"),
    # kernel:                  ; @kernel        .LBB1_2:        ; %bb.1:        .loc 1 16 15        .Lfunc_end0:
    "amdgcn": re.compile(
        r"(?P<head>(?!\.L)[\w.$]+:)|(?P<label>\.LBB\w+:|; %bb\.\d+:)|(?P<mark>\s*\.loc\s)|(?P<end>\.Lfunc_end\d+:)"
    ),
}


def filter_lines(text: str, kind: StageKind, selected: Collection[int], *, without_locations: bool = False) -> str:
    """Keep selected lines of a text and their context; comments say how many lines are left out.

    The context of an MLIR operation is all its own lines, the operations around it, the label of its block and the
    aliases it uses; that of an instruction is the first and last lines of its function, the label of its block and the
    line of its location. If nothing is selected, nothing is kept.
    """
    lines = text_lines(text)
    wanted = {number - 1 for number in selected if 1 <= number <= len(lines)}
    silent: set[int] = set()
    if kind == "mlir":
        kept, silent = _kept_of_mlir(text, lines, wanted)
    elif kind in _ROLES:
        kept = _kept_of_listing(lines, wanted, _ROLES[kind])
    else:
        kept = wanted
    if without_locations:
        hidden = {number for number, line in enumerate(lines) if is_location_line(line, kind)}
        kept, silent = kept - hidden, silent | hidden
    return _elided(lines, kept, silent, _COMMENT.get(kind, "//"))


def _kept_of_mlir(text: str, lines: list[str], wanted: set[int]) -> tuple[set[int], set[int]]:
    """The lines to keep, and those of aliases, which leave no comment when they are not kept."""
    # (operation, index of the one whose region it is in, line of its block's label), outer ones first.
    operations = [(operation, -1, 0) for operation in parse_mlir(text).operations]
    for index, (operation, _, _) in enumerate(operations):
        for block in (block for region in operation.regions for block in region.blocks):
            operations.extend((one, index, block.line if block.label else 0) for one in block.operations)
    needed = {number + 1 for number in wanted}
    outer: set[int] = set()
    for index in reversed(range(len(operations))):
        operation, parent, label = operations[index]
        is_kept = index in outer or not needed.isdisjoint(operation.lines)
        if is_kept:
            needed.update(operation.lines, (label,) if label else ())
        if is_kept or label in needed:
            outer.add(parent)
    kept = {number - 1 for number in needed}
    # #blocked = #ttg.blocked<{…}>        !desc = !tt.ptr<f16>
    aliases = {line.partition(" = ")[0]: at for at, line in enumerate(lines) if line[:1] in "#!" and " = " in line}
    used = (name for number in kept for name in ALIAS.findall(lines[number]))
    needed_aliases = reachable(used, {name: lines[number] for name, number in aliases.items()})
    return kept | {aliases[name] for name in needed_aliases}, set(aliases.values())


def _kept_of_listing(lines: list[str], wanted: set[int], roles: re.Pattern[str]) -> set[int]:
    kept: set[int] = set()
    around: dict[str, list[int]] = {}  # the line's context: head of its function, its label, its mark
    in_function = in_head = False
    for number, line in enumerate(lines):
        match = roles.match(line)
        role = match.lastgroup if match is not None else ""
        if role == "head":
            around = {"head": [number]}
            in_function, in_head = False, "head_end" in roles.groupindex
        elif in_head:  # the parameters of PTX, up to the brace
            around["head"].append(number)
            in_head = role != "head_end"
        elif role == "label":
            around["label"] = [number]
        elif role == "mark":
            follows = around.get("mark", [-2])[-1] == number - 1
            around["mark"] = [*around.get("mark", []), number] if follows else [number]
        elif role == "end" and in_function:
            kept.add(number)
        if number in wanted:
            kept.update(index for indices in around.values() for index in indices)
            kept.add(number)
            in_function = True
    return kept


def _elided(lines: list[str], kept: set[int], silent: set[int], comment: str) -> str:
    if not kept:
        return ""
    result: list[str] = []
    left_out: list[int] = []
    for number in range(len(lines) + 1):
        if number < len(lines) and number not in kept:
            if number not in silent and lines[number].strip():
                left_out.append(number)
            continue
        if left_out:
            first = lines[left_out[0]]
            indent = first[: len(first) - len(first.lstrip())]
            plural = "s" if len(left_out) > 1 else ""
            result.append(f"{indent}{comment} … {len(left_out)} line{plural}")
            left_out = []
        if number < len(lines):
            result.append(lines[number])
    return "".join(f"{line}\n" for line in result)

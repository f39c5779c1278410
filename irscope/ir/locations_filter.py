"""Keeps the wanted lines of a text with what stands around them, and puts a comment in place of the rest."""

from __future__ import annotations

import re
from collections.abc import Collection

from irscope.capture import StageKind
from irscope.ir.locations_mlir import read_operations
from irscope.ir.locations_model import text_lines
from irscope.ir.locations_strip import is_location_line

_COMMENT: dict[str, str] = {"llvm": ";", "amdgcn": ";"}

# #blocked = #ttg.blocked<{…}>        !desc = !tt.ptr<f16>
_ALIAS = re.compile(r"([#!][\w.$-]+) = ")
_ALIAS_NAME = re.compile(r"[#!][A-Za-z_][\w$]*")

_Roles = dict[str, re.Pattern[str]]
_ROLES: dict[str, _Roles] = {
    "llvm": {
        # define ptx_kernel void @kernel(ptr addrspace(1) %0) {
        "head": re.compile(r"define "),
        # 47:                                               ; preds = %0
        "label": re.compile(r'(?:[\w.$-]+|"[^"]*"):'),
        "end": re.compile(r"\}"),
    },
    "ptx": {
        # .visible .entry kernel(      .func  (.param .b32 func_retval0) helper(
        "head": re.compile(r"(?:\.(?:visible|weak|extern|noreturn) +)*\.(?:entry|func)\b"),
        "head_end": re.compile(r"\{"),
        # $L__BB0_1:        // %bb.0:
        "label": re.compile(r"\s*(?:(?!\$L__(?:tmp|func))[\w$.]+:|// %bb\.\d+:)"),
        # 	.loc	1 16 15
        "mark": re.compile(r"\s*\.loc\s"),
        "end": re.compile(r"\}"),
    },
    "sass": {
        # 	.section	.text.kernel,"ax",@progbits
        "head": re.compile(r"\s*\.section\s+\.text\."),
        # .L_x_0:
        "label": re.compile(r"\s*\S+:\s*$"),
        "mark": re.compile(r"\s*//## File"),
    },
    "amdgcn": {
        # kernel:                                 ; @kernel
        "head": re.compile(r"(?!\.L)[\w.$]+:"),
        # .LBB1_2:        ; %bb.1:
        "label": re.compile(r"\.LBB\w+:|; %bb\.\d+:"),
        "mark": re.compile(r"\s*\.loc\s"),
        "end": re.compile(r"\.Lfunc_end\d+:"),
    },
}


def filter_lines(text: str, kind: StageKind, selected: Collection[int], *, without_locations: bool = False) -> str:
    """Keep some lines of a text and what is needed to place them; a comment says how many lines are left out.

    Args:
        text: the stage's text.
        kind: the language it is in.
        selected: 1-based text lines, as `lines_selected` returns them.
        without_locations: leave out assembly's lines that only hold locations, and do not count them.

    Kept with an operation of MLIR are all its own lines, the operations whose regions it stands in, its block's label
    and the aliases it names; with an instruction its function's first and last lines, its block's label and its
    location's line. Where nothing is selected, nothing is kept.
    """
    lines = text_lines(text)
    wanted = {number - 1 for number in selected if 1 <= number <= len(lines)}
    silent: set[int] = set()
    if kind == "mlir":
        kept, silent = _kept_of_mlir(lines, wanted)
    elif kind in _ROLES:
        kept = _kept_of_listing(lines, wanted, _ROLES[kind])
    else:
        kept = wanted
    if without_locations:
        hidden = {number for number, line in enumerate(lines) if is_location_line(line, kind)}
        kept, silent = kept - hidden, silent | hidden
    return _elided(lines, kept, silent, _COMMENT.get(kind, "//"))


def _kept_of_mlir(lines: list[str], wanted: set[int]) -> tuple[set[int], set[int]]:
    """The lines to keep, and the aliases: those of them that are not kept leave no comment behind."""
    operations, owner, region = read_operations(lines)
    kept = set(wanted)
    waiting = [owner[number] if owner[number] >= 0 else region[number] for number in wanted]
    done = {-1}
    while waiting:
        index = waiting.pop()
        if index not in done:
            done.add(index)
            kept.update(operations[index].lines)
            waiting.append(operations[index].parent)
    labels: dict[int, int] = {}  # for each region, its last label
    for number, line in enumerate(lines):
        if owner[number] >= 0 and line.rstrip()[-1:] == "{":
            labels.pop(owner[number], None)
        if line.lstrip()[:1] == "^":
            labels[region[number]] = number
        elif number in kept and owner[number] >= 0 and region[number] in labels:
            kept.add(labels[region[number]])
    aliases = {match[1]: number for number, line in enumerate(lines) if (match := _ALIAS.match(line))}
    names = [name for number in kept for name in _ALIAS_NAME.findall(lines[number])]
    while names:
        number = aliases.get(names.pop(), -1)
        if number >= 0 and number not in kept:
            kept.add(number)
            names.extend(_ALIAS_NAME.findall(lines[number]))
    return kept, set(aliases.values())


def _kept_of_listing(lines: list[str], wanted: set[int], roles: _Roles) -> set[int]:
    kept: set[int] = set()
    around: dict[str, list[int]] = {}  # what stands around the line: its function's head, its label, its mark
    in_function = in_head = False
    for number, line in enumerate(lines):
        role = next((name for name, pattern in roles.items() if pattern.match(line)), "")
        if role == "head":
            around = {"head": [number]}
            in_function, in_head = False, "head_end" in roles
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

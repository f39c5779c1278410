"""Removes comments, blank lines and ignored locations from IR and assembly."""

from __future__ import annotations

import re
from typing import Literal

from irscope.ir.locations.strip import without_mlir_locations
from irscope.model.capture import StageKind

Ignored = Literal["locations", "names", "attributes"]

# "^bb2(%0: i32):  // 2 preds: ^bb0, ^bb1"    "// -----// IR Dump Before CSEPass: cse"
_MLIR_COMMENT = re.compile(r"//.*")
# "  %1 = add i32 %0, 1, !dbg !12"
_DEBUG_ATTACHMENT = re.compile(r",? !dbg !\d+")
# "12:                       ; preds = %4, %0"    "; ModuleID = 'LLVMDialectModule'"
_LLVM_COMMENT = re.compile(r"^;.*$|(?<![^\S\n])[^\S\n]+; (?:preds =|No predecessors|\[#uses=).*$", re.MULTILINE)
# "!7 = distinct !DISubprogram(name: …)"   "!llvm.dbg.cu = !{!0}"   "  #dbg_value(i32 %0, !9, !DIExpression(), !12)"
_LLVM_DEBUG = re.compile(
    r"^(?:!\d+ = (?:distinct )?!DI|!llvm\.dbg\.|\s*#dbg_|\s*(?:tail )?call void @llvm\.dbg\.|declare void @llvm\.dbg\.)"
)
# "	.loc	1 24 0      "   ".Ltmp12:"   "$L__func_begin0:"   "	.cfi_startproc"
_ASM_DEBUG = re.compile(r"^\s*(?:\.(?:loc|file|cfi_\w+)\b|(?:\.Ltmp|\.Lfunc_|\$L__tmp|\$L__func_)\w*:\s*$)")
# "	.section	.debug_info"   '	.section	".debug_line"'   "	.section	.nv_debug_ptx_txt"
_SECTION = re.compile(r'^\s*\.section\s+"?(?P<name>[.\w$]+)')
# "        /*0010*/                   S2R R13, SR_TID.X ;        /* 0x00000000000d7919 */"
_SASS_COMMENT = re.compile(r"/\*.*?(?:\*/|$)|//.*$")
# "        0000  B-1----:R-:W0:Y:S01  G001:P0:U00:Q0  LDC R1, c[0x0][0x28]": address, control, live registers
_SASS_COLUMNS = re.compile(r"^ *[0-9a-f]{4,}  (?:B[0-9-]{6}:R[0-9-]:W[0-9-]:[Y-]:S\d\d|-)(?:  G\d+(?::[PUQ]\d+)*)?  ")


def clean(text: str, kind: StageKind, ignore: frozenset[Ignored]) -> tuple[list[str], list[int]]:
    """The lines of a text to compare, with the 1-based number of each in the text.

    Blank lines and comments are removed; locations and debug information if `ignore` names them. SASS loses its
    addresses, encodings, live registers and its schedule: the control columns, `.reuse` of operands.
    """
    without_locations = "locations" in ignore
    if kind == "mlir":
        text = _MLIR_COMMENT.sub(_without_comment, text) if "//" in text else text
        lines = (without_mlir_locations(text) if without_locations else text).split("\n")
        return _numbered(lines)
    if kind == "llvm":
        return _clean_llvm(text, without_locations)
    if kind == "sass":
        lines = text.split("\n")
        if not without_locations:
            # A line of "//## File" is the location of the next instructions: it is compared here.
            lines = [line.replace("//##", "##") for line in lines]
        return _numbered([_respaced(_without_schedule(line)) for line in lines])
    return _clean_assembly(text, kind, without_locations)


def _without_schedule(line: str) -> str:
    line = _SASS_COMMENT.sub("", _SASS_COLUMNS.sub("        ", line))
    return line.replace(".reuse", "") if ".reuse" in line else line


def _without_comment(match: re.Match[str]) -> str:
    # Triton prints comments on their own lines and behind block headers; any other "//" is within a string.
    text = match.string
    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
    return match[0] if before and not before.startswith("^") else ""


def _numbered(lines: list[str]) -> tuple[list[str], list[int]]:
    # Only the last line of printed IR is blank: most texts need no filter.
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    if "" not in lines:
        return lines, list(range(1, len(lines) + 1))
    kept = [(line, number) for number, line in enumerate(lines, 1) if line]
    return [line for line, _ in kept], [number for _, number in kept]


def _clean_llvm(text: str, without_locations: bool) -> tuple[list[str], list[int]]:
    text = _LLVM_COMMENT.sub("", text) if ";" in text else text
    if without_locations:
        text = _DEBUG_ATTACHMENT.sub("", text)
    lines, numbers = _numbered(text.split("\n"))
    if not without_locations:
        return lines, numbers
    kept = [index for index, line in enumerate(lines) if line[0] not in "! d#" or not _LLVM_DEBUG.match(line)]
    return [lines[index] for index in kept], [numbers[index] for index in kept]


def _clean_assembly(text: str, kind: StageKind, without_locations: bool) -> tuple[list[str], list[int]]:
    comment = "//" if kind == "ptx" else ";"
    lines: list[str] = []
    numbers: list[int] = []
    in_debug_section = False
    for number, line in enumerate(text.split("\n"), 1):
        if comment in line:
            line = _before_comment(line, comment)
        line = _respaced(line)
        if not line:
            continue
        section = _SECTION.match(line) if ".section" in line else None
        if section is not None:
            in_debug_section = "debug" in section["name"]
        elif in_debug_section and line.lstrip().startswith((".text", ".amdgpu_metadata", ".amdgcn_target")):
            in_debug_section = False
        if without_locations and (in_debug_section or _ASM_DEBUG.match(line)):
            if in_debug_section and line.strip() == "}":
                in_debug_section = False
            continue
        lines.append(line)
        numbers.append(number)
    return lines, numbers


def _respaced(line: str) -> str:
    # Assembly is indented by tabs or by removed addresses: normalise to four blanks.
    stripped = line.strip().replace(" \t", " ").replace("\t", " ")
    return "    " + stripped if stripped and line[0] in " \t" else stripped


def _before_comment(line: str, comment: str) -> str:
    # A comment sign within a string does not begin a comment.
    start = line.find(comment)
    while start >= 0 and line.count('"', 0, start) % 2 == 1:
        start = line.find(comment, start + 1)
    return line if start < 0 else line[:start]

"""Removes the locations of a text: `loc(...)`, `!dbg`, `.loc` and their tables; everything else stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable

from irscope.ir.mlir.tokens import closing, reachable
from irscope.model.capture import StageKind

# "%0 = tt.load %p : !tt.ptr<f32> loc(#loc12)"   '%a: i32 loc("a"(#loc))'
_SIMPLE_LOCATION = re.compile(r' loc\((?:#loc\d*|unknown|"[^"\\\n]*"\(#loc\d*\))\)')
# '%a: i32 loc("a"(#loc)), %b: i32 loc(callsite(#loc3 at #loc4))'
_LOCATION = re.compile(r" loc\(")
# "llvm.insertvalue %1, %2[0] : !llvm.struct<(i32)>  loc(#loc7)"
_WIDE_LOCATION = re.compile(r"  loc\((?=(?:#loc\d*|unknown)\)$)", re.MULTILINE)
# #di_file = #llvm.di_file<"kernel.py" in "/home/me">
_DEBUG_NAME = re.compile(r"#di_\w+")
#   %9 = add i32 %8, 1, !dbg !14        define void @kernel(ptr %0) !dbg !6 {
_DBG = re.compile(r",? !dbg !\d+(?=(?:, ![\w.]+ !\d+){0,16}(?: \{)?\s*$)")
# !14 = !DILocation(line: 16, scope: !6)     !llvm.dbg.cu = !{!0, !2}
_METADATA = re.compile(r"!([\w.$-]+) = (.*)")
_REFERENCE = re.compile(r"!(\d+)")
#   #dbg_value(i32 %2, !9, !DIExpression(), !14)      call void @llvm.dbg.value(…      declare void @llvm.dbg.value(…
_DEBUG_RECORD = re.compile(r"\s*(?:#dbg_\w+\(|(?:tail )?call void @llvm\.dbg\.|declare void @llvm\.dbg\.)")
# 	.loc	3 196 12 is_stmt 1        .file	1 "/home/me" "kernel.py"
_DIRECTIVE = re.compile(r"\s*\.(?:loc|file)\s")
# 	.section	.debug_info,"",@progbits
_DEBUG_SECTION = re.compile(r'\s*\.section\s+"?\.debug_')
# 	.text       .section ".note.GNU-stack"       .amdgpu_metadata
_OTHER_SECTION = re.compile(r"\s*\.(?:section|text|data|bss|amdgpu_metadata)\b")
# $L__tmp3:   .Ltmp11:   $L__func_begin0:
_DEBUG_LABEL = re.compile(r"\s*(\$L__(?:tmp|func_begin|func_end)\d+|\.L(?:tmp|func_begin)\d+):\s*$")
_DEBUG_LABEL_NAME = re.compile(r"(?:\$L__|\.L)(?:tmp|func_begin|func_end)\d+\b")
# 	//## File "kernel.py", line 216 inlined at "kernel.py", line 25
_MARKER = re.compile(r"\s*//## ")


def strip_locations(text: str, kind: StageKind) -> str:
    """The text without locations, and labels that only debug sections use; MLIR and LLVM IR can still be parsed."""
    return "\n".join([line for line in lines_without_locations(text, kind) if line is not None])


def lines_without_locations(text: str, kind: StageKind) -> list[str | None]:
    """Each line of a text without its locations; None for a line that `strip_locations` removes."""
    lines = text.split("\n")
    strip = _STRIPPERS.get(kind)
    return [*lines] if strip is None else strip(lines)


def is_location_line(line: str, kind: StageKind) -> bool:
    """Whether a line of assembly holds only a location, so that `strip_locations` removes it."""
    if kind == "sass":
        return _MARKER.match(line) is not None
    return kind in ("ptx", "amdgcn") and (_DIRECTIVE.match(line) or _DEBUG_LABEL.match(line)) is not None


def _strip_mlir(lines: list[str]) -> list[str | None]:
    lines = without_mlir_locations("\n".join(lines)).split("\n")
    if not any(line.startswith("#di_") for line in lines):
        return [None if line.startswith("#loc") else line for line in lines]
    kept = [line for line in lines if not line.startswith("#loc")]
    bodies = dict(line.split(" = ", 1) for line in kept if line.startswith("#di_") and " = " in line)
    used = (line for line in kept if "#di_" in line and not line.startswith("#di_"))
    needed = reachable((name for line in used for name in _DEBUG_NAME.findall(line)), bodies, _DEBUG_NAME)
    return [
        None if line.startswith("#loc") or (line.startswith("#di_") and line.partition(" ")[0] not in needed) else line
        for line in lines
    ]


def without_mlir_locations(text: str) -> str:
    """The text of an MLIR module without `loc(…)` at any nesting; every line stays, those of `#loc` too."""
    if "  loc(" in text:
        text = _WIDE_LOCATION.sub(" loc(", text)
    text = _SIMPLE_LOCATION.sub("", text)
    start = _LOCATION.search(text)
    if start is None:
        return text
    parts: list[str] = []
    done = 0
    while start is not None:
        line_end = text.find("\n", start.end())
        line_start = text.rfind("\n", 0, start.start()) + 1
        if text.startswith("#", line_start):
            # The line "#loc3 = loc(…)" is removed as a whole by the callers.
            start = _LOCATION.search(text, line_end) if line_end >= 0 else None
            continue
        end = closing(text, start.start() + 1, line_end if line_end >= 0 else None) + 1
        if not end:
            # Not closed on its line, like possibly all that follow there: continue on the next line.
            start = _LOCATION.search(text, line_end) if line_end >= 0 else None
            continue
        if text.count('"', max(line_start, done), start.start()) % 2 == 1:
            start = _LOCATION.search(text, start.end())
            continue
        parts.append(text[done : start.start()])
        done = end
        start = _LOCATION.search(text, end)
    parts.append(text[done:])
    return "".join(parts)


def _strip_llvm(lines: list[str]) -> list[str | None]:
    kept: list[str | None] = []
    bodies: dict[str, str] = {}
    for line in lines:
        if "dbg" in line:
            if _DEBUG_RECORD.match(line) or line.startswith("!llvm.dbg.cu"):
                kept.append(None)
                continue
            line = _DBG.sub("", line) if "!dbg" in line else line
        kept.append(line)
        definition = _METADATA.match(line) if line[:1] == "!" else None
        if definition is not None and definition[1].isdigit():
            bodies[definition[1]] = definition[2]
    roots = (line for line in kept if line is not None and "!" in line and not _is_node(line))
    needed = reachable((name for line in roots for name in _REFERENCE.findall(line)), bodies, _REFERENCE)
    return [
        None if line is not None and _is_node(line) and line[1:].partition(" ")[0] not in needed else line
        for line in kept
    ]


def _is_node(line: str) -> bool:
    return line[:1] == "!" and line[1:2].isdigit()


def _strip_ptx(lines: list[str]) -> list[str | None]:
    kept: list[str | None] = []
    in_section = False
    for line in lines:
        is_kept = False
        if in_section:
            in_section = not line.strip().endswith("}")
        elif _DEBUG_SECTION.match(line):
            in_section = "}" not in line
        else:
            is_kept = not _DIRECTIVE.match(line)
        kept.append(line if is_kept else None)
    return _without_debug_labels(kept)


def _strip_amdgcn(lines: list[str]) -> list[str | None]:
    kept: list[str | None] = []
    in_section = False
    for line in lines:
        if _DEBUG_SECTION.match(line):
            in_section = True
        elif in_section and _OTHER_SECTION.match(line):
            in_section = False
        kept.append(None if in_section or _DIRECTIVE.match(line) else line)
    return _without_debug_labels(kept)


def _without_debug_labels(lines: list[str | None]) -> list[str | None]:
    labels = [_DEBUG_LABEL.match(line or "") for line in lines]
    named = {
        name
        for line, label in zip(lines, labels, strict=True)
        if line is not None and label is None and ("$L__" in line or ".L" in line)
        for name in _DEBUG_LABEL_NAME.findall(line)
    }
    return [line if label is None or label[1] in named else None for line, label in zip(lines, labels, strict=True)]


_STRIPPERS: dict[str, Callable[[list[str]], list[str | None]]] = {
    "mlir": _strip_mlir,
    "llvm": _strip_llvm,
    "ptx": _strip_ptx,
    "sass": lambda lines: [None if _MARKER.match(line) else line for line in lines],
    "amdgcn": _strip_amdgcn,
}

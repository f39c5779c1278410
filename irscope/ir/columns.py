"""Reads a text into columns: lines, values, nesting, and keys that are independent of names."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import cast

from irscope.ir.locations.strip import without_mlir_locations
from irscope.ir.syntax import (
    LABEL,
    VALUE,
    Body,
    Ignored,
    Resolver,
    Shape,
    Syntax,
    shape_of,
    split_definitions,
    syntax_of,
)
from irscope.model.capture import StageKind

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
        # Imported where they are needed: most texts are none.
        from irscope.ir.asm.instructions import COLUMNS

        bare = [_SASS_COMMENT.sub("", COLUMNS.sub("        ", line)).replace(".reuse", "") for line in lines]
        return _numbered(list(map(_respaced, bare)))
    return _clean_assembly(text, kind, without_locations)


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


_FIRST = (0,)
# Operations isolated from above: their regions see no values of the outer text. Functions are isolated too.
_ISOLATED = frozenset({"builtin.module", "gpu.module", "ttg.warp_specialize.partitions"})
# "partition0(%a: i32) num_warps(4) {"
_PARTITION = re.compile(r"partition\d+$")


@lru_cache(maxsize=8)
def read_body(text: str, kind: StageKind, ignore: frozenset[Ignored]) -> Body:
    """Read a text; the last few are cached. Never raises: a line that cannot be read has no values."""
    lines, numbers = clean(_without_holes(text), kind, ignore)
    syntax = syntax_of(kind)
    head, tail, rest = split_definitions(lines, syntax)
    all_numbers = numbers
    if len(rest) != len(lines):
        lines, numbers = [lines[index] for index in rest], [numbers[index] for index in rest]
    resolver = Resolver(kind, (*head, *tail), ignore)
    templates, found = _templates(lines, syntax, kind)
    body = Body(kind, lines, numbers, head, tail, resolver)
    if syntax.is_virtual:
        _ColumnReader(body, found).read(templates)
    else:
        # Not before: MLIR and PTX name values, and need none of it.
        from irscope.ir.registers import RegisterReader

        RegisterReader(body, found).read(templates)
    # Triton prints aliases that are never used; without locations, those of locations are never used either.
    used = resolver.used() if "locations" in ignore else None
    for definitions in (head, tail):
        definitions[:] = [
            replace(one, number=all_numbers[one.number]) for one in definitions if used is None or one.name in used
        ]
    return body


def _without_holes(text: str) -> str:
    for character in (VALUE, LABEL, "\r"):
        if character in text:
            text = text.replace(character, "")
    return text


def _templates(lines: list[str], syntax: Syntax, kind: StageKind) -> tuple[list[str], list[str]]:
    # All lines at once: three passes of the regex engine are many times faster than a loop in Python.
    joined = "\n".join(lines)
    found = syntax.name.findall(joined)
    if syntax.is_virtual:
        template = syntax.value.sub(VALUE, joined)
    else:
        from irscope.ir.asm.operands import register_templates

        template = register_templates(joined, kind)
    if syntax.label is not None:
        template = syntax.label.sub(LABEL, template)
    return template.split("\n") if lines else [], found


@dataclass(slots=True)
class _Region:
    """A region that is still open, and the names to restore at its end."""

    opener: int
    is_isolated: bool
    outer: dict[str, int]
    """The names of the outer text; a region that is not isolated shares them."""
    first: int
    """The first value defined or named within."""
    hidden: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Names of the outer text that the region redefines, with their outer values."""
    labels: list[str] = field(default_factory=list[str])
    """Labels of the region's own blocks, the only ones a branch may name."""


class _ColumnReader:
    """Fills the columns of a `Body` in one pass over the templates.

    MLIR names are scoped as in MLIR: a region's definitions end with it, so a sibling region may reuse their names;
    labels belong to the region; a region isolated from above sees no names of the outer text.
    """

    def __init__(self, body: Body, found: list[str]) -> None:
        self.body = body
        self.is_llvm = body.kind == "llvm"
        self.is_mlir = body.kind == "mlir"
        # In LLVM IR the label "12:" and the value "%12" are one name.
        self.found = [name if name[0] == "%" else "%" + name for name in found] if self.is_llvm else found
        self.scope: dict[str, int] = {}
        """Name → value at the current line."""
        self.regions = [_Region(-1, True, self.scope, 0)]

    def read(self, templates: list[str]) -> None:
        known: dict[str, tuple[Shape, int, bool]] = {}
        body, found, regions, is_mlir = self.body, self.found, self.regions, self.is_mlir
        names, definers, shapes, keys, deep_keys = body.names, body.definers, body.shapes, body.keys, body.deep_keys
        values, uses, parents, openers = body.values, body.uses, body.parents, body.openers
        has_versions = body.syntax.has_versions
        value_keys: list[int] = []
        scope = self.scope
        position = 0
        for line, template in enumerate(templates):
            template = template.lstrip()
            entry = known.get(template)
            if entry is None:
                shape = shape_of(template, body.kind)
                is_plain = shape.defines == _FIRST and not (shape.is_function or shape.opens or shape.name == "^")
                entry = known[template] = (shape, body.resolver.key(shape), is_plain)
            shape, key, is_plain = entry
            shapes.append(shape)
            keys.append(key)
            closed = None
            if shape.closes and len(regions) > 1:
                closed = self._close()
                scope = self.scope
            elif shape.is_function and not is_mlir:
                scope = self.scope = {}
            openers.append(closed.opener if closed is not None else -1)
            parents.append(regions[-1].opener)
            if not shape.holes:
                deep_keys.append(key)
                values.append(())
                uses.append(())
                if shape.opens:
                    scope = self._open(line, shape, closed)
                continue
            end = position + shape.holes
            own = found[position:end]
            position = end
            if is_plain:
                # Nearly every line: one result, operands defined above. The loop below would do the same, slower.
                known_values = [scope.get(name) for name in own]
                result = known_values[0]
                if None not in known_values[1:] and (result is None or (has_versions and definers[result] >= 0)):
                    operands = cast(tuple[int, ...], tuple(known_values[1:]))
                    deep = hash((key, *[value_keys[value] for value in operands]))
                    if result is not None and result < regions[-1].first:
                        regions[-1].hidden.append((own[0], result))
                    result = scope[own[0]] = len(names)
                    names.append(own[0])
                    definers.append(line)
                    value_keys.append(deep)
                    deep_keys.append(deep)
                    values.append((result, *operands))
                    uses.append(operands)
                    continue
            slots: list[int] = []
            used: list[int] = []
            defines = shape.defines
            defined = set(defines)
            for index, name in enumerate(own):
                if index in defined:
                    slots.append(-1)
                    continue
                value = scope.get(name)
                if value is None:
                    # Used before it is defined (a label, a phi), or never defined.
                    value = scope[name] = len(names)
                    names.append(name)
                    definers.append(-1)
                    value_keys.append(0)
                    if name[0] == "^":
                        regions[-1].labels.append(name)
                slots.append(value)
                used.append(value)
            deep = hash((key, *[value_keys[value] for value in used]))
            # "%r:2 = scf.for %i = … iter_args(%a = …) {": only the results belong to the outer text.
            results = _results(shape.template) if shape.opens else len(defines)
            for place, index in enumerate(defines):
                if place == results:
                    scope = self._open(line, shape, closed)
                name = own[index]
                value = scope.get(name)
                if value is None:
                    is_new = True
                elif definers[value] < 0:
                    # A label may be used before its definition; a register that was read held another value.
                    is_new = False
                else:
                    is_new = has_versions
                if value is None or is_new:
                    if value is not None and value < regions[-1].first:
                        regions[-1].hidden.append((name, value))
                    value = scope[name] = len(names)
                    names.append(name)
                    definers.append(line)
                    value_keys.append(deep + place)
                    if name[0] == "^":
                        regions[-1].labels.append(name)
                else:
                    definers[value] = line if definers[value] < 0 else definers[value]
                    value_keys[value] = deep + place
                slots[index] = value
            if shape.opens and results >= len(defines):
                scope = self._open(line, shape, closed)
            deep_keys.append(deep)
            values.append(tuple(slots))
            uses.append(tuple(used))
            if shape.is_function and self.is_llvm:
                self._name_entry(own, line, scope, value_keys)

    def _open(self, line: int, shape: Shape, before: _Region | None) -> dict[str, int]:
        """Begin a region; `before` is the region that the same line ended. Returns the names visible within."""
        region = _Region(line, False, self.scope, len(self.body.names))
        if self.is_mlir:
            region.is_isolated = (
                before.is_isolated
                if before is not None
                else shape.is_function or shape.name in _ISOLATED or _PARTITION.match(shape.name) is not None
            )
            if region.is_isolated:
                self.scope = {}
            else:
                for label in self.regions[-1].labels:
                    if (value := self.scope.pop(label, None)) is not None:
                        region.hidden.append((label, value))
        self.regions.append(region)
        return self.scope

    def _close(self) -> _Region:
        region = self.regions.pop()
        scope = self.scope
        if region.is_isolated:
            self.scope = region.outer
        elif self.is_mlir:
            for value in range(region.first, len(self.body.names)):
                name = self.body.names[value]
                # A name that was used but not defined may be defined later, in the outer text.
                if scope.get(name) == value and (self.body.definers[value] >= 0 or name[0] == "^"):
                    del scope[name]
            scope.update(region.hidden)
        return region

    def _name_entry(self, arguments: list[str], line: int, scope: dict[str, int], value_keys: list[int]) -> None:
        # The entry block of "define void @f(ptr %0, i32 %1) {" is named %2 and has no label.
        name = f"%{sum(argument[1:].isdigit() for argument in arguments)}"
        scope[name] = len(self.body.names)
        self.body.names.append(name)
        self.body.definers.append(line)
        value_keys.append(0)


def _results(template: str) -> int:
    return template.count(VALUE, 0, template.find(" = ")) if template.startswith(VALUE) and " = " in template else 0


# Lines of LLVM IR that begin with a word and are no instruction.
_LLVM_TOP_LEVEL = frozenset({"source_filename", "target", "attributes", "declare", "define", "module"})


def operation_counts(text: str, kind: StageKind) -> Counter[str]:
    """How often each operation or instruction occurs: `tt.load`, `add` (LLVM IR), `ld.global.b32`, `HMMA.16816.F32`.

    Names are whole tokens, so `add` never counts `addrspacecast`. Labels, ends of regions, alias definitions and, in
    assembly, directives do not count. Never raises.
    """
    body = read_body(text, kind, frozenset({"locations"}))
    counts = Counter(shape.name for shape in body.shapes)
    for name in list(counts):
        if not name[:1].isalpha() or (kind == "llvm" and name in _LLVM_TOP_LEVEL):
            del counts[name]
    return counts

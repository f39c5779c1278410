"""Printed MLIR with one fact changed: an attribute, a constant, a layout. The text around it stays as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.ir.mlir.attributes import parse_entries
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.sites import factor_sites
from irscope.ir.mlir.tokens import VALUE_NAME
from irscope.ir.mlir.typed import parse_type

__all__ = [
    "DIVISIBILITY",
    "access_at",
    "replace_value",
    "with_constant",
    "with_divisibility",
    "with_factor",
    "with_hint",
    "with_layout_of_access",
    "without_attributes",
]

DIVISIBILITY = "tt.divisibility"
_CONTIGUITY = "tt.contiguity"
_CONVERT = "ttg.convert_layout"


def replace_value(text: str, name: str, other: str) -> str:
    """The text with another name in place of a value's."""
    return VALUE_NAME.sub(lambda match: other if match[0] == name else match[0], text)


def _with_line(text: str, number: int, line: str) -> str:
    lines = text.split("\n")
    lines[number - 1] = line
    return "\n".join(lines)


def _line(module: MlirModule, operation: Operation) -> str:
    return module.raw_lines[operation.first_line - 1]


# ── parameters ────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_attributes(text: str, module: MlirModule, number: int, entries: Mapping[str, str]) -> str | None:
    """The text with these attributes of a parameter of the kernel, in place of those that it has."""
    if module.kernel is None:
        return None
    value, kind, given = module.kernel.parameters[number]
    declared = f"{value.name}: {kind}"
    line = _line(module, module.kernel)
    before = f"{declared} {{{given}}}" if given else declared
    if before not in line:
        return None
    written = ", ".join(f"{name} = {entry}" if entry else name for name, entry in entries.items())
    after = f"{declared} {{{written}}}" if written else declared
    return _with_line(text, module.kernel.first_line, line.replace(before, after, 1))


def with_divisibility(text: str, number: int, divisor: int | str) -> str | None:
    """The text where a parameter of the kernel is a multiple of a number; None if it cannot be found."""
    module = parse_mlir(text)
    if module.kernel is None:
        return None
    others = parse_entries(module.kernel.parameters[number][2])
    others.pop(DIVISIBILITY, None)
    return _with_attributes(text, module, number, {DIVISIBILITY: f"{divisor} : i32", **others})


def without_attributes(text: str, number: int, *, only_alignment: bool) -> str | None:
    """The text without the attributes of a parameter of the kernel, or without its divisibility alone."""
    module = parse_mlir(text)
    if module.kernel is None:
        return None
    given = parse_entries(module.kernel.parameters[number][2]) if only_alignment else {}
    given.pop(DIVISIBILITY, None)
    changed = _with_attributes(text, module, number, given)
    return text if changed is None else changed


def with_constant(text: str, number: int, constant: int | str) -> str | None:
    """The text where a parameter of the kernel is a constant wherever it is used."""
    module = parse_mlir(text)
    if module.kernel is None:
        return None
    value, kind, _ = module.kernel.parameters[number]
    lines = text.split("\n")
    head, end = module.kernel.first_line - 1, module.kernel.lines[-1] - 1
    fresh = f"{value.name}_is"
    for at in range(head + 1, end):
        lines[at] = replace_value(lines[at], value.name, fresh)
    lines[head] += f"\n    {fresh} = arith.constant {constant} : {kind}"
    return "\n".join(lines)


# ── operations ────────────────────────────────────────────────────────────────────────────────────────────────────


def with_hint(
    text: str, operations: Sequence[Operation], module: MlirModule, divisor: int | str, *, contiguous: bool
) -> str:
    """The text with `tl.multiple_of`, and if asked `tl.max_contiguous`, of what some operations of it compute."""
    lines = text.split("\n")
    names = (_CONTIGUITY, DIVISIBILITY) if contiguous else (DIVISIBILITY,)
    for operation in operations:
        head, _, kind = operation.text.rpartition(" : ")
        if "{" in head or not operation.results:
            continue
        rank = len(module.type_of(operation.results[0]).shape) or 1
        entries = ", ".join(f"{name} = dense<{divisor}> : tensor<{rank}xi32>" for name in names)
        line = lines[operation.first_line - 1]
        lines[operation.first_line - 1] = line.replace(operation.text, f"{head} {{{entries}}} : {kind}", 1)
    return "\n".join(lines)


def with_factor(text: str, was: int, constant: int | str) -> str | None:
    """The text with another constant in the products and comparisons that have one; None if none has."""
    module = parse_mlir(text)
    lines = text.split("\n")
    sites = [(one, index) for value, one, index in factor_sites(module) if value == was]
    for number, (one, index) in enumerate(sites):
        kind = module.type_of(one.operands[index])
        head, sign, rest = lines[one.first_line - 1].partition(" = ")
        if not sign or kind.form not in ("integer", "index", "tensor"):
            return None
        value = f"dense<{constant}>" if kind.form == "tensor" else str(constant)
        fresh = f"%factor_{was}_{number}"
        changed = replace_value(rest, one.operands[index].name, fresh)
        lines[one.first_line - 1] = f"    {fresh} = arith.constant {value} : {kind}\n{head} = {changed}"
    return "\n".join(lines) if sites else None


def with_layout_of_access(text: str, number: int, layout: str) -> str | None:
    """The text with another layout of the load or store on a line: what it takes and gives is converted around it.

    None if no access through a tensor of pointers is there, in one line.
    """
    module = parse_mlir(text)
    operation = access_at(module, number)
    if operation is None:
        return None
    kind = parse_type(operation.types)
    line = _line(module, operation)
    space = line[: len(line) - len(line.lstrip())]
    place = f" loc({operation.location})" if operation.location else ""

    def converted(result: str, value: str, element: str, was: str, now: str) -> str:
        tensor = kind.text.replace(str(kind.element), element, 1)
        types = " -> ".join(tensor.replace(kind.encoding, one) for one in (was, now))
        return f"{space}{result} = {_CONVERT} {value} : {types}{place}"

    own, pointer = kind.encoding, str(kind.element)
    pointee = str(kind.element.element) if kind.element is not None else ""
    elements = (pointer, "i1", pointee) if operation.results else (pointer, pointee, "i1")
    names = [value.name for value in operation.operands]
    laid = [f"%relaid_{number}_{index}" for index in range(len(names))]
    rows = [converted(*row, own, layout) for row in zip(laid, names, elements, strict=False)]
    written = operation.text.partition(" = ")[2] if operation.results else operation.text
    for name, other in zip(names, laid, strict=True):
        written = replace_value(written, name, other)
    written = written.replace(own, layout)
    if not operation.results:
        rows.append(f"{space}{written}{place}")
    else:
        rows.append(f"{space}%relaid_{number} = {written}{place}")
        rows.append(converted(operation.results[0].name, f"%relaid_{number}", pointee, layout, own))
    return _with_line(text, number, "\n".join(rows))


def access_at(module: MlirModule, number: int) -> Operation | None:
    """The load or store through a tensor of pointers on a line of the text; None without one, or if it takes more."""
    for operation in module.walk():
        if operation.first_line == number:
            if operation.opcode not in ("load", "store") or len(operation.lines) > 1:
                return None
            kind = parse_type(operation.types)
            is_pointers = kind.form == "tensor" and kind.element is not None and kind.element.form == "pointer"
            return operation if is_pointers and kind.encoding else None
    return None

"""Printed MLIR with one fact changed: an attribute, a constant, a layout. The text around it stays as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.attributes import NUM_STAGES, parse_attribute, parse_entries
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.tokens import VALUE_NAME
from irscope.ir.mlir.types import parse_type
from irscope.model.telling import DIVISIBILITY

# ── Where a source uses an argument or a constant: the operations that a change of either is written into ───────────

SAME = ("splat", "expand_dims", "broadcast", "reshape", "arith.extsi", "arith.extui", "arith.trunci")
"""Operations that keep every element, by their opcodes."""
_DEEPEST = 24
"""Calls within one another."""


@dataclass(frozen=True, slots=True)
class _Sites:
    """Where an argument is used, in the kernel and in the functions that it calls."""

    products: tuple[Operation, ...]
    """What is multiplied by it."""
    remainders: tuple[Operation, ...]
    """What is divided by it, for the remainder."""


def sites_of(module: MlirModule, argument: Value) -> _Sites:
    """The uses of a kernel's argument, itself or spread over a tensor.

    Those of a function that is called with it, too, if it is called with nothing else: a hint there is for all calls.
    """
    operations = [*module.walk()]
    functions = {one.symbol: one for one in operations if one.opcode == "func"}
    calls: dict[str, list[Operation]] = {}
    for one in operations:
        if one.opcode == "call":
            calls.setdefault(one.symbol, []).append(one)
    held = {argument}
    for _ in range(_DEEPEST):
        known = len(held)
        for one in operations:
            if one.opcode in SAME and not held.isdisjoint(one.operands):
                held.update(one.results)
        for name, function in functions.items():
            blocks = function.regions[0].blocks if function.regions else ()
            for index, parameter in enumerate(blocks[0].arguments if blocks else ()):
                given = [one.operands[index : index + 1] for one in calls.get(name, ())]
                if given and all(held.issuperset(one) and one for one in given):
                    held.add(parameter)
        if len(held) == known:
            break
    return _Sites(
        tuple(one for one in operations if one.name == "arith.muli" and not held.isdisjoint(one.operands)),
        tuple(
            one
            for one in operations
            if one.name in ("arith.remsi", "arith.remui") and not held.isdisjoint(one.operands[1:])
        ),
    )


def constant_of(module: MlirModule, value: Value) -> int | None:
    """The integer that a value is everywhere, if a constant makes it, itself or spread over a tensor."""
    made = module.definition(value)
    while made is not None and made.opcode in SAME and made.operands:
        made = module.definition(made.operands[0])
    constant = made.constant if made is not None and made.name == "arith.constant" else None
    return constant if isinstance(constant, int) and not isinstance(constant, bool) else None


def factor_sites(module: MlirModule) -> Iterator[tuple[int, Operation, int]]:
    """(constant, operation, which operand it is) of each product with a constant, comparison with one, and offset.

    A constant that is added to a number counts only where that is an offset: of a tensor, or of a pointer.
    """
    for one in module.walk():
        is_offset = one.opcode == "addptr" or (one.name == "arith.addi" and one.result_types[0].form == "tensor")
        if is_offset or one.name in ("arith.muli", "arith.cmpi"):
            for index, operand in enumerate(one.operands):
                if (value := constant_of(module, operand)) is not None:
                    yield value, one, index


def known_divisor(attributes: str) -> int:
    """What the compiler was told to divide a parameter with some attributes; 1 if nothing."""
    value = parse_attribute(parse_entries(attributes).get(DIVISIBILITY, "1"))
    return value if isinstance(value, int) else 1


_CONTIGUITY = "tt.contiguity"
_CONVERT = "ttg.convert_layout"


def _replace_value(text: str, name: str, other: str) -> str:
    return VALUE_NAME.sub(lambda match: other if match[0] == name else match[0], text)


def _with_line(text: str, number: int, line: str) -> str:
    lines = text.split("\n")
    lines[number - 1] = line
    return "\n".join(lines)


def _line(module: MlirModule, operation: Operation) -> str:
    return module.raw_lines[operation.first_line - 1]


# ── parameters ────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_attributes(text: str, module: MlirModule, number: int, entries: Mapping[str, str]) -> str | None:
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
        lines[at] = _replace_value(lines[at], value.name, fresh)
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
        changed = _replace_value(rest, one.operands[index].name, fresh)
        lines[one.first_line - 1] = f"    {fresh} = arith.constant {value} : {kind}\n{head} = {changed}"
    return "\n".join(lines) if sites else None


_STRICT = {"sle": "slt", "ule": "ult", "sgt": "sge", "ugt": "uge"}
"""Predicate → the one that means the same of a right side that is greater by one."""


def with_strict_comparisons(text: str) -> str | None:
    """The text with `<` in place of `<=`, and `>=` in place of `>`, where the right side is a constant or has a `- 1`.

    None if no comparison is so.
    """
    module = parse_mlir(text)
    lines = text.split("\n")
    is_changed = False
    for number, one in enumerate(module.walk()):
        predicate = str(one.attribute("predicate")) if one.name == "arith.cmpi" else ""
        if predicate not in _STRICT:
            continue
        right, kind = one.operands[1], one.operand_types[1]
        place = one.first_line - 1
        head, _, rest = lines[place].partition(" = ")
        if (value := constant_of(module, right)) is not None:
            number_text = f"dense<{value + 1}>" if kind.form == "tensor" else str(value + 1)
            before = f"    %strict_{number} = arith.constant {number_text} : {kind}\n"
        else:
            one_type = "dense<1>" if kind.form == "tensor" else "1"
            before = (
                f"    %strict_one_{number} = arith.constant {one_type} : {kind}\n"
                f"    %strict_{number} = arith.addi {right.name}, %strict_one_{number} : {kind}\n"
            )
        rest = _replace_value(rest.replace(f"cmpi {predicate},", f"cmpi {_STRICT[predicate]},", 1), right.name,
                              f"%strict_{number}")  # fmt: skip
        lines[place] = f"{before}{head} = {rest}"
        is_changed = True
    return "\n".join(lines) if is_changed else None


_WIDENED = ("arith.extf", "tt.fp_to_fp")
_TURNED = ("tt.trans",)


def with_stages(text: str, line: int, stages: int | str) -> str | None:
    """The text where the loop of a line of Python states how many stages it has; None without one, or if it does."""
    module, locations = parse_mlir(text), read_locations(text, "mlir")
    lines = text.split("\n")
    loops = [one for one in module.walk() if one.name == "scf.for"
             and [frame.line for frame in locations.chain_at(one.first_line)] == [line]]  # fmt: skip
    ends = [one.lines[-1] - 1 for one in loops]
    if not loops or any(not lines[at].lstrip().startswith("} loc(") for at in ends):
        return None
    for at in ends:
        lines[at] = lines[at].replace("}", f"}} {{{NUM_STAGES} = {stages} : i32}}", 1)
    return "\n".join(lines)


def with_narrow_operand(text: str, line: int, column: int) -> str | None:
    """The text where a dot takes what the widening at a place in Python takes; None if that has other uses too."""
    module, locations = parse_mlir(text), read_locations(text, "mlir")
    operations = [*module.walk()]
    place = [(line, column)]
    made = [one for one in operations if one.name in _WIDENED and one.results
            and [(frame.line, frame.column) for frame in locations.chain_at(one.first_line)] == place]  # fmt: skip
    if len(made) != 1:
        return None
    lines = text.split("\n")
    wide, narrow = (str(kind.element) for kind in (made[0].result_types[0], made[0].operand_types[0]))
    open_ = [(made[0].results[0], made[0].operands[0].name)]
    while open_:
        value, name = open_.pop()
        for one in operations:
            if value not in one.operands:
                continue
            at = one.first_line - 1
            head, _, kinds = lines[at].rpartition(" : ")
            target, sign, body = head.partition(" = ")
            if one.name in _TURNED and one.results:
                kinds = kinds.replace(f"x{wide}>", f"x{narrow}>")
                open_.append((one.results[0], one.results[0].name))
            elif one.kind == "dot" and value in one.operands[:2] and kinds.count(" * ") == 1:
                sides = kinds.split(" * ")
                # Both operands may be this one.
                for side in (0, 1):
                    if one.operands[side] == value:
                        given, arrow, rest = sides[side].partition(" -> ")
                        sides[side] = f"{given.replace(f'x{wide}>', f'x{narrow}>')}{arrow}{rest}"
                kinds = " * ".join(sides)
            else:
                return None
            lines[at] = f"{target}{sign}{_replace_value(body, value.name, name)} : {kinds}"
    return "\n".join(lines)


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
        written = _replace_value(written, name, other)
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

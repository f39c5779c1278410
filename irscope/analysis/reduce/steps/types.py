"""Types that get smaller or fewer, each everywhere at once, and attributes that are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.program import Op, Program, resolved
from irscope.analysis.reduce.steps.step import Edit
from irscope.ir.mlir.operations import opcode_of
from irscope.ir.mlir.tokens import ALIAS, reachable

__all__ = ["Attributes", "Elements", "Extents", "Layouts", "Properties"]

# tensor<128x64x…   memdesc<1x128x64x…   and ", 3x128x64>" of a memory descriptor's allocation
_SHAPE = re.compile(r"(?P<head>\b(?:tensor|memdesc|tensordesc)<)(?P<sizes>(?:\d+x)+)")
_ALLOCATED = re.compile(r"(?P<head>, )(?P<sizes>\d+(?:x\d+)+)(?=>)")
# f16   bf16   f8E5M2   i64
_ELEMENT = re.compile(r"(?:(?<=x)|(?<![\w.%#@\"=]))(?:b?f\d+\w*|i\d+)(?![\w.])")
_CASTS = (
    "arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci", "arith.bitcast", "arith.index_cast",
    "fp_to_fp", "bitcast", "convert_layout", "broadcast", "reshape", "expand_dims",
)  # fmt: skip
_LARGEST = 1 << 20


def _rewrite(program: Program, rewritten: Callable[[str], str]) -> None:
    """Change the text of all types, wherever it stands."""
    program.types = {value: rewritten(text) for value, text in program.types.items()}
    program.aliases = {name: rewritten(text) for name, text in program.aliases.items()}
    for one in program.walk():
        one.properties = {name: rewritten(text) for name, text in one.properties.items()}
        one.attributes = {name: rewritten(text) for name, text in one.attributes.items()}


def _fold(program: Program) -> None:
    """Leave out casts whose operand has the type of their result by now."""
    table: dict[int, int] = {}
    for _, _, block in program.blocks():
        kept: list[Op] = []
        for one in block.operations:
            if opcode_of(one.name) in _CASTS and len(one.operands) == len(one.results) == 1:
                (given,), (result,) = one.operands, one.results
                if program.types[given] == program.types[result]:
                    table[result] = given
                    continue
            kept.append(one)
        block.operations = kept
    program.replace_uses(lambda value: resolved(table, value))


def _pair(edit: Edit) -> tuple[str, str]:
    one, other = edit if isinstance(edit, tuple) else (edit, edit)
    return str(one), str(other)


def _in_use(program: Program) -> list[str]:
    """The types of the values that there are."""
    values = [value for one in program.walk() for value in one.results]
    values += [value for _, _, block in program.blocks() for value in block.arguments]
    return [program.types[value] for value in values]


@dataclass(frozen=True, slots=True)
class Extents:
    """Gives tensors smaller extents: one extent, wherever it stands, becomes a smaller power of two."""

    name: str = "extents"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(extent, smaller one), the greatest extent first and the least in its place."""
        found: set[int] = set()
        for text in _in_use(program):
            for match in (*_SHAPE.finditer(text), *_ALLOCATED.finditer(text)):
                found.update(int(size) for size in match["sizes"].split("x") if size)
        return [
            (extent, 1 << power)
            for extent in sorted(found, reverse=True)
            if extent <= _LARGEST
            for power in range((extent - 1).bit_length())
        ]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Give each chosen extent the least size that is chosen for it."""
        sizes: dict[str, str] = {}
        for extent, size in sorted(map(_pair, chosen), key=lambda pair: int(pair[1]), reverse=True):
            sizes[extent] = size

        def shorter(match: re.Match[str]) -> str:
            return match["head"] + "x".join(sizes.get(size, size) for size in match["sizes"].split("x"))

        _rewrite(program, lambda text: _ALLOCATED.sub(shorter, _SHAPE.sub(shorter, text)))
        for one in program.walk():
            if (
                opcode_of(one.name) == "make_range"
                and (shape := _SHAPE.match(program.types[one.results[0]])) is not None
            ):
                start = int(one.properties.get("start", "0").partition(" ")[0])
                end = start + int(shape["sizes"].removesuffix("x"))
                one.properties["end"] = f"{end} : i32"
        _fold(program)


@dataclass(frozen=True, slots=True)
class Elements:
    """Has f32 and i32 stand in for other element types."""

    name: str = "element types"

    def edits(self, program: Program) -> Sequence[Edit]:
        """The types other than f32, i32 and i1."""
        found = (kind for text in _in_use(program) for kind in _ELEMENT.findall(text))
        return [kind for kind in dict.fromkeys(found) if kind not in ("f32", "i32", "i1")]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Replace the chosen types."""
        names = {str(kind): "i32" if str(kind).startswith("i") else "f32" for kind in chosen}
        _rewrite(program, lambda text: _ELEMENT.sub(lambda match: names.get(match[0], match[0]), text))
        _fold(program)


@dataclass(frozen=True, slots=True)
class Layouts:
    """Has one layout stand in for another."""

    name: str = "layouts"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(layout, the one that stands in for it), by the names of their aliases."""
        named = reachable((name for text in _in_use(program) for name in ALIAS.findall(text)), program.aliases)
        names = [name for name in program.aliases if name in named and "<" in program.aliases[name]]
        return [
            (one, other)
            for one in reversed(names)
            for other in names
            if one != other and _rank(program.aliases[one]) == _rank(program.aliases[other])
        ]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Replace the chosen layouts."""
        table: dict[str, str] = {}
        for one, other in sorted(map(_pair, chosen)):
            if other not in table:
                table.setdefault(one, other)
        _rewrite(program, lambda text: ALIAS.sub(lambda match: table.get(match[0], match[0]), text))
        _fold(program)


def _rank(definition: str) -> int:
    """The number of dimensions that a layout's text says it has; 0 where it says none."""
    order = re.search(r"(?:order|warpsPerCTA|sizePerThread) = \[([\d, ]*)\]", definition)
    return order[1].count(",") + 1 if order is not None else 0


_STRUCTURAL = ("sym_name", "function_type", "operandSegmentSizes", "value", "callee")
"""Properties that an operation cannot do without, or that say what it is."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Leaves out attributes that are no properties: of operations, the module, and arguments of functions."""

    name: str = "attributes"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(operation or argument, attribute)."""
        found: list[Edit] = [(one.key, name) for one in program.walk() for name in one.attributes]
        kept = {value for one in program.functions for value in one.regions[0][0].arguments}
        return found + [
            (value, name) for value, rows in program.argument_attributes.items() if value in kept for name in rows
        ]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen attributes out."""
        for one in program.walk():
            one.attributes = {name: text for name, text in one.attributes.items() if (one.key, name) not in chosen}
        for value, rows in program.argument_attributes.items():
            program.argument_attributes[value] = {
                name: text for name, text in rows.items() if (value, name) not in chosen
            }


@dataclass(frozen=True, slots=True)
class Properties:
    """Leaves out properties: those of one name on all operations of one name."""

    name: str = "properties"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(operation's name, property)."""
        rows = [(one.name, name) for one in program.walk() for name in one.properties if name not in _STRUCTURAL]
        return list(dict.fromkeys(rows))

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen properties out."""
        for one in program.walk():
            one.properties = {name: text for name, text in one.properties.items() if (one.name, name) not in chosen}

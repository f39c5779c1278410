"""Gives the block arguments of a parsed `source` the locations that the printed text does not hold.

MLIR prints `scf.for %k = … iter_args(%acc_50 = %acc)` without the locations of %k and %acc_50. MLIR gave %k the loop's
location and %acc_50 that of the value it starts from, and Triton's front end put the Python variable's name on each.
Later stages print values by that name, and the debug information of what they become uses the location. Set again,
every later stage comes out as in the first compile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from irscope.ir.locations import read_locations
from irscope.record import triton_api

# %acc_49 = scf.for %start = %0 to %1 step %2 iter_args(%acc_50 = %acc) -> (tensor<32x128xf32>)  : i32 {
# %5:2 = scf.while (%i = %c0, %j = %x) : (i32, f32) -> (i32, f32) {
_LOOP = re.compile(
    r"^\s*(?:%[\w$.:, %-]+ = )?scf\.(?:for (?:unsigned )?(?P<induction>%[\w$.-]+) = |while )(?P<rest>.*)\{\s*$"
)
_BOUND = re.compile(r"(%[\w$.-]+) = ")
# acc_50, as MLIR makes "acc" unique
_NUMBERED = re.compile(r"^(?P<name>.*\D)_\d+$")

_MADE_UP = re.compile(r"^(?:arg\d+|\d+)$")


@dataclass(slots=True)
class _Loop:
    """One loop of the text."""

    names: list[str]
    file: str
    line: int
    column: int


@dataclass(slots=True)
class _Node:
    """One operation of the module with those it encloses, in their order."""

    name: str
    operation: Any
    blocks: list[Any] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


def restore_block_arguments(module: Any, text: str) -> None:
    """Set the locations of the loops' block arguments from the text that the module was parsed from.

    A text whose loops cannot be matched with the module's is left as it is: then only names differ.
    """
    loops = list(_loops(text))
    nodes = [node for node in _in_print_order(module) if node.name in ("scf.for", "scf.while")]
    if len(loops) != len(nodes):
        return
    builder = triton_api.location_builder(module)
    for loop, node in zip(loops, nodes, strict=True):
        if not node.blocks or node.blocks[0].get_num_arguments() != len(loop.names):
            continue
        # An scf.for has its bounds and its step before the values it starts from, and the induction variable as well.
        first_start = 2 if node.name == "scf.for" else 0
        for index, name in enumerate(loop.names):
            if node.name == "scf.for" and index == 0:
                place = builder.create_loc(loop.file, loop.line, loop.column)
            else:
                place = node.operation.get_operand(first_start + index).get_loc()
            named = place if _MADE_UP.match(name) else builder.create_name_loc(name, place)
            node.blocks[0].get_argument(index).set_loc(named)


def _loops(text: str) -> Iterator[_Loop]:
    locations = read_locations(text, "mlir")
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        if (match := _LOOP.match(line)) is not None:
            rest = match["rest"]
            bound = rest[rest.find("iter_args(") :] if match["induction"] else rest
            names = [match["induction"]] if match["induction"] else []
            if not match["induction"] or "iter_args(" in rest:
                names += _BOUND.findall(bound.partition("->")[0])
            chain = locations.chain_at(number)
            if chain:
                yield _Loop([_base(name[1:], seen) for name in names], chain[0].file, chain[0].line, chain[0].column)
        seen.update(name[1:] for name in re.findall(r"%[\w$.-]+", line.partition(" = ")[0]))


def _base(name: str, seen: set[str]) -> str:
    """The Python name behind an SSA name: MLIR numbers a name only where another value has it already."""
    match = _NUMBERED.match(name)
    return match["name"] if match is not None and match["name"] in seen else name


def _in_print_order(module: Any) -> Iterator[_Node]:
    """The operations in the order they are printed; the walk itself visits what an operation encloses before it."""
    pending: dict[int, list[_Node]] = {}
    blocks: dict[int, dict[int, Any]] = {}

    def visit(operation: Any) -> None:
        node = _Node(operation.get_name(), operation)
        for index in range(operation.get_num_regions()):
            region = operation.get_region(index).id()
            node.children += pending.pop(region, [])
            node.blocks += blocks.get(region, {}).values()
        block = operation.get_block()
        # The module itself stands in no block.
        if block is None:
            pending.setdefault(0, []).append(node)
            return
        parent = block.get_parent()
        region_id = parent.id() if parent is not None else 0
        blocks.setdefault(region_id, {})[block.id()] = block
        pending.setdefault(region_id, []).append(node)

    module.walk(visit)

    def flat(nodes: list[_Node]) -> Iterator[_Node]:
        for node in nodes:
            yield node
            yield from flat(node.children)

    for nodes in pending.values():
        yield from flat(nodes)

"""Restores the locations of a parsed `source`'s block arguments, which the printed text does not have.

MLIR prints `scf.for %k = … iter_args(%acc_50 = %acc)` without the locations of %k and %acc_50. MLIR gave %k the loop's
location and %acc_50 that of its initial value, and Triton's front end added the Python variable's name to each. Later
stages print values by that name, and their debug information uses the location: with both restored, every later stage
is the same as in the first compile.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from irscope.ir.locations.stages import Frame, read_locations
from irscope.ir.mlir.reader import Operation, Region, parse_mlir
from irscope.record.triton import api as triton_api

# acc_50, as MLIR makes "acc" unique
_NUMBERED = re.compile(r"^(?P<name>.*\D)_\d+$")

_LOOPS = ("scf.for", "scf.while")
_MADE_UP = re.compile(r"^(?:arg\d+|\d+)$")


@dataclass(slots=True)
class _Node:
    """One operation of the module with the operations in its regions, in order."""

    name: str
    operation: Any
    blocks: list[Any] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


def restore_block_arguments(module: Any, text: str) -> None:
    """Set the locations of the loops' block arguments from the text that the module was parsed from.

    If the text's loops do not match the module's, nothing is set, and only names differ.
    """
    loops = list(_loops(text))
    nodes = [node for node in _in_print_order(module) if node.name in _LOOPS]
    if len(loops) != len(nodes):
        return
    builder = triton_api.location_builder(module)
    for (names, frame), node in zip(loops, nodes, strict=True):
        if not node.blocks or node.blocks[0].get_num_arguments() != len(names):
            continue
        # An scf.for has its bounds and its step before the initial values, and an induction variable.
        first_start = 2 if node.name == "scf.for" else 0
        for index, name in enumerate(names):
            if node.name == "scf.for" and index == 0:
                place = builder.create_loc(frame.file, frame.line, frame.column)
            else:
                place = node.operation.get_operand(first_start + index).get_loc()
            named = place if _MADE_UP.match(name) else builder.create_name_loc(name, place)
            node.blocks[0].get_argument(index).set_loc(named)


def _loops(text: str) -> Iterator[tuple[list[str], Frame]]:
    """(names of the block arguments in Python, place) of each loop of a text, in the order of the text."""
    locations = read_locations(text, "mlir")
    module = parse_mlir(text)
    waiting: list[tuple[Operation, frozenset[str]]] = [(one, frozenset()) for one in reversed(module.operations)]
    while waiting:
        operation, outer = waiting.pop()
        first = next((block for region in operation.regions for block in region.blocks[:1]), None)
        chain = locations.chain_at(operation.first_line)
        if operation.name in _LOOPS and first is not None and chain:
            seen, names = set(outer), list[str]()
            for argument in first.arguments:
                names.append(_base(argument.name[1:], seen))
                seen.add(argument.name[1:])
            yield names, chain[0]
        for region in reversed(operation.regions):
            known = outer | _names_of(region)
            waiting.extend((one, known) for block in reversed(region.blocks) for one in reversed(block.operations))


def _names_of(region: Region) -> frozenset[str]:
    """The names of a region's values, without those of regions within it, which MLIR names later."""
    values = (
        value
        for block in region.blocks
        for value in (*block.arguments, *(result for operation in block.operations for result in operation.results))
    )
    return frozenset(value.name[1:].partition("#")[0] for value in values)


def _base(name: str, seen: Container[str]) -> str:
    """The Python name in an SSA name: MLIR adds a number only if another value has that name already."""
    match = _NUMBERED.match(name)
    return match["name"] if match is not None and match["name"] in seen else name


def _in_print_order(module: Any) -> Iterator[_Node]:
    """The operations in the order they are printed; the walk visits the operations in a region before their parent."""
    pending: dict[int, list[_Node]] = {}
    blocks: dict[int, dict[int, Any]] = {}

    def visit(operation: Any) -> None:
        node = _Node(operation.get_name(), operation)
        for index in range(operation.get_num_regions()):
            region = operation.get_region(index).id()
            node.children += pending.pop(region, [])
            node.blocks += blocks.get(region, {}).values()
        block = operation.get_block()
        # The module itself is in no block.
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

"""The values that loops, branches and calls pass to the arguments of blocks and to results."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.ir.mlir.model import Block, MlirModule, Operation, Value


class Passing:
    def __init__(self, module: MlirModule) -> None:
        self._module = module
        self._calls = [operation for operation in module.walk() if operation.kind == "call"]
        self._functions = {one.symbol: one for one in module.walk() if one.kind == "function"}

    def to_result(self, operation: Operation, place: int) -> Iterator[Value]:
        """What is passed to a result of a call, a branch or a loop."""
        source = self._functions.get(operation.symbol) if operation.kind == "call" else operation
        for end in _ends_of(source) if source is not None else ():
            skip = 1 if end.name == "scf.condition" else 0
            yield from end.operands[place + skip : place + skip + 1]
        if operation.name == "scf.for":
            yield from operation.operands[3 + place : 4 + place]

    def to_argument(self, block: Block, place: int) -> Iterator[Value]:
        """What is passed to the argument of a block."""
        parent = self._module.parents.get(block.arguments[place].number)
        if parent is None:
            return
        for region in parent.regions:
            for other in region.blocks:
                ends = (branch for operation in other.operations[-1:] for branch in operation.branches)
                for label, values in ends:
                    if label == block.label:
                        yield from values[place : place + 1]
        if parent.kind == "function":
            for call in self._calls:
                if call.symbol == parent.symbol:
                    yield from call.operands[place : place + 1]
        elif parent.name == "scf.for":
            if place:
                yield from parent.operands[2 + place : 3 + place]
                for end in _ends_of(parent):
                    yield from end.operands[place - 1 : place]
        elif parent.name == "scf.while":
            is_first = block is parent.regions[0].blocks[0]
            if is_first:
                yield from parent.operands[place : place + 1]
            for end in _ends_of(parent):
                if (end.name == "scf.condition") != is_first:
                    yield from end.operands[place + (0 if is_first else 1) :][:1]
        elif len(parent.operands) == len(block.arguments):
            yield parent.operands[place]
        else:
            yield from parent.operands


def _ends_of(operation: Operation) -> Iterator[Operation]:
    """The operations that end the blocks of its regions and return to it."""
    for region in operation.regions:
        for block in region.blocks:
            for last in block.operations[-1:]:
                if last.kind in ("yield", "return"):
                    yield last

"""How many floating-point operations the dots of a launch make, where its IR and its arguments say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irscope.ir.mlir.reader import MlirModule, Operation, Value, parse_mlir

_TORCH_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
_AXES = {"x": 0, "y": 1, "z": 2}

_BINARY: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda one, other: one + other,
    "arith.subi": lambda one, other: one - other,
    "arith.muli": lambda one, other: one * other,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.minui": min,
    "arith.maxui": max,
    # Towards zero, as the hardware divides; what is divided here is never negative.
    "arith.divsi": lambda one, other: one // other,
    "arith.divui": lambda one, other: one // other,
    "arith.ceildivsi": lambda one, other: -(-one // other),
    "arith.remsi": lambda one, other: one % other,
    "arith.remui": lambda one, other: one % other,
}
_SAME = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast")


@dataclass(frozen=True, slots=True)
class _DotFlops:
    """The floating-point operations of a launch's dots."""

    flops: int | None
    """Two for each multiplication and addition, of whole tiles: what lies outside of a tensor counts too."""
    why_not: str = ""
    """Why they are not known, or an empty string."""
    dtype: str = ""
    """Type of the dots' operands, as torch names it; an empty string if there is none, or several."""


def count_dot_flops(text: str, scalars: Mapping[str, float], grid: tuple[int, int, int]) -> _DotFlops:
    """Count the dots of a launch.

    Args:
        text: the kernel's TTIR.
        scalars: parameter → value, for its numbers.
        grid: program instances along x, y and z.

    Counted is only what every program does alike: a dot under a condition, or in a loop whose turns depend on the
    program or on memory, makes the answer None.
    """
    module = parse_mlir(text)
    function = module.kernel
    if function is None or not any(operation.opcode in ("dot", "dot_scaled") for operation in function.walk()):
        return _DotFlops(None, "it has no dot")
    if any(operation.opcode == "dot_scaled" for operation in function.walk()):
        return _DotFlops(None, "it has a scaled dot")
    blocks = [block for region in function.regions for block in region.blocks]
    if len(blocks) > 1:
        return _DotFlops(None, "it returns early under a condition")
    parameters = {argument.number for block in blocks for argument in block.arguments}
    counter = _Counter(module, scalars, grid, parameters)
    flops = counter.count(function)
    dtype = counter.dtypes.pop() if len(counter.dtypes) == 1 else ""
    if flops is None:
        return _DotFlops(None, counter.why_not, dtype)
    programs = grid[0] * grid[1] * grid[2]
    return _DotFlops(flops * programs, "", dtype)


class _Counter:
    def __init__(
        self, module: MlirModule, scalars: Mapping[str, float], grid: tuple[int, int, int], parameters: set[int]
    ) -> None:
        self._module = module
        self._scalars = scalars
        self._grid = grid
        self._parameters = parameters
        self.dtypes: set[str] = set()
        self.why_not = ""

    def count(self, operation: Operation) -> int | None:
        """Of one program, within an operation."""
        total = 0
        for inner in operation.children:
            one = self._one(inner)
            if one is None:
                return None
            total += one
        return total

    def _one(self, operation: Operation) -> int | None:
        if operation.opcode == "dot":
            return self._dot(operation)
        if not operation.regions or not any(inner.opcode == "dot" for inner in operation.walk()):
            return 0
        if operation.name != "scf.for":
            self.why_not = f"a dot stands in {operation.name}"
            return None
        turns = self._turns(operation)
        if turns is None:
            self.why_not = "how often a loop with a dot turns depends on the program or on memory"
            return None
        once = self.count(operation)
        return None if once is None else turns * once

    def _turns(self, loop: Operation) -> int | None:
        first, end, step = (self._value(operand, 0) for operand in loop.operands[:3])
        if first is None or end is None or not step or step < 0:
            return None
        return max(0, -(-(end - first) // step))

    def _dot(self, operation: Operation) -> int | None:
        types = operation.operand_types
        if len(types) < 3 or any(not kind.shape for kind in types[:3]):
            self.why_not = "a dot's types cannot be read"
            return None
        left, out = types[0].shape, types[2].shape
        self.dtypes.add(_TORCH_NAMES.get(str(types[0].element), ""))
        flops = 2 * left[-1]
        for size in out:
            flops *= size
        return flops

    def _value(self, value: Value, depth: int) -> int | None:
        """A whole number that is the same in every program; None where that is not known."""
        if value.number in self._parameters:
            known = self._scalars.get(value.name.lstrip("%"))
            return int(known) if known is not None and known == int(known) else None
        operation = self._module.definition(value)
        if operation is None or value not in operation.results or depth > 64:
            return None
        if isinstance(constant := operation.constant, int) and not isinstance(constant, bool):
            return constant
        if operation.opcode == "get_num_programs":
            axis = _AXES.get(str(operation.attribute("axis")))
            return self._grid[axis] if axis is not None else None
        inputs = [self._value(operand, depth + 1) for operand in operation.operands]
        known = [one for one in inputs if one is not None]
        if len(known) < len(inputs):
            return None
        if operation.name in _SAME and len(known) == 1:
            return known[0]
        if operation.name in _BINARY and len(known) == 2:
            if "div" in operation.name or "rem" in operation.name:
                return _BINARY[operation.name](*known) if known[1] > 0 and known[0] >= 0 else None
            return _BINARY[operation.name](*known)
        return None

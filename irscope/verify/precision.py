"""Whether one text computes floats in fewer bits than another, which ring arithmetic does not see."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import Type

_COMPUTING = ("arithmetic", "dot", "reduction", "scan", "atomic")
_INPUTS = ("ieee", "bf16x6", "tf32x3", "bf16x3", "tf32")
"""How a dot reads float32, from the most precise (MLIR's `InputPrecisionAttr` of Triton)."""


def lowered_precision(before: str, after: str) -> str:
    """What the second text of TTIR or TTGIR computes in fewer bits than the first, in words; empty for nothing.

    A float type that the first has nowhere, narrower than its widest; an operation whose narrowest result is narrower
    than in the first, of an operation that the first has not, than any; a dot that reads float32 less precisely.
    """
    left, right = _Floats(parse_mlir(before)), _Floats(parse_mlir(after))
    for name, bits in sorted(right.types.items()):
        if name not in left.types and bits < max(left.types.values(), default=0):
            return f"values of {name}, which the first has not"
    for opcode, (bits, name) in sorted(right.narrowest.items()):
        least, was = left.narrowest.get(opcode, min(left.narrowest.values(), default=(0, "")))
        if bits < least:
            return f"{opcode} in {name}, in the first in {was} or more"
    if right.inputs > left.inputs:
        return f"a dot reads float32 as {_INPUTS[right.inputs]}, in the first as {_INPUTS[left.inputs]}"
    return ""


class _Floats:
    def __init__(self, module: MlirModule) -> None:
        self.types: dict[str, int] = {}
        """Of any result: its name, and its bits."""
        self.narrowest: dict[str, tuple[int, str]] = {}
        """Opcode of an operation that computes floats → the bits and the name of its narrowest result."""
        self.inputs = 0
        for operation in module.walk():
            for kind in _float_results(operation):
                self.types[kind.text] = kind.bits
                if operation.kind in _COMPUTING:
                    mine = (kind.bits, kind.text)
                    self.narrowest[operation.opcode] = min(mine, self.narrowest.get(operation.opcode, mine))
            if operation.opcode == "dot" and any("f32" in str(one) for one in operation.operand_types[:2]):
                precision = str(operation.attribute("inputPrecision") or "ieee")
                self.inputs = max(self.inputs, _INPUTS.index(precision) if precision in _INPUTS else 0)


def _float_results(operation: Operation) -> Iterator[Type]:
    for one in operation.result_types:
        kind = one.element if one.element is not None and one.form != "pointer" else one
        if kind.form == "float":
            yield kind

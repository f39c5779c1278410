"""What stands in for a value whose operation goes: an operand, an argument of the function, or a constant."""

from __future__ import annotations

import re
from typing import Literal

from irscope.analysis.reduce.program import Op, Program, resolved

__all__ = ["Replacements", "StandIn", "constant"]

StandIn = Literal["argument", "operand", "constant"]
"""A new argument of the function; an operand of the operation of the same type; a constant. The latter two fall back to
the first where there is none."""

# i32   f16   bf16   f8E4M3FN   index
_NUMBER = re.compile(r"(?:i\d+|index|(?P<float>b?f\d+\w*|tf32))$")
# tensor<128x64xf16, #blocked>
_TENSOR = re.compile(r"tensor<(?:\d+x)*(?P<element>[a-z]\w*)(?:, .*)?>$", re.DOTALL)


def constant(program: Program, kind: str) -> Op | None:
    """A constant 0 of a type of numbers, or of tensors of them; None for another type."""
    element = kind if (tensor := _TENSOR.match(kind)) is None else tensor["element"]
    if (number := _NUMBER.match(element)) is None:
        return None
    zero = "0.000000e+00" if number["float"] else "false" if element == "i1" else "0"
    value = f"dense<{zero}> : {kind}" if tensor else zero if element == "i1" else f"{zero} : {kind}"
    result = program.new_value(kind)
    program.next_number += 1
    return Op(program.next_number - 1, "arith.constant", [result], properties={"value": value})


class Replacements:
    """Values that are replaced, in one edit of a program."""

    def __init__(self, program: Program, stand_in: StandIn) -> None:
        self.program = program
        self.stand_in = stand_in
        self.table: dict[int, int] = {}

    def replace(self, operation: Op, used: dict[int, int], function: Op | None) -> list[Op]:
        """Have other values stand in for the results of an operation that goes; returns constants to put in its place.

        `used`: the values that are used yet, and how often.
        """
        made: list[Op] = []
        for result in operation.results:
            if used.get(result):
                self.table[result] = self._stand_in_of(result, operation, function, made)
        return made

    def _stand_in_of(self, value: int, operation: Op, function: Op | None, made: list[Op]) -> int:
        kind = self.program.types[value]
        if self.stand_in == "operand":
            same = (one for one in operation.operands if self.program.types[one] == kind)
            if (found := next(same, None)) is not None:
                return found
        if self.stand_in == "constant" and (stand_in := constant(self.program, kind)) is not None:
            made.append(stand_in)
            return stand_in.results[0]
        if function is None:
            return value
        return self.program.new_argument(function, kind)

    def finish(self) -> None:
        """Replace all uses."""
        if self.table:
            self.program.replace_uses(lambda value: resolved(self.table, value))

"""Which arguments keep an access narrow: those whose divisibility the compiler was not told."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.layout.thread_map import ThreadMap
from irscope.memory.addresses.arguments import known_divisor
from irscope.memory.addresses.evaluate import evaluate
from irscope.memory.addresses.held import Held, Programs
from irscope.memory.addresses.kinds import kind_of
from irscope.memory.addresses.lanes import widest_vector
from irscope.memory.addresses.numbers import Source, atom

__all__ = ["limiting_arguments"]

_ENOUGH = 16
"""The divisor that Triton specialises on."""


def limiting_arguments(module: MlirModule, operation: Operation, threads: ThreadMap, wanted: int) -> tuple[str, ...]:
    """The arguments without which being multiples of 16 an access cannot have `wanted` bits a lane.

    The kernel is evaluated as the compiler sees it, each argument being any multiple of its known divisor; and then as
    if one after another were a multiple of 16. Empty if more is in the way than arguments.
    """
    kernel = module.kernel
    if kernel is None:
        return ()
    divisors = {
        value.name: known_divisor(attributes) for value, kind, attributes in kernel.parameters if kind_of(kind).bits > 1
    }
    loose = [name for name, divisor in divisors.items() if divisor % _ENOUGH]

    def width(aligned: Iterable[str]) -> int:
        return _width(module, operation, threads, {**divisors, **dict.fromkeys(aligned, _ENOUGH)})

    if not loose or width(loose) < wanted:
        return ()
    return tuple(name for name in loose if width(other for other in loose if other != name) < wanted)


def _width(module: MlirModule, operation: Operation, threads: ThreadMap, divisors: dict[str, int]) -> int:
    """The bits of the access's widest vector, if its arguments have these divisors."""
    kernel = module.kernel
    held: dict[Value, Held] = {}
    for value, kind, _ in kernel.parameters if kernel is not None else ():
        if value.name in divisors:
            held[value] = atom(Source("argument", value.name), kind_of(kind).bits, divisors[value.name])
    for execution in evaluate(module, held, Programs()).executions:
        if execution.operation is operation and not execution.is_box:
            bits = max(execution.element_bits, 1)
            most = max(128 // bits, 1)
            given = (threads, execution.addresses, execution.mask, max(bits // 8, 1))
            return bits * widest_vector(*given, most, aligned=True)
    return 0

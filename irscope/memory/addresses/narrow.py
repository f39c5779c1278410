"""Limits: the arguments that keep accesses narrow, because the compiler was not told their divisibility."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irscope.ir.mlir.model import MlirModule, Operation
from irscope.layout.thread_map import ThreadMap
from irscope.memory.addresses.accesses import Execution
from irscope.memory.addresses.arguments import known_divisor
from irscope.memory.addresses.evaluate import evaluate
from irscope.memory.addresses.held import Programs
from irscope.memory.addresses.kinds import kind_of
from irscope.memory.addresses.lanes import widest_vector
from irscope.memory.addresses.numbers import Source, atom

__all__ = ["Limits"]

_ENOUGH = 16
"""The divisor that Triton specialises on."""
_WIDEST_BITS = 128


class Limits:
    """What the compiler knows of a kernel: its arguments are any multiples of their known divisors."""

    def __init__(self, module: MlirModule) -> None:
        self._module = module
        self._parameters = [
            (value, kind_of(kind).bits, known_divisor(attributes))
            for value, kind, attributes in (module.kernel.parameters if module.kernel is not None else ())
            if kind_of(kind).bits > 1
        ]
        self._known: dict[frozenset[str], Mapping[int, Execution]] = {}

    def arguments(self, operation: Operation, threads: ThreadMap, wanted: int) -> tuple[str, ...]:
        """The arguments without which being multiples of 16 an access cannot have `wanted` bits a lane.

        Empty if more is in the way than arguments.
        """
        execution = self._with(()).get(operation.first_line)
        if execution is None:
            return ()
        depends = {source.text for source in execution.addresses.sources if source.kind == "argument"}
        if execution.mask is not None:
            depends |= {source.text for source in execution.mask.sources if source.kind == "argument"}
        loose = [value.name for value, _, divisor in self._parameters if divisor % _ENOUGH and value.name in depends]

        def is_wide(aligned: Iterable[str]) -> bool:
            found = self._with(aligned).get(operation.first_line)
            return found is not None and _width(found, threads) >= wanted

        if not loose or not is_wide(loose):
            return ()
        return tuple(name for name in loose if not is_wide(other for other in loose if other != name))

    def _with(self, aligned: Iterable[str]) -> Mapping[int, Execution]:
        """The first execution of each line, if some arguments were multiples of 16."""
        key = frozenset(aligned)
        if key not in self._known:
            held = {
                value: atom(Source("argument", value.name), bits, _ENOUGH if value.name in key else divisor)
                for value, bits, divisor in self._parameters
            }
            executions = evaluate(self._module, held, Programs()).executions
            self._known[key] = {one.operation.first_line: one for one in reversed(executions)}
        return self._known[key]


def _width(execution: Execution, threads: ThreadMap) -> int:
    """The bits of the widest vector."""
    bits = max(execution.element_bits, 1)
    given = (threads, execution.addresses, execution.mask, max(bits // 8, 1))
    return bits * widest_vector(*given, max(_WIDEST_BITS // bits, 1), aligned=True)

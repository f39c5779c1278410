"""Limits: what keeps accesses narrow: arguments whose divisibility the compiler was not told, and constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from irscope.ir.mlir.edits import factor_sites, known_divisor
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.mlir.types import parse_type
from irscope.layout.maps import ThreadMap
from irscope.machine.control import Step
from irscope.machine.loops import Runner
from irscope.machine.noted import AccessExecution, Held
from irscope.machine.numbers import Number, Source, as_number, atom, bits_of, constant
from irscope.machine.programs import Programs
from irscope.machine.values import Array
from irscope.memory.addresses.counter import strides_of, widest_vector

_ENOUGH = 16
"""The divisor that Triton specialises on."""
_WIDEST_BITS = 128
_PRODUCTS = ("arith.muli", "arith.cmpi")
_Factors = tuple[tuple[int, int], ...]


class Limits:
    """What the compiler knows of a kernel: its arguments are any multiples of their known divisors."""

    def __init__(self, module: MlirModule) -> None:
        self._module = module
        self._parameters = [
            (value, bits_of(parse_type(kind)), known_divisor(attributes))
            for value, kind, attributes in (module.kernel.parameters if module.kernel is not None else ())
            if bits_of(parse_type(kind)) > 1
        ]
        self._loose = frozenset(value.name for value, _, divisor in self._parameters if divisor % _ENOUGH)
        self._known: dict[tuple[frozenset[str], frozenset[str], _Factors], Mapping[int, AccessExecution]] = {}

    def arguments(self, operation: Operation, threads: ThreadMap, wanted: int) -> tuple[str, ...]:
        """The arguments without which being multiples of 16 an access cannot have `wanted` bits a lane.

        Empty if more is in the way than arguments.
        """
        loose = [name for name, divisor in self.depends(operation) if divisor % _ENOUGH]

        def is_wide(aligned: Iterable[str]) -> bool:
            return self.width(operation, threads, aligned) >= wanted

        if not loose or not is_wide(loose):
            return ()
        return tuple(name for name in loose if not is_wide(other for other in loose if other != name))

    def depends(self, operation: Operation, *, mask_alone: bool = False) -> tuple[tuple[str, int], ...]:
        """(argument, its known divisor) of those that an access's addresses and mask, or its mask alone, depend on."""
        execution = self._as_told.get(operation.first_line)
        if execution is None:
            return ()
        sources = execution.mask.sources if execution.mask is not None else frozenset[Source]()
        if not mask_alone:
            sources |= execution.addresses.sources
        depends = {source.text for source in sources if source.kind == "argument"}
        return tuple((value.name, divisor) for value, _, divisor in self._parameters if value.name in depends)

    def width(
        self,
        operation: Operation,
        threads: ThreadMap,
        aligned: Iterable[str] = (),
        ones: Iterable[str] = (),
        *,
        masked: bool = True,
        factors: _Factors = (),
    ) -> int:
        """The bits of the widest vector of an access under a layout; 0 if it is not executed.

        `aligned` and `ones`: arguments that are taken to be multiples of 16, and to be 1. `factors`: (constant, the
        number in its place), wherever it is in a product, a comparison or an offset.
        """
        supposed = self._supposing(operation, frozenset(aligned), frozenset(ones), factors)
        execution = supposed.get(operation.first_line)
        if execution is None or execution.is_box:
            return 0
        bits = max(execution.element_bits, 1)
        mask = execution.mask if masked else None
        most = max(_WIDEST_BITS // bits, 1)
        return bits * widest_vector(threads, execution.addresses, mask, max(bits // 8, 1), most, aligned=True)

    def factors(self, divisor: int) -> _Factors:
        """(constant in a product, a comparison or an offset, and the next multiple of a number after it)."""
        sites = ((value, one.name in _PRODUCTS) for value, one, _ in factor_sites(self._module))
        found = {value for value, is_product in sites if value % divisor and (value > 1 or not is_product)}
        return tuple((value, -(-value // divisor) * divisor) for value in sorted(found))

    def element_bits(self, operation: Operation) -> int:
        """The bits of an element; 0 if the access is not executed, or has no lanes."""
        execution = self._as_told.get(operation.first_line)
        return 0 if execution is None or execution.is_box else execution.element_bits

    def strides(self, operation: Operation) -> tuple[int | None, ...]:
        """Bytes between neighbours along each dimension, whatever the arguments are; None where that differs."""
        execution = self._as_told.get(operation.first_line)
        return strides_of(execution.addresses) if execution is not None and not execution.is_box else ()

    @property
    def _as_told(self) -> Mapping[int, AccessExecution]:
        return self._with(frozenset(), frozenset())

    def _supposing(
        self, operation: Operation, aligned: frozenset[str], ones: frozenset[str], factors: _Factors
    ) -> Mapping[int, AccessExecution]:
        """Executions, that of an operation as if these arguments were multiples of 16, and those were 1.

        What is supposed of other arguments makes no difference to it, so that operations share evaluations.
        """
        execution = self._as_told.get(operation.first_line)
        if execution is None or not (aligned or ones or factors):
            return self._as_told
        own = {source.text for source in execution.sources if source.kind == "argument"}
        return self._with(aligned & own | self._loose - own, ones & own, factors)

    def _with(
        self, aligned: frozenset[str], ones: frozenset[str], factors: _Factors = ()
    ) -> Mapping[int, AccessExecution]:
        """The first execution of each line, if some arguments were multiples of 16, some 1, and constants others."""
        key = (aligned - ones, ones, factors)
        if key not in self._known:
            held = {
                value: constant(1, bits)
                if value.name in key[1]
                else atom(Source("argument", value.name), bits, _ENOUGH if value.name in key[0] else divisor)
                for value, bits, divisor in self._parameters
            }
            executions = _Runner(self._module, held, dict(factors)).evaluation().executions
            self._known[key] = {one.operation.first_line: one for one in reversed(executions)}
        return self._known[key]


class _Runner(Runner):
    """Evaluates with other numbers in place of constants of products, comparisons and offsets."""

    def __init__(self, module: MlirModule, held: Mapping[Value, Held], factors: Mapping[int, int]) -> None:
        super().__init__(module, held, Programs())
        self.factors = factors

    def operands(self, step: Step) -> list[Array | Number]:
        operands = super().operands(step)
        is_offset = step.opcode == "addptr" or (step.opcode == "arith.addi" and step.shape)
        if not self.factors or not (is_offset or step.opcode in _PRODUCTS):
            return operands
        return [self._instead(one) if isinstance(one, np.ndarray) and one.size == 1 else one for one in operands]

    def _instead(self, constant: Array) -> Array:
        value = as_number(constant).value or 0
        return np.full_like(constant, self.factors.get(value, value))

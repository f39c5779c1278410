"""The registers of all threads of a CTA of PTX: integers, and which of them are known."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from irscope.errors import NotRun
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.asm.operands import Operand
from irscope.machine.ptx_steps import PtxStep

_WARP = 32
_Integers = NDArray[np.int64]


class CtaRegisters:
    """The values of registers, by name, and what is unknown of each."""

    def __init__(self, threads: int, program: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
        """`program`, `grid`: which CTA of how many."""
        self.threads = threads
        self._everyone = np.arange(threads, dtype=np.int64)
        one = np.ones(threads, np.int64)
        self._values: dict[str, _Integers] = {
            "%tid.x": self._everyone, "%laneid": self._everyone % _WARP, "%warpid": self._everyone // _WARP,
            "%ntid.x": one * threads, "%tid.y": one * 0, "%tid.z": one * 0, "%ntid.y": one, "%ntid.z": one,
            "%cluster_ctarank": one * 0, "%cluster_nctarank": one, "%cluster_ctaid.x": one * 0,
            **{f"%ctaid.{axis}": one * program[place] for place, axis in enumerate("xyz")},
            **{f"%nctaid.{axis}": one * grid[place] for place, axis in enumerate("xyz")},
            **{f"%clusterid.{axis}": one * program[place] for place, axis in enumerate("xyz")},
        }  # fmt: skip
        self._unknown: dict[str, NDArray[np.bool_]] = {}

    def _value(self, operand: Operand) -> _Integers:
        if operand.kind == "number":
            return np.full(self.threads, operand.value, np.int64)
        if not operand.name.startswith("%") and operand.name not in self._values:
            # The beginning of the CTA's shared memory, or a register of inline assembly that was not written.
            return np.zeros(self.threads, np.int64)
        found = self._values.get(operand.name)
        if found is None:
            return np.zeros(self.threads, np.int64)
        return -found if operand.is_negated and not operand.name.startswith("%p") else found

    def _is_unknown(self, name: str, threads: _Integers) -> bool:
        mask = self._unknown.get(name)
        if mask is not None:
            return bool(mask[threads].any())
        return name.startswith("%") and name not in self._values

    def _known(self, operand: Operand, threads: _Integers, step: PtxStep) -> _Integers:
        """The values in threads; raises NotRun where one is unknown."""
        if operand.name and self._is_unknown(operand.name, threads):
            raise NotRun(f"line {step.item.line} of the PTX ({step.item.opcode}) depends on what is not computed")
        return self._value(operand)[threads] + (operand.value if operand.kind == "address" else 0)

    def _uniform(self, operand: Operand, threads: _Integers, step: PtxStep) -> int:
        values = self._known(operand, threads, step)
        if (values != values[0]).any():
            raise NotRun(f"line {step.item.line} of the PTX ({step.item.opcode}): threads differ in {operand.name}")
        return int(values[0])

    def _assign(self, name: str, values: _Integers, unknown: NDArray[np.bool_] | None, on: _Integers) -> None:
        whole = len(on) == self.threads
        if whole:
            self._values[name] = values
        else:
            merged = self._values.get(name)
            merged = np.zeros(self.threads, np.int64) if merged is None else merged.copy()
            merged[on] = values[on]
            self._values[name] = merged
        mask = self._unknown.get(name)
        if unknown is None and mask is None:
            return
        mask = np.zeros(self.threads, np.bool_) if mask is None else mask.copy()
        mask[on] = False if unknown is None else unknown[on]
        if mask.any():
            self._unknown[name] = mask
        else:
            self._unknown.pop(name, None)

    def _forget(self, operands: Sequence[Operand], on: _Integers) -> None:
        unknown = np.ones(self.threads, np.bool_)
        for operand in operands:
            for name in operand.names:
                self._assign(name, np.zeros(self.threads, np.int64), unknown, on)

    def _repacked(self, step: PtxStep, on: _Integers) -> None:
        """mov.b32 %r1, {%rs1, %rs2} and mov.b64 {%r1, %r2}, %rd1."""
        target, source = step.operands
        vector = target if target.kind == "vector" else source
        bits = ptx_opcode(step.item.opcode).bits // max(len(vector.parts), 1)
        if any(self._is_unknown(name, on) for name in source.names):
            self._forget((target,), on)
        elif vector is target:
            whole = self._value(source)
            for place, part in enumerate(target.parts):
                self._assign(part.name, (whole >> place * bits) & ((1 << bits) - 1), None, on)
        else:
            parts = [self._value(part) & ((1 << bits) - 1) for part in source.parts]
            whole = np.zeros(self.threads, np.int64)
            for place, part in enumerate(parts):
                whole = whole | (part << place * bits)
            self._assign(target.name, whole, None, on)

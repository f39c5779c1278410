"""Executes the PTX of one CTA with all values, those of tensor memory too: `tcgen05`.

A product is done as late as the waits allow: where a thread waits for an mbarrier that a commit arrives at, with all
that the thread of the commit began before. Sources: "PTX ISA", sections "Tensor Memory", "Instruction descriptor",
"Data path layout organization".
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.ir.asm.instructions import Instruction
from irscope.machine.ptx import CtaGroup
from irscope.machine.ptx_floats import packed
from irscope.machine.ptx_matrices import TENSOR_SWIZZLES
from irscope.machine.ptx_registers import PtxStep
from irscope.machine.ptx_values import PtxValues, element_type, wide
from irscope.machine.values import Array

_Integers = NDArray[np.int64]
_LANES, _COLUMNS = 128, 512
_KINDS = {
    "f16": ("f16", "bf16"), "tf32": ("", "", "tf32"), "i8": ("u8", "s8"), "f8f6f4": ("e4m3", "e5m2"),
}  # fmt: skip
"""Kind of a product → the types that its instruction descriptor numbers."""
_RESULTS = ("f16", "f32", "s32")
_DEPTH_BYTES = 32
"""Of K, of each instruction."""


class PtxTensor(PtxValues):
    """One CTA whose `memory` is a `CtaGlobal`."""

    def __init__(self, *arguments: Any, stores_late: bool = True) -> None:
        """As of `PtxValues`."""
        super().__init__(*arguments, stores_late=stores_late)
        # Nobody wrote: all bits set.
        self._cells = np.full((_LANES, _COLUMNS), (1 << 32) - 1, np.int64)
        """By lane and column: the bits of 32-bit cells."""
        self._products: dict[int, list[Callable[[], None]]] = {}
        """Thread → the products that it began and that are not done."""

    def effect_of(self, item: Instruction) -> str:
        return "do_put" if item.opcode.startswith("tcgen05.st") else super().effect_of(item)

    def do_put(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        if step.name == "tcgen05":
            self.do_tensor(step, group, on)
        else:
            super().do_put(step, group, on)

    # ── loads, stores, commits ────────────────────────────────────────────────────────────────────────────────

    def do_tensor(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        what = step.suffixes[0]
        if what == "commit":
            for thread, address in zip(on.tolist(), self._address(step, on).tolist(), strict=True):
                self._land_at(address, self._ended(self._products.get(thread, [])))
        super().do_tensor(step, group, on)
        if what not in ("ld", "st"):
            return
        if any(part.startswith(("pack", "unpack", "red")) for part in step.suffixes):
            raise self._not_computed(step)
        lane, column = self._cell(step, on)
        vector = next(one for one in step.operands if one.kind == "vector")
        for place, part in enumerate(vector.parts):
            if what == "st":
                self._cells[lane, column + place] = self._bits(part, on, step)[on] & 0xFFFFFFFF
                continue
            whole = np.zeros(self.threads, np.int64)
            whole[on] = self._cells[lane, column + place]
            self._assign(part.name, whole, None, on)

    @staticmethod
    def _ended(products: list[Callable[[], None]]) -> Callable[[], None]:
        """Do the products that a commit waits for, and that are not done yet."""
        wanted = list(products)

        def do() -> None:
            for product in wanted:
                if product in products:
                    products.remove(product)
                    product()

        return do

    # ── products ──────────────────────────────────────────────────────────────────────────────────────────────

    def do_matrix(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        if step.name != "tcgen05":
            super().do_matrix(step, group, on)
            return
        for thread in on.tolist():
            one = np.array([thread])
            values = [int(self._known(operand, one, step)[0]) for operand in step.operands]
            adds = (values[-1] != 0) != step.operands[-1].is_negated
            self._products.setdefault(thread, []).append(self._product(step, values, adds))

    def _product(self, step: PtxStep, values: list[int], adds: bool) -> Callable[[], None]:
        # [d], a-desc or [a], b-desc, idesc, enable-input-d
        kind = next((part[6:] for part in step.suffixes if part.startswith("kind::")), "")
        form = values[3]
        names = _KINDS.get(kind, ())
        kinds = [names[number] if number < len(names) else "" for number in (form >> 7 & 7, form >> 10 & 7)]
        is_plain = len(values) == 5 and "cta_group::1" in step.suffixes and not form & 0b1111
        if not all(kinds) or not is_plain or form >> 4 & 3 > 2 or {"sp", "ws"} & {*step.suffixes}:
            raise self._not_computed(step)
        rows, columns, result = (form >> 24 & 31) * 16, (form >> 17 & 63) * 8, _RESULTS[form >> 4 & 3]
        sign = -1 if (form >> 13 ^ form >> 14) & 1 else 1
        in_tensor = step.operands[1].kind == "address"

        def multiply() -> None:
            if in_tensor:
                a = self._held(values[1], kinds[0], rows)
            else:
                a = self._operand(values[1], kinds[0], rows, bool(form >> 15 & 1), step)
            b = self._operand(values[2], kinds[1], columns, bool(form >> 16 & 1), step)
            made = np.matmul(a, b.T) * sign
            lanes, first = _lanes(rows, values[0]), values[0] & 0xFFFF
            cells = self._cells[lanes[:, None], np.arange(first, first + columns)]
            if adds:
                made = made + wide(cells, element_type(result), 1)[0]
            self._cells[lanes[:, None], np.arange(first, first + columns)] = packed(
                [made.reshape(-1)], element_type(result)
            ).reshape(rows, columns)

        return multiply

    def _operand(self, descriptor: int, kind: str, rows: int, is_transposed: bool, step: PtxStep) -> Array:
        width = TENSOR_SWIZZLES.get(descriptor >> 61 & 7)
        if width is None:
            raise self._not_computed(step)
        size = (rows, _DEPTH_BYTES // element_type(kind).itemsize)
        return self._tile(descriptor, width, kind, size, is_transposed, step)

    def _held(self, address: int, kind: str, rows: int) -> Array:
        """A matrix in tensor memory: of each row the elements along K, as many as fill a cell one after another."""
        dtype, first = element_type(kind), address & 0xFFFF
        cells = self._cells[_lanes(rows, address)[:, None], np.arange(first, first + _DEPTH_BYTES // 4)]
        bits = cells & 0xFFFFE000 if kind == "tf32" else cells
        return np.stack(wide(bits, dtype, 4 // dtype.itemsize), axis=-1).reshape(rows, -1)


def _lanes(rows: int, address: int) -> _Integers:
    """The lanes of the rows of a matrix in tensor memory: of 64 rows each 16 have the first half of a warp's lanes."""
    row = np.arange(rows)
    return (row if rows == _LANES else row // 16 * 32 + row % 16) + (address >> 16)

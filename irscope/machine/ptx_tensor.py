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
    "mxf8f6f4": ("e4m3", "e5m2"), "mxf4": ("", "e2m1"), "mxf4nvf4": ("", "e2m1"),
}  # fmt: skip
"""Kind of a product → the types that its instruction descriptor numbers."""
_RESULTS = ("f16", "f32", "s32")
_DEPTH_BYTES = 32
"""Of K, of each instruction."""
_BLOCK = 32
"""Elements along K with one scale, where the opcode does not state how many scales there are."""
_SCALES = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


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
        # [d], a-desc or [a], b-desc, idesc, with block_scale [scale-a] and [scale-b], enable-input-d
        kind = next((part[6:] for part in step.suffixes if part.startswith("kind::")), "")
        form, is_scaled = values[3], "block_scale" in step.suffixes
        names = _KINDS.get(kind, ())
        kinds = [names[number] if number < len(names) else "" for number in (form >> 7 & 7, form >> 10 & 7)]
        is_plain = len(values) == (7 if is_scaled else 5) and "cta_group::1" in step.suffixes and not form & 0b1100
        number = 1 if is_scaled else form >> 4 & 3
        if not all(kinds) or not is_plain or number > 2 or {"sp", "ws"} & {*step.suffixes}:
            raise self._not_computed(step)
        rows, columns, result = (form >> 24 & 31) * 16, (form >> 17 & 63) * 8, element_type(_RESULTS[number])
        sign = -1 if (form >> 13 ^ form >> 14) & 1 else 1
        in_tensor = step.operands[1].kind == "address"

        def multiply() -> None:
            if in_tensor:
                a = self._held(values[1], kinds[0], rows)
            else:
                a = self._operand(values[1], kinds[0], rows, bool(form >> 15 & 1), step)
            b = self._operand(values[2], kinds[1], columns, bool(form >> 16 & 1), step)
            if is_scaled:
                a = a * self._scales(values[4], form >> 29 & 3, a.shape, form, step)
                b = b * self._scales(values[5], form >> 4 & 3, b.shape, form, step)
            made = np.matmul(a, b.T) * sign
            lanes, first = _lanes(rows, values[0])[:, None], values[0] & 0xFFFF
            places = np.arange(first, first + columns)
            if adds:
                made = made + wide(self._cells[lanes, places], result, 1)[0]
            self._cells[lanes, places] = packed([made.reshape(-1)], result).reshape(rows, columns)

        return multiply

    def _operand(self, descriptor: int, kind: str, rows: int, is_transposed: bool, step: PtxStep) -> Array:
        width = TENSOR_SWIZZLES.get(descriptor >> 61 & 7)
        if width is None:
            raise self._not_computed(step)
        held = "u8" if kind == "e2m1" else kind
        size = (rows, _DEPTH_BYTES // element_type(held).itemsize)
        found = self._tile(descriptor, width, held, size, is_transposed, step)
        if held == kind:
            return found
        nibbles = np.stack([found & 15, found >> 4], axis=-1).reshape(rows, -1)
        return np.where(nibbles & 8, -1.0, 1.0) * _E2M1[nibbles & 7]

    def _held(self, address: int, kind: str, rows: int) -> Array:
        """A matrix in tensor memory: of each row the elements along K, as many as fill a cell one after another."""
        dtype, first = element_type(kind), address & 0xFFFF
        cells = self._cells[_lanes(rows, address)[:, None], np.arange(first, first + _DEPTH_BYTES // 4)]
        bits = cells & 0xFFFFE000 if kind == "tf32" else cells
        return np.stack(wide(bits, dtype, 4 // dtype.itemsize), axis=-1).reshape(rows, -1)

    def _scales(self, address: int, first: int, shape: tuple[int, ...], form: int, step: PtxStep) -> Array:
        """The factor of each element of an operand: bytes of one cell for 32 rows each, from byte `first` on."""
        rows, depth = shape
        count = next((_SCALES[part] for part in step.suffixes if part in _SCALES), 0) or depth // _BLOCK
        row = np.arange(rows)
        cells = self._cells[row % 32, (address & 0xFFFF) + row // 32]
        # Of 2^(n - 127), or e4m3.
        held = np.stack([cells >> 8 * (first + place) & 255 for place in range(count)], axis=-1)
        factors = np.exp2(held - 127.0) if form >> 23 & 1 else wide(held, element_type("e4m3"), 1)[0]
        return np.repeat(np.where(held == 255, np.nan, factors), depth // count, axis=1)


def _lanes(rows: int, address: int) -> _Integers:
    """The lanes of the rows of a matrix in tensor memory: of 64 rows each 16 have the first half of a warp's lanes."""
    row = np.arange(rows)
    return (row if rows == _LANES else row // 16 * 32 + row % 16) + (address >> 16)

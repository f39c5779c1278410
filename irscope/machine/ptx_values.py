"""Executes the PTX of one CTA with all values: of floats, global memory, `ldmatrix`, `mma.sync` and `wgmma` too.

`cp.async` and `wgmma` are done at once; copies of tiles as late as the waits for them allow.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.errors import NotRun
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.asm.operands import Operand
from irscope.machine.memory import GlobalMemory
from irscope.machine.ptx import CtaGroup, PtxCta
from irscope.machine.ptx_arithmetic import ATOMICS, cut
from irscope.machine.ptx_floats import dtype_of, elements, float_computed, packed
from irscope.machine.ptx_matrices import WGMMA_SWIZZLES
from irscope.machine.ptx_registers import CtaMemory, PtxStep
from irscope.machine.ptx_tiles import TileCopy
from irscope.machine.values import Array

_Integers = NDArray[np.int64]
_WARP = 32
_VIRTUAL = frozenset(("%r", "%rd", "%rs", "%rq", "%p", "%f", "%fd", "%h", "%hh", "%b"))
"""What names of registers begin with, other than special ones such as %smid."""


class CtaGlobal(CtaMemory):
    """The storages of a launch, which loads read and stores change; outside of them nothing is run."""

    def __init__(self, memory: GlobalMemory, storages: int) -> None:
        """`storages`: how many of the memory's."""
        self._rows = [(memory.address(number), memory.contents(number)) for number in range(storages)]

    def load(self, addresses: _Integers, size: int) -> tuple[_Integers, NDArray[np.bool_]]:
        values, known = np.zeros(len(addresses), np.int64), np.zeros(len(addresses), np.bool_)
        for inside, contents, places in self._places(addresses, size):
            values[inside] = (contents[places].astype(np.int64) << np.arange(size) * 8).sum(axis=1)
            known |= inside
        return values, known

    def put(self, addresses: _Integers, size: int, values: _Integers) -> None:
        """Store integers of so many bytes; raises NotRun outside of all storages."""
        stored = 0
        for inside, contents, places in self._places(addresses, size):
            contents[places] = (values[inside][:, None] >> np.arange(size) * 8) & 255
            stored += int(inside.sum())
        if stored < len(addresses):
            raise NotRun("the PTX stores outside of all tensors")

    def _places(self, addresses: _Integers, size: int) -> list[tuple[NDArray[np.bool_], Array, Array]]:
        rows: list[tuple[NDArray[np.bool_], Array, Array]] = []
        for begin, contents in self._rows:
            inside = (addresses >= begin) & (addresses + size <= begin + contents.size)
            if inside.any():
                rows.append((inside, contents, (addresses[inside] - begin)[:, None] + np.arange(size)))
        return rows


class PtxValues(PtxCta):
    """One CTA whose `memory` is a `CtaGlobal`."""

    def __init__(self, *arguments: Any, stores_late: bool = True) -> None:
        """As of `PtxCta`; `stores_late`: whether copies of tiles to global memory are late, not at once."""
        super().__init__(*arguments)
        self._stores_late = stores_late
        # Nobody wrote: all bits set, as the TTGIR's machine has it.
        self._bytes[:] = 255
        self._is_known[:] = True
        self._landing: dict[int, list[Callable[[], None]]] = {}
        """Address of an mbarrier → what the copies that it counts write, which happens where a thread waits for it."""
        self._stores: dict[int, list[list[Callable[[], None]]]] = {}
        """Thread → the groups of its copies to global memory, which happen where it waits for them."""

    def run(self, most: int) -> None:
        # What stands in memory that nobody wrote is NaN.
        with np.errstate(all="ignore"):
            super().run(most)
        for thread in self._stores:
            self._store(thread, 0)

    def effect_of(self, item: Instruction) -> str:
        opcode = ptx_opcode(item.opcode)
        if opcode.name == "st" and opcode.space == "global":
            return "do_store"
        if opcode.name in ("atom", "red") and opcode.space in ("global", "shared"):
            return "do_update"
        if item.opcode.startswith("mma.sync"):
            return "do_product"
        if item.opcode.startswith(("st.shared", "stmatrix")):
            return "do_put"
        if item.opcode.startswith("st.async"):
            raise NotRun(f"line {item.line} of the PTX: the values of {item.opcode} are not computed")
        return super().effect_of(item)

    def computed(self, step: PtxStep, operands: Sequence[_Integers]) -> _Integers | None:
        values = super().computed(step, operands)
        return float_computed(step.name, step.suffixes, operands) if values is None else values

    def _is_unknown(self, name: str, threads: _Integers) -> bool:
        # mov.b32 %r49, {%rs12, %rs13} with a register that no instruction writes: LLVM leaves open what stands there.
        return super()._is_unknown(name, threads) and (
            name in self._unknown or name.rstrip("0123456789") not in _VIRTUAL
        )

    def _bits(self, operand: Operand, on: _Integers, step: PtxStep) -> _Integers:
        self._known(operand, on, step)
        return self._value(operand)

    # ── memory ────────────────────────────────────────────────────────────────────────────────────────────────

    def _contents(self) -> CtaGlobal:
        assert isinstance(self._memory, CtaGlobal)
        return self._memory

    def do_store(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """st.global."""
        parts = step.operands[1].parts or step.operands[1:2]
        addresses, size = self._address(step, on), ptx_opcode(step.item.opcode).bits // 8 // len(parts)
        for place, part in enumerate(parts):
            self._contents().put(addresses + place * size, size, self._bits(part, on, step)[on])

    def do_update(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """atom and red, one thread after another."""
        opcode = ptx_opcode(step.item.opcode)
        kind = opcode.types[-1] if opcode.types else ""
        name = next((part for part in opcode.modifiers if part in ATOMICS), "")
        operands = step.operands[1:] if step.name == "atom" else step.operands
        given = [[self._bits(part, on, step) for part in one.parts or (one,)] for one in operands[1:]]
        targets = (step.operands[0].parts or step.operands[:1]) if step.name == "atom" else ()
        if not name or not given:
            raise self._not_computed(step)
        addresses, size = self._address(step, on), opcode.bits // 8 // len(given[0])
        for place in range(len(given[0])):
            old = np.zeros(self.threads, np.int64)
            for thread, address in zip(on.tolist(), (addresses + place * size).tolist(), strict=True):
                where = np.array([address])
                if opcode.space == "shared":
                    before = self._read_shared(where, size, step)
                else:
                    before, _ = self._contents().load(where, size)
                after = _updated(name, kind, before, [row[place][[thread]] for row in given], step)
                old[thread] = before[0]
                if opcode.space == "shared":
                    self._write_shared(where, size, after, np.ones(1, np.bool_))
                else:
                    self._contents().put(where, size, after)
            if place < len(targets):
                self._assign(targets[place].name, cut(old, kind, wide=False), None, on)

    def do_copy(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        super().do_copy(step, group, on)
        target = self._address(step, on)
        source, size = self._address(step, on, 1), step.operands[2].value
        wanted = self._known(step.operands[3], on, step) if len(step.operands) > 3 else np.full(len(on), size)
        for place in range(0, size, 4):
            reads = wanted > place
            values, known = np.zeros(len(on), np.int64), ~reads
            values[reads], known[reads] = self._memory.load(source[reads] + place, 4)
            self._write_shared(target + place, 4, values, known)

    def _read_shared(self, addresses: _Integers, size: int, step: PtxStep) -> _Integers:
        inside = addresses[..., None] + np.arange(size)
        if not self._is_known[inside].all():
            raise NotRun(f"line {step.item.line} of the PTX reads shared memory whose contents are not known")
        return (self._bytes[inside].astype(np.int64) << np.arange(size) * 8).sum(axis=-1)

    def _write_shared(self, addresses: _Integers, size: int, values: _Integers, known: NDArray[np.bool_]) -> None:
        inside = addresses[:, None] + np.arange(size)
        self._bytes[inside] = (values[:, None] >> np.arange(size) * 8) & 255
        self._is_known[inside] = known[:, None]

    def do_put(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """st.shared and stmatrix, whose values others may read."""
        self.do_access(step, group, on)

    def do_access(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        super().do_access(step, group, on)
        if step.name not in ("ldmatrix", "stmatrix"):
            return
        if "m8n8" not in step.suffixes or step.suffixes[-1] != "b16" or len(on) % _WARP:
            raise self._not_computed(step)
        addresses = np.zeros(self.threads, np.int64)
        addresses[on] = self._address(step, on)
        registers = step.operands[0 if step.name == "ldmatrix" else 1]
        lane, warp = on % _WARP, on // _WARP * _WARP
        row, column = lane // 4, lane % 4 * 2
        for place, part in enumerate(registers.parts or (registers,)):
            whole = np.zeros(self.threads, np.int64)
            for half in range(2):
                at = (column + half, row) if "trans" in step.suffixes else (row, column + half)
                where = addresses[warp + 8 * place + at[0]] + 2 * at[1]
                if step.name == "stmatrix":
                    value = (self._bits(part, on, step)[on] >> 16 * half) & 0xFFFF
                    self._write_shared(where, 2, value, np.ones(len(on), np.bool_))
                    continue
                whole[on] |= self._read_shared(where, 2, step) << 16 * half
            if step.name == "ldmatrix":
                self._assign(part.name, whole, None, on)

    # ── copies of tiles ───────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, copy: TileCopy) -> None:
        step, tensor, kind = copy.step, copy.tensor, copy.tensor.kind
        at = [int(self._known(one, copy.thread, step)[0]) for one in copy.coordinates.parts]
        shared, addresses, inside = tensor.places(copy.memory, at, copy.is_rows)
        size, known = tensor.element_bytes, np.ones(len(shared), np.bool_)
        if copy.barrier is not None:
            values = np.full(len(shared), -1 if tensor.number("fill_mode") else 0, np.int64)
            values[inside], known[inside] = self._memory.load(addresses[inside], size)
            # Until it is waited for, what stands there is all bits set.
            self._write_shared(shared, size, np.full(len(shared), -1, np.int64), np.ones(len(shared), np.bool_))
            self._land_at(copy.barrier, lambda: self._write_shared(shared, size, values, known))
            return
        name = next((part for part in step.suffixes if part in ATOMICS), "")

        def store() -> None:
            values = self._read_shared(shared[inside], size, step)
            if step.item.family == "tma.reduce":
                values = _updated(name, kind, self._memory.load(addresses[inside], size)[0], [values], step)
            self._contents().put(addresses[inside], size, values)

        if self._stores_late:
            self._stores.setdefault(int(copy.thread[0]), [[]])[-1].append(store)
        else:
            store()

    def _land_at(self, barrier: int, land: Callable[[], None]) -> None:
        self._landing.setdefault(barrier, []).append(land)

    def _is_landing(self, address: int) -> bool:
        return super()._is_landing(address) or address in self._landing

    def _complete(self, address: int) -> None:
        for land in self._landing.pop(address, ()):
            land()
        super()._complete(address)

    def do_bulk_group(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        for thread in self._stores.keys() & {*on.tolist()}:
            if "commit_group" in step.suffixes:
                self._stores[thread].append([])
            else:
                self._store(thread, step.operands[0].value + 1)

    def _store(self, thread: int, pending: int) -> None:
        """Let the copies of a thread to global memory happen, but for its last groups."""
        groups = self._stores[thread]
        for one in groups[: max(len(groups) - pending, 0)]:
            for store in one:
                store()
            one.clear()

    # ── products ──────────────────────────────────────────────────────────────────────────────────────────────

    def do_product(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """mma.sync: the matrices of each warp, gathered from the registers that hold them."""
        m, n, k = self._shape(step, on, _WARP)
        kinds = step.suffixes[-4:]
        if kinds[0] != kinds[3] or "row" not in step.suffixes or not {*kinds} <= _MATRIX_TYPES:
            raise self._not_computed(step)
        a, b, c = (
            self._gathered(operand, kind, which, size, on, step)
            for operand, kind, which, size in zip(
                step.operands[1:4], kinds[1:], "abc", ((m, k), (k, n), (m, n)), strict=True
            )
        )
        self._scattered(step.operands[0], kinds[0], np.matmul(a, b) + c, on)

    def do_matrix(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """wgmma: the matrices of each four warps, from shared memory or, the accumulator and maybe A, registers."""
        _, n, k = self._shape(step, on, 4 * _WARP)
        kinds, operands = step.suffixes[-3:], step.operands
        if not {*kinds} <= _MATRIX_TYPES:
            raise self._not_computed(step)
        flags = [self._uniform(one, on, step) for one in operands[3:]]
        adds, signs, transposed = flags[0], flags[1] * flags[2] if len(flags) > 2 else 1, flags[3:]
        a_in_registers = operands[1].kind == "vector"
        matrices: list[Array] = []
        for start in np.unique(on // (4 * _WARP)) * 4 * _WARP:
            threads = np.arange(start, start + 4 * _WARP)
            if a_in_registers:
                a = self._gathered(operands[1], kinds[1], "a", (16, k), threads, step).reshape(64, k)
            else:
                one = self._uniform(operands[1], threads, step)
                flips = bool(transposed and transposed[0])
                a = self._tile(one, WGMMA_SWIZZLES[one >> 62 & 3], kinds[1], (64, k), flips, step)
            two = self._uniform(operands[2], threads, step)
            flips = bool(transposed and transposed[-1])
            b = self._tile(two, WGMMA_SWIZZLES[two >> 62 & 3], kinds[2], (n, k), flips, step)
            matrices.append((np.matmul(a, b.T) * signs).reshape(4, 16, n))
        made = np.concatenate(matrices)
        if adds:
            made = made + self._gathered(operands[0], kinds[0], "c", (16, n), on, step)
        self._scattered(operands[0], kinds[0], made, on)

    def do_matrix_group(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """wgmma.commit_group, wait_group and fence: what they order is done already."""

    def _not_computed(self, step: PtxStep) -> NotRun:
        return NotRun(f"line {step.item.line} of the PTX: the values of {step.item.opcode} are not computed")

    def _shape(self, step: PtxStep, on: _Integers, together: int) -> tuple[int, int, int]:
        for part in step.suffixes:
            m, _, rest = part.removeprefix("m").partition("n")
            n, _, k = rest.partition("k")
            if m.isdecimal() and n.isdecimal() and k.isdecimal() and not len(on) % together:
                return int(m), int(n), int(k)
        raise self._not_computed(step)

    def _tile(
        self, descriptor: int, width: int, kind: str, size: tuple[int, int], is_transposed: bool, step: PtxStep
    ) -> Array:
        """A matrix in shared memory, as a descriptor lays it out. Source: "PTX ISA", 9.7.15.5.

        `width`: of the swizzle, in bytes.
        """
        dtype = element_type(kind)
        start, leading, stride = ((descriptor >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
        if is_transposed and width == 16:
            # Without a swizzle the two are exchanged.
            leading, stride = stride, leading
        row, column = np.arange(size[0])[:, None], np.arange(size[1])[None, :]
        # Transposed, the rows are the fastest dimension.
        slow, byte = (column, row * dtype.itemsize) if is_transposed else (row, column * dtype.itemsize)
        far = leading if is_transposed or width == 16 else 0
        address = start + slow // 8 * stride + slow % 8 * width + byte // width * far
        address = address + (byte % width if far else byte)
        address = address ^ ((address >> 7) & (width // 16 - 1)) << 4
        bits = self._read_shared(address, dtype.itemsize, step)
        return wide(bits & 0xFFFFE000 if kind == "tf32" else bits, dtype, 1)[0]

    def _gathered(
        self, operand: Operand, kind: str, which: str, size: tuple[int, int], on: _Integers, step: PtxStep
    ) -> Array:
        """(warp, row, column) of a matrix in registers, in float64 or int64."""
        dtype = element_type(kind)
        matrix = np.zeros((len(on) // _WARP, *size), np.int64 if dtype.kind in "iu" else np.float64)
        each = (8 if dtype.itemsize == 8 else 4) // dtype.itemsize
        for place, part in enumerate(operand.parts):
            bits = self._bits(part, on, step)[on]
            for element, values in enumerate(wide(bits & 0xFFFFE000 if kind == "tf32" else bits, dtype, each)):
                row, column = _place_of(which, place, element, each, on % _WARP)
                matrix[np.arange(len(on)) // _WARP, row, column] = values
        return matrix

    def _scattered(self, operand: Operand, kind: str, matrix: Array, on: _Integers) -> None:
        dtype = element_type(kind)
        each = (8 if dtype.itemsize == 8 else 4) // dtype.itemsize
        for place, part in enumerate(operand.parts):
            rows = [_place_of("c", place, element, each, on % _WARP) for element in range(each)]
            found = [matrix[np.arange(len(on)) // _WARP, row, column] for row, column in rows]
            whole = np.zeros(self.threads, np.int64)
            whole[on] = packed(found, dtype)
            self._assign(part.name, whole, None, on)


_MATRIX_TYPES = frozenset(("f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "s8", "u8", "s32"))


def wide(bits: _Integers, dtype: np.dtype[Any], count: int) -> list[Array]:
    return [one.astype(np.int64 if dtype.kind in "iu" else np.float64) for one in elements(bits, dtype, count)]


def element_type(kind: str) -> np.dtype[Any]:
    integers = {"s8": np.int8, "u8": np.uint8, "s32": np.int32}
    found = np.dtype(integers[kind]) if kind in integers else dtype_of("f32" if kind == "tf32" else kind)
    assert found is not None
    return found


def _place_of(which: str, place: int, element: int, each: int, lane: _Integers) -> tuple[_Integers, _Integers]:
    """The row and column of an element of a register, of each lane. Source: "PTX ISA", 9.7.14.5, matrix fragments."""
    group, thread = lane // 4, lane % 4
    if which == "a":
        return group + 8 * (place % 2), thread * each + element + 4 * each * (place // 2)
    if which == "b":
        return thread * each + element + 4 * each * place, group
    # Two neighbours: in two registers of 32 or 64 bits, or in the halves of one; of eight columns two such pairs.
    number = place * each + element
    return group + 8 * (number // 2 % 2), number // 4 * 8 + thread * 2 + number % 2


def _updated(name: str, kind: str, before: _Integers, values: Sequence[_Integers], step: PtxStep) -> _Integers:
    if name in ("exch", "cas", "and", "or", "xor") or dtype_of(kind) is None:
        operands = [cut(one, kind, wide=False).tolist() for one in (before, *values)]
        return np.array([ATOMICS[name](*row) for row in zip(*operands, strict=True)], np.int64)
    made = float_computed(name, [kind], [before, *values])
    if made is None:
        raise NotRun(f"line {step.item.line} of the PTX: the values of {step.item.opcode} are not computed")
    return made

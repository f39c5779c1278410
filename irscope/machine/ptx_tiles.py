"""Copies of tiles by the tensor memory accelerator: descriptors, places of a tile, mbarriers that count its bytes.

Sources: "PTX ISA", sections "Tensors", "tensormap.replace", "cp.async.bulk.tensor"; Triton's getTMABlockShape.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from irscope.errors import NotRun
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.operands import Operand
from irscope.ir.mlir.attributes import Encoding
from irscope.machine.ptx_registers import CtaGroup, CtaListener, CtaRegisters, PtxStep
from irscope.machine.shared import Mbarrier
from irscope.machine.values import Array, Descriptor

_Integers = NDArray[np.int64]
_KINDS = {0: "u8", 1: "u16", 2: "u32", 3: "s32", 4: "u64", 5: "s64", 6: "f16", 7: "f32", 9: "f64", 10: "bf16"}
"""Number of `elemtype` → the type; 4-bit and 6-bit ones, and those that are rounded or flushed, are not computed."""
_BITS = {0: 8, 1: 16, 2: 32, 3: 32, 4: 64, 5: 64, 6: 16, 7: 32, 8: 32, 9: 64, 10: 16, 11: 32, 12: 32, 13: 4, 14: 8}
"""Of an element in shared memory, of all kinds but 6-bit ones."""
_PADDED = 14
"""4-bit elements, each sixteen with eight bytes of padding."""
_MOST_BOX = 256
_PARAMETERS = 0xF000_0000
"""Where descriptors among the parameters of a kernel stand, which is below 4 GiB."""
_MAP_BYTES = 128


@dataclass(eq=False)
class TensorMap:
    """A descriptor: a tensor in global memory of which tiles are copied. Axes are numbered from the fastest."""

    fields: dict[tuple[str, int], int | None] = field(default_factory=dict[tuple[str, int], "int | None"])
    """(field of `tensormap.replace`, axis) → its number; None for one that is not known, 0 for a missing one."""

    @classmethod
    def of_host(cls, descriptor: Descriptor, encoding: Encoding | None) -> TensorMap:
        """The one that the driver makes of a parameter of a kernel; raises NotRun for an encoding without tiles."""
        width = encoding["swizzlingByteWidth"] if encoding is not None and encoding.kind == "nvmma_shared" else None
        if encoding is None or not isinstance(width, int) or str(encoding["transposed"]) in ("True", "true", "1"):
            raise NotRun("the layout of a descriptor among the parameters is not followed")
        size = descriptor.dtype.itemsize
        kind = {np.dtype(np.float16): 6, np.dtype(np.float32): 7, np.dtype(np.float64): 9}.get(descriptor.dtype)
        if kind is None:
            kind = 10 if descriptor.dtype.name == "bfloat16" else {1: 0, 2: 1, 4: 2, 8: 4}[size]
        block = [min(one, _MOST_BOX) for one in reversed(descriptor.block)]
        block[0] = min(width // size if width else _MOST_BOX, descriptor.block[-1])
        if encoding["fp4Padded"] is True:
            kind, block[0] = _PADDED, width
        fields: dict[tuple[str, int], int | None] = {
            ("global_address", 0): int(descriptor.base[0]), ("rank", 0): len(block) - 1, ("elemtype", 0): kind,
            ("swizzle_mode", 0): width.bit_length() - 5 if width else 0, ("fill_mode", 0): int(descriptor.fills_nan),
        }  # fmt: skip
        strides = [int(one[0]) for one in reversed(descriptor.strides)]
        for axis, (box, extent) in enumerate(zip(block, reversed(descriptor.sizes), strict=True)):
            fields |= {("box_dim", axis): box, ("global_dim", axis): int(extent[0]), ("element_stride", axis): 1}
            if axis:
                fields["global_stride", axis - 1] = strides[axis] * size
        return cls(fields)

    def number(self, name: str, axis: int = 0) -> int:
        """One field; raises NotRun if it is not known."""
        found = self.fields.get((name, axis), 0)
        if found is None:
            raise NotRun(f"the {name.replace('_', ' ')} of a tensor's descriptor is not computed")
        return found

    @property
    def kind(self) -> str:
        """The type of an element; raises NotRun for one that is not computed."""
        kind = _KINDS.get(self.number("elemtype"))
        if kind is None:
            raise NotRun(f"elements of kind {self.number('elemtype')} of a tensor's descriptor are not computed")
        return kind

    @property
    def element_bytes(self) -> int:
        return _BITS[self.number("elemtype")] // 8

    @property
    def swizzle_bytes(self) -> int:
        mode = self.number("swizzle_mode")
        if mode > 3 or self.number("interleave_layout"):
            raise NotRun(f"the swizzle {mode} of a tensor's descriptor is not followed")
        return 16 << mode if mode else 0

    def box(self, rows: int = 0) -> list[int]:
        """The sizes of a tile, as it is; with `rows`, which a gather names one by one."""
        shape = [self.number("box_dim", axis) for axis in range(self.number("rank") + 1)]
        return [shape[0], rows] if rows else shape

    def bytes(self, rows: int = 0) -> int:
        """Of shared memory that one copy takes."""
        first, *others = self.box(rows)
        bits = _BITS.get(self.number("elemtype"))
        if bits is None:
            raise NotRun(f"elements of kind {self.number('elemtype')} of a tensor's descriptor are not followed")
        return max(first * bits // 8, self.swizzle_bytes) * prod(others)

    def places(self, memory: int, at: Sequence[int], is_rows: bool) -> tuple[Array, Array, Array]:
        """(address in shared memory, address in global memory, whether it is in the tensor) of each element.

        `memory`: where the tile begins in shared memory; `at`: its coordinates, or that of a column, and of four rows.
        """
        box = self.box(len(at) - 1 if is_rows else 0)
        size, width = self.element_bytes, self.swizzle_bytes
        if any(self.number("element_stride", axis) not in (0, 1) for axis in range(len(box))):
            raise NotRun("a tensor's descriptor leaves out elements")
        index = np.indices(box[::-1], np.int64).reshape(len(box), -1)[::-1]
        inner = index[0] * size
        pitch = max(box[0] * size, width)
        offset = np.ravel_multi_index(tuple(index[:0:-1]), tuple(box[:0:-1])) if len(box) > 1 else 0
        shared = memory + offset * pitch + inner
        if width:
            shared ^= ((shared >> 7) & (width // 16 - 1)) << 4
        coordinates = [at[0] + index[0], np.array(at[1:], np.int64)[index[1]]] if is_rows else [
            start + one for start, one in zip(at, index, strict=True)
        ]  # fmt: skip
        inside = np.ones(len(inner), np.bool_)
        address = self.number("global_address") + coordinates[0] * size
        for axis, one in enumerate(coordinates):
            inside &= (one >= 0) & (one < self.number("global_dim", axis))
            address = address + (one * self.number("global_stride", axis - 1) if axis else 0)
        return shared, address, inside


@dataclass(frozen=True, slots=True)
class TileCopy:
    """A copy of a tile that one thread begins."""

    step: PtxStep
    thread: _Integers
    """Its number, an array of one."""
    tensor: TensorMap
    coordinates: Operand
    memory: int
    """Where the tile begins in shared memory."""
    barrier: int | None = None
    """Of a load: the address of the mbarrier that counts its bytes."""

    @property
    def is_rows(self) -> bool:
        return _is_rows(self.step.item)


def _is_rows(item: Instruction) -> bool:
    return "tile::gather4" in item.opcode or "tile::scatter4" in item.opcode


class CtaTiles(CtaRegisters):
    """The mbarriers of a CTA, and the copies of tiles that land at them."""

    def __init__(
        self, threads: int, program: tuple[int, int, int], grid: tuple[int, int, int], listener: CtaListener,
        descriptors: Mapping[str, TensorMap],
    ) -> None:  # fmt: skip
        """`descriptors`: those among the kernel's parameters, by name."""
        super().__init__(threads, program, grid)
        self._listener = listener
        self._mbarriers: dict[int, Mbarrier] = {}
        self._maps: dict[tuple[str, int], TensorMap] = {}
        """Space and address → the descriptor there."""
        for place, (name, one) in enumerate(descriptors.items()):
            address = _PARAMETERS + _MAP_BYTES * place
            self._values[name] = np.full(threads, address, np.int64)
            self._maps["global", address] = one

    def _mbarrier(self, address: int, step: PtxStep) -> Mbarrier:
        found = self._mbarriers.get(address)
        if found is None:
            raise NotRun(f"line {step.item.line} of the PTX uses an mbarrier that was not initialised")
        return found

    def _is_landing(self, address: int) -> bool:
        """Whether something lands at an mbarrier only where a thread waits for it."""
        return self._mbarriers[address].landing > 0

    def _complete(self, address: int) -> None:
        """Let the copies land that an mbarrier counts, and end its phase if that is all."""
        state = self._mbarriers[address]
        state.bytes, state.landing = state.bytes - state.landing, 0
        if state.missing <= 0 and state.bytes == 0:
            self._listener.complete(address, state.phase)
            state.phase += 1
            state.missing += state.count

    def do_descriptor(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """tensormap.replace of one field, and tensormap.cp_fenceproxy to global memory."""
        first, *others = step.operands
        space = "shared" if step.item.opcode.partition(".b1024")[0].endswith("shared::cta") else "global"
        address = self._uniform(first, on, step)
        if step.suffixes[0] == "cp_fenceproxy":
            made = self._maps.get(("shared", self._uniform(others[0], on, step)))
            if made is not None:
                self._maps["global", address] = TensorMap(dict(made.fields))
            return
        value = others[-1]
        number = None if value.name and self._is_unknown(value.name, on) else int(self._value(value)[on[0]])
        fields = self._maps.setdefault((space, address), TensorMap()).fields
        fields[step.suffixes[2], others[0].value if len(others) > 1 else 0] = number

    def _overwrite(self, addresses: _Integers, size: int) -> None:
        """Note that shared memory is written to, where a descriptor may have stood: its fields are 0."""
        for space, address in list(self._maps):
            if space == "shared" and ((addresses < address + _MAP_BYTES) & (addresses + size > address)).any():
                del self._maps[space, address]

    def do_bulk(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """Copies of tiles by the tensor memory accelerator, one by each thread that is on."""
        is_load = step.item.family == "tma.load"
        operands = [one for one in step.operands if one.kind == "address"]
        shared, described = operands[:2] if is_load else operands[1::-1]
        if "im2col" in step.item.opcode or "multicast" in step.item.opcode:
            raise NotRun(f"line {step.item.line} of the PTX: {step.item.opcode} is not followed")
        for thread in on:
            one = np.array([thread])
            tensor = self._maps.get(("global", int(self._known(described, one, step)[0])))
            if tensor is None or not described.parts:
                raise NotRun(f"line {step.item.line} of the PTX copies a tile whose descriptor is not known")
            memory = int(self._known(shared, one, step)[0])
            size = tensor.bytes(4 if _is_rows(step.item) else 0)
            spans = [(memory, size)]
            barrier = int(self._known(operands[2], one, step)[0]) if is_load else None
            if barrier is not None:
                state = self._mbarrier(barrier, step)
                if state.bytes == state.landing:
                    # Of a phase that nobody waited for.
                    self._complete(barrier)
                self._listener.bulk_load(step.item, int(thread), spans, barrier, state.phase)
                state.landing += size
            else:
                self._listener.queue(step.item, "bulk store", one, spans, (), None)
            self._begin(TileCopy(step, one, tensor, described.parts[0], memory, barrier))

    def _begin(self, copy: TileCopy) -> None:
        """Take a copy, whose values nobody follows here."""

    def do_bulk_group(self, step: PtxStep, group: CtaGroup, on: _Integers) -> None:
        """cp.async.bulk.commit_group and wait_group."""
        if "commit_group" in step.suffixes:
            self._listener.commit("bulk store", on)
        else:
            self._listener.wait("bulk store", on, step.operands[0].value)

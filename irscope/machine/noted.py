"""Global memory of a run of which some values are not known: accesses are noted, with their addresses, and not made."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Union, cast

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.types import Type
from irscope.machine.accesses import ACCESSES as MADE
from irscope.machine.accesses import load_tile, masked_load, store_tile, tile_place
from irscope.machine.control import Bindings, Executor, Machine, Step
from irscope.machine.memory import GlobalMemory
from irscope.machine.numbers import (
    FAR,
    Integers,
    Number,
    Source,
    add,
    as_number,
    constant,
    merged,
    mixed,
    select,
    settled,
    unknown,
    wrapped,
)
from irscope.machine.programs import Programs, Weight
from irscope.machine.values import Array, bits_of, dtype_of, full
from irscope.machine.values import Held as Concrete

MOST_ELEMENTS = 1 << 20
"""Elements of a tensor; Triton allows no more."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is not computed: made a number only where one is asked for."""

    type: Type
    source: Source
    key: int
    programs: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, *self.type.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.type)

    def reshape(self, *shape: int) -> Opaque:
        """Of what nothing is known all is the same."""
        return self

    def __array_function__(self, *_: Any) -> Opaque:
        return self

    def number(self) -> Number:
        """Something unknown for each element; raises ValueError if the value is not made of integers."""
        kind, bits = self.type, bits_of(self.type)
        if not bits or prod(kind.shape) > MOST_ELEMENTS:
            raise ValueError(f"{kind.element.text if kind.element is not None else kind.text!r} is not an integer")
        shape = (self.programs, *kind.shape) if kind.form == "tensor" else (self.programs,)
        places = np.arange(prod(shape), dtype=np.int64).reshape(shape)
        low, high = (-1, 0) if bits == 1 else (-FAR, FAR)
        return replace(
            unknown(("opaque", self.key), (Number(places, 64),), bits, low, high), sources=frozenset({self.source})
        )


Held = Union[Number, Opaque, Concrete]  # noqa: UP007 (the classes are no types at run time under 3.10's isinstance)
LOST = Source("operation", "a value that could not be read")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands."""

    warps: int = 4
    depth: int = 0
    """Of calls and branches."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The integers that a tensor argument held at the launch."""

    begin: Number
    """The address of its first element."""
    values: Integers
    """By distance from the first element, in elements."""
    is_known: NDArray[np.bool_]
    """Which of these are elements of the tensor: strides may leave some out."""
    element_bytes: int

    def at(self, addresses: Number) -> tuple[Integers, NDArray[np.bool_]] | None:
        """(value, whether it is known) at each address; None where the addresses are not known themselves."""
        apart = add(addresses, replace(self.begin, argument=""), -1)
        if apart.tokens is not None:
            return None
        index = apart.known // self.element_bytes
        inside = (index >= 0) & (index < self.values.size)
        place = np.where(inside, index, 0)
        return self.values[place], inside & self.is_known[place]


def _loaded_data(addresses: Number, bits: int, source: Source, key: int, contents: Contents | None) -> Number:
    """What a load gives: what an argument held there, as far as that is known; elements of one address have one value.

    `key`: tells this execution of it apart. `contents`: what the argument held that it points into, if that is known.
    """
    tokens = mixed(("load", key), (addresses,))
    low, high = (-1, 0) if bits == 1 else (-FAR, FAR)
    values, sources = np.zeros(tokens.shape, np.int64), frozenset({source})
    if contents is not None:
        # What differs between programs, or iterations, gives them other data.
        sources |= addresses.sources
        if (known := contents.at(addresses)) is not None:
            values = np.where(known[1], wrapped(known[0], bits), 0)
            tokens = np.where(known[1], np.uint64(0), tokens)
    return settled(Number(values, bits, tokens, 1, low, high, sources))


@dataclass(frozen=True, slots=True)
class AccessExecution:
    """One execution of an access by each of some programs, or many that touch memory alike."""

    operation: Operation
    addresses: Number
    """In bytes; without an axis of programs."""
    mask: Number | None
    element_bits: int
    weight: Weight
    """How often each program executes it."""
    iterations: tuple[tuple[int, int], ...]
    """(token of the iteration's number, iterations) of the loops around it whose iterations are run at once."""
    warps: int
    is_box: bool
    """Whether it is a block of a descriptor, which one thread asks for."""

    @property
    def sources(self) -> frozenset[Source]:
        """On what it depends, and how often it is done."""
        return merged([self.addresses] if self.mask is None else [self.addresses, self.mask]) | self.weight.sources


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What some programs of a launch do."""

    programs: Programs
    executions: tuple[AccessExecution, ...]
    visits: tuple[tuple[Operation, Weight], ...]
    """Each operation as it was come to, and how often each program executes it."""
    notes: tuple[str, ...] = ()
    """Why it is incomplete; empty if it is not."""
    is_ended: bool = False
    """Whether it was ended before the kernel's end: nothing bounds what it would have done."""
    work: int = 0
    """How many operations it evaluated, an access as four."""
    unread: tuple[tuple[int, str], ...] = ()
    """(line, why) of accesses that were reached, but whose addresses could not be read."""


class NotedMemory(GlobalMemory):
    """Notes the accesses of a run, and makes none."""

    def __init__(self) -> None:
        super().__init__(())
        self.executions: list[AccessExecution] = []
        self.known_contents: Mapping[str, Contents] = {}
        """What arguments held, by name."""
        self.work = self._fresh = 0

    def fresh(self) -> int:
        """A number that tells one thing from all others of the run."""
        self._fresh += 1
        return self._fresh

    def begin(
        self, step: Step, frame: Bindings, warps: int, weight: Weight, iterations: tuple[tuple[int, int], ...],
        source: Source,
    ) -> None:  # fmt: skip
        """Say which operation makes the accesses that follow, how often, and what its data is."""
        self._step, self._frame, self._source = step, frame, source
        self._warps, self._weight, self._iterations = warps, weight, iterations

    def load(
        self, addresses: Array, mask: Array | None, other: Array | None, dtype: np.dtype[Any], rows: Array
    ) -> Array:
        step = self._step
        where = as_number(addresses)
        self._note(where, mask, dtype)
        bits = bits_of(step.types[0]) if step.types else 0
        if not bits:
            return cast(Array, Opaque(step.types[0] if step.types else NONE, self._source, self.fresh()))
        data = _loaded_data(where, bits, self._source, self.fresh(), self.known_contents.get(where.argument))
        if mask is not None and other is not None and not isinstance(other, Opaque):
            data = select(as_number(mask), data, as_number(other))
        return cast(Array, data)

    def store(self, addresses: Array, values: Array, mask: Array | None, rows: Array, dtype: np.dtype[Any]) -> None:
        self._note(as_number(addresses), mask, dtype)

    def update(
        self,
        addresses: Array,
        values: Sequence[Array],
        mask: Array | None,
        combine: Callable[..., Array],
        rows: Array,
        dtype: np.dtype[Any],
        *,
        is_used: bool = True,
    ) -> Array:
        self._note(as_number(addresses), mask, dtype)
        return cast(Array, Opaque(self._step.types[0] if self._step.types else NONE, self._source, self.fresh()))

    def _note(self, addresses: Number, mask: Array | None, dtype: np.dtype[Any]) -> None:
        step = self._step
        is_box = step.opcode in _BOXES
        shape = addresses.shape[1:] if is_box else _shape_of_pointers(step)
        self.work += 3 + (addresses.known.size >> 8)
        holds = as_number(mask) if mask is not None else None
        if step.opcode in _PREDICATED and holds is not None:
            holds = select(as_number(step.array(self._frame, "pred")), holds, constant(0, 1))
        execution = AccessExecution(
            step.operation, _without_programs(addresses, shape),
            None if holds is None else _without_programs(holds, shape), dtype.itemsize * 8, self._weight,
            self._iterations, self._warps, is_box,
        )  # fmt: skip
        self.executions.append(execution)


NONE = Type("none", "")
"""Of a value of which not even the type is known."""


def _shape_of_pointers(step: Step) -> tuple[int, ...]:
    value = next(value for name in ("offsets", "ptr", "src") for value in step.group(name)[:1])
    return step.operand_types[step.operands.index(value)].shape


def _without_programs(number: Number, shape: tuple[int, ...]) -> Number:
    missing = len(shape) + 1 - number.ndim
    number = number.shaped(lambda array: array.reshape((*(1,) * missing, *array.shape))[0])
    return replace(number, known=np.broadcast_to(number.known, shape))


def _copy(machine: Machine, step: Step, frame: Bindings) -> Sequence[Concrete]:
    """A copy into shared memory: of which the addresses alone matter."""
    name = "ptr" if step.group("ptr") else "src"
    pointer = step.operand_types[step.operands.index(step.group(name)[0])]
    element = pointer if pointer.form == "pointer" else cast(Type, pointer.element)
    masked_load(machine, step, frame, name, dtype_of(cast(Type, element.element)))
    return ()


def _copy_tile(machine: Machine, step: Step, frame: Bindings) -> Sequence[Concrete]:
    """A copy between a tile and shared memory."""
    tensor, offsets, rows = tile_place(step, frame)
    if rows is not None:
        rows = full(rows, step.operand_types[step.operands.index(step.group("x_offsets")[0])].shape)
    if step.opcode in _PREDICATED:
        load_tile(machine, tensor, offsets, frame, tensor.block, rows)
    else:
        kind = step.operand_types[step.operands.index(step.group("src")[0])]
        store_tile(machine, tensor, offsets, cast(Array, Opaque(kind, LOST, 0)), frame, rows)
    return ()


_PREDICATED = ("async_tma_copy_global_to_local", "async_tma_gather")
"""Their operand `pred` says whether they are done at all."""
_TILES = (*_PREDICATED, "async_tma_copy_local_to_global", "async_tma_scatter", "async_tma_reduce")
_DESCRIBED = ("descriptor_load", "descriptor_gather", "descriptor_store", "descriptor_scatter", "descriptor_reduce")
_BOXES = (*_TILES, *_DESCRIBED)
ACCESSES: Mapping[str, Executor] = {
    **{
        name: MADE[name]
        for name in (
            "load", "store", "atomic_rmw", "atomic_cas", "buffer_load", "buffer_store", "buffer_atomic_rmw",
            "buffer_atomic_cas", *_DESCRIBED,
        )
    },
    "async_copy_global_to_local": _copy, "buffer_load_to_local": _copy, **dict.fromkeys(_TILES, _copy_tile),
}  # fmt: skip

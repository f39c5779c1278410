"""The registers, operands and addresses of SASS on NumPy.

A register holds an array of rows (warps) by lanes, each dimension of size 1 where all have one value, as integers from
0 to 2**32; a predicate an array of bools. None stands for a value that is not known: data, and floating point.

"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.ir.asm.operands import SASS_ADDRESS, SASS_CONSTANT, SASS_OPERAND

__all__ = [
    "ARRAY_BITS", "MASK", "TRUE", "ZERO", "Array", "Assumptions", "Read", "Registers", "SharedWords", "State", "Step",
    "Value", "WordsForWorkers", "address_of", "constant", "guess_of", "mixed", "next_register", "operand", "predicate",
    "signed32", "wide", "width_of",
]  # fmt: skip

Array = NDArray[Any]
Value = Array | None
Registers = dict[str, Value]

MASK = 0xFFFFFFFF
ARRAY_BITS = 36
"""Each argument lies at a multiple of 2**36."""
ZERO = np.zeros((1, 1), np.int64)
TRUE = np.ones((1, 1), np.bool_)
_FALSE = np.zeros((1, 1), np.bool_)


_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1, "F32x4": 16, "F32x2": 8, "16": 16}


def width_of(opcode: str) -> int:
    """The bytes that a load or a store accesses in each lane."""
    return next((_WIDTHS[part] for part in opcode.split(".")[1:] if part in _WIDTHS), 4)


@dataclass(slots=True)
class Assumptions:
    """What stands for data, of which a capture holds small integers alone; the walks of one launch share it."""

    notes: set[str] = field(default_factory=set[str])
    origins: dict[int, str] = field(default_factory=dict[int, str])
    """Offset of an instruction whose data are assumed, other than a load of an index → what is."""
    ranges: dict[int, int] = field(default_factory=dict[int, int])
    """Offset of a load → how many different values it gives, from 0 on: uniformly distributed ones."""
    value: int | None = None
    """What every load gives, in place of these."""
    iterations: dict[int, int] = field(default_factory=dict[int, int])
    """Branch that ends a loop where data decide → how often the loop runs."""
    adjacent: set[int] = field(default_factory=set[int])
    """Offsets of loads of an index that lie next to one another: the first and the last of a row may be such."""
    rising: set[int] = field(default_factory=set[int])
    """Offsets of loads whose values rise with their place, as offsets of rows and sorted indices do."""
    array_bytes: Mapping[int, int] = field(default_factory=dict[int, int])
    wide: set[int] = field(default_factory=set[int])
    """Arguments whose elements have 64 bits."""
    floats: set[int] = field(default_factory=set[int])
    """Arguments whose elements are float32, in a kernel that computes indices of floating-point numbers."""
    float_loads: set[int] = field(default_factory=set[int])
    """Offsets of the loads of these."""
    contents: dict[int, tuple[int, NDArray[np.uint8]]] = field(default_factory=dict[int, tuple[int, NDArray[np.uint8]]])
    """Argument whose data the capture holds → where its first element lies, and the bytes from there on."""
    drawn: dict[int, str] = field(default_factory=dict[int, str])
    """Argument whose data stand in for random numbers → its name."""
    ctas: int = 1

    def held(self, address: Array, size: int) -> list[Array] | None:
        """The words that a load of so many bytes in each lane gives; None where the capture does not hold the data.

        Behind the tensor's end, where only lanes read that a mask switches off, they are 0.
        """
        found = self.contents.get(int(address.flat[0] >> ARRAY_BITS))
        if found is None:
            return None
        if name := self.drawn.get(int(address.flat[0] >> ARRAY_BITS)):
            self.notes.add(f"random numbers stand in for those that the script draws for {name}")
        begin, content = found
        first = (address & (1 << ARRAY_BITS) - 1) - begin
        words: list[Array] = []
        for start in range(0, size, 4):
            word = np.zeros(address.shape, np.int64)
            for number in range(start, min(start + 4, size)):
                place = first + number
                inside = (place >= 0) & (place < len(content))
                byte = np.where(inside, content[np.where(inside, place, 0)], 0).astype(np.int64)
                word |= byte << 8 * (number - start)
            words.append(word)
        return words

    def rises(self, offset: int, address: Array, size: int, lanes: int) -> bool:
        """Whether what a load gives rises: all lanes read one place, and rows begin there or many places share a value.

        One lane does not tell: the walk of all lanes, which is the first, does.
        """
        if offset in self.rising or lanes == 1 or (address != address[:, :1]).any():
            return offset in self.rising
        count = self.array_bytes.get(int(address.flat[0] >> ARRAY_BITS), 0) // size
        if count > 1 and (offset in self.adjacent or 2 * self.ranges.get(offset, 1 << 31) <= count):
            self.rising.add(offset)
            self.notes.add(
                "rows with loaded offsets are assumed equally long"
                if offset in self.adjacent
                else "loaded indices with repeats are assumed sorted"
            )
        return offset in self.rising


class SharedWords:
    """The shared memory of CTAs, for the integers that go through it: addresses change their layout there.

    Where a state has one lane of a warp, a load gives what the lane stored last: other lanes' values are not known.
    """

    def __init__(self, size: int, lanes: int, ctas: int = 1) -> None:
        # What a kernel declares begins behind 1 KiB that is the system's.
        self.count = (size + 1024) // 4 + 4
        """Words of a CTA."""
        room = self.count * ctas if lanes > 1 else 0
        self.words = np.zeros(room, np.int64) if room else None
        self.is_known = np.zeros(room, np.bool_)
        self.last: Sequence[Value] = ()
        self.origins: frozenset[int] | None = None
        """The loads of unknown data that what is stored comes from; None where it comes from no load."""

    def store(
        self, begin: Array, address: Value, values: Sequence[Value], active: Value, origins: frozenset[int] | None
    ) -> None:
        """`begin`: the first word of each row's CTA."""
        if origins is not None:
            self.origins = (self.origins or frozenset()) | origins
        if self.words is None:
            self.last = values
            return
        if address is None:
            self.is_known[:] = False
            return
        for number, value in enumerate(values):
            places = np.minimum((address >> 2) + number, self.count - 1) + begin
            mask = TRUE if active is None else active
            shape = np.broadcast_shapes(places.shape, mask.shape, (1, 32) if value is None else (*value.shape[:1], 32))
            chosen = np.broadcast_to(mask, shape)
            places = np.broadcast_to(places, shape)[chosen]
            self.is_known[places] = value is not None
            if value is not None:
                self.words[places] = np.broadcast_to(value, shape)[chosen]

    def chosen(self, choose: Callable[[Array], Array]) -> SharedWords:
        """Of some of the rows: itself where all lanes are walked, else what these stored last."""
        if self.words is not None:
            return self
        found = SharedWords(0, 1)
        found.last = [value if value is None else choose(value) for value in self.last]
        found.origins = self.origins
        return found

    def load(self, begin: Array, address: Value, number: int) -> Value:
        if self.words is None:
            return self.last[number % len(self.last)] if self.last else None
        if address is None:
            return None
        places = np.minimum((address >> 2) + number, self.count - 1) + begin
        return self.words[places] if self.is_known[places].all() else None


class WordsForWorkers:
    """What the first warps of a warp-specialised kernel store at places that all of them share: which partition each
    worker warp runs next, a byte for each, and the values that the partitions take from the code around them.

    The first warps are walked before the workers, so a load has the store whose turn it is.
    """

    def __init__(self) -> None:
        self._stored: dict[int, list[Value]] = {}
        """Address of a word → what was stored there, one after another."""

    def store(self, address: Value, values: Sequence[Value]) -> None:
        if address is None or address.size != 1:
            return
        for number, value in enumerate(values):
            shared = value if value is not None and value.size == 1 else None
            self._stored.setdefault(int(address.flat[0]) + 4 * number, []).append(shared)

    def load(self, address: Value, turn: int) -> Value:
        """A word, of the store whose turn it is or the last one."""
        if address is None or address.size != 1 or not (stored := self._stored.get(int(address.flat[0]))):
            return None
        return stored[min(turn, len(stored)) - 1]

    def partitions(self, address: Value, turn: int) -> Value:
        """The bytes at the addresses of some warps; None if one of them is not known."""
        if address is None or (address != address[:, :1]).any():
            return None
        found: list[int] = []
        for place in map(int, address[:, 0]):
            stored = self._stored.get(place & ~3, [])
            word = stored[turn - 1] if turn <= len(stored) else None
            if word is None:
                return None
            found.append(int(word.flat[0]) >> 8 * (place & 3) & 255)
        return np.array(found, np.int64)[:, None]


@dataclass(slots=True)
class State:
    """The registers of some warps that take the same way, and what they are launched with."""

    rows: int
    lanes: int
    registers: Registers
    constants: Mapping[int, int]
    """Offset in the bank of parameters → the 32 bits there."""
    special: Mapping[str, Array]
    """SR_TID.X, SR_CTAID.X, … → their values."""
    assumed: Assumptions = field(default_factory=Assumptions)
    data: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    """Register that holds what a load gave, or what was computed of it → the offsets of the loads whose data are not
    known; none where the capture holds all of it."""
    shared: SharedWords | None = None
    """Where addresses go through shared memory."""
    workers: WordsForWorkers | None = None
    """In a warp-specialised kernel."""
    turn: int = 0
    """How often these warps have been told what to run."""
    partition: Value = None
    """What they were told last."""
    guesses: Registers = field(default_factory=Registers)
    """Predicate that data decide → the lanes in which it is taken to hold, where it selects what becomes an address."""
    guessed: int = 0
    """How many were guessed."""


Step = Callable[[State], None]
Read = Callable[[State], Value]


def constant(offset: int) -> Read:
    def read(state: State) -> Value:
        value = state.constants.get(offset)
        return None if value is None else np.full((1, 1), value, np.int64)

    return read


@lru_cache(1 << 14)
def operand(text: str) -> Read:
    """How an operand of 32 bits is read."""
    if match := SASS_CONSTANT.search(text):
        if int(match["bank"], 16):
            # Addresses of functions, literals and jump tables.
            return lambda state: None
        return _signed(constant(int(match["offset"], 16)), text)
    if match := SASS_OPERAND.match(text):
        name = match["name"]
        if name in ("RZ", "URZ", "SRZ"):
            value = np.full((1, 1), MASK, np.int64) if match["inverted"] else ZERO
            return lambda state: value
        plain: Read = lambda state: state.registers.get(name)  # noqa: E731
        if "H" in match["rest"].replace(".reuse", ""):
            return lambda state: None
        return _signed(plain, text)
    try:
        number = np.full((1, 1), int(text, 16) & MASK, np.int64)
    except ValueError:
        return lambda state: None
    return lambda state: number


def _signed(read: Read, text: str) -> Read:
    if "|" in text:
        inner = read
        read = lambda state: _absolute(inner(state))  # noqa: E731
    if text.startswith("-"):
        return lambda state: None if (value := read(state)) is None else -value & MASK
    if text.startswith("~"):
        return lambda state: None if (value := read(state)) is None else value ^ MASK
    return read


def _absolute(value: Value) -> Value:
    return None if value is None else np.abs(signed32(value))


def signed32(value: Array) -> Array:
    return (value ^ 0x80000000) - 0x80000000


@lru_cache(1 << 12)
def predicate(text: str) -> Read:
    """How a predicate operand is read: `P0`, `!UP1`, `PT`."""
    text = text.lstrip("@")
    inverted, name = text.startswith("!"), text.lstrip("!")
    if name in ("PT", "UPT"):
        value = _FALSE if inverted else TRUE
        return lambda state: value
    if not inverted:
        return lambda state: state.registers.get(name)
    return lambda state: None if (value := state.registers.get(name)) is None else ~value


@lru_cache(1 << 12)
def guess_of(text: str) -> Read:
    """What a predicate operand that data decide is taken to be; None where nothing is."""
    text = text.lstrip("@")
    name = text.lstrip("!")
    if text != name:
        return lambda state: None if (value := state.guesses.get(name)) is None else ~value
    return lambda state: state.guesses.get(name)


def mixed(number: Array) -> Array:
    """Random integers from 0 to 2**31 that numbers decide."""
    number = number * 0x1E3779B97F4A7C15
    number = (number ^ number >> 32) * 0x14D049BB133111EB
    return number >> 33 & 0x7FFFFFFF


def next_register(name: str, step: int = 1) -> str:
    """`R5` behind `R4`."""
    head = name.rstrip("0123456789")
    return name if head == name else f"{head}{int(name[len(head) :]) + step}"


def wide(text: str) -> Read:
    """How an operand of 64 bits is read."""
    if match := SASS_CONSTANT.search(text):
        low, high = constant(int(match["offset"], 16)), constant(int(match["offset"], 16) + 4)
    elif (match := SASS_OPERAND.match(text)) and match["name"] not in ("RZ", "URZ"):
        low, high = operand(match["name"]), operand(next_register(match["name"]))
    else:
        return operand(text)
    return lambda state: None if (a := low(state)) is None or (b := high(state)) is None else a | b << 32


@dataclass(frozen=True, slots=True)
class Address:
    """An address operand: what is added up to it."""

    parts: tuple[Read, ...]
    offset: int
    names: tuple[str, ...] = ()
    """The registers that are read."""

    def origins(self, state: State) -> frozenset[int]:
        """The loads that decide the address; none where it does not depend on data."""
        if not state.data:
            return frozenset()
        return frozenset().union(*(state.data.get(name, frozenset()) for name in self.names))

    def value(self, state: State) -> Value:
        """The address in each lane; None if it is not known."""
        total: Array = np.full((1, 1), self.offset, np.int64)
        for part in self.parts:
            if (value := part(state)) is None:
                return None
            total = total + value
        return total


@lru_cache(1 << 12)
def address_of(text: str) -> Address | None:
    """Read an address operand; None if the text is none."""
    match = SASS_ADDRESS.search(text)
    if match is None:
        return None
    parts: list[Read] = []
    names: list[str] = []
    offset = 0
    for piece in match["inside"].replace("+-", "+~-").split("+"):
        piece = piece.replace("~-", "-")
        if piece.lstrip("-").startswith("0x"):
            offset += int(piece, 16)
            continue
        name, *rest = piece.split(".")
        if name in ("RZ", "URZ"):
            continue
        names.append(name)
        if "64" in rest:
            names.append(next_register(name))
            parts.append(wide(name))
        elif scale := next((int(one[1:]) for one in rest if one.startswith("X") and one[1:].isdecimal()), 0):
            parts.append(_scaled(operand(name), scale))
        else:
            # A uniform register beside a descriptor is 64 bits wide where the vector register is absent or narrow.
            parts.append(operand(name))
    return Address(tuple(parts), offset, tuple(names))


def _scaled(read: Read, scale: int) -> Read:
    return lambda state: None if (value := read(state)) is None else value * scale

"""LinearLayout: what the compiler makes of every layout, a linear map over GF(2) from hardware indices to elements.

Each bit of an input (register, lane, warp and block; or offset and block; or row and column) has a basis vector, and
the element is the exclusive or of the vectors of the bits that are set. Source: the class comment of
`include/triton/Tools/LinearLayout.h` in Triton, and "Linear Layouts" (Zhou et al., 2025, arXiv:2505.23819).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from irscope.errors import ParseError, UsageError

Vector = tuple[int, ...]

MAX_BITS = 48
"""Bits of all inputs, or of an element's index: more than any GPU's memory needs."""


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """A linear map from named inputs, each of a power of two of values, to coordinates."""

    bases: tuple[tuple[str, tuple[Vector, ...]], ...]
    """(input, a vector over the outputs for each of its bits, the lowest first)."""
    out_dims: tuple[tuple[str, int], ...]
    """(output, size); every size is a power of two."""

    @staticmethod
    def of(
        bases: Mapping[str, Sequence[Sequence[int]]], shape: Sequence[int], names: Sequence[str] = ()
    ) -> LinearLayout:
        """A layout of plain lists, its outputs `dim0`, `dim1`, … unless they are named.

        Raises UsageError where a size is no power of two, or a vector has the wrong length or leaves the shape.
        """
        if sum((size - 1).bit_length() for size in shape) > MAX_BITS or sum(map(len, bases.values())) > MAX_BITS:
            raise UsageError(f"a layout of {tuple(shape)!r} is larger than irscope reads: {MAX_BITS} bits.")
        outputs = tuple(zip(names or [f"dim{i}" for i in range(len(shape))], shape, strict=True))
        for name, size in outputs:
            if size < 1 or size & (size - 1):
                raise UsageError(f"{name} has {size} elements: a linear layout's sizes are powers of two.")
        vectors = tuple((name, tuple(tuple(vector) for vector in rows)) for name, rows in bases.items())
        for name, rows in vectors:
            for vector in rows:
                if len(vector) != len(outputs):
                    raise UsageError(
                        f"a basis of {name!r}, {vector!r}, has {len(vector)} parts: there are {len(outputs)} outputs."
                    )
                if any(not 0 <= part < max(size, 1) for part, (_, size) in zip(vector, outputs, strict=True)):
                    raise UsageError(f"a basis of {name!r}, {vector!r}, leaves the shape {tuple(shape)!r}.")
        return LinearLayout(vectors, outputs)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LinearLayout:
        """Read what `to_json` made; raises ParseError."""
        try:
            rows = cast("Mapping[str, Sequence[Sequence[int]]]", data["bases"])
            outs = cast("Sequence[Sequence[Any]]", data["out_dims"])
            return LinearLayout.of(rows, [int(size) for _, size in outs], [str(name) for name, _ in outs])
        except (KeyError, TypeError, ValueError, UsageError) as error:
            raise ParseError(f"this is no linear layout ({error}): it has 'bases' and 'out_dims'.") from error

    def to_json(self) -> dict[str, Any]:
        """`{"bases": {input: [[…], …]}, "out_dims": [[name, size], …]}`."""
        return {
            "bases": {name: [list(vector) for vector in rows] for name, rows in self.bases},
            "out_dims": [list(pair) for pair in self.out_dims],
        }

    def __str__(self) -> str:
        lines = [f"{name}: {', '.join(str(list(vector)) for vector in rows) or 'none'}" for name, rows in self.bases]
        return "\n".join([*lines, "to " + ", ".join(f"{name} {size}" for name, size in self.out_dims)])

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the outputs."""
        return tuple(size for _, size in self.out_dims)

    @property
    def in_dims(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(name for name, _ in self.bases)

    def in_size(self, name: str) -> int:
        """How many values an input has; 1 for one the layout does not have."""
        return 1 << len(self.vectors(name))

    def vectors(self, name: str) -> tuple[Vector, ...]:
        """The basis vectors of an input, none for one the layout does not have."""
        return next((rows for input_, rows in self.bases if input_ == name), ())

    def apply(self, **inputs: int) -> Vector:
        """The coordinates for some values of the inputs; what is not given is 0. Raises UsageError."""
        result = [0] * len(self.out_dims)
        for name, value in inputs.items():
            if name not in self.in_dims:
                raise UsageError(f"the layout has no input {name!r}: it has {', '.join(self.in_dims)}.")
            if not 0 <= value < self.in_size(name):
                raise UsageError(f"{name} {value} is out of range: there are {self.in_size(name)}.")
            for bit, vector in enumerate(self.vectors(name)):
                if value >> bit & 1:
                    result = [a ^ b for a, b in zip(result, vector, strict=True)]
        return tuple(result)

    # As one matrix: an input's bits, the first input's lowest first, to the row-major index of the element.

    def flat_bases(self) -> tuple[int, ...]:
        """Each basis vector as the row-major index of its element, all inputs one after another."""
        return tuple(self.flatten(vector) for _, rows in self.bases for vector in rows)

    def flatten(self, coordinates: Sequence[int]) -> int:
        """The row-major index of an element: the last output runs fastest."""
        index = 0
        for part, (_, size) in zip(coordinates, self.out_dims, strict=True):
            index = index * size + part
        return index

    def unflatten(self, index: int) -> Vector:
        """The coordinates of a row-major index."""
        parts: list[int] = []
        for _, size in reversed(self.out_dims):
            parts.append(index % size)
            index //= size
        return tuple(reversed(parts))

    @property
    def in_bits(self) -> int:
        """Bits of all inputs together."""
        return sum(len(rows) for _, rows in self.bases)

    @property
    def out_bits(self) -> int:
        """Bits of an element's index."""
        return sum((size - 1).bit_length() for _, size in self.out_dims)

    def matrix(self) -> tuple[tuple[int, ...], ...]:
        """The matrix over GF(2): a row an output bit (the index's highest first), a column an input bit."""
        columns = self.flat_bases()
        return tuple(tuple(column >> bit & 1 for column in columns) for bit in reversed(range(self.out_bits)))

    def all_elements(self) -> list[int]:
        """The row-major element index of every input, the first input's bits running fastest."""
        elements = [0]
        for base in self.flat_bases():
            elements += [element ^ base for element in elements]
        return elements

    def kernel(self) -> tuple[int, ...]:
        """A basis of the inputs that change nothing: combinations of input bits that lead to element 0."""
        return eliminate(self.flat_bases())[1]

    @property
    def rank(self) -> int:
        """How many bits of the element the inputs decide."""
        return len(eliminate(self.flat_bases())[0])

    @property
    def is_injective(self) -> bool:
        """Whether no two inputs lead to one element."""
        return self.rank == self.in_bits

    @property
    def is_surjective(self) -> bool:
        """Whether every element is led to."""
        return self.rank == self.out_bits

    def invert(self) -> LinearLayout:
        """The map from an element's index (`element`) back to the inputs; of several inputs the least by elimination.

        Raises UsageError where some element has none.
        """
        if not self.is_surjective:
            raise UsageError("the layout can't be inverted: it leaves elements out.")
        pivots, _ = eliminate(self.flat_bases())
        rows = [self._split_input(solve(pivots, 1 << bit)) for bit in range(self.out_bits)]
        return LinearLayout.of({"element": rows}, [self.in_size(name) for name in self.in_dims], self.in_dims)

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """First this, then `outer`, which takes this layout's element index (or its outputs by name) as inputs.

        Raises UsageError where the inputs of `outer` are not this layout's outputs.
        """
        names = tuple(name for name, _ in self.out_dims)
        if outer.in_dims != ("element",) and outer.in_dims != names:
            raise UsageError(f"can't compose: the inputs {outer.in_dims!r} are not the outputs {names!r}.")

        def through(vector: Vector) -> Vector:
            if outer.in_dims == ("element",):
                return outer.apply(element=self.flatten(vector))
            return outer.apply(**dict(zip(names, vector, strict=True)))

        return LinearLayout(tuple((name, tuple(map(through, rows))) for name, rows in self.bases), outer.out_dims)

    def _split_input(self, bits: int) -> Vector:
        parts: list[int] = []
        for _, rows in self.bases:
            parts.append(bits & ((1 << len(rows)) - 1))
            bits >>= len(rows)
        return tuple(parts)


class Preimage:
    """For each element, by its row-major index, the least input that leads to it; -1 where none does.

    Which input is the least of those that lead to an element is linear in the element, too: it is computed from the
    bases for the elements that are asked for, however large the tensor is.
    """

    def __init__(self, layout: LinearLayout) -> None:
        self._pivots, kernel = eliminate(layout.flat_bases())
        same = eliminate(kernel)[0]
        self._same = [same[bit][0] for bit in sorted(same, reverse=True)]
        self.size = 1 << layout.out_bits
        self._columns = [self._least(1 << bit) for bit in range(layout.out_bits)] if layout.is_surjective else None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, element: int) -> int:
        if not 0 <= element < self.size:
            raise IndexError(element)
        if self._columns is None:
            return self._least(element)
        return combined(self._columns, element)

    def _least(self, element: int) -> int:
        rest, place = _reduce(self._pivots, element, 0)
        if rest:
            return -1
        for vector in self._same:
            place = min(place, place ^ vector)
        return place


def eliminate(columns: Sequence[int]) -> tuple[dict[int, tuple[int, int]], tuple[int, ...]]:
    """Gauss's elimination over GF(2).

    Returns, for each pivot bit, (vector, the combination of columns that makes it), and a basis of the combinations
    that make nothing: bit i of a combination stands for column i.
    """
    pivots: dict[int, tuple[int, int]] = {}
    kernel: list[int] = []
    for number, column in enumerate(columns):
        vector, combination = _reduce(pivots, column, 1 << number)
        if vector:
            pivots[vector.bit_length() - 1] = (vector, combination)
        else:
            kernel.append(combination)
    return pivots, tuple(kernel)


def solve(pivots: Mapping[int, tuple[int, int]], vector: int) -> int:
    """The combination of columns that makes a vector; raises UsageError where there is none."""
    rest, combination = _reduce(pivots, vector, 0)
    if rest:
        raise UsageError(f"no input leads to element {vector}.")
    return combination


def _reduce(pivots: Mapping[int, tuple[int, int]], vector: int, combination: int) -> tuple[int, int]:
    while vector and (found := pivots.get(vector.bit_length() - 1)) is not None:
        vector ^= found[0]
        combination ^= found[1]
    return vector, combination


def combined(vectors: Iterable[int], choice: int) -> int:
    """The combination of some vectors: bit i of `choice` stands for the i-th."""
    result = 0
    for vector in vectors:
        if choice & 1:
            result ^= vector
        choice >>= 1
    return result


def span(vectors: Iterable[int]) -> list[int]:
    """Every combination of some vectors, the first one's multiples running fastest."""
    values = [0]
    for vector in vectors:
        values += [value ^ vector for value in values]
    return values

"""LinearLayout: a linear map over GF(2) from hardware indices to elements, which is what Triton makes of every layout.

Each bit of an input (register, lane, warp and block; or offset and block; or row and column) has a basis vector, and
the element is the exclusive or of the vectors of the bits that are set. Source: the class comment of
`include/triton/Tools/LinearLayout.h` in Triton, and "Linear Layouts" (Zhou et al., 2025, arXiv:2505.23819).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irscope.errors import UsageError

__all__ = ["MAX_BITS", "LinearLayout", "Vector"]

Vector = tuple[int, ...]

MAX_BITS = 48
"""Bits of all inputs, or of an element's index: more than any GPU's memory needs."""


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """A linear map from named inputs, whose sizes are powers of two, to the coordinates of an element."""

    bases: tuple[tuple[str, tuple[Vector, ...]], ...]
    """(input, one vector over the outputs for each bit of the input, the lowest bit first)."""
    out_dims: tuple[tuple[str, int], ...]
    """(output, size); every size is a power of two."""

    @staticmethod
    def of(
        bases: Mapping[str, Sequence[Sequence[int]]], shape: Sequence[int], names: Sequence[str] = ()
    ) -> LinearLayout:
        """A layout from plain lists; its outputs are `dim0`, `dim1`, … unless `names` gives others.

        Raises UsageError if a size is not a power of two, or a vector has the wrong length or leaves the shape.
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
                if any(not 0 <= part < size for part, (_, size) in zip(vector, outputs, strict=True)):
                    raise UsageError(f"a basis of {name!r}, {vector!r}, leaves the shape {tuple(shape)!r}.")
        return LinearLayout(vectors, outputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the outputs."""
        return tuple(size for _, size in self.out_dims)

    @property
    def in_dims(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(name for name, _ in self.bases)

    def in_size(self, name: str) -> int:
        """How many values an input has; 1 for an input that the layout does not have."""
        return 1 << len(self.vectors(name))

    def vectors(self, name: str) -> tuple[Vector, ...]:
        """The basis vectors of an input; empty for an input that the layout does not have."""
        return next((rows for input_, rows in self.bases if input_ == name), ())

    def apply(self, **inputs: int) -> Vector:
        """The coordinates for the given inputs, the others being 0; raises UsageError for one that is out of range."""
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

    # As one matrix: from the bits of the inputs, the first input's lowest bit first, to the row-major element index.

    def flat_bases(self) -> tuple[int, ...]:
        """Each basis vector as the row-major index of its element, one input after another."""
        return tuple(index for name in self.in_dims for index in self.flat_vectors(name))

    def flat_vectors(self, name: str) -> tuple[int, ...]:
        """The basis vectors of one input as row-major element indices."""
        return tuple(self.flatten(vector) for vector in self.vectors(name))

    def flatten(self, coordinates: Sequence[int]) -> int:
        """The row-major index of an element: the last output varies fastest."""
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

    def all_elements(self) -> list[int]:
        """The row-major element index of every input, the first input's bits varying fastest."""
        elements = [0]
        for base in self.flat_bases():
            elements += [element ^ base for element in elements]
        return elements

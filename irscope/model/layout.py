"""The layouts of a module as values: linear maps over GF(2), rows with their uses and answers, and their JSON form.

Each bit of an input (register, lane, warp and block; or offset and block; or row and column) has a basis vector, and
the element is the exclusive or of the vectors of the bits that are set. Source: the class comment of
`include/triton/Tools/LinearLayout.h` in Triton, and "Linear Layouts" (Zhou et al., 2025, arXiv:2505.23819).

The fields are described in docs/capture-format.md. It needs the standard library alone: another interpreter's child
process writes it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from irscope.errors import UsageError
from irscope.model.plain import built, tupled

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
                    raise UsageError(f"a basis of {name!r}, {vector!r}, is outside the shape {tuple(shape)!r}.")
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


RefusalCode = Literal[
    "unasked", "no-triton", "unknown-encoding", "shape", "unreadable", "unsupported", "crash", "error", "damaged"
]
"""`unasked`: the compiler was not queried, or could not be. `no-triton`: no Triton is installed there.
`unknown-encoding`: irscope has no rule for where such an encoding puts its elements. `shape`: a size is not a power of
two. `unreadable`: the compiler does not parse the type. `unsupported`: this version of Triton gives no map of it.
`crash`: the compiler's process ended or hung at the question. `error`: the compiler raised. `damaged`: the stored bases
are not a linear layout."""


@dataclass(frozen=True, slots=True)
class LayoutMap:
    """The compiler's own map of a layout. A swizzle is part of the bases."""

    layout: LinearLayout
    """In registers from register, lane, warp and block; in shared memory from offset (in elements) and block; in tensor
    memory from row and column; to the element of the tensor."""
    padding: tuple[tuple[int, int], ...] = ()
    """(interval, padding) in elements: after each interval of offsets so many elements of memory hold nothing."""
    note: str = ""
    """What the map leaves out; or an empty string."""


@dataclass(frozen=True, slots=True)
class LayoutRefusal:
    """Why there is no map of a layout."""

    code: RefusalCode
    message: str
    """For people: no decision depends on it."""


LayoutAnswer = LayoutMap | LayoutRefusal

UNASKED = LayoutRefusal("unasked", "the compiler was not queried")


@dataclass(frozen=True, slots=True)
class LayoutUse:
    """All operations of one name that use a layout."""

    name: str = ""
    """`tt.load`."""
    lines: tuple[int, ...] = ()
    """Their lines in the TTGIR, 1-based."""
    values: tuple[str, ...] = ()
    """Their results that have the layout: `%acc`."""
    python: tuple[str, ...] = ()
    """Their lines of Python, `file:line`: of each the innermost one outside Triton's library."""
    chains: tuple[tuple[str, ...], ...] = ()
    """The chains of calls that lead to them, `file:line` per frame, innermost first."""


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """One (encoding, shape) of a TTGIR module."""

    alias: str = ""
    """As the module writes it: `#blocked1`, or the whole encoding; or an empty string for a layout given as text."""
    encoding: str = ""
    """The text of the encoding, without aliases."""
    shape: tuple[int, ...] = ()
    """The shape that the layout covers: of a memory descriptor, one buffer of its whole allocation."""
    elements: tuple[str, ...] = ()
    """The element types it is used with, the first one first."""
    buffers: int = 1
    """The buffers of a memory descriptor with a leading dimension; 1 otherwise."""
    operations: tuple[LayoutUse, ...] = ()
    answer: LayoutAnswer = UNASKED

    @property
    def map(self) -> LayoutMap | None:
        """The compiler's map, or None."""
        return self.answer if isinstance(self.answer, LayoutMap) else None

    @property
    def reason(self) -> str:
        """Why there is no map, or an empty string."""
        return self.answer.message if isinstance(self.answer, LayoutRefusal) else ""


_CODES: tuple[RefusalCode, ...] = get_args(RefusalCode)


def layout_to_json(row: LayoutRow) -> dict[str, Any]:
    """A row as plain values: its fields, and those of its answer."""
    return {
        "alias": row.alias,
        "encoding": row.encoding,
        "shape": list(row.shape),
        "elements": list(row.elements),
        "buffers": row.buffers,
        "operations": [asdict(use) for use in row.operations],
        **_answer_to_json(row.answer),
    }


def layout_from_json(data: Mapping[str, Any]) -> LayoutRow:
    """Read what `layout_to_json` wrote; the types of the values are not checked."""
    operations = tuple(built(LayoutUse, use) for use in data.get("operations", ()))
    return built(LayoutRow, data, operations=operations, answer=_answer_from_json(data))


def _answer_to_json(answer: LayoutAnswer) -> dict[str, Any]:
    """`bases` and `out_dims` of a map, with `padding` and `note` where it has them; or `code` and `reason`."""
    if isinstance(answer, LayoutRefusal):
        return {"code": answer.code, "reason": answer.message}
    data: dict[str, Any] = {
        "bases": {name: [list(vector) for vector in vectors] for name, vectors in answer.layout.bases},
        "out_dims": [list(pair) for pair in answer.layout.out_dims],
    }
    if answer.padding:
        data["padding"] = [list(pair) for pair in answer.padding]
    return data | ({"note": answer.note} if answer.note else {})


def _answer_from_json(data: Mapping[str, Any]) -> LayoutAnswer:
    """A map or a refusal; bases that are not a linear layout become a refusal."""
    if "bases" not in data:
        code, reason = data.get("code"), data.get("reason", "")
        return LayoutRefusal(code if code in _CODES else "unasked", reason) if reason else UNASKED
    try:
        sizes = data["out_dims"]
        layout = LinearLayout.of(data["bases"], [size for _, size in sizes], [name for name, _ in sizes])
    except (KeyError, UsageError) as error:
        return LayoutRefusal("damaged", f"this is not a linear layout ({error}): it has 'bases' and 'out_dims'.")
    return LayoutMap(layout, tupled(data.get("padding", ())), data.get("note", ""))

"""Maps that follow from the text of an encoding alone, for machines without Triton; the compiler's own come first.

Sources: `lib/Dialect/TritonGPU/IR/LinearLayoutConversions.cpp` and TritonGPUAttrDefs.td in Triton. The tests compare
each map with the installed compiler's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from irscope.errors import UsageError
from irscope.ir.mlir.attributes import Encoding, Padding
from irscope.layout.maps import is_surjective
from irscope.model.layout import LayoutMap, LinearLayout, Vector

_NOTE = "computed by irscope from the text: Triton, whose answer is used otherwise, is not installed here"
_Bases = dict[str, list[Vector]]


def computed_map(encoding: Encoding, shape: Sequence[int]) -> LayoutMap | None:
    """The map of an encoding that `irscope.layout.typed` has read; None for kinds whose map only the compiler knows.

    Raises UsageError if its vectors are none that the compiler takes.
    """
    padding = tuple(pair for pair in cast("Sequence[Padding]", encoding[""] or ()))
    bases = _bases(encoding, tuple(shape))
    if bases is None:
        return None
    layout = LinearLayout.of(bases, shape)
    if not is_surjective(layout):
        raise UsageError(f"{encoding.text} leaves elements out of a {'×'.join(map(str, shape))} tensor.")
    vectors = [vector for name, rows in layout.bases if name != "block" for vector in rows]
    if encoding.kind in ("linear", "padded_shared") and any(sum(map(int.bit_count, vector)) > 1 for vector in vectors):
        raise UsageError(f"{encoding.text}: each vector must be one power of two in one dimension, or zero.")
    return LayoutMap(layout, tuple((pair.interval, pair.length) for pair in padding), _NOTE)


def _bases(encoding: Encoding, shape: Vector) -> _Bases | None:
    if encoding.kind in ("linear", "generic_linear"):
        return _fitted({name: _vectors(encoding, name) for name in ("register", "lane", "warp")}, encoding, shape)
    if encoding.kind == "blocked":
        order = _sizes(encoding, "order")
        names = {"register": "sizePerThread", "lane": "threadsPerWarp", "warp": "warpsPerCTA"}
        factors = {name: _sizes(encoding, parameter) for name, parameter in names.items()}
        return _fitted(_standard(factors, order), encoding, shape, order)
    if encoding.kind == "slice":
        return _of_slice(encoding, shape)
    if encoding.kind in ("shared_linear", "padded_shared") and encoding["offset"] is not None:
        return {"offset": _vectors(encoding, "offset"), "block": _vectors(encoding, "block")}
    if encoding.kind == "padded_shared":
        order = _sizes(encoding, "order")
        return _fitted(_standard({"offset": _per_block(encoding, shape)}, order), encoding, shape, order)
    if encoding.kind == "swizzled_shared":
        return _of_swizzled(encoding, shape)
    return None


def _of_slice(encoding: Encoding, shape: Vector) -> _Bases | None:
    parent, dim = cast("Encoding", encoding["parent"]), cast("int", encoding["dim"])
    bases = _bases(parent, (*shape[:dim], 1, *shape[dim:]))
    if bases is None:
        return None
    rows = {name: [vector[:dim] + vector[dim + 1 :] for vector in vectors] for name, vectors in bases.items()}
    # Registers that only replicate are dropped.
    return rows | {"register": [vector for vector in rows["register"] if any(vector)]}


def _of_swizzled(encoding: Encoding, shape: Vector) -> _Bases:
    order, part = _sizes(encoding, "order"), _per_block(encoding, shape)
    vec, per_phase, most = (cast("int", encoding[name]) for name in ("vec", "perPhase", "maxPhase"))
    bases = _standard({"offset": part}, order)
    if len(order) > 1:
        column, row = order[0], order[1]
        for index, vector in enumerate(bases["offset"]):
            if vector[row]:
                shift = vec * (vector[row] // per_phase % most) % part[column]
                bases["offset"][index] = tuple(shift if at == column else own for at, own in enumerate(vector))
    return bases | {"block": _blocks(encoding, shape)}


def _standard(factors: Mapping[str, Sequence[int]], order: Sequence[int]) -> _Bases:
    """Each input takes so many of each dimension, the fastest first; the next input goes on where one ends."""
    taken = [1] * len(order)
    bases: _Bases = {}
    for name, sizes in factors.items():
        bases[name] = []
        for dimension in order:
            for _ in range(sizes[dimension].bit_length() - 1):
                bases[name].append(tuple(taken[dimension] if at == dimension else 0 for at in range(len(order))))
                taken[dimension] *= 2
    return bases


def _fitted(bases: _Bases, encoding: Encoding, shape: Vector, order: Sequence[int] | None = None) -> _Bases:
    """The bases for a shape: registers go on over a larger one, and what leaves a smaller one replicates."""
    part = _per_block(encoding, shape)
    first = next(iter(bases))
    covered = [1] * len(shape)
    for vector in (vector for rows in bases.values() for vector in rows):
        covered = [max(size, 1 << own.bit_length()) for size, own in zip(covered, vector, strict=True)]
    for dimension in order or range(len(shape)):
        while covered[dimension] < part[dimension]:
            bases[first].append(tuple(covered[dimension] if at == dimension else 0 for at in range(len(shape))))
            covered[dimension] *= 2
    for name, rows in bases.items():
        kept = [tuple(own if own < size else 0 for own, size in zip(row, part, strict=True)) for row in rows]
        bases[name] = [row for row in kept if any(row)] if encoding.kind == "blocked" and name == "register" else kept
    return bases | {"block": _blocks(encoding, shape)}


def _blocks(encoding: Encoding, shape: Vector) -> list[Vector]:
    """The vectors of the CTAs, in elements: CGALayout counts in parts of the tensor, other encodings in elements."""
    own = _vectors(encoding, "block")
    parts = _vectors(encoding, "CGALayout")
    if not parts:
        return own
    per_block = _per_block(encoding, shape)
    return [tuple(a * b if a * b < c else 0 for a, b, c in zip(row, per_block, shape, strict=True)) for row in parts]


def _per_block(encoding: Encoding, shape: Vector) -> Vector:
    parts = [1] * len(shape)
    for vector in _vectors(encoding, "CGALayout"):
        parts = [max(count, 1 << own.bit_length()) for count, own in zip(parts, vector, strict=True)]
    return tuple(max(size // count, 1) for size, count in zip(shape, parts, strict=True))


def _vectors(encoding: Encoding, name: str) -> list[Vector]:
    return [tuple(row) for row in cast("Sequence[Vector]", encoding[name] or ())]


def _sizes(encoding: Encoding, name: str) -> Vector:
    return cast("Vector", encoding[name])

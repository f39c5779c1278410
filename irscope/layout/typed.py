"""Layouts that a person typed: read strictly, so that what is missing or damaged is named before anyone computes.

Fields and their meaning: Triton's TritonGPUAttrDefs.td and TritonNvidiaGPUAttrDefs.td. The compiler ends its process on
most of what is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from irscope.errors import ParseError, UsageError, did_you_mean
from irscope.ir.mlir.attributes import KINDS, Dictionary, Encoding, Padding, Parameter, parse_encoding
from irscope.ir.mlir.tokens import marks
from irscope.layout.rows import encoding_rank, parameters_text
from irscope.model.capture import Target

_SHARED = "vec=size perPhase=size maxPhase=size order=order"
# kind → name=form of each parameter; one that may be left out ends in a question mark.
_FIELDS = {
    "blocked": "sizePerThread=sizes threadsPerWarp=sizes warpsPerCTA=sizes order=order CGALayout=bases?",
    "slice": "dim=number parent=layout",
    "dot_op": "opIdx=number parent=layout kWidth=size?",
    "nvidia_mma": "versionMajor=number versionMinor=number warpsPerCTA=sizes instrShape=sizes CGALayout=bases?",
    "linear": "register=bases lane=bases warp=bases block=bases",
    "generic_linear": "register=bases lane=bases warp=bases block=bases",
    "amd_mfma": "version=number warpsPerCTA=sizes instrShape=sizes isTransposed=flag CGALayout=bases? "
    "tilesPerWarp=sizes? elementBitWidth=size?",
    "amd_wmma": "version=number isTranspose=flag ctaLayout=places? warpsPerCTA=sizes? instrShape=sizes? "
    "CGALayout=bases? tilesPerWarp=sizes?",
    "padded_shared": "order=order? shape=sizes? offset=bases? block=bases? CGALayout=bases?",
    "swizzled_shared": f"{_SHARED} CGALayout=bases?",
    "amd_rotating_shared": f"{_SHARED} CGALayout=bases?",
    "nvmma_shared": "swizzlingByteWidth=number transposed=flag elementBitWidth=size fp4Padded=flag? rank=size? "
    "CGALayout=bases?",
    "shared_linear": "offset=bases block=bases? alignment=size?",
    "tensor_memory_encoding": "blockM=size blockN=size colStride=size CTASplitM=size? CTASplitN=size? twoCTAs=flag? "
    "fp4Padded=flag? ctaMode=number?",
    "tensor_memory_scales_encoding": "CTASplitM=size? CTASplitN=size? CGALayout=bases?",
    "partitioned_shared": "numPartitions=size numGroups=size partitionDim=number partitionLayout=layout",
}
_UNNAMED = {"padded_shared": "padding"}
"""kind → the form of what it gives without a name."""
_TOGETHER = {
    "amd_wmma": (("ctaLayout",), ("warpsPerCTA",)),
    "padded_shared": (("order", "shape"), ("offset",)),
}
"""kind → the groups of parameters of which it needs one; and what it gives without a name."""
_FORMS = {
    "number": "a number",
    "size": "a power of two, at most 65536",
    "flag": "true or false",
    "sizes": "a list of powers of two, at most 65536 each",
    "order": "every dimension once, the fastest first",
    "bases": "a list of vectors",
    "places": "the vectors of each input, such as {warp = [[0, 1]]}",
    "padding": "intervals and their padding, such as [64:+8], of powers of two",
    "layout": "an encoding",
}
_LARGEST = 1 << 16
"""No parameter of a layout is larger."""
_MOST_ELEMENTS = 1 << 24
_PAIRS = {"<": ">", "{": "}", "[": "]", "(": ")", "loc(": ")"}


def parse_typed(text: str, shape: Sequence[int]) -> Encoding:
    """Read an encoding that is given as text together with the shape it is for.

    Raises ParseError if the text is cut off or damaged, and UsageError that names what is missing or does not fit.
    """
    encoding = parse_encoding(text)
    _check_brackets(encoding.text)
    if encoding.kind not in KINDS:
        raise UsageError(
            f"{encoding.text!r}: there is no layout {encoding.kind!r}.{did_you_mean(encoding.kind, KINDS)}"
        )
    # What the reader tolerates (a sign that no parameter has, a number that is too long) it does not give back.
    if not encoding.parameters or _bare(encoding.text.partition("<")[2]) != _bare(parameters_text(encoding)):
        raise ParseError(
            f"{encoding.text!r} is malformed: the parameters that can be read are "
            f"{parameters_text(encoding) or 'none'!r}. Write them as TTGIR does."
        )
    _check_fields(encoding)
    _check_shape(encoding, tuple(shape))
    return encoding


def lanes_of(encoding: Encoding) -> int | None:
    """The threads per warp that a layout in registers is for; None if its text does not say."""
    if (kind := _chain(encoding)[-1].kind) in _MATRIX:
        return 64 if kind == "amd_mfma" else 32
    return _threads(encoding, "threadsPerWarp", "lane")


def warps_of(encoding: Encoding) -> int | None:
    """The warps per CTA that a layout in registers is for; None if its text does not say."""
    return _threads(encoding, "warpsPerCTA", "warp")


def blocks_of(encoding: Encoding) -> int:
    for holder in _chain(encoding):
        for name in ("CGALayout", "block"):
            if isinstance(bases := holder[name], tuple):
                return 1 << len(bases)
    return 1


def target_of(encodings: Sequence[Encoding]) -> Target:
    """The target of layouts that were given without one: the first that has all their kinds and their warps."""
    for encoding in encodings:
        for holder in _chain(encoding):
            if holder.kind in _MATRIX:
                name, targets = _MATRIX[holder.kind]
                version = holder[name]
                return Target.parse(
                    targets.get(version if isinstance(version, int) else 0, next(iter(targets.values())))
                )
            if holder.space == "tensor":
                return Target.parse("cuda:100")
            if holder.kind.startswith(("amd_", "partitioned")):
                return Target.parse("hip:gfx950")
    return Target.parse("hip:gfx942" if any(lanes_of(encoding) == 64 for encoding in encodings) else "cuda:90")


# Of each version of a matrix instruction, the target that has it. Source: TritonGPUAttrDefs.td.
_MATRIX = {
    "nvidia_mma": ("versionMajor", {3: "cuda:90", 2: "cuda:80", 5: "cuda:100"}),
    "amd_mfma": ("version", {3: "hip:gfx942", 2: "hip:gfx90a", 4: "hip:gfx950", 1: "hip:gfx908"}),
    "amd_wmma": ("version", {1: "hip:gfx1100", 2: "hip:gfx1201", 3: "hip:gfx1250"}),
}


def _chain(encoding: Encoding) -> list[Encoding]:
    found = [encoding]
    while isinstance(parent := found[-1]["parent"] or found[-1]["partitionLayout"], Encoding):
        found.append(parent)
    return found


def _threads(encoding: Encoding, sizes: str, bases: str) -> int | None:
    holder = _chain(encoding)[-1]
    if isinstance(places := holder["ctaLayout"], Dictionary):
        # {warp = [[0, 1], [1, 0]]}
        rows = places[bases]
        return 1 << len(rows) if isinstance(rows, tuple) else None
    if (found := _numbers(holder[sizes])) is not None:
        return prod(found)
    rows = holder[bases]
    return 1 << len(rows) if isinstance(rows, tuple) else None


def _numbers(value: Parameter | None) -> tuple[int, ...] | None:
    """A list of numbers, or None if it is none."""
    if not isinstance(value, tuple) or isinstance(value, Padding):
        return None
    found = tuple(item for item in value if isinstance(item, int) and not isinstance(item, bool))
    return found if len(found) == len(value) else None


def _bare(text: str) -> str:
    return re.sub(r"[\s{}<>,]", "", text)


def _check_brackets(text: str) -> None:
    opened: list[str] = []
    last = -1
    for token, position, _ in marks(text):
        if token in _PAIRS:
            opened.append(_PAIRS[token])
        elif token in _PAIRS.values():
            wanted = opened.pop() if opened else ""
            if token != wanted:
                missing = f"{wanted!r} is missing before it" if wanted else "nothing is open there"
                raise ParseError(f"{text!r} is malformed at {text[position:][:20]!r}: {missing}.")
            if not opened:
                last = position
    if opened:
        raise ParseError(f"{text!r} is cut off: {''.join(reversed(opened))!r} is missing at its end.")
    if text[last + 1 :].strip() and last >= 0:
        raise ParseError(
            f"{text!r} is malformed: nothing may follow the encoding, but {text[last + 1 :].strip()!r} does."
        )


def _check_fields(encoding: Encoding) -> None:
    """Whether every parameter is there, known, given once, and has its form."""
    for holder in _chain(encoding):
        names = [name for name, _ in holder.parameters if name]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"{holder.text!r} gives {twice} twice.")
        if holder.kind not in _FIELDS:
            continue
        fields = {name: form for name, _, form in (field.partition("=") for field in _FIELDS[holder.kind].split())}
        if (strange := next((name for name in names if name not in fields), None)) is not None:
            raise UsageError(f"{holder.text!r}: {holder.kind} has no {strange!r}.{did_you_mean(strange, fields)}")
        missing = [name for name, form in fields.items() if not form.endswith("?") and name not in names]
        if missing:
            raise UsageError(
                f"{holder.text!r} is incomplete: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
            )
        missing = [
            " and ".join(name for name in group if name not in names) for group in _TOGETHER.get(holder.kind, ())
        ]
        if holder.kind in _UNNAMED and "" not in dict(holder.parameters):
            missing = [_FORMS[_UNNAMED[holder.kind]]]
        if missing and all(missing):
            raise UsageError(f"{holder.text!r} is incomplete: {' or '.join(missing)} is missing.")
        for name, value in holder.parameters:
            form = fields[name].removesuffix("?") if name else _UNNAMED.get(holder.kind, "")
            if not _has_form(value, form):
                shown = f"{name} = {value}" if isinstance(value, (int, str)) else name or "what has no name"
                raise UsageError(f"{holder.text!r}: {shown} must be {_FORMS.get(form, 'given with a name')}.")
        _check_ranks(holder, fields)


def _has_form(value: Parameter, form: str) -> bool:
    if form == "flag":
        return isinstance(value, bool)
    if form == "layout":
        return isinstance(value, Encoding)
    if form in ("number", "size"):
        return _fits(value) and (form == "number" or _is_size(value))
    if form == "bases":
        rows = value if isinstance(value, tuple) else (None,)
        vectors = [_numbers(row) if isinstance(row, tuple) else None for row in rows]
        return all(vector and all(map(_fits, vector)) for vector in vectors)
    if form == "places":
        return isinstance(value, Dictionary) and all(name and _has_form(rows, "bases") for name, rows in value.items)
    if form == "padding":
        pairs = value if isinstance(value, tuple) else ()
        return bool(pairs) and all(isinstance(pair, Padding) and all(map(_is_size, pair)) for pair in pairs)
    numbers = _numbers(value)
    if not numbers:
        return False
    return sorted(numbers) == list(range(len(numbers))) if form == "order" else all(map(_is_size, numbers))


def _fits(value: Parameter) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _is_size(value: Parameter) -> bool:
    return isinstance(value, int) and 0 < value <= _LARGEST and not value & (value - 1)


def _check_ranks(holder: Encoding, fields: dict[str, str]) -> None:
    """Whether all lists and vectors of an encoding are for as many dimensions."""
    ranks: dict[str, int] = {}
    for name, form in fields.items():
        value = holder[name]
        if name == "instrShape" or not isinstance(value, tuple):
            continue
        if form.startswith(("sizes", "order")):
            ranks[name] = len(value)
        elif form.startswith("bases"):
            lengths = {len(row) for row in value if isinstance(row, tuple)}
            if len(lengths) > 1:
                raise UsageError(
                    f"{holder.text!r}: the vectors of {name} have {' and '.join(map(str, sorted(lengths)))} parts."
                )
            ranks |= dict.fromkeys([name] if lengths else [], max(lengths, default=0))
    if len(set(ranks.values())) > 1:
        listed = ", ".join(f"{name} {rank}" for name, rank in ranks.items())
        raise UsageError(
            f"{holder.text!r}: all lists must have one length, a number for each dimension; they have {listed}."
        )


def _check_shape(encoding: Encoding, shape: tuple[int, ...]) -> None:
    sizes = "×".join(map(str, shape))
    if any(size < 1 or size & (size - 1) for size in shape):
        raise UsageError(f"the shape {sizes} has a size that is not a power of two: layouts have only such sizes.")
    if prod(shape) > _MOST_ELEMENTS:
        raise UsageError(f"the shape {sizes} has more than {_MOST_ELEMENTS} elements.")
    for holder in _chain(encoding):
        parent, dim, index = holder["parent"], holder["dim"], holder["opIdx"]
        if isinstance(parent, Encoding):
            if parent.space != "registers":
                raise UsageError(
                    f"{holder.text!r}: the parent must be a layout in registers, and {parent.title} is not."
                )
            if isinstance(dim, int) and not dim < (encoding_rank(parent) or 1):
                raise UsageError(
                    f"{holder.text!r}: dim = {dim}, but the parent has {encoding_rank(parent)} dimensions, from 0."
                )
            if holder.kind == "dot_op" and index not in (0, 1):
                raise UsageError(f"{holder.text!r}: opIdx = {index} must be 0 or 1.")
    rank = encoding_rank(encoding)
    fits = rank == len(shape) or (encoding.space == "shared" and rank < len(shape))
    if rank and not fits:
        raise UsageError(f"{encoding.text!r} is for {rank} dimensions, and the shape {sizes} has {len(shape)}.")

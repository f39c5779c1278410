"""The distinct layouts of a TTGIR module and the operations that use them; the compiler's answers are still missing."""

from __future__ import annotations

from math import prod

from irscope.ir.locations.model import chain_texts, line_text
from irscope.ir.mlir.attributes import (
    Dictionary,
    Encoding,
    Padding,
    Parameter,
    read_aliases,
    read_encoding,
    resolve_aliases,
)
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import Type, read_types, written_type
from irscope.ir.mlir.uses import ModuleUses, read_uses
from irscope.model.layout import LayoutRow, LayoutUse


def module_numbers(text: str) -> dict[str, int]:
    """Warps per CTA, CTAs per cluster and threads per warp, as far as a module's attributes give them."""
    module = parse_mlir(text)
    options = {name: module.option(name) for name in ("num-warps", "num-ctas", "threads-per-warp")}
    return {name: value for name, value in options.items() if isinstance(value, int) and 0 <= value < 100_000}


def layout_rows(text: str) -> tuple[LayoutRow, ...]:
    """A row for each distinct (encoding, shape) of a module, in the order in which they first occur."""
    uses = read_uses(text)
    aliases = read_aliases(text)
    named = {value: name for name, value in reversed(aliases.items())}
    # The operations of each row, each with the type that has the layout.
    found: dict[tuple[str, tuple[int, ...]], list[tuple[Operation, Type]]] = {}
    known: dict[Type, tuple[Encoding, tuple[int, ...], int]] = {}
    for operation in uses.operations:
        for kind in dict.fromkeys((*_result_types(operation), *operation.layout_types)):
            if kind not in known:
                encoding = read_encoding(resolve_aliases(kind.encoding, aliases))
                known[kind] = (encoding, *own_shape(encoding, kind))
            encoding, shape, _ = known[kind]
            found.setdefault((encoding.text, shape), []).append((operation, kind))
    return tuple(
        LayoutRow(
            named.get(encoding, rows[0][1].encoding),
            encoding,
            shape,
            tuple(dict.fromkeys(str(kind.element) for _, kind in rows)),
            max(known[kind][2] for _, kind in rows),
            tuple(_use(name, rows, uses) for name in dict.fromkeys(operation.name for operation, _ in rows)),
        )
        for (encoding, shape), rows in found.items()
    )


def _use(name: str, rows: list[tuple[Operation, Type]], uses: ModuleUses) -> LayoutUse:
    # An operation stands there once for each of its types: a load for its pointers and for what it loads.
    found = [row for row in rows if row[0].name == name]
    lines = tuple(dict.fromkeys(operation.first_line for operation, _ in found))
    return LayoutUse(
        name,
        lines,
        tuple(
            value.name
            for operation, kind in found
            if len(own := _result_types(operation)) == len(operation.results)
            for value, one in zip(operation.results, own, strict=True)
            if one == kind
        ),
        tuple(dict.fromkeys(filter(None, (line_text(uses.place_at(line)) for line in lines)))),
        tuple(dict.fromkeys(filter(None, (chain_texts(uses.locations.chain_at(line)) for line in lines)))),
    )


def _result_types(operation: Operation) -> list[Type]:
    return [kind for one in operation.result_types for kind in read_types(one.text)[:1]]


def own_shape(encoding: Encoding, kind: Type) -> tuple[tuple[int, ...], int]:
    """The shape that a layout covers, and how many buffers of it a memory descriptor has.

    `memdesc<3x128x64xf16, #shared>` is three buffers of 128×64 if the layout has rank 2. A part of an allocation has
    the layout of the whole, so the shape is that of the whole.
    """
    shape = kind.allocated or kind.shape
    rank = len(shape) if kind.form == "tensor" else min(encoding_rank(encoding) or len(shape), len(shape))
    return shape[len(shape) - rank :], prod(shape[: len(shape) - rank])


def encoding_rank(encoding: Encoding) -> int:
    """The number of dimensions that an encoding's parameters are for; 0 if they don't say."""
    if encoding.kind == "nvmma_shared":
        rank = encoding["rank"]
        return rank if isinstance(rank, int) and not isinstance(rank, bool) else 2
    if encoding.space == "tensor":
        return 2
    for name in ("partitionLayout", "parent"):
        if isinstance(inner := encoding[name], Encoding):
            return max(encoding_rank(inner) - (encoding.kind == "slice"), 0)
    for name in ("order", "shape", "warpsPerCTA"):
        if isinstance(value := encoding[name], tuple):
            return len(value)
    places = encoding["ctaLayout"]
    for name in ("offset", "register", "lane", "warp", "block"):
        # {warp = [[0, 1], [1, 0]]}
        vectors = places[name] if isinstance(places, Dictionary) else encoding[name]
        if isinstance(vectors, tuple) and vectors and isinstance(vector := vectors[0], tuple):
            return len(vector)
    return 0


def type_of_row(row: LayoutRow) -> str:
    """The type that the compiler is asked about for a row."""
    return query_type(row.encoding, row.shape, row.elements[0])


def query_type(encoding: str, shape: tuple[int, ...], element: str) -> str:
    """The whole type of a layout: `tensor<…>` in registers, `!ttg.memdesc<…>` in shared or tensor memory."""
    # A tensor descriptor names a shared layout in a tensor type: the encoding decides, not the type it stands in.
    return written_type(shape, element, encoding, read_encoding(encoding).space)


def parameters_text(encoding: Encoding) -> str:
    """An encoding's parameters on one line, as they are written: `sizePerThread = [1, 8], order = [1, 0]`."""
    return ", ".join(
        f"{name} = {_value_text(value)}" if name else _value_text(value) for name, value in encoding.parameters
    )


def _value_text(value: Parameter) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Dictionary):
        return f"{{{', '.join(f'{name} = {_value_text(inner)}' for name, inner in value.items)}}}"
    if isinstance(value, tuple) and not isinstance(value, Padding):
        return f"[{', '.join(_value_text(item) for item in value)}]"
    return str(value)

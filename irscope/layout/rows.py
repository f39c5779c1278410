"""The distinct layouts of a TTGIR module, as plain values: what a capture holds, but for the compiler's own answers."""

from __future__ import annotations

import re
from typing import Any

from irscope.ir.locations_user import chain_texts, line_text
from irscope.layout.encoding import Encoding, Value, read_aliases, read_encoding, resolve_aliases
from irscope.layout.types import LayoutType
from irscope.layout.uses import ModuleUses, OperationUse, read_uses

Row = dict[str, Any]
"""A layout as JSON holds it: the fields of `layout_rows`, and of the compiler's answer `bases` and `out_dims` (see
LinearLayout.to_json), perhaps `padding` and `note`; or a `reason` why there is none."""

# "ttg.num-warps" = 4 : i32
_MODULE_NUMBER = re.compile(r'"?ttg\.(num-warps|num-ctas|threads-per-warp)"? = (\d+)')


def module_numbers(text: str) -> dict[str, int]:
    """The warps of a CTA, CTAs of a cluster and threads of a warp that a module's attributes give."""
    return {match[1]: int(match[2]) for match in reversed(list(_MODULE_NUMBER.finditer(text))) if len(match[2]) < 6}


def layout_rows(text: str, uses: ModuleUses | None = None) -> list[Row]:
    """A row for each distinct (encoding, shape) of a module, in the order they first occur.

    The fields are `alias`, `encoding`, `kind`, `space`, `shape`, `elements` (element types), `buffers` (of a memory
    descriptor with a leading dimension, 1 for others), `type` (what the compiler is asked for) and `operations`.
    """
    uses = read_uses(text) if uses is None else uses
    aliases = read_aliases(text)
    named = {value: name for name, value in reversed(aliases.items())}
    rows: dict[tuple[str, tuple[int, ...]], Row] = {}
    known: dict[LayoutType, tuple[Encoding, tuple[int, ...], int]] = {}
    for operation in uses.operations:
        for kind in dict.fromkeys((*operation.result_types, *operation.types)):
            if kind not in known:
                encoding = read_encoding(resolve_aliases(kind.encoding, aliases))
                known[kind] = (encoding, *own_shape(encoding, kind))
            encoding, shape, buffers = known[kind]
            row = rows.setdefault((encoding.text, shape), {})
            if not row:
                row.update(_new_row(encoding, kind, shape, named))
            row["buffers"] = max(row["buffers"], buffers)
            if kind.element not in row["elements"]:
                row["elements"].append(kind.element)
            _add_use(row, operation, kind, uses)
    return list(rows.values())


def own_shape(encoding: Encoding, kind: LayoutType) -> tuple[tuple[int, ...], int]:
    """The shape that a layout spreads, and how many buffers of it a memory descriptor has.

    `memdesc<3x128x64xf16, #shared>` is three buffers of 128×64 where the layout is of rank 2. A part of an allocation
    lies as the whole does, so the whole's shape counts.
    """
    shape = kind.allocated or kind.shape
    rank = len(shape) if kind.form == "tensor" else min(encoding_rank(encoding) or len(shape), len(shape))
    buffers = 1
    for size in shape[: len(shape) - rank]:
        buffers *= size
    return shape[len(shape) - rank :], buffers


def encoding_rank(encoding: Encoding) -> int:
    """The dimensions that an encoding's parameters speak of; 0 where they don't say."""
    if encoding.kind == "nvmma_shared":
        rank = encoding["rank"]
        return rank if isinstance(rank, int) and not isinstance(rank, bool) else 2
    if encoding.space == "tensor":
        return 2
    inner = encoding["partitionLayout"]
    if isinstance(inner, Encoding):
        return encoding_rank(inner)
    for name in ("order", "shape"):
        if isinstance(value := encoding[name], tuple):
            return len(value)
    for name in ("offset", "register"):
        vectors = encoding[name]
        if isinstance(vectors, tuple) and vectors and isinstance(vectors[0], tuple):
            return len(vectors[0])
    return 0


def query_type(encoding: str, shape: tuple[int, ...], element: str, space: str) -> str:
    """The type that the compiler is asked about, in full: `tensor<…>` for registers, `!ttg.memdesc<…>` for memory."""
    sizes = "x".join(map(str, shape))
    if space == "shared":
        return f"!ttg.memdesc<{sizes}x{element}, {encoding}, #ttg.shared_memory, mutable>"
    if space == "tensor":
        return f"!ttg.memdesc<{sizes}x{element}, {encoding}, #ttng.tensor_memory, mutable>"
    return f"tensor<{sizes}x{element}, {encoding}>"


def parameters_text(encoding: Encoding) -> str:
    """An encoding's parameters on one line, as they are written: `sizePerThread = [1, 8], order = [1, 0]`."""
    return ", ".join(
        f"{name} = {value_text(value)}" if name else value_text(value) for name, value in encoding.parameters
    )


def value_text(value: Value) -> str:
    """A parameter's value as TTGIR writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(value_text(item) for item in value)}]"
    return str(value)


def _new_row(encoding: Encoding, kind: LayoutType, shape: tuple[int, ...], named: dict[str, str]) -> Row:
    # A tensor descriptor names a shared layout in a tensor type: it is asked for as memory.
    space = encoding.space
    return {
        "alias": named.get(encoding.text, kind.encoding),
        "encoding": encoding.text,
        "kind": encoding.kind,
        "space": space,
        "shape": list(shape),
        "elements": [],
        "buffers": 1,
        "type": query_type(encoding.text, shape, kind.element, space),
        "operations": [],
    }


def _add_use(row: Row, operation: OperationUse, kind: LayoutType, uses: ModuleUses) -> None:
    operations: list[dict[str, Any]] = row["operations"]
    use: dict[str, Any] | None = next((item for item in operations if item["name"] == operation.name), None)
    if use is None:
        use = {"name": operation.name, "lines": [], "values": [], "python": [], "chains": []}
        operations.append(use)
    use["lines"].append(operation.line)
    if len(operation.results) == len(operation.result_types):
        use["values"] += [
            value.name for value, own in zip(operation.results, operation.result_types, strict=True) if own == kind
        ]
    place, chain = line_text(uses.place_of(operation)), list(chain_texts(uses.chain_of(operation)))
    if place and place not in use["python"]:
        use["python"].append(place)
    if chain and chain not in use["chains"]:
        use["chains"].append(chain)

"""DescribedLayout: a row of a capture, with its encoding and its map read; and the choice of some by a user's words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from typing import Any

from irscope.errors import UsageError, did_you_mean
from irscope.ir.locations.model import is_library
from irscope.ir.mlir.attributes import Encoding, read_aliases, read_encoding, resolve_aliases
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.operations import opcode_of
from irscope.ir.mlir.types import Type, element_bits, parse_type, read_types
from irscope.layout.maps import BankModel, MemoryMap, ThreadMap
from irscope.layout.rows import own_shape, parameters_text
from irscope.model.capture import Capture, Target
from irscope.model.layout import LayoutRow, LinearLayout, layout_to_json


@dataclass(frozen=True)
class DescribedLayout:
    """One (encoding, shape) of a module, for a target."""

    row: LayoutRow
    target: Target

    @cached_property
    def encoding(self) -> Encoding:
        return read_encoding(self.row.encoding)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.row.shape

    @property
    def layout(self) -> LinearLayout | None:
        return self.row.map.layout if self.row.map is not None else None

    @property
    def name(self) -> str:
        """The alias; `slice 1 of #mma` for a layout made from an alias; otherwise the encoding's title."""
        alias = self.row.alias
        if alias.startswith("#") and "<" not in alias:
            return alias
        return read_encoding(alias).title if "<" in alias else self.encoding.title

    @property
    def shape_text(self) -> str:
        """`128×64`, or `2·128×64` with the number of buffers."""
        text = "×".join(map(str, self.shape)) or "scalar"
        return f"{self.row.buffers}·{text}" if self.row.buffers > 1 else text

    @property
    def title(self) -> str:
        """The name, the encoding's title, the shape and the element types on one line."""
        names = dict.fromkeys((self.name, self.encoding.title))
        return " · ".join([*names, f"{self.shape_text} {' '.join(self.row.elements[:3])}"])

    @property
    def parameters(self) -> str:
        return parameters_text(self.encoding)

    @property
    def element_bits(self) -> int:
        """Bits of the widest element type that is not a pointer; 16 if there is none."""
        bits = [element_bits(name) for name in self.row.elements if parse_type(name).form != "pointer"]
        return max(bits, default=0) or 16

    @cached_property
    def threads(self) -> ThreadMap | None:
        if self.layout is None or self.encoding.space != "registers":
            return None
        return ThreadMap.of(self.layout)

    @cached_property
    def memory(self) -> MemoryMap | None:
        if self.row.map is None or self.encoding.space != "shared":
            return None
        banks = BankModel.of(self.target).banks
        return MemoryMap.of(self.row.map.layout, self.element_bits, self.row.map.padding, banks)

    @property
    def python_lines(self) -> tuple[str, ...]:
        """The lines of Python that use it, `file:line`, in the order of the module."""
        return tuple(dict.fromkeys(place for use in self.row.operations for place in use.python))

    @property
    def chains(self) -> tuple[tuple[str, ...], ...]:
        """The chains of calls that lead to those lines, `file:line` per frame, innermost first."""
        return tuple(dict.fromkeys(chain for use in self.row.operations for chain in use.chains))


class CaptureLayouts:
    """The layouts that a capture holds, by the types of its TTGIR."""

    def __init__(self, capture: Capture) -> None:
        self._aliases = read_aliases(capture.texts.get("ttgir", ""))
        rows = (DescribedLayout(row, capture.target) for row in capture.layouts)
        self.known = {(item.encoding.text, item.shape): item for item in rows}
        """(encoding, shape) → layout."""

    def of(self, kind: Type) -> DescribedLayout | None:
        """The layout of a type; None where the capture holds none."""
        encoding = read_encoding(resolve_aliases(kind.encoding, self._aliases))
        return self.known.get((encoding.text, own_shape(encoding, kind)[0]))

    def of_access(self, operation: Operation) -> DescribedLayout | None:
        """The layout of an operation's pointers or offsets, or of its values; None without one that has a map."""
        kinds = read_types(operation.text.partition(" = ")[2] if operation.results else operation.text)
        tensors = sorted((kind for kind in kinds if kind.form == "tensor"), key=lambda kind: not kind.pointee)
        known = (self.of(kind) for kind in tensors)
        return next((item for item in known if item is not None and item.threads is not None), None)


def as_json(described: DescribedLayout, *, full: bool = True) -> dict[str, Any]:
    """A layout as plain values: the fields of a capture's row, and what follows from them.

    These are `kind`, `space`, `target`, `threads` (of a layout in registers: registers per thread, lanes, warps and
    blocks, copies, and the share of registers they waste), `memory` (of one in shared memory: bits of an element,
    bytes, banks, padding) and, if `full`, `map`: the row-major index of the element in each register of each thread,
    registers varying fastest, then lanes, warps and blocks; or at each offset, then CTA. `map` is null for a layout of
    more than a million places: its bases say the same.
    """
    encoding = described.encoding
    result = layout_to_json(described.row) | {
        "encoding": encoding.text,
        "kind": encoding.kind,
        "space": encoding.space,
        "target": str(described.target),
    }
    if (threads := described.threads) is not None:
        copies = threads.replication
        result["threads"] = {
            "registers": threads.registers,
            "lanes": threads.lanes,
            "warps": threads.warps,
            "blocks": threads.blocks,
            "replication": asdict(copies),
            "wasted": round(copies.wasted, 6),
        }
    if (memory := described.memory) is not None:
        result.pop("padding", None)
        result["memory"] = {
            "element_bits": memory.element_bits,
            "bytes": memory.size_bytes,
            "banks": memory.banks,
            "padding": [list(pair) for pair in memory.padding],
        }
    mapped = threads or memory
    if full and mapped is not None:
        result["map"] = mapped.elements if mapped.layout.in_bits <= 20 else None
    return result


def choose_layouts(
    layouts: Sequence[DescribedLayout],
    *,
    names: Sequence[str] = (),
    value: str | None = None,
    operation: str | None = None,
    line: int | None = None,
) -> list[DescribedLayout]:
    """The layouts that meet every given choice; those of `names` in the order of the names.

    `names`: aliases (with or without `#`) and other names as listed (`slice 0 of #mma`), encodings as text, kinds
    (`nvidia_mma`), or `#alias@128x64` for one shape. `line`: of Python, which uses the layout or calls one that does.
    Raises UsageError, with the nearest names, if a choice leaves no layout.
    """
    chosen = list(layouts)
    if value is not None:
        wanted = value if value.startswith("%") else f"%{value}"
        chosen = [item for item in chosen if any(wanted in use.values for use in item.row.operations)]
        known = {name for item in layouts for use in item.row.operations for name in use.values}
        _check(chosen, f"no value {value!r} has a layout", wanted, known)
    if operation is not None:
        known = {use.name for item in layouts for use in item.row.operations}
        chosen = [item for item in chosen if any(_same_operation(use.name, operation) for use in item.row.operations)]
        _check(chosen, f"no operation {operation!r} uses a layout", operation, known)
    if line is not None:
        ending = f":{line}"
        known = {place.rpartition(":")[2] for item in layouts for place in item.python_lines}
        chosen = [item for item in chosen if any(place.endswith(ending) for place in _lines(item))]
        _check(chosen, f"no layout is used on line {line}", str(line), sorted(known, key=len))
    if not names:
        return chosen
    found: list[DescribedLayout] = []
    for name in names:
        matching = [item for item in chosen if _is_named(item, name)]
        _check(matching, f"no layout is named {name!r}", name, {item.name for item in layouts})
        # An alias stands for several shapes: the largest one shows most.
        found.append(max(matching, key=lambda item: prod(item.shape)))
    return found


def _lines(item: DescribedLayout) -> set[str]:
    return {*item.python_lines, *(place for chain in item.chains for place in chain if not is_library(place))}


def _same_operation(name: str, asked: str) -> bool:
    short = name.rpartition(".")[2]
    # A dot is many operations: those of tensor cores have names of their own.
    return asked in (name, short) or (opcode_of(asked) == "dot" and "dot" in short.split("_"))


def _is_named(item: DescribedLayout, asked: str) -> bool:
    name, _, shape = asked.partition("@")
    if shape and shape.replace("×", "x") != "x".join(map(str, item.shape)):
        return False
    alias = item.row.alias
    same = {item.name, alias, alias.removeprefix("#"), item.encoding.text, item.encoding.kind, item.encoding.title}
    return " ".join(name.split()) in same


def _check(found: Sequence[DescribedLayout], what: str, asked: str, known: Iterable[str]) -> None:
    if not found:
        raise UsageError(f"{what}.{did_you_mean(asked, known)}")

"""A layout as it is shown: a row of a capture, with its encoding and its map read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from irscope.capture import Target
from irscope.errors import ParseError
from irscope.layout.encoding import Encoding, read_encoding
from irscope.layout.linear import LinearLayout
from irscope.layout.memory_map import BankModel, MemoryMap
from irscope.layout.rows import Row, parameters_text
from irscope.layout.thread_map import ThreadMap
from irscope.layout.types import element_bits


@dataclass(frozen=True)
class DescribedLayout:
    """One (encoding, shape) of a module, and what the compiler said of it."""

    alias: str
    """As the module writes it: `#blocked1`, or the whole encoding; empty where it was given as text."""
    encoding: Encoding
    shape: tuple[int, ...]
    elements: tuple[str, ...]
    """Element types that it is used with."""
    target: Target
    layout: LinearLayout | None = None
    reason: str = ""
    """Why there is no map."""
    note: str = ""
    padding: tuple[tuple[int, int], ...] = ()
    buffers: int = 1
    operations: tuple[dict[str, Any], ...] = ()
    """`name`, `lines` (of the TTGIR), `values`, `python` (`file:line`)."""

    @staticmethod
    def of(row: Row, target: Target) -> DescribedLayout:
        """Read a row of `Capture.layouts`; what is damaged in it becomes a `reason`."""
        layout, reason = None, str(row.get("reason", ""))
        if "bases" in row:
            try:
                layout = LinearLayout.from_json(row)
            except ParseError as error:
                reason = str(error)
        elif not reason:
            reason = "the compiler was not asked"
        pairs = cast("list[list[int]]", row.get("padding", ()))
        return DescribedLayout(
            alias=str(row.get("alias", "")),
            encoding=read_encoding(str(row.get("encoding", ""))),
            shape=tuple(int(size) for size in row.get("shape", ())),
            elements=tuple(str(name) for name in row.get("elements", ())),
            target=target,
            layout=layout,
            reason=reason,
            note=str(row.get("note", "")),
            padding=tuple((int(a), int(b)) for a, b in pairs),
            buffers=int(row.get("buffers", 1)),
            operations=tuple(row.get("operations", ())),
        )

    @property
    def name(self) -> str:
        """What it is called: its alias, `slice 1 of #mma` where it is made of one, else the encoding's title."""
        if self.alias.startswith("#") and "<" not in self.alias:
            return self.alias
        return read_encoding(self.alias).title if "<" in self.alias else self.encoding.title

    @property
    def shape_text(self) -> str:
        """`128×64`, with the buffers before it: `2·128×64`."""
        text = "×".join(map(str, self.shape)) or "scalar"
        return f"{self.buffers}·{text}" if self.buffers > 1 else text

    @property
    def parameters(self) -> str:
        """The encoding's parameters on one line."""
        return parameters_text(self.encoding)

    @property
    def element_bits(self) -> int:
        """Bits of the widest element type it is used with that is no pointer; 16 where there is none."""
        bits = [element_bits(name) for name in self.elements if "tt.ptr" not in name]
        return max(bits, default=0) or 16

    @cached_property
    def threads(self) -> ThreadMap | None:
        """The thread map of a layout in registers."""
        if self.layout is None or self.encoding.space != "registers":
            return None
        return ThreadMap.of(self.layout)

    @cached_property
    def memory(self) -> MemoryMap | None:
        """The memory map of a layout in shared memory."""
        if self.layout is None or self.encoding.space != "shared":
            return None
        return MemoryMap.of(self.layout, self.element_bits, self.padding, BankModel.of(self.target).banks)

    def value_named(self, name: str) -> bool:
        """Whether a value of that name, with or without its sign, has this layout."""
        wanted = name if name.startswith("%") else f"%{name}"
        return any(wanted in use["values"] for use in self.operations)

    @property
    def python_lines(self) -> tuple[str, ...]:
        """The Python lines that use it, `file:line`, in the order of the module: the innermost of the user's own."""
        return tuple(dict.fromkeys(place for use in self.operations for place in use.get("python", ())))

    @property
    def chains(self) -> tuple[tuple[str, ...], ...]:
        """The chains of calls that lead to these, `file:line` a frame, innermost first; none in an old capture."""
        return tuple(dict.fromkeys(tuple(chain) for use in self.operations for chain in use.get("chains", ())))


def describe(rows: Any, target: Target) -> list[DescribedLayout]:
    """Every row of a capture (`Capture.layouts`) as it is shown."""
    return [DescribedLayout.of(dict(row), target) for row in rows]


def as_json(described: DescribedLayout, *, full: bool = True) -> dict[str, Any]:
    """A layout as plain values.

    Beside the fields of a capture's row there are `threads` (of a layout in registers: registers a thread, lanes, warps
    and blocks, copies, and the share of registers they waste), `memory` (of one in shared memory: bits of an element,
    bytes, banks, padding) and, where it is `full`, `map`: the row-major index of the element in each register of each
    thread, registers running fastest, then lanes, warps and blocks; or at each offset, then CTA. A layout of more than
    a million places has none: its bases say the same.
    """
    result: dict[str, Any] = {
        "alias": described.alias,
        "encoding": described.encoding.text,
        "kind": described.encoding.kind,
        "space": described.encoding.space,
        "shape": list(described.shape),
        "elements": list(described.elements),
        "buffers": described.buffers,
        "target": str(described.target),
        "operations": list(described.operations),
    }
    if described.layout is None:
        return result | {"reason": described.reason}
    result |= described.layout.to_json()
    if described.note:
        result["note"] = described.note
    if (threads := described.threads) is not None:
        copies = threads.replication
        result["threads"] = {
            "registers": threads.registers,
            "lanes": threads.lanes,
            "warps": threads.warps,
            "blocks": threads.blocks,
            "replication": {
                "registers": copies.registers,
                "lanes": copies.lanes,
                "warps": copies.warps,
                "blocks": copies.blocks,
            },
            "wasted": round(copies.wasted, 6),
        }
        if full:
            result["map"] = _listed(threads.layout)
    if (memory := described.memory) is not None:
        result["memory"] = {
            "element_bits": memory.element_bits,
            "bytes": memory.size_bytes,
            "banks": memory.banks,
            "padding": [list(pair) for pair in memory.padding],
        }
        if full:
            result["map"] = _listed(memory.layout)
    return result


def _listed(layout: LinearLayout) -> list[int] | None:
    return layout.all_elements() if layout.in_bits <= 20 else None

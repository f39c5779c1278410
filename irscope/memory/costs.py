"""The costs of a kernel's layouts, per operation: global accesses, shared accesses, conversions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from irscope.ir.locations.user import chain_texts, line_text
from irscope.ir.mlir.encoding import read_aliases, read_encoding, resolve_aliases
from irscope.ir.mlir.types import LayoutType
from irscope.ir.mlir.uses import ModuleUses, OperationUse, read_uses
from irscope.layout.conversions import moved_share, what_moves
from irscope.layout.described import DescribedLayout
from irscope.layout.rows import own_shape, query_type
from irscope.layout.thread_map import ThreadMap
from irscope.memory.conflicts import shared_access
from irscope.memory.cost import Cost
from irscope.memory.global_costs import global_costs
from irscope.memory.machine import Machine, read_machine
from irscope.model.capture import Capture

_SHARED_LOADS = ("ttg.local_load",)
_SHARED_STORES = ("ttg.local_store", "ttg.local_alloc")
_OF_CONVERSIONS = ("shuffle", "shared load", "shared store", "matrix load", "matrix store")


def costs_of(capture: Capture) -> list[Cost]:
    """Every cost of a capture's TTGIR, the worst first: by `excess`, which counts more inside loops."""
    text = next((item.data for item in capture.artifacts if item.stage == "ttgir" and isinstance(item.data, str)), "")
    reader = _CostReader(capture, text, read_uses(text), read_machine(capture))
    costs = [*global_costs(capture, text, reader.uses, reader.machine), *reader.costs()]
    return sorted(costs, key=lambda cost: (-(cost.excess << min(4 * cost.loops, 16)), -cost.loops, cost.line))


class _CostReader:
    def __init__(self, capture: Capture, text: str, uses: ModuleUses, machine: Machine) -> None:
        self.uses = uses
        self.machine = machine
        self.aliases = read_aliases(text)
        self.target = capture.target
        rows = (DescribedLayout(row, capture.target) for row in capture.layouts)
        self._layouts = {(item.encoding.text, item.shape): item for item in rows}
        self._scratch = _scratch(capture, uses)

    def costs(self) -> Iterator[Cost]:
        for use in self.uses.operations:
            if use.name in _SHARED_LOADS or use.name in _SHARED_STORES:
                yield from self._shared(use)
            if use.name == "ttg.convert_layout" and len(use.types) == 2:
                yield from self._conversion(use)

    def _described(self, kind: LayoutType) -> DescribedLayout | None:
        encoding = read_encoding(resolve_aliases(kind.encoding, self.aliases))
        return self._layouts.get((encoding.text, own_shape(encoding, kind)[0]))

    def _cost(self, kind: Literal["shared", "conversion"], use: OperationUse, used: Sequence[DescribedLayout]) -> Cost:
        names = tuple(item.name for item in used)
        named = tuple(value.name for value in use.results or use.operands[:1])
        place, chain = line_text(self.uses.place_of(use)), chain_texts(self.uses.chain_of(use))
        return Cost(kind, use.name, use.line, place, names, named, 0, use.loops, "", chain=chain)

    # Shared memory

    def _shared(self, use: OperationUse) -> Iterator[Cost]:
        kinds = [(kind, self._described(kind)) for kind in use.types]
        registers = next((item for kind, item in kinds if kind.form == "tensor" and item is not None), None)
        found = next(((kind, item) for kind, item in kinds if kind.form == "memdesc" and item is not None), None)
        if registers is None or found is None or registers.threads is None:
            return
        kind, shared = found
        memory = shared.memory
        if memory is None or len(memory.shape) != len(registers.shape):
            return
        if any(a > b for a, b in zip(registers.threads.shape, memory.shape, strict=True)):
            return
        memory = replace(memory, element_bits=kind.element_bits or memory.element_bits)
        stores = use.name in _SHARED_STORES
        chain = self.uses.chain_of(use)
        matrices = self.machine.count(chain, "matrix store" if stores else "matrix load") > 0
        access = shared_access(registers.threads, memory, matrices=matrices)
        how = ("stmatrix" if stores else "ldmatrix") if matrices else f"{access.bits_a_lane} bits per lane"
        text = (
            f"{how}, {access.wavefronts} wavefronts per warp (least {access.minimum_wavefronts}, {access.banks} banks)"
        )
        if access.ways > 1:
            text += f": {access.ways:.2g}-way conflicts"
        widths = self.machine.widths(chain, ("shared store",) if stores else ("shared load",))
        narrow = {width: number for width, number in widths.items() if 0 < width < access.bits_a_lane}
        yield replace(
            self._cost("shared", use, [registers, shared]),
            excess=access.excess,
            summary=text,
            hint=self._has(narrow) if narrow and not matrices else "",
            figures={**asdict(access), "ways": access.ways, "assembly_bits": _by_width(widths)},
            pair=None if matrices else (_type_of(registers, kind.element), _type_of(shared, kind.element)),
        )

    def _has(self, widths: Mapping[int, int]) -> str:
        real = ", ".join(f"{number} of {width} bits" for width, number in sorted(widths.items()))
        return f"the {self.machine.text_stage} has {real}"

    # Conversions

    def _conversion(self, use: OperationUse) -> Iterator[Cost]:
        source, destination = (self._described(kind) for kind in use.types)
        if source is None or destination is None or source.threads is None or destination.threads is None:
            return
        moves = what_moves(source.threads, destination.threads)
        share = moved_share(source.threads, destination.threads) if moves not in ("nothing", "registers") else 0.0
        bits = use.types[0].element_bits
        done = self._what_is_done(use)
        size_bytes = destination.threads.size * bits // 8
        text = f"moves {'nothing' if moves == 'nothing' else f'across {moves}'}"
        if share:
            text += f", {share:.0%} of {size_bytes} bytes change threads"
        yield replace(
            self._cost("conversion", use, [source, destination]),
            excess=_conversion_wavefronts(destination.threads, bits, moves),
            summary=f"{text}; {done}" if done else text,
            hint=self._why(use),
            figures={"moves": moves, "moved_share": round(share, 4), "bytes": size_bytes, "done": done},
        )

    def _what_is_done(self, use: OperationUse) -> str:
        counts = Counter[str]()
        for (action, _), number in self.machine.at(self.uses.chain_of(use)).items():
            if action in _OF_CONVERSIONS:
                counts[action] += number
        parts = [f"{number} {action}{'s' * (number > 1)} on this line" for action, number in sorted(counts.items())]
        return ", ".join(filter(None, [self._scratch.get(use.line), *parts]))

    def _why(self, use: OperationUse) -> str:
        names: list[str] = []
        for result in use.results:
            for index in self.uses.users.get(result, ()):
                user = self.uses.operations[index]
                at = user.operands.index(result)
                names.append(f"operand {at} of {user.name} (line {user.line})")
        made = self.uses.maker_of(use.operands[0]) if use.operands else None
        origin = f"{made.name} makes {use.types[0].encoding}" if made is not None else ""
        wanted = f"{', '.join(names[:3])} want{'s' if len(names) == 1 else ''} {use.types[1].encoding}" if names else ""
        return "; ".join(filter(None, [wanted, origin]))


def _type_of(item: DescribedLayout, element: str) -> str:
    return query_type(item.encoding.text, item.shape, element)


def _by_width(widths: Counter[int]) -> dict[str, int]:
    return {str(width): number for width, number in sorted(widths.items())}


def _conversion_wavefronts(threads: ThreadMap, bits: int, moves: str) -> int:
    # Through shared memory each byte is written once and read once; a shuffle moves four bytes per lane.
    if moves in ("nothing", "registers"):
        return 0
    bytes_per_warp = threads.registers * threads.lanes * bits // 8
    return -(-bytes_per_warp // 128) * (1 if moves == "lanes" else 2)


# %7 = ttg.convert_layout %6 {allocation.offset = 0 : i32, allocation.size = 4096 : i32} : …
_SCRATCH_SIZE = re.compile(r"\ballocation\.size = (\d+)")


def _scratch(capture: Capture, uses: ModuleUses) -> dict[int, str]:
    """Line of a convert_layout → its scratch memory, from the IR after shared memory was allocated.

    Passes in between rename values, so conversions are paired in order by their types and their place in Python, if
    both texts have equally many of them.
    """
    allocated = [one.text for one in capture.snapshots if one.name.startswith("allocate_shared_memory")]
    text = next(filter(None, reversed(allocated)), None)
    if text is None:
        return {}
    ours, theirs = _conversions(uses), _conversions(read_uses(text))
    found: dict[int, str] = {}
    for key, lines in ours.items():
        for use, other in zip(lines, theirs.get(key, ()), strict=False):
            if len(lines) == len(theirs[key]) and "allocation." in other.text:
                size = _SCRATCH_SIZE.search(other.text)
                found[use.line] = f"{size[1]} bytes of scratch" if size else "scratch in shared memory"
    return found


def _conversions(uses: ModuleUses) -> dict[object, list[OperationUse]]:
    """The conversions of a module by their types, aliases resolved, and their place in Python."""
    found: dict[object, list[OperationUse]] = {}
    for use in uses.operations:
        if use.name == "ttg.convert_layout":
            types = tuple((str(kind), uses.module.resolve(kind.encoding)) for kind in use.types)
            found.setdefault((types, uses.chain_of(use)), []).append(use)
    return found


def as_json(costs: Iterable[Cost]) -> list[dict[str, Any]]:
    """Costs as plain values."""
    return [asdict(cost) for cost in costs]

"""The costs of a kernel's layouts, per operation: global accesses, shared accesses, conversions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from irscope.ir.locations.user import chain_texts, line_text
from irscope.ir.mlir.encoding import read_aliases, read_encoding, resolve_aliases
from irscope.ir.mlir.types import LayoutType, element_bits
from irscope.ir.mlir.uses import ModuleUses, OperationUse, read_uses
from irscope.layout.conversions import moved_share, what_moves
from irscope.layout.described import DescribedLayout
from irscope.layout.rows import own_shape
from irscope.layout.thread_map import ThreadMap
from irscope.memory.access import fastest_dimension, global_access
from irscope.memory.alignment import unaligned_arguments
from irscope.memory.between import conversion_wavefronts
from irscope.memory.cost import Cost
from irscope.memory.machine import Machine, read_machine
from irscope.memory.shared_costs import scratch_of, shared_costs
from irscope.memory.strides import strides_of
from irscope.model.capture import Capture

_LOADS = ("tt.load", "amdg.buffer_load", "amdgpu.buffer_load", "ttg.async_copy_global_to_local")
_STORES = ("tt.store", "amdg.buffer_store", "amdgpu.buffer_store")
_OF_CONVERSIONS = ("shuffle", "shared load", "shared store", "matrix load", "matrix store")


def costs_of(capture: Capture) -> list[Cost]:
    """Every cost of a capture's TTGIR, the worst first: by `excess`, which counts more inside loops."""
    text = next((item.data for item in capture.artifacts if item.stage == "ttgir" and isinstance(item.data, str)), "")
    reader = _CostReader(capture, text, read_uses(text), read_machine(capture))
    costs = [*reader.costs(), *shared_costs(capture, text, reader.uses, reader.machine)]
    return sorted(costs, key=lambda cost: (-(cost.excess << min(4 * cost.loops, 16)), -cost.loops, cost.line))


class _CostReader:
    def __init__(self, capture: Capture, text: str, uses: ModuleUses, machine: Machine) -> None:
        self.uses = uses
        self.machine = machine
        self.aliases = read_aliases(text)
        self.target = capture.target
        rows = (DescribedLayout(row, capture.target) for row in capture.layouts)
        self._layouts = {(item.encoding.text, item.shape): item for item in rows}
        self._scratch = scratch_of(capture, uses)

    def costs(self) -> Iterator[Cost]:
        for use in self.uses.operations:
            if use.name in _LOADS or use.name in _STORES:
                yield from self._global(use)
            if use.name == "ttg.convert_layout" and len(use.types) == 2:
                yield from self._conversion(use)

    def _described(self, kind: LayoutType) -> DescribedLayout | None:
        encoding = read_encoding(resolve_aliases(kind.encoding, self.aliases))
        return self._layouts.get((encoding.text, own_shape(encoding, kind)[0]))

    def _cost(self, kind: Literal["global", "conversion"], use: OperationUse, used: Sequence[DescribedLayout]) -> Cost:
        names = tuple(item.name for item in used)
        named = tuple(value.name for value in use.results or use.operands[:1])
        place, chain = line_text(self.uses.place_of(use)), chain_texts(self.uses.chain_of(use))
        return Cost(
            kind,
            use.name,
            use.line,
            place,
            names,
            named,
            0,
            use.loops,
            "",
            chain=chain,
            by_operation=self.machine.by_operation,
        )

    # Global memory

    def _global(self, use: OperationUse) -> Iterator[Cost]:
        kind = next((item for item in use.types if item.pointee), None)
        described = self._described(kind or use.types[0])
        if described is None or described.threads is None:
            return
        bits = element_bits(kind.pointee) if kind is not None else use.types[0].element_bits
        if not bits:
            return
        # Addresses that are contiguous along another dimension than the layout's fastest one cost more.
        steps = strides_of(self.uses, use.operands[0]) if use.operands else ()
        along = steps.index(1) if steps.count(1) == 1 else None
        possible = global_access(described.threads, bits, dimension=along)
        actions = ("global store",) if use.name in _STORES else ("global load", "async copy")
        widths = self.machine.widths(use.line, actions)
        real = min((width for width in widths if width), default=0)
        access = possible
        if 0 < real < possible.bits_a_lane:
            access = global_access(described.threads, bits, contiguity=max(real // bits, 1), dimension=along)
        text = (
            f"{access.bits_a_lane} bits per lane, {access.instructions} per warp, {access.sectors} sectors of 32 bytes "
            f"(least {access.minimum_sectors}), {access.lines} lines (least {access.minimum_lines})"
        )
        yield replace(
            self._cost("global", use, [described]),
            excess=access.excess,
            summary=text,
            hint=self._narrow(use, possible.bits_a_lane, widths) or _against_the_grain(described.threads, along),
            figures={**asdict(access), "layout_bits_a_lane": possible.bits_a_lane, "assembly_bits": _by_width(widths)},
        )

    @property
    def _shared_line(self) -> str:
        return "" if self.machine.by_operation else " on this line"

    def _narrow(self, use: OperationUse, possible: int, widths: Counter[int]) -> str:
        narrow = {width: number for width, number in widths.items() if 0 < width < possible}
        if self.machine.text_stage and not widths:
            return f"the {self.machine.text_stage} has no such access{self._shared_line}"
        if not narrow:
            return ""
        return f"{self._has(narrow)}, the layout allows {possible}; {self._cause(use)}"

    def _has(self, widths: Mapping[int, int]) -> str:
        real = ", ".join(f"{number} of {width} bits" for width, number in sorted(widths.items()))
        return f"the {self.machine.text_stage} has {real}"

    def _cause(self, use: OperationUse) -> str:
        unknown = unaligned_arguments(self.uses, use.operands[0]) if use.operands else ()
        if unknown:
            are = "is" if len(unknown) == 1 else "are"
            return f"likely because {', '.join(unknown)} {are} not known to be divisible by 16"
        if len(use.operands) > 1:
            return (
                f"likely because the mask {use.operands[1].name} is not known to be the same for neighbouring elements"
            )
        return "likely because the offsets are not known to be contiguous"

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
            excess=conversion_wavefronts(destination.threads, bits, moves),
            summary=f"{text}; {done}" if done else text,
            hint=self._why(use),
            figures={"moves": moves, "moved_share": round(share, 4), "bytes": size_bytes, "done": done},
        )

    def _what_is_done(self, use: OperationUse) -> str:
        counts = Counter[str]()
        for (action, _), number in self.machine.at(use.line).items():
            if action in _OF_CONVERSIONS:
                counts[action] += number
        shared = self._shared_line
        parts = [f"{number} {action}{'s' * (number > 1)}{shared}" for action, number in sorted(counts.items())]
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


def _by_width(widths: Counter[int]) -> dict[str, int]:
    return {str(width): number for width, number in sorted(widths.items())}


def _against_the_grain(threads: ThreadMap, along: int | None) -> str:
    fastest = fastest_dimension(threads)
    if along is None or along == fastest:
        return ""
    return f"the addresses are contiguous along dim {along}, the layout goes along dim {fastest} first"


def as_json(costs: Iterable[Cost]) -> list[dict[str, Any]]:
    """Costs as plain values."""
    return [asdict(cost) for cost in costs]

"""The costs of a kernel's layouts, per operation: global accesses, shared accesses, conversions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal

from irscope.ir.locations.model import chain_texts, line_text
from irscope.ir.mlir.attributes import read_aliases, read_encoding, resolve_aliases
from irscope.ir.mlir.types import LayoutType
from irscope.ir.mlir.uses import ModuleUses, OperationUse, read_uses
from irscope.layout.described import DescribedLayout
from irscope.layout.maps import moved_share, what_moves
from irscope.layout.rows import own_shape
from irscope.memory.access import Cost
from irscope.memory.between import conversion_wavefronts
from irscope.memory.global_costs import global_costs
from irscope.memory.machine import Machine, read_machine
from irscope.memory.shared_costs import scratch_of, shared_costs
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.memory.ptx_shared import SharedWorks

_OF_CONVERSIONS = ("shuffle", "shared load", "shared store", "matrix load", "matrix store")


def costs_of(capture: Capture) -> list[Cost]:
    """Every cost of a capture's TTGIR, the worst first: by `excess`, which counts more inside loops."""
    text = capture.texts.get("ttgir", "")
    uses, machine = read_uses(text), read_machine(capture)
    return _ordered([*global_costs(capture, text, uses, machine), *_others(capture, text, uses, machine)])


def costs_on_chip(capture: Capture, uses: ModuleUses, machine: Machine) -> list[Cost]:
    """The same without accesses to global memory, whose addresses must be evaluated.

    `uses`: the operations of the TTGIR. `machine`: the memory instructions of the assembly.
    """
    return _ordered(_others(capture, capture.texts.get("ttgir", ""), uses, machine))


def _others(capture: Capture, text: str, uses: ModuleUses, machine: Machine) -> Iterator[Cost]:
    scratch = scratch_of(capture)
    # numpy, which only this needs, takes a tenth of a second to import.
    from irscope.memory.ptx_shared import SharedWorks

    works = SharedWorks(capture, uses, machine)
    yield from _CostReader(capture, text, uses, machine, scratch, works).costs()
    yield from shared_costs(capture, text, uses, machine, scratch, works)


def _ordered(costs: Iterable[Cost]) -> list[Cost]:
    return sorted(costs, key=lambda cost: (-(cost.excess << min(4 * cost.loops, 16)), -cost.loops, cost.line))


class _CostReader:
    def __init__(
        self, capture: Capture, text: str, uses: ModuleUses, machine: Machine, scratch: Mapping[int, str],
        works: SharedWorks,
    ) -> None:  # fmt: skip
        self.uses = uses
        self.works = works
        self.machine = machine
        self.aliases = read_aliases(text)
        self.target = capture.target
        rows = (DescribedLayout(row, capture.target) for row in capture.layouts)
        self._layouts = {(item.encoding.text, item.shape): item for item in rows}
        self._scratch = scratch

    def costs(self) -> Iterator[Cost]:
        for use in self.uses.operations:
            if use.name == "ttg.convert_layout" and len(use.types) == 2:
                yield from self._conversion(use)

    def _described(self, kind: LayoutType) -> DescribedLayout | None:
        encoding = read_encoding(resolve_aliases(kind.encoding, self.aliases))
        return self._layouts.get((encoding.text, own_shape(encoding, kind)[0]))

    def _cost(self, kind: Literal["conversion"], use: OperationUse, used: Sequence[DescribedLayout]) -> Cost:
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

    @property
    def _shared_line(self) -> str:
        return "" if self.machine.by_operation else " on this line"

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
            text += f": other threads fill {share:.0%} of the registers"
        work = self.works.of(use)
        figures: dict[str, Any] = {"moves": moves, "moved_share": round(share, 4), "bytes": size_bytes, "done": done}
        if work is not None:
            figures |= {"cta_wavefronts": work.wavefronts, "cta_minimum_wavefronts": work.minimum_wavefronts}
            excess = -(-work.wavefronts // work.warps)
        else:
            excess = conversion_wavefronts(destination.threads, bits, moves)
        yield replace(
            self._cost("conversion", use, [source, destination]),
            excess=excess,
            summary="; ".join(filter(None, [text, done, str(work) if work is not None else ""])),
            hint=self._why(use),
            figures=figures,
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
        made = self.uses.module.maker_of(use.operands[0]) if use.operands else None
        origin = f"{made.name} makes {use.types[0].encoding}" if made is not None else ""
        wanted = f"{', '.join(names[:3])} want{'s' if len(names) == 1 else ''} {use.types[1].encoding}" if names else ""
        return "; ".join(filter(None, [wanted, origin]))


def as_json(costs: Iterable[Cost]) -> list[dict[str, Any]]:
    """Costs as plain values."""
    return [asdict(cost) for cost in costs]

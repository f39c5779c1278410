"""The costs of a kernel's layouts, per operation: global accesses, shared memory, conversions, scratch.

What has no model has a row that says so. Sources: `irscope.memory.conflicts` for conflicts; "PTX ISA", wgmma, tcgen05
and cp.async.bulk.tensor, for what these read and write. What goes through scratch is counted by the addresses in the
PTX (`irscope.memory.ptx_shared`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from irscope.ir.locations.model import chain_texts, line_text
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.types import Type
from irscope.ir.mlir.uses import ModuleUses, read_uses
from irscope.layout.described import CaptureLayouts, DescribedLayout
from irscope.layout.maps import MemoryMap, moved_share, what_moves
from irscope.layout.rows import query_type
from irscope.memory.access import Cost
from irscope.memory.allocation import allocations_of
from irscope.memory.between import conversion_wavefronts
from irscope.memory.conflicts import core_matrix_ways, matrix_choices, shared_access
from irscope.memory.global_costs import global_costs
from irscope.memory.machine import Action, MemoryInstructions, read_machine
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.memory.ptx_shared import SharedWorks


_LOADS = ("local_load",)
_STORES = ("local_store", "local_alloc")
_COPIES = ("async_copy_global_to_local", "buffer_load_to_local")
_OPERANDS = ("warp_group_dot", "tc_gen5_mma", "tc_gen5_mma_scaled")
_OF_SCRATCH: tuple[Action, ...] = ("shuffle", "shared load", "shared store")
_OF_CONVERSIONS: tuple[Action, ...] = (*_OF_SCRATCH, "matrix load", "matrix store")
_MOVES = ("load", "store", "atomic", "copy", None)
"""Kinds of operations that may move data of shared memory; of an operation that the table does not know, any may."""


def _shared_costs(capture: Capture, uses: ModuleUses, machine: MemoryInstructions) -> Iterator[Cost]:
    """A row for each conversion and each access to shared memory of a capture's TTGIR, in the order of the text."""
    # numpy, which only this needs, takes a tenth of a second to import.
    from irscope.memory.ptx_shared import SharedWorks

    reader = _Reader(capture, uses, machine, SharedWorks(capture, uses, machine))
    for use in uses.operations:
        yield from reader.costs(use)


class _Reader:
    def __init__(self, capture: Capture, uses: ModuleUses, machine: MemoryInstructions, works: SharedWorks) -> None:
        self.uses = uses
        self.machine = machine
        self.works = works
        self.target = capture.target
        self._layouts = CaptureLayouts(capture)
        self._scratch = _scratch_of(capture)

    def costs(self, use: Operation) -> Iterator[Cost]:
        opcode = use.opcode
        if opcode == "convert_layout":
            yield from self._conversion(use) if len(use.layout_types) == 2 else ()
        elif opcode in (*_LOADS, *_STORES, *_COPIES):
            yield from self._access(use)
        elif opcode in _OPERANDS:
            yield from self._operands(use)
        elif opcode.startswith("async_tma_"):
            yield from self._bulk(use)
        elif opcode in ("reduce", "scan"):
            yield from self._along(use)
        elif opcode == "gather":
            yield self._gather(use)
        elif opcode in ("histogram", "atomic_rmw", "atomic_cas") and self._uses_scratch(use):
            what = "counts" if opcode == "histogram" else "the result, for the threads that hold copies of it,"
            yield self._through_scratch(use, [], what)
        elif use.is_of_triton and use.kind in _MOVES:
            kinds = [kind for kind in use.layout_types if len(kind.shape) > 1]
            found = [item[0] for item in map(self._memory, kinds) if item is not None]
            if found:
                yield self._row(use, found, "not modelled: its bank conflicts")

    # What the assembly has for an operation: the one place that joins them.

    def _done(self, use: Operation, *actions: Action) -> str:
        """The instructions of some actions, of the operation or its line, in words."""
        counts = Counter(one.action for one in self.machine.instructions_at(use.first_line) if one.action in actions)
        shared = "" if self.machine.by_operation else " on this line"
        return ", ".join(f"{number} {action}{'s' * (number > 1)}{shared}" for action, number in sorted(counts.items()))

    def _memory(self, kind: Type) -> tuple[DescribedLayout, MemoryMap] | None:
        found = self._layouts.of(kind) if kind.form == "memdesc" else None
        if found is None or found.memory is None:
            return None
        return found, replace(found.memory, element_bits=kind.element_bits or found.memory.element_bits)

    def _row(
        self,
        use: Operation,
        used: Sequence[DescribedLayout],
        summary: str,
        hint: str = "",
        *,
        excess: int = 0,
        figures: dict[str, Any] | None = None,
        pair: tuple[str, str] | None = None,
        kind: Literal["shared", "conversion"] = "shared",
    ) -> Cost:
        return Cost(
            kind,
            use.name,
            use.first_line,
            line_text(self.uses.place_at(use.first_line)),
            tuple(item.name for item in used),
            tuple(value.name for value in use.results or use.operands[:1]),
            excess,
            use.loops,
            summary,
            hint,
            figures or {},
            pair,
            chain_texts(self.uses.locations.chain_at(use.first_line)),
            self.machine.by_operation,
        )

    # Loads, stores and copies by the lanes

    def _access(self, use: Operation) -> Iterator[Cost]:
        kinds = [kind for kind in use.layout_types if kind.form == "tensor"]
        # A copy is laid out as its pointers, not as its mask.
        registers = next(filter(None, map(self._layouts.of, sorted(kinds, key=lambda kind: not kind.pointee))), None)
        found = next(filter(None, map(self._memory, use.layout_types)), None)
        if use.opcode == "local_alloc" and not kinds:
            return
        if registers is None or found is None or registers.threads is None:
            yield self._row(use, [], "not modelled: the compiler gave no map of its layouts")
            return
        shared, memory = found
        threads = registers.threads
        if len(memory.shape) != len(threads.shape) or any(
            a > b for a, b in zip(threads.shape, memory.shape, strict=True)
        ):
            yield self._row(use, [registers, shared], "not modelled: registers and shared memory have other shapes")
            return
        if use.opcode in _COPIES and self.target.backend == "hip":
            yield self._row(use, [registers, shared], "written by the copy in lane order: no conflicts")
            return
        store = use.opcode not in _LOADS
        matrix: Action = "matrix store" if store else "matrix load"
        choices = matrix_choices(threads, memory) if self.machine.count(use.first_line, matrix) else ()
        plain: Action = "async copy" if use.opcode in _COPIES else "shared store" if store else "shared load"
        widths = self.machine.widths(use.first_line, (plain,))
        found = [shared_access(threads, memory, packed=choice) for choice in choices] or [
            shared_access(threads, memory, store=store, target=self.target)
        ]
        # Of several choices the compiler takes the best or, before Triton 3.9, the first.
        access, first = min(found, key=lambda one: one.wavefronts), found[0]
        narrow = {width: number for width, number in widths.items() if 0 < width < access.bits_per_thread}
        if narrow and self.target.backend == "hip":
            # Which lanes are served together depends on the instruction.
            access = first = shared_access(threads, memory, store=store, target=self.target, widest_bits=min(narrow))
        how = ("stmatrix" if store else "ldmatrix") if choices else f"{access.bits_per_thread} bits per lane"
        least = f"(minimum {access.minimum_wavefronts}, {access.banks} banks)"
        text = f"{how}, {_range(access.wavefronts, first.wavefronts)} wavefronts per warp {least}"
        if first.ways > 1:
            text += f": {_range(round(access.ways, 2), round(first.ways, 2))}-way conflicts"
        if first.wavefronts > access.wavefronts:
            text += ", by the rows that the compiler takes together"
        real = ", ".join(f"{number} × {width} bits" for width, number in sorted(widths.items()))
        element = next(str(kind.element) for kind in use.layout_types if kind.form == "memdesc")
        types = [query_type(item.encoding.text, item.shape, element) for item in (registers, shared)]
        pair = None if choices or use.opcode in _COPIES else (types[0], types[1])
        yield self._row(
            use,
            [registers, shared],
            text,
            f"the {self.machine.text_stage} has {real}" if narrow and not choices else "",
            excess=access.excess,
            figures={
                **asdict(access),
                "ways": access.ways,
                "assembly_bits": {str(width): number for width, number in sorted(widths.items())},
            },
            pair=pair,
        )

    # What hardware reads and writes by itself

    def _operands(self, use: Operation) -> Iterator[Cost]:
        what = "wgmma" if use.opcode == "warp_group_dot" else "tcgen05"
        # Accumulators in tensor memory have no map in shared memory, and barriers hold no operand.
        kinds = [kind for kind in use.layout_types if kind.form == "memdesc" and len(kind.shape) >= 2]
        for kind, found in ((kind, self._memory(kind)) for kind in kinds):
            if found is None:
                continue
            shared, memory = found
            ways = core_matrix_ways(memory)
            size = prod(kind.shape) * kind.element_bits // 8
            title = "×".join([*map(str, kind.shape), str(kind.element)])
            how = (
                "not modelled: no 16 contiguous bytes"
                if ways is None
                else "no conflicts"
                if ways == 1
                else f"{ways:.2g}-way conflicts"
            )
            yield self._row(
                use,
                [shared],
                f"{what} reads {title}, {size} bytes, by rows of 16 bytes: {how}",
                excess=round(size // 128 * ((ways or 1) - 1)),
                figures={"bytes": size} | ({} if ways is None else {"ways": ways}),
            )

    def _bulk(self, use: Operation) -> Iterator[Cost]:
        # The barrier of a load is a descriptor too.
        kinds = [kind for kind in use.layout_types if len(kind.shape) >= 2]
        found = [(kind, item) for kind in kinds if (item := self._memory(kind)) is not None]
        if not found:
            return
        kind, (shared, _) = found[-1]
        size = prod(kind.shape) * kind.element_bits // 8
        width = shared.encoding["swizzlingByteWidth"]
        swizzle = f", swizzled over {width} bytes" if isinstance(width, int) and width else ""
        verb = "reads" if "local_to_global" in use.name or "scatter" in use.name or "reduce" in use.name else "writes"
        text = f"TMA {verb} {'×'.join([*map(str, kind.shape), str(kind.element)])}, {size} bytes{swizzle}"
        yield self._row(use, [shared], f"{text}; not modelled: its bank conflicts", figures={"bytes": size})

    # Scratch

    def _along(self, use: Operation) -> Iterator[Cost]:
        axis = use.attribute("axis")
        used = self._layouts.of(use.layout_types[0])
        if not isinstance(axis, int) or used is None or used.threads is None or axis >= len(used.shape):
            yield self._row(use, [], "not modelled: the compiler gave no map of its layout")
            return
        held = {
            unit: 1 << sum(vector[axis] != 0 for vector in used.threads.layout.vectors(name))
            for unit, name in (("values", "register"), ("lanes", "lane"), ("warps", "warp"))
        }
        text = f"along dim {axis}: {held['values']} values of a thread"
        if held["lanes"] > 1:
            text += f", {held['lanes']} lanes by shuffles"
        if held["warps"] > 1:
            text += f", {held['warps']} warps"
        if self._uses_scratch(use):
            yield self._through_scratch(use, [used], text, held)
        else:
            yield self._row(use, [used], text, self._done(use, *_OF_SCRATCH), figures=held)

    def _uses_scratch(self, use: Operation) -> bool:
        return use.first_line in self._scratch or self.works.of(use) is not None

    def _through_scratch(
        self, use: Operation, used: Sequence[DescribedLayout], what: str, figures: Mapping[str, Any] | None = None
    ) -> Cost:
        """The row of an operation that goes through scratch, with its wavefronts as far as the PTX shows them."""
        text, work = f"{what} through {self._scratch.get(use.first_line, 'scratch')}", self.works.of(use)
        if work is None:
            text += "; its bank conflicts are unknown: its addresses are not in the PTX, or depend on data"
            return self._row(use, used, text, self._done(use, *_OF_SCRATCH), figures=dict(figures or {}))
        counted = {
            **(figures or {}),
            "cta_wavefronts": work.wavefronts,
            "cta_minimum_wavefronts": work.minimum_wavefronts,
        }
        return self._row(
            use, used, f"{text}: {work}", self._done(use, *_OF_SCRATCH), excess=work.excess, figures=counted
        )

    def _gather(self, use: Operation) -> Cost:
        used = [item for item in map(self._layouts.of, use.layout_types[:1]) if item is not None]
        if not self._uses_scratch(use):
            return self._row(use, used, "by shuffles, without shared memory", self._done(use, *_OF_SCRATCH))
        return self._through_scratch(use, used, "the source goes")

    # Conversions

    def _conversion(self, use: Operation) -> Iterator[Cost]:
        source, destination = (self._layouts.of(kind) for kind in use.layout_types)
        if source is None or destination is None or source.threads is None or destination.threads is None:
            return
        moves = what_moves(source.threads, destination.threads)
        share = moved_share(source.threads, destination.threads) if moves not in ("nothing", "registers") else 0.0
        bits = use.layout_types[0].element_bits
        done = self._done(use, *_OF_CONVERSIONS)
        done = ", ".join(filter(None, [self._scratch.get(use.first_line), done]))
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
        summary = "; ".join(filter(None, [text, done, str(work) if work is not None else ""]))
        used = [source, destination]
        yield self._row(use, used, summary, self._why(use), excess=excess, figures=figures, kind="conversion")

    def _why(self, use: Operation) -> str:
        names: list[str] = []
        for result in use.results:
            for user in self.uses.module.users.get(result, ()):
                at = user.operands.index(result)
                names.append(f"operand {at} of {user.name} (line {user.first_line})")
        made = self.uses.module.maker_of(use.operands[0]) if use.operands else None
        origin = f"{made.name} makes {use.layout_types[0].encoding}" if made is not None else ""
        wanted = f"{', '.join(names[:3])} want{'s' if len(names) == 1 else ''}"
        wanted = f"{wanted} {use.layout_types[1].encoding}" if names else ""
        return "; ".join(filter(None, [wanted, origin]))


def _range(least: float, most: float) -> str:
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _scratch_of(capture: Capture) -> dict[int, str]:
    """Line of an operation in the TTGIR → its scratch memory, from the IR after shared memory was allocated."""
    found: dict[int, str] = {}
    for one in (one for memory in allocations_of(capture)[:1] for one in memory.buffers):
        if one.ttgir_line and one.kind == "scratch":
            found[one.ttgir_line] = f"{'' if one.is_exact else 'at most '}{one.size} bytes of scratch"
    return found


def costs_of(capture: Capture) -> list[Cost]:
    """Every cost of a capture's TTGIR, the worst first: by `excess`, which counts more inside loops."""
    uses, machine = read_uses(capture.texts.get("ttgir", "")), read_machine(capture)
    return _ordered([*global_costs(capture, uses, machine), *_shared_costs(capture, uses, machine)])


def costs_on_chip(capture: Capture, uses: ModuleUses, machine: MemoryInstructions) -> list[Cost]:
    """The same without accesses to global memory, whose addresses must be evaluated."""
    return _ordered(_shared_costs(capture, uses, machine))


def _ordered(costs: Iterable[Cost]) -> list[Cost]:
    return sorted(costs, key=lambda cost: (-(cost.excess << min(4 * cost.loops, 16)), -cost.loops, cost.line))


def as_json(costs: Iterable[Cost]) -> list[dict[str, Any]]:
    return [asdict(cost) for cost in costs]

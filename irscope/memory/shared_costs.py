"""The costs of shared memory, per operation: bank conflicts, bytes of copies and operands, scratch.

What has no model has a row that says so. Sources: `irscope.memory.conflicts` for conflicts; "PTX ISA", wgmma, tcgen05
and cp.async.bulk.tensor, for what these read and write. What goes through scratch is counted by the addresses in the
PTX (`irscope.memory.ptx_shared`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import prod
from typing import TYPE_CHECKING, Any

from irscope.ir.locations.model import chain_texts, line_text
from irscope.ir.mlir.attributes import read_aliases, read_encoding, resolve_aliases
from irscope.ir.mlir.types import LayoutType
from irscope.ir.mlir.uses import ModuleUses, OperationUse
from irscope.layout.described import DescribedLayout
from irscope.layout.maps import MemoryMap
from irscope.layout.rows import own_shape, query_type
from irscope.memory.access import Cost
from irscope.memory.allocation import allocations_of
from irscope.memory.conflicts import core_matrix_ways, matrix_choices, shared_access
from irscope.memory.machine import Action, Machine
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.memory.ptx_shared import SharedWorks

__all__ = ["scratch_of", "shared_costs"]

_LOADS = ("ttg.local_load",)
_STORES = ("ttg.local_store", "ttg.local_alloc")
_COPIES = ("ttg.async_copy_global_to_local", "amdg.buffer_load_to_local", "amdgpu.buffer_load_to_local")
_OPERANDS = ("ttng.warp_group_dot", "ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled")
_BULK = "ttng.async_tma_"
_SCRATCH = ("tt.reduce", "tt.scan", "tt.gather", "tt.histogram", "tt.atomic_rmw", "tt.atomic_cas", "ttg.convert_layout")
"""Operations that may need shared memory of their own."""
# ttg.local_gather   ttng.tmem_copy   amdg.local_load_packed_transposed, but not ttng.wait_barrier or ttg.local_dealloc
_MOVES = re.compile(r"(?:ttg\.local_|ttng\.|amdg\.|amdgpu\.)(?!.*(?:barrier|_wait|fence|commit|dealloc))")
"""Operations that move data, if one of their operands is a tensor in shared memory."""

# axis = 1 : i32
_AXIS = re.compile(r"\baxis = (\d{1,3})\b")


def shared_costs(
    capture: Capture, text: str, uses: ModuleUses, machine: Machine, scratch: Mapping[int, str], works: SharedWorks
) -> Iterator[Cost]:
    """A row for each access to shared memory of a capture's TTGIR, in the order of the text.

    `scratch`: what `scratch_of` returned. `works`: what the PTX does in shared memory.
    """
    reader = _Reader(capture, text, uses, machine, scratch, works)
    for use in uses.operations:
        yield from reader.costs(use)


class _Reader:
    def __init__(
        self, capture: Capture, text: str, uses: ModuleUses, machine: Machine, scratch: Mapping[int, str],
        works: SharedWorks,
    ) -> None:  # fmt: skip
        self.uses = uses
        self.machine = machine
        self.works = works
        self.target = capture.target
        self._aliases = read_aliases(text)
        rows = (DescribedLayout(row, capture.target) for row in capture.layouts)
        self._layouts = {(item.encoding.text, item.shape): item for item in rows}
        self._scratch = scratch

    def costs(self, use: OperationUse) -> Iterator[Cost]:
        if use.name in (*_LOADS, *_STORES, *_COPIES):
            yield from self._access(use)
        elif use.name in _OPERANDS:
            yield from self._operands(use)
        elif use.name.startswith(_BULK):
            yield from self._bulk(use)
        elif use.name in ("tt.reduce", "tt.scan"):
            yield from self._along(use)
        elif use.name == "tt.gather":
            yield self._gather(use)
        elif use.name in _SCRATCH and use.name != "ttg.convert_layout" and self._uses_scratch(use):
            what = "counts" if use.name == "tt.histogram" else "the result, for the threads that hold copies of it,"
            yield self._through_scratch(use, [], what)
        elif _MOVES.match(use.name):
            found = [item[0] for kind in use.types if len(kind.shape) > 1 and (item := self._memory(kind)) is not None]
            if found:
                yield self._row(use, found, "not modelled: its bank conflicts")

    # What the assembly has for an operation: the one place that joins them.

    def _instructions(self, use: OperationUse) -> Counter[tuple[Action, int]]:
        return self.machine.at(use.line)

    def _widths(self, use: OperationUse, *actions: Action) -> Counter[int]:
        found = Counter[int]()
        for (action, bits), number in self._instructions(use).items():
            if action in actions:
                found[bits] += number
        return found

    def _done(self, use: OperationUse) -> str:
        """The shuffles and shared accesses of the operation or its line, in words."""
        counts = Counter[str]()
        for (action, _), number in self._instructions(use).items():
            if action in ("shuffle", "shared load", "shared store"):
                counts[action] += number
        shared = "" if self.machine.by_operation else " on this line"
        return ", ".join(f"{number} {action}{'s' * (number > 1)}{shared}" for action, number in sorted(counts.items()))

    def _described(self, kind: LayoutType) -> DescribedLayout | None:
        encoding = read_encoding(resolve_aliases(kind.encoding, self._aliases))
        return self._layouts.get((encoding.text, own_shape(encoding, kind)[0]))

    def _memory(self, kind: LayoutType) -> tuple[DescribedLayout, MemoryMap] | None:
        """The map of a descriptor in shared memory."""
        found = self._described(kind) if kind.form == "memdesc" else None
        if found is None or found.memory is None:
            return None
        return found, replace(found.memory, element_bits=kind.element_bits or found.memory.element_bits)

    def _row(
        self,
        use: OperationUse,
        used: Sequence[DescribedLayout],
        summary: str,
        hint: str = "",
        *,
        excess: int = 0,
        figures: dict[str, Any] | None = None,
        pair: tuple[str, str] | None = None,
    ) -> Cost:
        return Cost(
            "shared",
            use.name,
            use.line,
            line_text(self.uses.place_of(use)),
            tuple(item.name for item in used),
            tuple(value.name for value in use.results or use.operands[:1]),
            excess,
            use.loops,
            summary,
            hint,
            figures or {},
            pair,
            chain_texts(self.uses.chain_of(use)),
            self.machine.by_operation,
        )

    # Loads, stores and copies by the lanes

    def _access(self, use: OperationUse) -> Iterator[Cost]:
        kinds = [kind for kind in use.types if kind.form == "tensor"]
        # A copy is laid out as its pointers, not as its mask.
        registers = next(filter(None, map(self._described, sorted(kinds, key=lambda kind: not kind.pointee))), None)
        found = next(filter(None, map(self._memory, use.types)), None)
        if use.name == "ttg.local_alloc" and not kinds:
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
        if use.name in _COPIES and self.target.backend == "hip":
            yield self._row(
                use, [registers, shared], "written by the copy itself, in the order of the lanes: no conflicts"
            )
            return
        store = use.name not in _LOADS
        matrix: Action = "matrix store" if store else "matrix load"
        choices = matrix_choices(threads, memory) if self._widths(use, matrix) else ()
        plain: Action = "async copy" if use.name in _COPIES else "shared store" if store else "shared load"
        widths = self._widths(use, plain)
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
        real = ", ".join(f"{number} of {width} bits" for width, number in sorted(widths.items()))
        element = next(kind.element for kind in use.types if kind.form == "memdesc")
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
            pair=None if choices or use.name in _COPIES else (_type_of(registers, element), _type_of(shared, element)),
        )

    # What hardware reads and writes by itself

    def _operands(self, use: OperationUse) -> Iterator[Cost]:
        what = "wgmma" if use.name == "ttng.warp_group_dot" else "tcgen05"
        # Accumulators in tensor memory have no map in shared memory, and barriers hold no operand.
        kinds = [kind for kind in use.types if kind.form == "memdesc" and len(kind.shape) >= 2]
        for kind, found in ((kind, self._memory(kind)) for kind in kinds):
            if found is None:
                continue
            shared, memory = found
            ways = core_matrix_ways(memory)
            size = prod(kind.shape) * kind.element_bits // 8
            title = "×".join([*map(str, kind.shape), kind.element])
            how = (
                "not modelled: no 16 bytes of it lie together"
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

    def _bulk(self, use: OperationUse) -> Iterator[Cost]:
        # The barrier of a load is a descriptor too.
        found = [
            (kind, item) for kind in use.types if len(kind.shape) >= 2 and (item := self._memory(kind)) is not None
        ]
        if not found:
            return
        kind, (shared, _) = found[-1]
        size = prod(kind.shape) * kind.element_bits // 8
        width = shared.encoding["swizzlingByteWidth"]
        swizzle = f", swizzled over {width} bytes" if isinstance(width, int) and width else ""
        verb = "reads" if "local_to_global" in use.name or "scatter" in use.name or "reduce" in use.name else "writes"
        text = f"TMA {verb} {'×'.join([*map(str, kind.shape), kind.element])}, {size} bytes{swizzle}"
        yield self._row(use, [shared], f"{text}; not modelled: its bank conflicts", figures={"bytes": size})

    # Scratch

    def _along(self, use: OperationUse) -> Iterator[Cost]:
        axis = _AXIS.search(use.text)
        used = self._described(use.types[0])
        if axis is None or used is None or used.threads is None or int(axis[1]) >= len(used.shape):
            yield self._row(use, [], "not modelled: the compiler gave no map of its layout")
            return
        held = {
            unit: 1 << sum(vector[int(axis[1])] != 0 for vector in used.threads.layout.vectors(name))
            for unit, name in (("values", "register"), ("lanes", "lane"), ("warps", "warp"))
        }
        text = f"along dim {axis[1]}: {held['values']} values of a thread"
        if held["lanes"] > 1:
            text += f", {held['lanes']} lanes by shuffles"
        if held["warps"] > 1:
            text += f", {held['warps']} warps"
        if self._uses_scratch(use):
            yield self._through_scratch(use, [used], text, held)
        else:
            yield self._row(use, [used], text, self._done(use), figures=held)

    def _uses_scratch(self, use: OperationUse) -> bool:
        return use.line in self._scratch or self.works.of(use) is not None

    def _through_scratch(
        self, use: OperationUse, used: Sequence[DescribedLayout], what: str, figures: Mapping[str, Any] | None = None
    ) -> Cost:
        """The row of an operation that goes through scratch, with its wavefronts as far as the PTX shows them."""
        text, work = f"{what} through {self._scratch.get(use.line, 'scratch')}", self.works.of(use)
        if work is None:
            text += "; its bank conflicts are not known: no PTX has its addresses, or they depend on data"
            return self._row(use, used, text, self._done(use), figures=dict(figures or {}))
        counted = {
            **(figures or {}),
            "cta_wavefronts": work.wavefronts,
            "cta_minimum_wavefronts": work.minimum_wavefronts,
        }
        return self._row(use, used, f"{text}: {work}", self._done(use), excess=work.excess, figures=counted)

    def _gather(self, use: OperationUse) -> Cost:
        used = [item for item in map(self._described, use.types[:1]) if item is not None]
        if not self._uses_scratch(use):
            return self._row(use, used, "by shuffles, without shared memory", self._done(use))
        return self._through_scratch(use, used, "the source goes")


def _range(least: float, most: float) -> str:
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _type_of(item: DescribedLayout, element: str) -> str:
    return query_type(item.encoding.text, item.shape, element)


def scratch_of(capture: Capture) -> dict[int, str]:
    """Line of an operation in the TTGIR → its scratch memory, from the IR after shared memory was allocated."""
    found: dict[int, str] = {}
    for one in (one for memory in allocations_of(capture)[:1] for one in memory.buffers):
        if one.ttgir_line and one.kind == "scratch":
            found[one.ttgir_line] = f"{'' if one.is_exact else 'at most '}{one.size} bytes of scratch"
    return found

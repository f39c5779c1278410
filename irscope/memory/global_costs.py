"""The costs of global memory: what each access asks for, from its addresses, and why its instructions are narrow.

Lines: NVIDIA's L1 cache has lines of 128 bytes in sectors of 32 ("Nsight Compute" documentation, "Memory Tables").
AMD's vector L1 has lines of 64 bytes on CDNA 2 and of 128 on CDNA 3 ("AMD CDNA 2" and "AMD CDNA 3" white papers), and
of 128 on RDNA ("RDNA Architecture" white paper): there the unit that is counted is the line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.locations.model import chain_texts, line_text
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.uses import ModuleUses
from irscope.layout.described import CaptureLayouts, DescribedLayout
from irscope.layout.maps import ThreadMap
from irscope.memory.access import MOST, SECTOR_BYTES, Cost, GlobalAccess, Span
from irscope.memory.machine import ACCESSES, MemoryInstructions
from irscope.model.capture import Capture
from irscope.target import Target

if TYPE_CHECKING:
    from irscope.memory.addresses.narrow import Limits

_LOADS = ("ld.global", "cp.async.")
_LINE_BYTES = 128
_LINE_BYTES_OF = {"gfx90a": 64, "gfx908": 64}


def global_costs(capture: Capture, uses: ModuleUses, machine: MemoryInstructions) -> Iterator[Cost]:
    """A row for each access to global memory of a capture's TTGIR, in the order of the text."""
    # numpy, which only this needs, takes a tenth of a second to import.
    from irscope.memory.addresses.arguments import read_arguments
    from irscope.memory.addresses.counter import Hardware
    from irscope.memory.addresses.launch import accesses_of

    kernel = uses.module.kernel
    operations = {one.first_line: one for one in uses.module.walk() if one.opcode in ACCESSES}
    if kernel is None or not operations:
        return
    rows = _Rows(capture, uses, machine)
    arguments = read_arguments(kernel, capture.launch, capture.text("ttgir"))
    hardware = Hardware(*_units(capture.target), capture.target.warp_size)
    width_of = rows.width_of
    made_of, grid = rows.made_of, capture.launch.grid
    for access in accesses_of(uses.module, arguments, grid, hardware, rows.threads_of, width_of, made_of):
        yield rows.row(access, operations[access.line])


def _units(target: Target) -> tuple[int, int]:
    if target.backend == "cuda":
        return SECTOR_BYTES, _LINE_BYTES
    line = _LINE_BYTES_OF.get(str(target.arch), _LINE_BYTES)
    return line, line


class _Rows:
    def __init__(self, capture: Capture, uses: ModuleUses, machine: MemoryInstructions) -> None:
        self.uses = uses
        self.machine = machine
        self._capture = capture
        self.warps = int(capture.launch.option("num_warps", 4) or 4)
        self._layouts = CaptureLayouts(capture)
        self._threads: dict[int, ThreadMap | None] = {}
        """By the operation's line: each is asked for in every execution."""

    @cached_property
    def _limits(self) -> Limits:
        from irscope.memory.addresses.narrow import Limits

        return Limits(self.uses.module)

    @cached_property
    def _sass(self) -> Mapping[int, int]:
        """Line of the TTGIR → the instructions of the SASS that load for it; empty where that is not known."""
        capture = self._capture
        own = next((row.by_line for row in capture.operations if row.stage == "sass" and row.runs), ())
        code = read_instructions(capture.texts.get("sass", ""), "sass") if own else []
        loads = [item.line for item in code if (item.family or "").startswith(_LOADS) and item.line <= len(own)]
        return Counter(own[line - 1] for line in loads if own[line - 1])

    def threads_of(self, operation: Operation) -> ThreadMap | None:
        line = operation.first_line
        if line not in self._threads:
            described = self._layouts.of_access(operation)
            self._threads[line] = described.threads if described is not None else None
        return self._threads[line]

    def width_of(self, operation: Operation) -> int:
        """Bits per lane of an operation's instructions; 0 if the assembly does not say."""
        return max(self.machine.widths_of(operation), default=0)

    def made_of(self, operation: Operation) -> int | None:
        """The instructions that the SASS has for an access; None where the operation of each is not known."""
        return self._sass.get(operation.first_line)

    def row(self, access: GlobalAccess, operation: Operation) -> Cost:
        described = self._layouts.of_access(operation)
        widths = self.machine.widths_of(operation)
        named = tuple(value.name for value in operation.results or operation.operands[:1])
        chain = self.uses.locations.chain_at(access.line)
        return Cost(
            "global",
            access.operation,
            access.line,
            line_text(self.uses.place_at(access.line)),
            (described.name,) if described is not None else (),
            named,
            _excess(access, self.warps),
            operation.loops,
            _summary(access),
            "; ".join(filter(None, (self._narrow(access, operation, widths), _pattern(access, described)))),
            {"assembly_bits": {str(width): number for width, number in sorted(widths.items())}},
            chain=chain_texts(chain),
            access=access,
            by_operation=self.machine.by_operation,
        )

    def _narrow(self, access: GlobalAccess, operation: Operation, widths: Mapping[int, int]) -> str:
        """Where the assembly has narrower instructions than the addresses allow, and because of which arguments."""
        if not access.bits_per_thread or not self.machine.text_stage:
            return ""
        if not widths:
            where = "" if self.machine.by_operation else " at this line"
            return f"the {self.machine.text_stage} has no such access{where}" if access.launch.units[1] else ""
        if access.bits_per_thread >= access.possible_bits:
            return ""
        real = ", ".join(f"{number} × {width} bits" for width, number in sorted(widths.items()))
        allowed = f"the {self.machine.text_stage} has {real}, these addresses allow {access.possible_bits}"
        return f"{allowed}; {self._cause(access, operation)}"

    def _cause(self, access: GlobalAccess, operation: Operation) -> str:
        threads = self.threads_of(operation)
        found = self._limits.arguments(operation, threads, access.possible_bits) if threads else ()
        if found:
            are = "is" if len(found) == 1 else "are"
            return f"because {', '.join(found)} {are} not known to be divisible by 16"
        return "the compiler cannot prove contiguous addresses, or an equal mask, over that many elements"


def _excess(access: GlobalAccess, warps: int) -> int:
    total = access.launch
    executions = total.executions[0] or 1
    return -(-max(total.units[0] - total.least_units[1], 0) // (executions * warps))


def _summary(access: GlobalAccess) -> str:
    total = access.launch
    if not total.executions[1]:
        return "is never executed in this launch"
    if total.units[1] >= MOST and not total.units[0] and not access.bits_per_thread:
        return f"its requested bytes are unknown: {access.basis}"
    unit = "sectors" if access.unit_bytes == SECTOR_BYTES else f"lines of {access.unit_bytes} bytes"
    width = f"{access.bits_per_thread} bits per thread" if access.bits_per_thread else "a tile, issued by one thread"
    endless = total.executions[1] >= MOST
    shown = access.each if endless else total
    parts = [
        f"{width}: {_text(shown.units)} {unit} (ideal {_text(shown.ideal_units)}, minimum {_text(shown.least_units)})"
    ]
    if access.line_bytes != access.unit_bytes:
        parts.append(f"{_text(shown.lines)} lines")
    if shown.masked_lanes[1]:
        parts.append(f"{_text(shown.masked_lanes)} {'lanes masked off' if access.bits_per_thread else 'out of bounds'}")
    if endless:
        return f"{', '.join(parts)}; each time, of an unknown number"
    return f"{', '.join(parts)}; {access.mark}"


def _text(span: Span) -> str:
    low, high = span
    if low == high:
        return str(low)
    return f"at least {low}" if high >= MOST else f"{low}–{high}"


def _pattern(access: GlobalAccess, described: DescribedLayout | None) -> str:
    """What about the addresses costs more than the least."""
    total = access.launch
    if not total.executions[1] or total.units[0] <= total.least_units[0] or not described or not described.threads:
        return ""
    if 2 * total.distinct_bytes[1] <= total.bytes[0]:
        return f"each byte is requested {total.bytes[0] / total.distinct_bytes[1]:.3g} times by a program"
    size = max(access.possible_bits // 8, 1)
    along = fastest_dimension(described.threads)
    near = [axis for axis, stride in enumerate(access.strides) if stride is not None and 0 < abs(stride) < SECTOR_BYTES]
    if near and along not in near:
        return f"the addresses are contiguous along dim {near[-1]}, the layout's fastest dimension is dim {along}"
    stride = access.strides[along] if along < len(access.strides) else None
    if stride is None or abs(stride) <= size:
        return ""
    return f"the stride along dim {along} is {abs(stride)} bytes"


def fastest_dimension(threads: ThreadMap) -> int:
    """The dimension along which a thread, then a warp, holds the longest run."""
    lanes = threads.layout.vectors("lane")

    def along(dimension: int) -> tuple[int, int, int, int]:
        own = [number for number, vector in enumerate(lanes) if vector[dimension]]
        return threads.contiguous(dimension), -min(own, default=99), len(own), dimension

    return max(range(len(threads.shape)), key=along) if threads.shape else 0

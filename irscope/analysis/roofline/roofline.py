"""The roofline of a capture: its arithmetic and bytes counted from the TTGIR and the launch record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from irscope.analysis.roofline.model import OperationWork, Requested, Roofline, UnitWork
from irscope.analysis.roofline.work import computing_operations, not_counted, work_of
from irscope.device.parts import DEVICE_PARTS, Peaks, Unit, peaks_of_target
from irscope.errors import UsageError
from irscope.ir.locations.model import line_text
from irscope.ir.mlir.attributes import read_encoding
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.types import read_types
from irscope.ir.mlir.uses import read_uses
from irscope.layout.described import DescribedLayout
from irscope.layout.maps import ThreadMap, eliminate
from irscope.layout.rows import own_shape
from irscope.memory.access import MOST, Access, Span
from irscope.memory.global_costs import global_costs
from irscope.memory.machine import read_machine
from irscope.model.capture import Capture
from irscope.model.evidence import Ceilings

__all__ = ["roofline_of"]

_MEASURED = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32"}
"""torch's dtype of a matrix product that was measured → the operands of the matrix cores that it runs on."""
_MOST_LINES = 6
_CERTAINTIES = ("exact", "range", "sampled")


def roofline_of(capture: Capture, peaks: Peaks | None, ceilings: Ceilings | None = None) -> Roofline:
    """Count a launch, and hold it against peaks.

    Args:
        capture: with a TTGIR and the record of a launch.
        peaks: of the part that is assumed; None if none is known.
        ceilings: what a GPU of the same target was measured to reach; None if none was.

    Raises UsageError if the capture holds no TTGIR, no launch, or a launch of too many programs.
    """
    # numpy, which only this needs, takes a tenth of a second to import.
    from irscope.memory.addresses.arguments import read_arguments
    from irscope.memory.programs.footprint import MOST_PROGRAMS, footprint_of

    grid, record = capture.launch.grid, capture.launch.record
    if "ttgir" not in capture.stages or (kernel := (uses := read_uses(capture.text("ttgir"))).module.kernel) is None:
        raise UsageError(f"{capture.name}: a roofline is counted in the TTGIR, and this capture holds none.")
    if grid is None or record is None:
        raise UsageError(
            f"{capture.name}: the capture holds no launch, so neither its loops nor its bytes are known. Record a "
            "script that launches the kernel."
        )
    if prod(grid) > MOST_PROGRAMS:
        raise UsageError(f"{capture.name}: a launch of {prod(grid)} programs; at most {MOST_PROGRAMS} are counted.")
    arguments = read_arguments(kernel, capture.launch)
    room = {one.path: one.storage_bytes for one in record.arguments if one.storage_bytes is not None}
    found = footprint_of(uses.module, arguments, grid, room)
    copies = _Copies(capture, uses.module.resolve)
    rows = [
        OperationWork(
            one.first_line, one.name, line_text(uses.place_at(one.first_line)), work.unit, work.flops,
            found.executions[one.first_line], copies.of(one),
        )
        for one in computing_operations(uses.module)
        if one.first_line in found.executions and found.executions[one.first_line][1]
        for work in work_of(uses.module, one)
    ]  # fmt: skip
    notes = [*found.notes, *_open_notes(rows, found.open), *_uncounted(not_counted(uses.module))]
    notes += [f"{'' if one.argument == '' else one.argument + ': '}{why}" for one in found.touched
              for why in one.why_not if one.distinct_bytes[0] < one.distinct_bytes[1]]  # fmt: skip
    costs = global_costs(capture, capture.text("ttgir"), uses, read_machine(capture))
    accesses = [cost.access for cost in costs if cost.access is not None]
    target = str(capture.target)
    return Roofline(
        kernel=capture.name,
        capture_id=capture.id,
        target=target,
        grid=grid,
        peaks=peaks,
        other_parts=tuple(one.part for one in peaks_of_target(capture.target) if peaks is None or one != peaks),
        bytes_per_s=peaks.bytes_per_s if peaks is not None else None,
        ceilings=ceilings,
        units=_units(rows, peaks, ceilings),
        operations=tuple(rows),
        touched=found.touched,
        requested=_requested(accesses),
        l2_bytes=DEVICE_PARTS[target].l2_bytes if target in DEVICE_PARTS else None,
        spilled_bytes=_spilled_bytes(capture, prod(grid)),
        atomics=_atomics(accesses),
        assumed=(*dict.fromkeys(arguments.assumed.values()), *arguments.stand_ins),
        notes=tuple(dict.fromkeys(notes)),
    )


def _open_notes(rows: Iterable[OperationWork], reasons: Mapping[int, tuple[str, ...]]) -> list[str]:
    lines: dict[str, list[int]] = {}
    for row in rows:
        if row.executions[0] < row.executions[1]:
            held = lines.setdefault(", ".join(reasons.get(row.line, ())), [])
            held += [row.line] * (row.line not in held)
    return [f"how often {_lines(held)} executed ({reason})" for reason, held in lines.items()]


def _lines(lines: Sequence[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]} is"
    more = f" and {len(lines) - _MOST_LINES} more" if len(lines) > _MOST_LINES else ""
    return f"lines {', '.join(map(str, lines[:_MOST_LINES]))}{more} are"


def _uncounted(found: Mapping[str, list[int]]) -> list[str]:
    return [
        f"not counted: {name} (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))})"
        for name, lines in found.items()
    ]


def _units(rows: Iterable[OperationWork], peaks: Peaks | None, ceilings: Ceilings | None) -> tuple[UnitWork, ...]:
    held: dict[Unit, list[OperationWork]] = {}
    for row in rows:
        held.setdefault(row.unit, []).append(row)
    measured = {
        Unit("matrix", _MEASURED[name]): rate
        for name, rate in (ceilings.flops_per_s if ceilings else ())
        # Where there is no row for TF32, torch takes other units for float32.
        if name in _MEASURED and peaks is not None and Unit("matrix", _MEASURED[name]) in peaks.rates
    }
    found: list[UnitWork] = []
    for unit, works in held.items():
        low, high = (sum(work.flops[side] for work in works) for side in (0, 1))
        made = [sum(work.flops[side] * work.copies for work in works) for side in (0, 1)]
        rate = peaks.rate(unit) if peaks is not None else None
        executed = made[0], min(made[1], MOST)
        found.append(UnitWork(unit, (low, min(high, MOST)), executed, rate, measured.get(unit)))
    return tuple(sorted(found, key=lambda one: -one.flops[1]))


def _requested(accesses: list[Access]) -> Requested | None:
    if not accesses:
        return None
    unit = accesses[0].unit_bytes
    asked = [sum(one.launch.bytes[side] for one in accesses) for side in (0, 1)]
    moved = [sum(one.launch.units[side] for one in accesses) * unit for side in (0, 1)]
    certainty = max((one.certainty for one in accesses), key=_CERTAINTIES.index)
    return Requested(unit, (asked[0], min(asked[1], MOST)), (moved[0], min(moved[1], MOST)), certainty)


def _spilled_bytes(capture: Capture, programs: int) -> int | None:
    """Each spill once: how often a loop makes it is not counted."""
    each = capture.resources.spilled_bytes
    threads = int(capture.launch.option("num_warps", 4) or 4) * capture.target.warp_size
    return None if each is None else each * threads * programs * int(capture.launch.option("num_ctas", 1) or 1)


def _atomics(accesses: Iterable[Access]) -> Span:
    """The elements of all atomics, those that a mask turns off left out."""
    low = high = 0
    for access in accesses:
        if access.action == "atomic" and access.element_bytes:
            low += access.launch.bytes[0] // access.element_bytes
            high += access.launch.bytes[1] // access.element_bytes
    return low, min(high, MOST)


class _Copies:
    """How many threads hold each element of a result, and so compute it."""

    def __init__(self, capture: Capture, resolve: Callable[[str], str]) -> None:
        self._resolve = resolve
        self._threads = int(capture.launch.option("num_warps", 4) or 4) * capture.target.warp_size
        rows = (DescribedLayout(row, capture.target) for row in capture.layouts)
        self._layouts = {(item.encoding.text, item.shape): item.threads for item in rows}

    def of(self, operation: Operation) -> int:
        """1 where that is not known, and for what is no elementwise operation."""
        if operation.regions or "dot" in operation.name or "mma" in operation.name:
            return 1
        kinds = read_types(operation.text.partition(" = ")[2])
        if not kinds:
            return self._threads
        encoding = read_encoding(self._resolve(kinds[-1].encoding))
        threads = self._layouts.get((encoding.text, own_shape(encoding, kinds[-1])[0]))
        return _copies_of(threads) if threads is not None else 1


def _copies_of(threads: ThreadMap) -> int:
    """Threads that hold an element; a thread computes copies in its own registers once."""
    own = len(eliminate(threads.layout.flat_vectors("register"))[0])
    others = sum(len(threads.layout.vectors(name)) for name in ("lane", "warp", "block"))
    return 1 << (own + others - len(eliminate(threads.layout.flat_bases())[0]))

"""The roofline of a launch: its arithmetic, its bytes, and the minimum time that the peaks of a part allow for them.

What counts: a dot 2·M·N·K; `addf`, `subf`, `mulf`, `divf`, `remf`, the maxima and minima 1 for each element, `fma` 2; a
function of `math` 1; a reduction or a scan its combination once less than it has elements. Each element counts once,
however many threads hold it, and whether or not a mask drops the result afterwards: masked-off lanes compute too. What
does not count: integers, comparisons, choices, conversions, changes of sign.

On the special-function unit are those functions of float32 that become one of its instructions at least (ex2, rsqrt,
sqrt): others, such as sin or erf, Triton takes from the device library, which computes them with FMAs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

from irscope.device.occupancy import warps_of
from irscope.device.parts import DEVICE_PARTS, Peaks, Unit, peaks_of_target
from irscope.errors import UsageError
from irscope.ir.locations.model import line_text
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import Type, parse_type, read_types
from irscope.ir.mlir.uses import read_uses
from irscope.layout.described import CaptureLayouts
from irscope.layout.maps import ThreadMap, eliminate
from irscope.memory.access import MOST, SECTOR_BYTES, GlobalAccess, Span
from irscope.memory.addresses.arguments import read_arguments
from irscope.memory.addresses.footprint import Touched, footprint_of
from irscope.memory.addresses.parts import MOST_PROGRAMS
from irscope.memory.global_costs import global_costs
from irscope.memory.machine import read_machine
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.evidence import Ceilings
from irscope.model.launch_record import Argument, LaunchRecord

_PER_ELEMENT = ("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf")
_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt", "cbrt",
    "erf", "powf", "atan", "atan2", "sinh", "cosh",
)  # fmt: skip
_COMBINING = ("reduction", "scan")
_SPECIAL = ("math.exp", "math.exp2", "math.sqrt", "math.rsqrt", "precise_sqrt")
_FLOPS = {
    **{f"arith.{name}": 1 for name in _PER_ELEMENT},
    **{f"math.{name}": 1 for name in _FUNCTIONS},
    "math.fma": 2,
    "precise_divf": 1,
    "approx_divf": 1,
    "precise_sqrt": 1,
    "clampf": 2,
}
"""Of each element, by opcode."""
_IN_TENSOR_MEMORY = ("tc_gen5_mma", "tc_gen5_mma_scaled")
"""Dots whose result goes to their third operand, on tensor cores always."""
_SCALED_TYPES = {"e4m3": "f8", "e5m2": "f8", "e2m3": "f6", "e3m2": "f6", "e2m1": "f4", "bf16": "bf16", "fp16": "f16"}
_PACKED = 2
"""Elements of e2m1 in a byte."""


@dataclass(frozen=True, slots=True)
class Work:
    """The FLOPs of one execution of an operation."""

    unit: Unit
    flops: int
    """Each element once."""


def _computing_operations(module: MlirModule) -> Iterator[Operation]:
    """Every operation but those that combine within a reduction or a scan, which these count themselves."""
    waiting = [*reversed(module.operations)]
    while waiting:
        operation = waiting.pop()
        yield operation
        if operation.kind not in _COMBINING or operation.opcode == "histogram":
            waiting.extend(reversed(operation.children))


def _work_of(module: MlirModule, operation: Operation) -> list[Work]:
    if operation.kind == "dot":
        return _dot(module, operation)
    if operation.kind in _COMBINING:
        return _combined(operation)
    work = _elementwise(operation)
    return [work] if work is not None else []


def _unseen(operation: Operation) -> str | None:
    if operation.is_unknown:
        return f"{operation.name or 'an operation'}, whose form is unknown"
    if operation.opcode == "extern_elementwise":
        symbol = operation.attribute("symbol")
        return f"calls of {symbol}" if symbol else "calls of device functions"
    if operation.opcode == "elementwise_inline_asm":
        return "inline assembly"
    if operation.opcode == "atomic_rmw" and operation.attribute("atomic_rmw_op") == "fadd":
        return "atomic additions, which the L2 cache executes"
    return operation.name if operation.opcode == "map_elementwise" else None


def _elementwise(operation: Operation) -> Work | None:
    each = _FLOPS.get(operation.opcode, 0)
    if not each or not operation.results:
        return None
    kind = operation.result_types[0]
    element = kind.element or kind
    if element.form != "float":
        return None
    unit = "special" if operation.opcode in _SPECIAL and element.text == "f32" else "vector"
    return Work(Unit(unit, element.text), each * prod(kind.shape))


def _combined(operation: Operation) -> list[Work]:
    """A reduction or a scan: its combination, once less along the axis than there are elements."""
    axis = operation.attribute("axis")
    shape = operation.operand_types[0].shape if operation.operands else ()
    if not isinstance(axis, int) or axis >= len(shape):
        return []
    times = prod(shape) // shape[axis] * (shape[axis] - 1)
    each = [work for one in operation.children for work in [_elementwise(one)] if work is not None]
    return [Work(work.unit, times * work.flops) for work in each]


def _dot(module: MlirModule, operation: Operation) -> list[Work]:
    is_in_memory = operation.opcode in _IN_TENSOR_MEMORY
    values = [operation.operand(name) for name in ("a", "b", "d" if is_in_memory else "c")]
    kinds = [module.type_of(value) for value in values if value is not None]
    if len(kinds) < 3 or not all(kind.shape and kind.element is not None for kind in kinds):
        return []
    left, right, out = kinds
    formats = [operation.attribute(name) for name in _formats(operation)]
    scaled = [str(one) for one in formats if one is not None]
    inner = left.shape[-1] * (_PACKED if scaled[:1] == ["e2m1"] and str(left.element) == "i8" else 1)
    flops = 2 * prod(out.shape) * inner
    dtype = _scaled_type(scaled) if scaled else _dot_type(module, operation, left, right, out)
    on_cores = is_in_memory or _is_matrix(module, out)
    return [Work(Unit("matrix" if on_cores else "vector", dtype), flops)]


def _formats(operation: Operation) -> tuple[str, ...]:
    if operation.opcode == "dot_scaled":
        return "a_elem_type", "b_elem_type"
    return ("a_type", "b_type") if operation.opcode == "tc_gen5_mma_scaled" else ()


def _scaled_type(types: list[str]) -> str:
    """The wider one: the cores run at its rate."""
    names = [_SCALED_TYPES.get(one, one) for one in types]
    return max(names, key=lambda name: int("".join(filter(str.isdigit, name)) or 0))


def _is_matrix(module: MlirModule, out: Type) -> bool:
    encoding = module.encoding_of(out)
    return encoding is not None and encoding.is_matrix


def _dot_type(module: MlirModule, operation: Operation, left: Type, right: Type, out: Type) -> str:
    wider = left if left.element_bits >= right.element_bits else right
    element, encoding = str(wider.element), module.encoding_of(out)
    if element.startswith("f8"):
        element = "f8"
    if element == "f32" and (operation.opcode in _IN_TENSOR_MEMORY or _is_matrix(module, out)):
        # NVIDIA's tensor cores have no float32: what runs on them is rounded to TF32.
        is_amd = encoding is not None and encoding.kind.startswith("amd")
        element = "f32" if is_amd and operation.attribute("inputPrecision") == "ieee" else "tf32"
    return f"{element} into f16" if str(out.element) == "f16" and element in ("f16", "f8") else element


MEMORY = "memory"
"""The bound of a launch that no unit bounds."""


def mark(span: Span) -> str:
    """`exact`, or `between bounds`."""
    return "exact" if span[0] == span[1] else "between bounds"


@dataclass(frozen=True, slots=True)
class OperationWork:
    """The arithmetic of one operation of the TTGIR, in the whole launch."""

    line: int
    """In the TTGIR text, 1-based."""
    operation: str
    place: str
    """`file:line` of the Python source."""
    unit: Unit
    flops_each: int
    """Of one execution."""
    executions: Span
    """Of all programs together."""
    copies: int
    """How many threads compute the same element, by the layout of the result."""

    @property
    def flops(self) -> Span:
        """Each element once."""
        low, high = self.executions
        return low * self.flops_each, MOST if high >= MOST else high * self.flops_each


@dataclass(frozen=True, slots=True)
class UnitWork:
    """The arithmetic that one kind of unit does."""

    unit: Unit
    flops: Span
    """Each element once."""
    executed_flops: Span
    """As often as threads compute it: copies of a value that several threads hold are computed by each."""
    rate: float | None
    """Operations per second at best; None if no peak is known."""
    measured_rate: float | None = None
    """What a matrix product reached on a GPU of this target; None where that was not measured."""

    @property
    def time_s(self) -> tuple[float, float] | None:
        """The least time that it takes, for the fewest and for the most operations; None without a peak."""
        return None if self.rate is None else _times(self.flops, self.rate)


@dataclass(frozen=True, slots=True)
class _Requested:
    """What the instructions ask of the caches, beside what must come from DRAM."""

    unit_bytes: int
    bytes: Span
    moved_bytes: Span
    """The units (on NVIDIA sectors of 32 bytes) that each instruction touches, in bytes."""
    certainty: str
    """`exact`, `range` or `sampled`: the least certain of the accesses."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """A launch against the peaks of a part."""

    kernel: str
    capture_id: str
    target: str
    grid: tuple[int, int, int]
    peaks: Peaks | None
    """Of the part that is assumed; None if no part of the target is known."""
    other_parts: tuple[str, ...]
    """The other parts of the target, for `--part`."""
    bytes_per_s: float | None
    """Of the DRAM."""
    ceilings: Ceilings | None
    """What `doctor --gpu` measured on a GPU of this target; None if it did not."""
    units: tuple[UnitWork, ...]
    operations: tuple[OperationWork, ...]
    touched: tuple[Touched, ...]
    requested: _Requested | None
    l2_bytes: int | None
    spilled_bytes: int | None = None
    """What all threads store to spill registers and load of it, once each; None where that is not known. It goes
    through the caches, and is no part of `dram_bytes`."""
    atomics: Span = (0, 0)
    """Elements that atomics read and write, in the L2 cache, one after another where they are the same."""
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """The operations that are not counted, and why bounds differ."""

    @property
    def dram_bytes(self) -> Span:
        """The sectors that are read, and those that are written, each once: the least that DRAM must move."""
        low = sum(one.sectors[0] for one in self.touched) * SECTOR_BYTES
        return low, min(sum(one.sectors[1] for one in self.touched) * SECTOR_BYTES, MOST)

    @property
    def distinct_bytes(self) -> Span:
        """The distinct bytes that are read, and those that are written."""
        low, high = (sum(one.distinct_bytes[side] for one in self.touched) for side in (0, 1))
        return low, min(high, MOST)

    @property
    def memory_time_s(self) -> tuple[float, float] | None:
        """The least time for the DRAM's bytes; None without a peak."""
        return None if self.bytes_per_s is None else _times(self.dram_bytes, self.bytes_per_s)

    @property
    def times_s(self) -> dict[str, tuple[float, float]]:
        """What takes time → the least that it takes, by its least and its greatest count."""
        found = {str(one.unit): one.time_s for one in self.units if one.time_s is not None}
        if self.memory_time_s is not None:
            found[MEMORY] = self.memory_time_s
        return found

    @property
    def floor_s(self) -> tuple[float, float] | None:
        """No launch is faster: the longest of these times; None if none is known."""
        times = self.times_s.values()
        return (max(low for low, _ in times), max(high for _, high in times)) if times else None

    @property
    def bound_by(self) -> tuple[str, ...]:
        """What may be the longest: one, or several where the bounds leave it open."""
        if (floor := self.floor_s) is None or not floor[1]:
            return ()
        return tuple(name for name, (_, high) in self.times_s.items() if high >= floor[0] and high > 0)

    @property
    def measured_s(self) -> float | None:
        """The time at the rates that a GPU was measured to reach, as far as they are known; None if none is."""
        if self.ceilings is None:
            return None
        times = [_times(one.flops, one.measured_rate)[0] for one in self.units if one.measured_rate]
        return max([*times, _times(self.dram_bytes, self.ceilings.bytes_per_s)[0]])

    def intensity(self, unit: UnitWork) -> tuple[float, float]:
        """A unit's operations per byte of DRAM, the least and the greatest."""
        (fewest, most), (least, greatest) = unit.flops, self.dram_bytes
        # Nothing bounds it: not the operations, or no byte is sure to be moved.
        is_endless = most >= MOST or (not least and most > 0)
        return fewest / greatest if greatest else 0.0, inf if is_endless else most / least if least else 0.0

    def ridge(self, unit: UnitWork) -> float | None:
        """The operations per byte from which on a unit is the bound, not the memory; None without peaks."""
        return unit.rate / self.bytes_per_s if unit.rate is not None and self.bytes_per_s else None


def _times(counts: Span, rate: float) -> tuple[float, float]:
    return counts[0] / rate, inf if counts[1] >= MOST else counts[1] / rate


_MEASURED = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32"}
"""torch's dtype of a matrix product that was measured → the operands of the matrix cores that it runs on."""
_TORCH_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
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
    copies = _Copies(capture)
    rows = [
        OperationWork(
            one.first_line, one.name, line_text(uses.place_at(one.first_line)), work.unit, work.flops,
            found.executions[one.first_line], copies.of(one),
        )
        for one in _computing_operations(uses.module)
        if one.first_line in found.executions and found.executions[one.first_line][1]
        for work in _work_of(uses.module, one)
    ]  # fmt: skip
    notes = [*found.notes, *_open_notes(rows, found.open), *_uncounted(uses.module)]
    notes += [f"{'' if one.argument == '' else one.argument + ': '}{why}" for one in found.touched
              for why in one.why_not if one.distinct_bytes[0] < one.distinct_bytes[1]]  # fmt: skip
    costs = global_costs(capture, uses, read_machine(capture))
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


def _uncounted(module: MlirModule) -> list[str]:
    found: dict[str, list[int]] = {}
    for one in module.walk():
        if (name := _unseen(one)) is not None:
            found.setdefault(name, []).append(one.first_line)
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


def _requested(accesses: list[GlobalAccess]) -> _Requested | None:
    if not accesses:
        return None
    unit = accesses[0].unit_bytes
    asked = [sum(one.launch.bytes[side] for one in accesses) for side in (0, 1)]
    moved = [sum(one.launch.units[side] for one in accesses) * unit for side in (0, 1)]
    certainty = max((one.certainty for one in accesses), key=_CERTAINTIES.index)
    return _Requested(unit, (asked[0], min(asked[1], MOST)), (moved[0], min(moved[1], MOST)), certainty)


def _spilled_bytes(capture: Capture, programs: int) -> int | None:
    """Each spill once: how often a loop makes it is not counted."""
    each = capture.resources.spilled_bytes
    threads = (warps_of(capture) or 4) * capture.target.warp_size
    return None if each is None else each * threads * programs * int(capture.launch.option("num_ctas", 1) or 1)


def _atomics(accesses: Iterable[GlobalAccess]) -> Span:
    low = high = 0
    for access in accesses:
        if access.action == "atomic" and access.element_bytes:
            low += access.launch.bytes[0] // access.element_bytes
            high += access.launch.bytes[1] // access.element_bytes
    return low, min(high, MOST)


class _Copies:
    """How many threads hold each element of a result, and so compute it."""

    def __init__(self, capture: Capture) -> None:
        self._threads = int(capture.launch.option("num_warps", 4) or 4) * capture.target.warp_size
        self._layouts = CaptureLayouts(capture)

    def of(self, operation: Operation) -> int:
        """1 where that is not known, and for what is no elementwise operation."""
        if operation.regions or "dot" in operation.name or "mma" in operation.name:
            return 1
        kinds = read_types(operation.text.partition(" = ")[2])
        if not kinds:
            return self._threads
        item = self._layouts.of(kinds[-1])
        return _copies_of(item.threads) if item is not None and item.threads is not None else 1


def _copies_of(threads: ThreadMap) -> int:
    """Threads that hold an element; a thread computes copies in its own registers once."""
    own = len(eliminate(threads.layout.flat_vectors("register"))[0])
    others = sum(len(threads.layout.vectors(name)) for name in ("lane", "warp", "block"))
    return 1 << (own + others - len(eliminate(threads.layout.flat_bases())[0]))


@dataclass(frozen=True, slots=True)
class _DotFlops:
    """The floating-point operations of a launch's dots."""

    flops: int | None
    """Two for each multiplication and addition, of whole tiles: what lies outside of a tensor counts too."""
    why_not: str = ""
    """Why they are not known, or an empty string."""
    dtype: str = ""
    """Type of the dots' operands, as torch names it; an empty string if there is none, or several."""


def count_dot_flops(text: str, scalars: Mapping[str, float], grid: tuple[int, int, int]) -> _DotFlops:
    """Count the dots of a launch, where its arguments alone decide how often each is executed.

    `scalars`: parameter → value, for its numbers.
    """

    module = parse_mlir(text)
    kernel = module.kernel
    dots = [one for one in _computing_operations(module) if one.kind == "dot"]
    if kernel is None or not dots:
        return _DotFlops(None, "it has no dot")
    if prod(grid) > MOST_PROGRAMS:
        return _DotFlops(None, f"{prod(grid)} programs are more than the {MOST_PROGRAMS} that are counted")
    rows = tuple(Argument(name, "scalar", type(value).__name__, value) for name, value in scalars.items())
    parameters = ((value.name.removeprefix("%"), parse_type(kind)) for value, kind, _ in kernel.parameters)
    signature = tuple((name, "*i8" if kind.form == "pointer" else str(kind)) for name, kind in parameters)
    launch = Launch(Kernel(""), signature, grid=grid, record=LaunchRecord(rows))
    found = footprint_of(module, read_arguments(kernel, launch), grid, {})
    dtypes: set[str] = set()
    flops = 0
    for dot in dots:
        low, high = found.executions.get(dot.first_line, (0, 0))
        works = _work_of(module, dot)
        if low != high:
            return _DotFlops(None, ", ".join(found.open.get(dot.first_line, ())))
        if not works:
            return _DotFlops(None, "a dot's types cannot be read")
        flops += low * works[0].flops
        dtypes.add(_TORCH_NAMES.get(works[0].unit.dtype.partition(" ")[0], ""))
    return _DotFlops(flops, "", dtypes.pop() if len(dtypes) == 1 else "")

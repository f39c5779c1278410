"""Whether two compiles of a launch give the same bits: the same operations on floats, in the same order.

The machine runs both with floats as hashes of the expression that they are: a sum of three is another element for each
order of its additions. Reductions take their tree from the layout of their operand, dots their order along k from the
instruction that they become.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from irscope.errors import NotRun, WrongProgram
from irscope.ir.locations.model import line_text, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import Type
from irscope.machine.arithmetic import is_float
from irscope.machine.captured import captured_inputs, run_text, sampled_programs
from irscope.machine.control import Bindings, Executor, Machine, Step
from irscope.machine.elementwise import FLOAT_FUNCTIONS
from irscope.machine.gpu_operations import GPU_OPERATIONS
from irscope.machine.ring import RingArithmetic, RingMemory, first_difference, hashed_term
from irscope.machine.tensors import TENSORS
from irscope.machine.values import Array, Held, dtype_of
from irscope.model.capture import Capture
from irscope.verify.meaning import DEFAULT_PROGRAMS, compare_captures, last_text
from irscope.verify.threads import Owners


@dataclass(frozen=True, slots=True)
class BitsVerdict:
    """Whether two compiles give the same bits."""

    answer: Literal["yes", "no", "not decided"]
    detail: str
    """What decided it, or what is missing."""
    place: str = ""
    """`FILE:LINE` of the first reduction or dot that sums in another order."""
    orders: tuple[str, str] | None = None
    """How each side sums there."""
    programs: int = 0
    all_programs: int = 0

    def as_json(self) -> dict[str, Any]:
        """The form of `irscope verify --bits --json`."""
        return asdict(self)


def verify_bits(left: Capture, right: Capture, *, programs: int | None = DEFAULT_PROGRAMS) -> BitsVerdict:
    """Whether two compiles of one launch give the same bits; raises UsageError for captures of different launches.

    `programs`: how many are run at the most, where both have the same grid and constants; None for all.
    """
    is_alike = left.launch.grid == right.launch.grid and left.launch.constants == right.launch.constants
    if is_alike and _binary(left) is not None and _binary(left) == _binary(right):
        return BitsVerdict("yes", "both have the same machine code")
    meaning = compare_captures(left, right, programs=programs)
    if meaning.reason:
        return BitsVerdict("not decided", meaning.reason)
    if meaning.answer == "changed":
        return BitsVerdict("no", f"their meaning differs: {meaning.rows[0].detail}")
    sides = [_Side(one) for one in (left, right)]
    counts = (meaning.programs, meaning.all_programs)
    place, orders = _first_other_order(*sides)
    if orders is not None:
        return BitsVerdict("no", "a sum is taken in another order", place, orders, *counts)
    missing = [*dict.fromkeys([*_differences_below(left, right), *sides[0].open_orders(), *sides[1].open_orders()])]
    try:
        memories = [_run(one, programs if is_alike else None) for one in (left, right)]
        difference = first_difference(*memories)
    except (NotRun, WrongProgram) as error:
        missing.append(str(error))
        difference = None
    if difference is not None:
        missing.append(f"{difference.elements} elements come from other operations, although no sum is reordered")
    if missing:
        return BitsVerdict("not decided", "; ".join(missing), "", None, *counts)
    return BitsVerdict("yes", "the same operations in the same order, in the TTGIR of one Triton", "", None, *counts)


def _binary(capture: Capture) -> str | bytes | None:
    return next((one.data for one in capture.artifacts if one.stage in ("cubin", "hsaco")), None)


def _differences_below(left: Capture, right: Capture) -> list[str]:
    """Why equal TTGIR need not become equal instructions."""
    reasons: list[str] = []
    if left.target != right.target:
        reasons.append(f"{left.target} and {right.target} compute functions such as exp with different instructions")
    if left.environment.triton_version != right.environment.triton_version:
        reasons.append("two Triton versions may lower one reduction to two orders")
    return reasons


# ── orders of sums ────────────────────────────────────────────────────────────────────────────────────────────────

_DOTS = ("dot", "warp_group_dot", "tc_gen5_mma", "dot_scaled", "tc_gen5_mma_scaled")


class _Side:
    """The reductions and dots of one compile."""

    def __init__(self, capture: Capture) -> None:
        text = last_text(capture)
        self.module: MlirModule = parse_mlir(text)
        self._owners = Owners(capture, self.module)
        self.is_fused = dict(capture.launch.options).get("enable_fp_fusion", True) is not False
        locations = read_locations(text, "mlir")
        file = capture.launch.kernel.file
        self.orders = [
            (line_text(place_of(locations.chain_at(one.first_line), file)), order)
            for one in self.module.walk()
            if (order := _order_of(self.module, one, self._owners))
        ]

    def open_orders(self) -> list[str]:
        reasons: list[str] = []
        products = {
            value for one in self.module.walk() if one.opcode == "arith.mulf" for value in one.results
        }  # fmt: skip
        for one in self.module.walk():
            if one.kind == "atomic" and any(is_float(dtype_of(kind)) for kind in one.operand_types):
                reasons.append("atomic operations on floats take place in any order")
            elif one.opcode in ("arith.addf", "arith.subf") and products.intersection(one.operands) and self.is_fused:
                reasons.append("a product that is added may be fused or not (enable_fp_fusion=False forbids it)")
            elif one.opcode in _DOTS and _order_of(self.module, one, self._owners).endswith("unknown"):
                reasons.append(f"the order of {one.name} along k is unknown")
            elif one.opcode in ("reduce", "scan") and _order_of(self.module, one, self._owners).endswith("unknown"):
                reasons.append(f"the layout of {one.name} is not known")
        return reasons


def _first_other_order(left: _Side, right: _Side) -> tuple[str, tuple[str, str] | None]:
    """The first reduction or dot of one line whose order differs between the sides."""
    for place in dict.fromkeys(place for place, _ in left.orders):
        ours, theirs = ([order for own, order in side.orders if own == place] for side in (left, right))
        # A pipelined or unrolled loop has copies of its dots.
        ours, theirs = sorted(set(ours)), sorted(set(theirs))
        if place and theirs and ours != theirs and not any("unknown" in order for order in (*ours, *theirs)):
            return place, (", ".join(ours), ", ".join(theirs))
    return "", None


def _order_of(module: MlirModule, operation: Operation, owners: Owners) -> str:
    """In which order an operation sums, in words that are equal for equal orders; empty for one that does not sum."""
    if operation.opcode in ("reduce", "scan"):
        kind = operation.operand_types[0]
        axis = operation.attribute("axis")
        parts = _along_axis(owners, kind, axis) if isinstance(axis, int) else None
        head = f"{operation.opcode} of {kind.shape[axis] if isinstance(axis, int) else '?'}"
        return f"{head}: {parts or 'unknown'}"
    if operation.opcode not in _DOTS:
        return ""
    instruction, step = _instruction(module, operation)
    names = " × ".join(_element(kind) for kind in operation.operand_types[:2])
    precision = operation.attribute("inputPrecision") or "ieee"
    return f"{names} {precision} by {instruction}: " + (f"k in steps of {step}" if step else "unknown")


def _element(kind: Type) -> str:
    return kind.element.text if kind.element is not None else kind.text


def _along_axis(owners: Owners, kind: Type, axis: int) -> str:
    """The elements along an axis that registers, lanes and warps step over."""
    layout = owners.layout(kind)
    if layout is None:
        return ""
    rows: list[str] = []
    for name, vectors in layout.bases:
        steps = [vector[axis] for vector in vectors if vector[axis]]
        if steps:
            rows.append(f"{name} {'+'.join(map(str, steps))}")
    return ", ".join(rows) or "one element"


def _instruction(module: MlirModule, operation: Operation) -> tuple[str, int]:
    """What a dot becomes, and the number of products along k of one instruction; 0 where it is not known."""
    bits = operation.operand_types[0].element.bits if operation.operand_types[0].element is not None else 0
    if any(_mixes_k(module, kind) for kind in operation.operand_types[:2]):
        return operation.name, 0
    if operation.opcode == "tc_gen5_mma":
        return "tcgen05.mma", 256 // bits if bits else 0
    if operation.opcode == "warp_group_dot":
        promoted = operation.attribute("maxNumImpreciseAcc")
        is_plain = bits > 8 or not promoted
        return "wgmma", 256 // bits if bits and is_plain else 0
    if operation.opcode != "dot":
        return operation.name, 0
    encoding = module.encoding_of(operation.result_types[0])
    if encoding is not None and encoding.kind == "blocked":
        return "fma", 1
    if encoding is not None and encoding.kind == "nvidia_mma" and encoding["versionMajor"] == 2 and bits in (16, 32):
        return "mma", 256 // bits
    return encoding.kind if encoding is not None else "unknown", 0


def _mixes_k(module: MlirModule, kind: Type) -> bool:
    """Whether threads hold more than 32 bits of neighbours along k: an instruction then takes other elements."""
    encoding = module.encoding_of(kind)
    if encoding is None or encoding.kind != "dot_op" or kind.element is None:
        return False
    width = encoding["kWidth"]
    return isinstance(width, int) and width > 0 and width * kind.element.bits != 32


# ── expressions ───────────────────────────────────────────────────────────────────────────────────────────────────

_COMMUTATIVE = ("arith.addf", "arith.mulf", "arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf")


def _key(*words: object) -> int:
    return zlib.crc32(" ".join(map(str, words)).encode())


def _term(opcode: str) -> Executor:
    """An operation as a random function of its operands, of their set where their order does not matter."""

    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        operands = [frame.array(value) for value in step.operands]
        if opcode in _COMMUTATIVE:
            operands = [np.minimum(*operands), np.maximum(*operands)]
        return (hashed_term(_key(opcode, step.dtype), *operands),)

    return execute


def _convert(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """A wider format holds the same number."""
    source, values = dtype_of(step.operand_types[0]), frame.array(step.operands[0])
    if step.opcode == "arith.extf" or source == step.dtype or step.dtype.itemsize > source.itemsize:
        return (values,)
    return (hashed_term(_key("convert", step.dtype, step.attribute("rounding") or "rtne"), values),)


def _called(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    words = (step.attribute("symbol"), step.attribute("asm_string"), step.number("packed_element", 1))
    if not all(is_float(dtype_of(kind)) for kind in (*step.operand_types, *step.types)) or words[2] != 1:
        raise step.not_run("a function of other values than floats")
    return (hashed_term(_key(*words), *[frame.array(value) for value in step.operands]),)


def _in_order(execute: Executor) -> Executor:
    def ordered(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        arithmetic = machine.arithmetic
        if not isinstance(arithmetic, _Expressions):
            raise step.not_run("its order is not followed")
        arithmetic.order = _order_of(machine.module, step.operation, arithmetic.owners)
        if step.opcode in _DOTS:
            arithmetic.instruction = _instruction(machine.module, step.operation)
            return execute(machine, step, frame)
        results = execute(machine, step, frame)
        key = _key(arithmetic.order)
        kinds = zip(results, step.types, strict=True)
        return [hashed_term(key, one) if is_float(dtype_of(kind)) else one for one, kind in kinds]  # type: ignore[arg-type]

    return ordered


class _Expressions(RingArithmetic):
    """Floats as hashes of the expressions that they are."""

    owners: Owners
    order = ""
    instruction: tuple[str, int] = ("", 0)
    executors: Mapping[str, Executor] = {
        **RingArithmetic.executors,
        **{opcode: _term(opcode) for opcode in FLOAT_FUNCTIONS},
        "arith.extf": _convert, "arith.truncf": _convert, "fp_to_fp": _convert, "clampf": _term("clampf"),
        "extern_elementwise": _called, "elementwise_inline_asm": _called,
        **{name: _in_order(TENSORS[name]) for name in ("reduce", "scan", "dot", "dot_scaled")},
        **{name: _in_order(GPU_OPERATIONS[name]) for name in _DOTS if name in GPU_OPERATIONS},
    }  # fmt: skip

    def convert(self, values: Array, dtype: np.dtype[Any], rounding: str = "rtne") -> Array:
        raise NotRun("scaled operands of a dot are not followed by their order")

    def multiply(self, left: Array, right: Array) -> Array:
        raise NotRun("scaled operands of a dot are not followed by their order")

    def fold(self, opcode: str, values: Array, axis: int) -> Array | None:
        if values.dtype != np.uint64:
            return super().fold(opcode, values, axis)
        # One number of the elements and their places.
        weights = hashed_term(_key("place"), np.arange(values.shape[axis], dtype=np.uint64))
        shape = [1] * values.ndim
        shape[axis] = -1
        total = super().fold("arith.addf", super().multiply(values, weights.reshape(shape)), axis)
        return None if total is None else hashed_term(_key(opcode), total)

    def product(
        self, left: Array, right: Array, accumulator: Array | None, dtype: np.dtype[Any], precision: str
    ) -> Array:
        if left.dtype != np.uint64:
            return super().product(left, right, accumulator, dtype, precision)
        name, step = self.instruction
        length = left.shape[-1]
        step = min(step or length, length)
        key = _key(name, precision, self.order)
        total = np.zeros(1, np.uint64) if accumulator is None else accumulator
        weights = hashed_term(_key("k"), np.arange(step, dtype=np.uint64))
        for begin in range(0, length, step):
            weighted = super().multiply(left[..., begin : begin + step], weights)
            part = super().product(weighted, right[..., begin : begin + step, :], None, dtype, precision)
            total = hashed_term(key, total, part)
        return total


def _run(capture: Capture, programs: int | None) -> RingMemory:
    arithmetic = _Expressions(1)
    arithmetic.owners = Owners(capture, parse_mlir(last_text(capture)))
    grid = capture.launch.grid or (1, 1, 1)
    chosen = sampled_programs(grid, programs)
    run_text(last_text(capture), grid, captured_inputs(capture), programs=chosen, arithmetic=arithmetic)
    if arithmetic.result is None:
        raise NotRun("nothing was run")
    return arithmetic.result

"""IRS304, IRS305, IRS309, IRS604, IRS606: dots by older instructions, widened operands, accumulators that registers
change, float64, and 64-bit divisions."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from irscope.analysis.bounds import GREATEST, intervals
from irscope.analysis.findings.loops import loops_with_dots
from irscope.analysis.findings.model import Cause, Finding, FixChange, Suggestion
from irscope.analysis.findings.studied import Studied, makers
from irscope.ir.mlir.attributes import read_encoding
from irscope.ir.mlir.model import Operation, Value
from irscope.ir.reach import all_makers

_ASYNC = {"9": ("wgmma", 64), "10": ("tcgen05", 64)}
"""Major compute capability → the asynchronous matrix instruction, and the least rows of a tile for it."""
_WARPS = 4
"""Warps that issue one asynchronous matrix instruction together."""
_OLD_VERSION = 2
_SIXTEEN_BITS = ("f16", "bf16")
_LESS = ("f8E4M3FN", "f8E5M2")
_TENSOR_DOT = "tc_gen5_mma"
_FLOAT64 = "f64"
_FUNCTIONS = "math."
"""How the names of operations begin that become calls, or several instructions."""
_DIVISIONS = ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")
_OF_WIDE_DIVISION = 1.25
"""Instructions that run for a division of 64 bits, in times those of one of 32: LLVM tests whether 32 are enough."""
_SAME_VALUES = ("trans", "reshape", "broadcast", "expand_dims", "convert_layout")


def arithmetic_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of each dot, and of the first operation in float64."""
    for operation in studied.uses.operations:
        if operation.opcode == "dot" and operation.result_types:
            yield from _by_mma_sync(studied, operation)
        if operation.opcode in ("dot", "warp_group_dot", "tc_gen5_mma"):
            yield from _widened(studied, operation)
    yield from _in_float64(studied)
    yield from _divided(studied)
    yield from _through_registers(studied)


def _through_registers(studied: Studied) -> Iterator[Finding]:
    reported = set[int]()
    for loop in loops_with_dots(studied):
        inside = [one for one in loop.walk() if one is not loop]
        made = {value: one for one in inside for value in one.results}
        summed = {one.operands[2] for one in inside if one.opcode == _TENSOR_DOT}
        for store in (one for one in inside if one.opcode == "tmem_store" and one.first_line not in reported):
            kept = summed.intersection(store.operands)
            loads = (one for one in all_makers(made.get, store.operands) if one.opcode == "tmem_load")
            load = next((one for one in loads if not kept.isdisjoint(one.operands)), None)
            if load is None:
                continue
            reported.add(store.first_line)
            shape = "×".join(map(str, load.result_types[0].shape))
            size = prod(load.result_types[0].shape) * load.result_types[0].element_bits // 8
            change = next((made[value] for value in store.operands if value in made), store)
            while change.opcode == "convert_layout" and change.operands[0] in made:
                change = made[change.operands[0]]
            yield studied.finding(
                "IRS309",
                change.first_line,
                "the accumulator goes from tensor memory to registers and back in each iteration",
                f"{2 * size:,} bytes between tensor memory and registers, while the tensor cores wait",
                1 << 4,
                [
                    studied.in_ir(f"its {shape} elements are loaded, and changed in registers", load.first_line),
                    studied.in_ir("the elements are stored back before the next product", store.first_line),
                ],
                [Suggestion("scale it only where a row's maximum grows, or once after the loop")],
                lines=(load.first_line, store.first_line),
            )


def _by_mma_sync(studied: Studied, operation: Operation) -> Iterator[Finding]:
    """A dot by `mma.sync`, on a target with asynchronous matrix instructions, where its tile or its warps say why."""
    target, result = studied.capture.target, operation.result_types[0]
    instruction = _ASYNC.get(target.arch[:-1]) if target.backend == "cuda" else None
    layout = read_encoding(studied.module.resolve(result.encoding))
    if instruction is None or len(result.shape) != 2 or not layout.is_matrix or layout["versionMajor"] != _OLD_VERSION:
        return
    dot = studied.dot_as_written(operation)
    kinds = {str(kind.element) for kind in dot.operand_types[:2]} if dot is not None else set[str]()
    if not kinds or not kinds <= {*_SIXTEEN_BITS, *_LESS}:
        return
    name, least = instruction
    warps = studied.capture.launch.option("num_warps", _WARPS)
    causes, fixes = list[Cause](), list[Suggestion]()
    if isinstance(warps, int) and warps % _WARPS:
        causes.append(Cause(f"num_warps is {warps}: {_WARPS} warps issue one {name} together", "launch", "the options"))
        fixes.append(Suggestion(f"num_warps={_WARPS}", (FixChange("option", "num_warps", _WARPS),)))
    if result.shape[0] < least:
        causes.append(
            studied.in_ir(f"its tile has {result.shape[0]} rows: {name} takes {least} at least", operation.first_line)
        )
        turned = ", or tl.dot(b.T, a.T).T if the other side is wider" if result.shape[1] >= least else ""
        fixes.append(Suggestion(f"a tile of {least} rows{turned}"))
    if causes:
        yield studied.finding(
            "IRS304",
            operation.first_line,
            f"falls back from {name} to mma.sync",
            "the older matrix instructions, which reach little more than half of the tensor cores' rate",
            1 << 6,
            [studied.in_ir(f"its result has the layout of mma.sync, {layout.title}", operation.first_line), *causes],
            fixes,
        )


def _widened(studied: Studied, operation: Operation) -> Iterator[Finding]:
    """A dot of float32 operands that the kernel widened from 16 bits or fewer; of one, where it computes the other."""
    dot = studied.dot_as_written(operation)
    if dot is None or any(str(kind.element) != "f32" for kind in dot.operand_types[:2]):
        return
    widened = [_widening(studied, value) for value in dot.operands[:2]]
    made = [one for one in widened if one is not None]
    if not made or (len(made) == 1 and _is_loaded(studied, dot.operands[widened.index(None)])):
        return
    kinds = sorted({str(one.operand_types[0].element) for one in made})
    causes = [
        studied.in_ir(
            f"operand {number} is widened from {one.operand_types[0].element} to f32", one.first_line, stage="ttir"
        )
        for number, one in enumerate(widened)
        if one is not None
    ]
    what = f"{' and '.join(kinds)} operands are"
    fix = f"tl.dot on {kinds[0]}: it accumulates in float32 anyway, and the products are the same"
    if len(made) == 1:
        causes.append(studied.in_ir("the other operand is computed in f32", dot.first_line, stage="ttir"))
        what = f"one operand is {kinds[0]} and"
        fix = f"round the other operand to {kinds[0]} in place of this, as attention kernels do, if that is allowed"
    places = dict.fromkeys(studied.chain_as_written(one.first_line) for one in made)
    file = studied.capture.launch.kernel.file
    changes: tuple[FixChange, ...] = ()
    # In the kernel itself, and to one type: a dot takes no two.
    if len(made) == 2 and len(kinds) == 1 and all(len(chain) == 1 and chain[0].file == file for chain in places):
        changes = tuple(FixChange("narrow", str(at.line), ".to(tl.float32)", at.column) for (at,) in places)
    way = (each.first_line for value in dot.operands[:2] for each in _way(studied, value))
    yield studied.finding(
        "IRS305",
        operation.first_line,
        f"{what} widened to float32 before tl.dot",
        "twice the registers and shared memory, and TF32 or FMA in place of 16-bit matrix instructions",
        1 << 6,
        causes,
        [Suggestion(fix, changes)],
        lines=studied.lines_from(map(studied.chain_as_written, way)),
    )


def _way(studied: Studied, value: Value) -> Iterator[Operation]:
    for made in makers(studied.written, value):
        yield made
        if made.kind == "load" or made.opcode == "load":
            return


def _is_loaded(studied: Studied, value: Value) -> bool:
    made = next((one for one in makers(studied.written, value) if one.opcode not in _SAME_VALUES), None)
    return made is None or made.kind == "load" or made.opcode == "load"


def _widening(studied: Studied, value: Value) -> Operation | None:
    made = next((one for one in makers(studied.written, value) if one.opcode not in _SAME_VALUES), None)
    if made is None or made.opcode not in ("arith.extf", "fp_to_fp"):
        return None
    return made if str(made.operand_types[0].element) in (*_SIXTEEN_BITS, *_LESS) else None


def _in_float64(studied: Studied) -> Iterator[Finding]:
    kinds = [kind for _, kind in studied.capture.launch.signature]
    if any("fp64" in kind or "f64" in kind for kind in kinds if kind.startswith("*")):
        return
    wide = [one for one in studied.operations.values() if one.result_types and _is_float64(one)]
    arithmetic = [one for one in wide if one.kind == "arithmetic"]
    if not arithmetic:
        return
    first = arithmetic[0]
    causes = [studied.in_ir(f"this is the first of {len(arithmetic)} float64 operations", first.first_line)]
    scalars = [name for name, kind in studied.capture.launch.signature if kind in ("fp64", "f64")]
    if scalars:
        causes.append(Cause(f"{', '.join(scalars)} has the type float64", "launch", "the signature"))
    yield studied.finding(
        "IRS604",
        first.first_line,
        "computes in float64, although no tensor is float64",
        f"{len(arithmetic)} operations at half the rate of float32 or less, in twice the registers",
        len(arithmetic),
        causes,
        [Suggestion("keep it in float32: no tl.float64 and no float64 argument, or `.to(tl.float32)` at its load")],
        lines=(one.first_line for one in wide if one.name.startswith(_FUNCTIONS)),
    )


def _divided(studied: Studied) -> Iterator[Finding]:
    kernel = studied.module.kernel
    wide = [
        one for one in studied.operations.values()
        if one.name in _DIVISIONS and one.result_types[0].shape and str(one.result_types[0].element) == "i64"
    ]  # fmt: skip
    if not wide or kernel is None:
        return
    held = intervals(kernel, studied.capture.launch)
    for one in wide:
        divisor = next(iter(makers(studied.module, one.operands[1])), None)
        if divisor is not None and divisor.kind == "constant":
            # Multiplications take its place.
            continue
        bounds = [held.get(value) for value in one.operands]
        known = [each for each in bounds if each is not None]
        if len(known) < len(bounds) or not all(each[0] >= 0 and each[1] <= GREATEST for each in known):
            continue
        yield studied.finding(
            "IRS606",
            one.first_line,
            "divides in 64 bits, although the operands fit in 32",
            "a test of the high halves, a branch, and registers of twice the size for each element",
            1 << 4,
            [studied.in_ir(f"it is {one.name} of i64, by a divisor that is not constant", one.first_line)]
            + [
                studied.in_ir(f"operand {number} is {first:,} to {last:,} in this launch", one.first_line, "evaluated")
                for number, (first, last) in enumerate(known)
            ],
            [Suggestion("divide in int32 (.to(tl.int32) before, no tl.int64 in offsets that do not need it)")],
            factor=_OF_WIDE_DIVISION,
        )


def _is_float64(operation: Operation) -> bool:
    kind = operation.result_types[0]
    return str(kind.element or kind) == _FLOAT64

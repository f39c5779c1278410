"""IRS104, IRS204, IRS306 to IRS308, IRS510: work that another form of the kernel would not do.

Data that a CTA reads several times, iterations that a mask turns off, products without a dot, operands that are
transposed on their way to one, tiles too small to reuse what they load, and an order of CTAs that shares little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING

from irscope.analysis.bounds import Bounds, intervals
from irscope.analysis.findings.loops import LOADS, loops_with_dots
from irscope.analysis.findings.model import Cause, Finding, Suggestion
from irscope.analysis.findings.studied import Studied, makers
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.memory.addresses.parts import program_at, spread_evenly
from irscope.memory.machine import ACCESSES
from irscope.model.telling import joined

if TYPE_CHECKING:
    from irscope.timing.predict import Model

_LEAST_REPEATS = 1.5
_LEAST_SHARE = 0.1
"""Of the bytes that a CTA reads."""
_OF_REPEATS = 0.75
"""The part of the repeats of a load that its lanes make, if they do."""
_MOST_PROGRAMS, _MOST_ITERATIONS = 8, 16
"""Those of a launch, and of a loop, that are looked at."""
_LEAST_MASKED = 0.15
_COPIES = ("async_copy_global_to_local", "buffer_load_to_local")
_CONVERSIONS = (
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "fp_to_fp", "convert_layout", "broadcast"
)  # fmt: skip
_ENOUGH_ROWS = 128
"""Rows and columns of a tile that keeps the tensor cores of a part busy from the L2 cache."""
_LEAST_GAIN = 1.25
_LEAST_OF_DOT = 16.0
"""Elements along K."""


def work_findings(studied: Studied, model: Model) -> Iterator[Finding]:
    """The findings of a launch that has a prediction: the model gives their costs."""
    yield from _repeated(studied)
    yield from _masked(studied)
    yield from _without_dot(studied)
    yield from _transposed(studied)
    yield from _tiles(studied, model)


# Data that is read several times.


def _repeated(studied: Studied) -> Iterator[Finding]:
    """The arguments of which a CTA within the grid reads each byte several times."""
    from irscope.memory.addresses.arguments import read_arguments
    from irscope.memory.addresses.footprint import footprint_of

    launch, kernel = studied.capture.launch, studied.module.kernel
    grid, record = launch.grid, launch.record
    if grid is None or record is None or kernel is None or min(grid) < 1:
        return
    x, y, z = 3 * grid[0] // 8, 5 * grid[1] // 8, grid[2] // 2
    if x == y and max(grid[:2]) > 1:
        # On the diagonal a tile and its transpose are one.
        x, y = (x, y + 1) if y + 1 < grid[1] else (x + 1, y)
    inner = x + grid[0] * (y + grid[1] * z)
    room = {one.path: one.storage_bytes for one in record.arguments if one.storage_bytes is not None}
    arguments = read_arguments(kernel, launch)
    touched = [one for one in footprint_of(studied.module, arguments, grid, room, [inner]).touched if one.is_read]
    whole = sum(one.requested_bytes[0] for one in touched)
    for one in touched:
        asked, distinct = one.requested_bytes[0], one.distinct_bytes[1]
        lines = [cost.line for cost in studied.global_costs if _reads(cost.access, one.argument)]
        is_many = distinct and asked >= _LEAST_REPEATS * distinct and asked >= _LEAST_SHARE * whole
        if not lines or not one.argument or not is_many:
            continue
        times = asked / distinct
        heaviest = max(lines, key=studied.traffic.bytes_at)
        places = list(dict.fromkeys(place[0][1] for line in lines if (place := studied.place_at(line))))
        where = f" (lines {joined(map(str, places))})" if len(places) > 1 else ""
        yield studied.finding(
            "IRS104",
            heaviest,
            f"{one.argument} is read {times:.3g} times by each CTA{where}",
            f"{asked - distinct:,} bytes per CTA more than the {distinct:,} that it needs",
            1,
            [
                studied.in_ir(
                    f"program ({x}, {y}, {z}) requests {asked:,} bytes of {one.argument}, of which "
                    f"{distinct:,} are distinct",
                    heaviest,
                    "evaluated",
                )
            ],
            [Suggestion(_once(len(places), repeats_within(studied, heaviest, times)))],
            factor=times,
            lines=lines,
        )


def repeats_within(studied: Studied, line: int, times: float) -> bool:
    """Whether the lanes of one load ask for a byte several times, and not its next execution for it again."""
    cost = studied.global_cost(line)
    each = cost.access.each if cost is not None and cost.access is not None else None
    return each is not None and each.bytes[1] >= _OF_REPEATS * times * max(each.distinct_bytes[1], 1)


def _once(places: int, is_within: bool) -> str:
    if places > 1:
        return "load it once and keep it in registers (a larger tile), or fuse the passes (an online algorithm)"
    if not is_within:
        return "load it before the loop whose iterations read it again, and keep it; or larger tiles"
    return "load each element once, and give its parts to the lanes from registers (broadcast, reshape, tl.join)"


def _reads(access: object, argument: str) -> bool:
    return getattr(access, "argument", None) == argument and getattr(access, "action", "") in ("load", "copy")


# Iterations that a mask turns off.


def _masked(studied: Studied) -> Iterator[Finding]:
    module, launch = studied.written, studied.capture.launch
    kernel, grid = module.kernel, launch.grid
    if kernel is None or grid is None or launch.record is None:
        return
    ids = {str(one.attribute("axis")): one.results[0] for one in kernel.walk() if one.opcode == "get_program_id"}
    programs = [program_at(number, grid) for number in spread_evenly(prod(grid), _MOST_PROGRAMS)]
    for loop in module.walk():
        if loop.name != "scf.for" or not any(one.kind == "dot" for one in loop.walk()):
            continue
        wanted = [one for one in loop.walk() if one.name == "arith.select" and (_of_dot(module, one) is not None)]
        if not wanted:
            continue
        parts: list[float] = []
        witness = ""
        for program in programs:
            at = dict(zip("xyz", program, strict=True))
            known = {value: (at[axis], at[axis]) for axis, value in ids.items()}
            part, iteration = _part_masked(studied, loop, wanted, known)
            parts.append(part)
            if iteration and not witness:
                witness = f"in program {program} the mask is off everywhere in the iteration that begins at {iteration}"
        share = sum(parts) / len(parts)
        if share < _LEAST_MASKED or not witness:
            continue
        lines = studied.lines_from([studied.chain_as_written(wanted[0].first_line)])
        around = studied.chain_as_written(loop.first_line)
        loops = [line for line, one in studied.operations.items()
                 if one.kind == "loop" and studied.chain_at(line) == around]  # fmt: skip
        if not lines or not loops:
            continue
        yield studied.finding(
            "IRS204",
            lines[0],
            f"masks off {share:.0%} of its loop's iterations entirely: their work is wasted",
            f"{share:.0%} of the loop, dots included",
            1,
            [studied.in_ir(witness, wanted[0].first_line, "evaluated", stage="ttir")],
            [Suggestion("end (or begin) the loop where the mask does: for a causal mask at (program id + 1) × rows")],
            factor=1 / max(1 - share, 0.05),
            lines=(one.first_line for one in studied.operations[loops[0]].walk()),
        )


def _of_dot(module: MlirModule, select: Operation) -> bool | None:
    """The side of a selection that comes from a dot: the value of the condition for which the dot's result is used."""
    sides = [any(one.kind == "dot" for one in makers(module, value)) for value in select.operands[1:3]]
    return sides[0] if len(sides) == 2 and sides[0] != sides[1] else None


def _part_masked(
    studied: Studied, loop: Operation, selects: list[Operation], known: Mapping[Value, Bounds]
) -> tuple[float, str]:
    """(the part of the iterations that every selection throws away, where the first of them begins)."""
    module, launch = studied.written, studied.capture.launch
    assert module.kernel is not None
    held = intervals(module.kernel, launch, known)
    bounds = [held.get(value) for value in loop.operands[:3]]
    if any(one is None or one[0] != one[1] for one in bounds):
        return 0.0, ""
    start, stop, step = (one[0] for one in bounds if one is not None)
    iterations = range(start, stop, max(step, 1))
    chosen: Sequence[int] = iterations
    if len(iterations) > _MOST_ITERATIONS:
        chosen = [iterations[len(iterations) * at // _MOST_ITERATIONS] for at in range(_MOST_ITERATIONS)]
    masked = list[int]()
    index = loop.regions[0].blocks[0].arguments[0]
    for iteration in chosen:
        held = intervals(module.kernel, launch, {**known, index: (iteration, iteration)})
        if all(held.get(one.operands[0]) == ((0, 0) if _of_dot(module, one) else (1, 1)) for one in selects):
            masked.append(iteration)
    return len(masked) / max(len(chosen), 1), str(masked[0]) if masked else ""


# Products that no dot computes.


def _without_dot(studied: Studied) -> Iterator[Finding]:
    """Sums of products along an axis that two tiles share, or of outer products in a loop."""
    module = studied.written
    for product in module.walk():
        if product.name != "arith.mulf" or not product.result_types[0].shape:
            continue
        spread = [_spread(module, value) for value in product.operands[:2]]
        sums = [one for one in _users(module, product) if _is_sum(module, one, product, spread)]
        if not sums:
            continue
        lines = studied.lines_from(studied.chain_as_written(one.first_line) for one in (product, *sums))
        if not lines:
            continue
        loops = [one for one in studied.operations.values() if one.kind == "loop"]
        around = [loop for loop in loops if any(each.first_line == lines[0] for each in loop.walk())]
        about = lines
        if sums[0].kind != "reduction" and around:
            # A dot takes so many iterations of the innermost one at once, loads included.
            about = [each.first_line for each in min(around, key=lambda one: sum(1 for _ in one.walk())).walk()]
        shape = "×".join(map(str, product.result_types[0].shape))
        what = "a reduction" if sums[0].kind == "reduction" else "the accumulator of the loop"
        yield studied.finding(
            "IRS306",
            lines[0],
            "multiplies and sums tiles element by element: a dot does both on the tensor cores",
            f"{prod(product.result_types[0].shape):,} multiplications and additions on the FMA units, per execution",
            1 << 5,
            [
                studied.in_ir(f"two tiles are broadcast to {shape}", product.first_line, stage="ttir"),
                studied.in_ir(f"{what} sums their products", sums[0].first_line, stage="ttir"),
            ],
            [Suggestion("tl.dot of the two tiles (16 rows, columns and elements along K at least)")],
            factor=1.0 if sums[0].kind == "reduction" else _LEAST_OF_DOT,
            lines=about,
        )


def _spread(module: MlirModule, value: Value) -> frozenset[int]:
    for made in makers(module, value):
        if made.opcode not in _CONVERSIONS:
            break
        if made.opcode == "broadcast":
            before, after = made.operand_types[0].shape, made.result_types[0].shape
            return frozenset(axis for axis, (one, other) in enumerate(zip(before, after, strict=True)) if one < other)
    return frozenset()


def _users(module: MlirModule, made: Operation) -> Iterator[Operation]:
    """The users of a result, except for its conversions."""
    values = {made.results[0]}
    for one in module.walk():
        if not values.isdisjoint(one.operands):
            if one.opcode in _CONVERSIONS:
                values.update(one.results)
            else:
                yield one


def _is_sum(module: MlirModule, one: Operation, product: Operation, spread: list[frozenset[int]]) -> bool:
    left, right = spread
    if not left - right or not right - left:
        return False
    if one.kind == "reduction":
        axis = one.attribute("axis")
        inner = [each.name for region in one.regions for block in region.blocks for each in block.operations]
        return len(product.result_types[0].shape) == 3 and axis not in left | right and inner[:1] == ["arith.addf"]
    ends = [use for use in module.walk() if use.name == "scf.yield" and one.results and one.results[0] in use.operands]
    return one.name == "arith.addf" and len(product.result_types[0].shape) == 2 and bool(ends)


# Operands that are transposed on their way to a dot.


def _transposed(studied: Studied) -> Iterator[Finding]:
    reported = set[object]()
    for line, operation in studied.operations.items():
        if operation.opcode not in (*LOADS, *_COPIES) or (key := studied.chain_at(line) or line) in reported:
            continue
        target = _buffer_of(studied, operation)
        if target is None:
            continue
        encoding, at, bits = target
        fastest = 0 if encoding else 1
        strides = studied.limits.strides(operation)
        if len(strides) != 2 or bits not in (8, 32) or strides[1 - fastest] != bits // 8:
            continue
        reported.add(key)
        kind = "float32 (TF32)" if bits == 32 else "8 bits"
        yield studied.finding(
            "IRS307",
            line,
            f"an operand of {kind} is transposed before the dot: the matrix instruction requires it K-major",
            f"{bits}-bit copies or stores with bank conflicts, in place of 128-bit ones",
            1 << 6,
            [
                studied.in_ir(f"its buffer is contiguous along dimension {fastest}", at),
                studied.in_ir(f"its addresses are contiguous along dimension {1 - fastest}", line, "evaluated"),
            ],
            [Suggestion("store the tensor so that K is contiguous (b.T.contiguous().T once), or use 16-bit operands")],
            factor=128 / bits,
            lines=(line, at),
        )


def _buffer_of(studied: Studied, operation: Operation) -> tuple[bool, int, int] | None:
    """(whether the operand's buffer is transposed, the line that writes it, bits of an element); None without one."""
    if operation.opcode in _COPIES:
        kinds = [*operation.operand_types, *operation.result_types]
        line = operation.first_line
    else:
        stores = [one for one in _users(studied.module, operation) if one.opcode in ("local_alloc", "local_store")]
        if not stores:
            return None
        kinds, line = [*stores[0].operand_types, *stores[0].result_types], stores[0].first_line
    for kind in kinds:
        layout = studied.module.encoding_of(kind) if kind.form == "memdesc" else None
        if layout is not None and layout.kind == "nvmma_shared" and len(kind.shape) == 2:
            return layout["transposed"] in (True, "true", 1), line, kind.element_bits
    return None


# Tiles and their order.


def _tiles(studied: Studied, model: Model) -> Iterator[Finding]:
    """The dots of a launch: tiles that reuse little of what they load, and CTAs that share little at the same time."""
    for loop in loops_with_dots(studied):
        dots = [one for one in loop.walk() if one.kind == "dot" and one.result_types and one.result_types[0].shape]
        inside = {one.first_line for one in loop.walk()}
        if not dots:
            continue
        result = dots[0].result_types[0]
        loads = _operand_loads(studied, dots[0], inside)
        if len(result.shape) != 2 or not any(loads):
            continue
        yield from _small(studied, model, dots[0], loads)
        if all(loads):
            yield from _order(studied, model, dots[0], loads)
        return


def _operand_loads(studied: Studied, dot: Operation, inside: set[int]) -> list[list[int]]:
    chain = studied.chain_at(dot.first_line)
    dots = (one for one in studied.written.walk() if one.kind == "dot")
    written = next((one for one in dots if studied.chain_as_written(one.first_line) == chain), None)
    if written is None:
        return [[], []]
    found: list[list[int]] = []
    for value in written.operands[:2]:
        load = next((one for one in makers(studied.written, value) if one.opcode in ("load", "descriptor_load")), None)
        chain = studied.chain_as_written(load.first_line) if load is not None else ()
        found.append([
            line for line, one in studied.operations.items()
            if chain and line in inside and one.opcode in ACCESSES and studied.chain_at(line) == chain
        ])  # fmt: skip
    return found


def _small(studied: Studied, model: Model, dot: Operation, loads: list[list[int]]) -> Iterator[Finding]:
    rows, columns = dot.result_types[0].shape
    ctas = prod(model.execution.grid)
    # The columns say how often the left operand is loaded, the rows how often the right one is.
    wider = max(_ENOUGH_ROWS / columns, 1.0) if loads[0] else 1.0
    taller = max(_ENOUGH_ROWS / rows, 1.0) if loads[1] else 1.0
    while taller * wider > max(ctas / model.clock.units, 1.0):
        taller, wider = (taller / 2, wider) if taller >= wider else (taller, wider / 2)
    taller, wider = max(taller, 1.0), max(wider, 1.0)
    if taller * wider < 2:
        return
    tile = f"{rows * taller:.0f}×{columns * wider:.0f}"
    times = 2 / (1 / taller + 1 / wider) if all(loads) else taller * wider
    yield studied.finding(
        "IRS308",
        dot.first_line,
        f"a tile of {rows}×{columns} is too small to reuse what it loads",
        f"a tile of {tile} loads {times:.2g} times fewer bytes",
        1 << 5,
        [
            studied.in_ir(f"the result of the dot is {rows}×{columns}", dot.first_line),
            Cause(f"{ctas:,} CTAs are enough for {tile} too", "launch", "the launch"),
        ],
        [Suggestion(f"a tile of {tile}, with more warps: irscope tune compares them")],
        factor=times,
        lines=(*loads[0], *loads[1]),
    )


def _order(studied: Studied, model: Model, dot: Operation, loads: list[list[int]]) -> Iterator[Finding]:
    rows, columns = dot.result_types[0].shape
    execution = model.execution
    at_once = min(execution.resident * model.clock.units, prod(execution.grid))
    names = [next((cost.access.argument for cost in studied.global_costs if cost.line in lines and cost.access), "")
             for lines in loads]  # fmt: skip
    if "" in names or names[0] == names[1]:
        return
    arrays = [execution.array_names.index(one) + 1 if one in execution.array_names else -1 for one in names]
    if not all(one in execution.distinct for one in arrays):
        return
    left, right = (execution.distinct[one] * at_once for one in arrays)
    now = left * rows + right * columns
    least = 2 * sqrt(at_once * rows * columns)
    if now < _LEAST_GAIN * least or max(execution.from_dram.get(one, 0.0) for one in arrays) < 0.02:
        return
    yield studied.finding(
        "IRS510",
        dot.first_line,
        f"the {at_once} CTAs that run at the same time share little: {left:.0f} rows and {right:.0f} columns of tiles",
        f"{now / least:.2g} times the data of a square of tiles, from DRAM and the L2 cache",
        1 << 4,
        [
            Cause(f"they load {left:.0f} different tiles of {names[0]} and {right:.0f} of {names[1]}", "predicted",
                  "the model of the launch"),
        ],
        [Suggestion("a grouped order of CTAs: tl.swizzle2d, or GROUP_SIZE_M as in Triton's matmul tutorial")],
        factor=now / least,
        lines=(*loads[0], *loads[1]),
    )  # fmt: skip

"""IRS203, IRS205, IRS505 to IRS509, IRS605: findings from the model of a launch, not from a single operation.

Each is a finding only where the prediction says that it costs something, and its evidence is the launch, an operation
of the IR, or the model's own figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

from irscope.analysis.findings.lanes import lane_findings
from irscope.analysis.findings.loops import LOADS, loops_with_dots
from irscope.analysis.findings.model import Cause, Finding, FixChange, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.analysis.findings.work import work_findings
from irscope.ir.mlir.model import Operation
from irscope.ir.reach import all_makers
from irscope.memory.machine import ACCESSES
from irscope.timing.predict import Model, Prediction

_MOST_OVERHEAD = 2.0
"""Times the time of an empty launch, below which the launch itself is the finding."""
_FULL = 0.9
"""The part of the multiprocessors that a grid should have CTAs for."""
_THREAD_BYTES = 16
"""The bytes that a thread can load at once."""
_LANES = 32


def launch_findings(studied: Studied, model: Model, prediction: Prediction) -> Iterator[Finding]:
    """The findings of a launch; of one that is no longer than what an empty one takes only that."""
    launch = prediction.launch_seconds
    if prediction.seconds < _MOST_OVERHEAD * launch:
        yield _launch_bound(studied, prediction)
        return
    yield from _grid(studied, model, prediction)
    yield from _threads(studied)
    yield from _loads(studied)
    yield from _reductions(studied)
    yield from _atomics(studied, model, prediction)
    yield from work_findings(studied, model)
    yield from lane_findings(studied)


def _model(text: str) -> Cause:
    return Cause(text, "predicted", "the model of the launch")


def _launch_bound(studied: Studied, prediction: Prediction) -> Finding:
    launch = prediction.launch_seconds
    work = max(prediction.seconds - launch, 0.0)
    return studied.about_kernel(
        "IRS508",
        f"launch overhead takes most of the time: {work * 1e6:.1f} µs of work",
        f"{launch * 1e6:.1f} µs, the time of an empty launch",
        1,
        [_model(f"{launch * 1e6:.1f} µs of {prediction.seconds * 1e6:.1f} µs are launch overhead")],
        [Suggestion("fuse kernels, batch launches, or capture a CUDA graph")],
        seconds=launch,
    )


def _grid(studied: Studied, model: Model, prediction: Prediction) -> Iterator[Finding]:
    """A grid with fewer CTAs than multiprocessors, or whose last wave leaves most of them idle."""
    ctas, units = prod(prediction.grid), model.clock.units
    work = prediction.seconds - prediction.launch_seconds
    grid = "×".join(map(str, prediction.grid))
    least = (
        model.least_seconds
        if ctas >= units
        else prediction.launch_seconds + (prediction.dram_bytes / model.clock.dram_bytes_per_s)
    )
    evidence = Cause(f"the grid is {grid}: {ctas} CTAs", "launch", "the launch")
    if ctas < _FULL * units:
        after = max(prediction.launch_seconds + work * ctas / units, least)
        idle = units - ctas
        what = "a single CTA runs" if ctas == 1 else f"{ctas} CTAs"
        yield studied.about_kernel(
            "IRS505",
            f"too few CTAs for the GPU: {what} on {units} multiprocessors",
            f"{idle} of {units} multiprocessors of {prediction.part} are idle",
            idle,
            [evidence, _model(f"{prediction.part} has {units} multiprocessors")],
            [Suggestion("smaller tiles, or split the longest loop over more CTAs (split-K, several per row)")],
            seconds=max(prediction.seconds - after, 0.0),
        )
        return
    most = ceil(ctas / units)
    mean = ctas / units
    after = max(prediction.launch_seconds + work * mean / most, least)
    if most > mean >= 1 and ctas <= 16 * units:
        yield studied.about_kernel(
            "IRS507",
            f"tail wave: {mean:.2f} CTAs per multiprocessor, so that some execute {most} and others idle",
            f"{1 - mean / most:.0%} of the multiprocessors' time is idle at the end",
            1,
            [evidence, _model(f"{units} multiprocessors, {prediction.ctas_per_unit} CTAs at once on each")],
            [Suggestion(f"a grid size divisible by {units}, or a persistent kernel of {units} CTAs")],
            seconds=max(prediction.seconds - after, 0.0),
        )


def _threads(studied: Studied) -> Iterator[Finding]:
    warps = studied.capture.launch.option("num_warps", 4)
    if not isinstance(warps, int) or warps < 2 or any(one.kind == "dot" for one in studied.operations.values()):
        return
    sizes: dict[int, tuple[int, int]] = {}
    for line, operation in studied.operations.items():
        layout = studied.layout_of(operation) if operation.opcode in ACCESSES else None
        if layout is not None and layout.shape:
            elements = prod(layout.shape)
            sizes[line] = elements, elements * studied.limits.element_bits(operation) // 8
    if not sizes:
        return
    line, (elements, size) = max(sizes.items(), key=lambda row: row[1][1])
    enough = max(size // (_LANES * _THREAD_BYTES), 1)
    enough = 1 << (enough.bit_length() - 1)
    if enough >= warps:
        return
    threads = warps * _LANES
    each = "less than one" if elements < threads else f"{elements // threads}"
    text = f"too many warps for the tile: {elements} elements for {threads} threads"
    yield studied.finding(
        "IRS506",
        line,
        text,
        f"each thread has {each} of its elements, where it could have {_THREAD_BYTES * elements // size}",
        warps // enough,
        [
            studied.in_ir(f"the largest tile has {elements} elements, {size} bytes", line),
            Cause(f"num_warps is {warps}", "launch", "the options of the launch"),
        ],
        [
            Suggestion(f"num_warps={enough}", (FixChange("option", "num_warps", enough),)),
            Suggestion("a larger tile: several rows of it in one CTA"),
        ],
        factor=warps / enough,
    )


def _loads(studied: Studied) -> Iterator[Finding]:
    """Loads of loops without a dot, which Triton pipelines only where the loop says so."""
    with_dots = {one.first_line for loop in loops_with_dots(studied) for one in loop.walk()}
    for loop, operation in innermost(studied):
        if operation.opcode not in LOADS or operation.first_line in with_dots:
            continue
        is_for = loop.name == "scf.for"
        at = studied.chain_at(loop.first_line)
        is_own = len(at) == 1 and at[0].file == studied.capture.launch.kernel.file
        why = "its loop has no num_stages of its own" if is_for else "it is a while loop, which is never pipelined"
        yield studied.finding(
            "IRS203",
            operation.first_line,
            "each iteration waits for its load: the loop is not pipelined",
            "the latency of memory in each iteration",
            1,
            [
                studied.in_ir("it is still a load to registers, inside the loop", operation.first_line),
                studied.in_ir(f"{why}, and without a dot Triton pipelines no loop by itself", loop.first_line),
            ],
            [
                Suggestion(
                    "for … in tl.range(…, num_stages=3); more warps or CTAs per multiprocessor hide it too"
                    if is_for
                    else "write the loop as `for … in tl.range(…, num_stages=3)`, if its iterations can be bounded",
                    (FixChange("stages", str(at[0].line), 3),) if is_for and is_own else (),
                )
            ],
        )


def innermost(studied: Studied) -> Iterator[tuple[Operation, Operation]]:
    """(the innermost loop, an operation in it), in the order of the text."""
    loops = [one for one in studied.operations.values() if one.kind == "loop"]
    around = {one.first_line: loop for loop in loops for one in loop.walk() if one is not loop}
    for line, loop in sorted(around.items()):
        if line in studied.operations:
            yield loop, studied.operations[line]


def _reductions(studied: Studied) -> Iterator[Finding]:
    warps = studied.capture.launch.option("num_warps", 4)
    for loop, operation in innermost(studied):
        if operation.kind not in ("reduction", "scan") or warps == 1:
            continue
        fixes = [Suggestion("accumulate element by element in the loop, and reduce once after it")]
        if isinstance(warps, int) and warps > 1:
            fixes.insert(0, Suggestion(f"num_warps={warps // 2}", (FixChange("option", "num_warps", warps // 2),)))
        yield studied.finding(
            "IRS205",
            operation.first_line,
            f"a {operation.kind} across {warps} warps in each iteration: barriers and shared memory",
            "all warps wait for one another in each iteration",
            1,
            [
                studied.in_ir(
                    f"the {operation.kind} is inside the loop of line {loop.first_line}", operation.first_line
                ),
                Cause(f"num_warps is {warps}", "launch", "the options of the launch"),
            ],
            fixes,
        )


def _atomics(studied: Studied, model: Model, prediction: Prediction) -> Iterator[Finding]:
    if max(dict(part).get("atomics", 0.0) for part in (prediction.busy, prediction.waits)) < _LEAST_OF_ATOMICS:
        return
    distinct = model.execution.distinct
    shared = {one.array: distinct.get(one.array, 1.0) for _, one in model.accesses if one.kind == "atomic"}
    conflicts = max((one.conflicts for _, one in model.accesses if one.kind == "atomic"), default=1.0)
    for line, operation in studied.operations.items():
        if operation.kind != "atomic" or operation.opcode != "atomic_rmw" or not operation.results:
            continue
        is_tile = bool(operation.result_types[0].shape)
        what = "each element is an atomic of its own" if is_tile else "each CTA has an atomic"
        causes = [studied.in_ir(f"{what}, done by the L2 cache", line)]
        if shared and (least := min(shared.values())) < 1:
            causes.append(
                _model(f"{1 / max(least, 1e-6):,.0f} CTAs that run at the same time add to the same addresses")
            )
        if conflicts > 1 and is_tile:
            causes.append(_model(f"{conflicts:.0f} lanes of a warp add to one address, one after another"))
        yield studied.finding(
            "IRS605",
            line,
            "atomics limit the throughput: the L2 cache serialises them",
            f"an atomic operation for each {'element' if is_tile else 'CTA'}, in place of a store",
            1,
            causes,
            [
                Suggestion(
                    "reduce in the CTA first (tl.sum, then one atomic); or store partial sums and add them up in a "
                    "second kernel"
                    if is_tile
                    else "more work for each CTA (a loop over several tiles); or store partial sums and add them up in "
                    "a second kernel"
                )
            ],
        )


def unexplained(studied: Studied, model: Model, prediction: Prediction, floor_seconds: float | None) -> Finding:
    """The bound of a launch that takes longer than the minimum, where no other finding has the reason."""
    waits = [(why, part) for why, part in prediction.waits if why != "execution"]
    why, part = waits[0] if waits else (prediction.bound, 0.0)
    lines = [one for one in prediction.lines if one.line][:2]
    places = tuple((one.file, one.line) for one in lines[:1] if prediction.bound not in _OF_GRID)
    causes = [_model(f"warps spend {share:.0%} of their time on: {name}") for name, share in waits[:3]]
    causes += [_model(f"{name} is busy for {share:.0%} of the time") for name, share in prediction.busy[:2]]
    bound = bound_of(prediction)
    text, fix = _BOUNDS.get(bound, (f"bound by {bound}", ""))
    floor = f", {prediction.seconds / floor_seconds:.1f} times the minimum" if floor_seconds else ""
    return studied.about_kernel(
        "IRS509",
        text,
        f"{part:.0%} of the warps' time: {why}{floor}",
        1,
        causes,
        [Suggestion(fix)] if fix else [],
        place=places,
        seconds=_lost(studied, model, prediction, bound, part, floor_seconds or 0.0),
    )


def bound_of(prediction: Prediction) -> str:
    """What bounds a launch: what most of the warps wait for, where that says more than the unit that is busiest."""
    why, part = next((row for row in prediction.waits if row[0] != "execution"), ("", 0.0))
    return why if why in _WAITS and part >= _MOSTLY else prediction.bound


def reasons_of(bound: str) -> tuple[str, ...]:
    """The kinds of findings that bring a bound about."""
    return _REASONS.get(bound, ())


def _lost(
    studied: Studied, model: Model, prediction: Prediction, bound: str, part: float, floor_seconds: float
) -> float:
    """The time above that of a launch at its bound, whose busiest unit works for `SATURATED` of the time."""
    work = prediction.seconds - prediction.launch_seconds
    busy = [share for name, share in prediction.busy if name not in _OVERHEAD]
    if _has_dots_in_turn(studied):
        busy = [sum(share for name, share in prediction.busy if name in _IN_TURN)]
        return work * max(1 - busy[0] / SATURATED, 0.0)
    if bound in _OVERHEAD:
        return work * (1 - max(busy, default=0.0))
    if bound in dict(prediction.busy):
        return work * max(1 - max(model.saturation, model.covered) / SATURATED, 0.0)
    return max(min(part * prediction.seconds, prediction.seconds - floor_seconds), 0.0)


def _has_dots_in_turn(studied: Studied) -> bool:
    """Whether a dot of a loop takes what another one of the same iteration gives, as in attention."""
    for loop in loops_with_dots(studied):
        inside = [one for one in loop.walk() if one is not loop]
        made = {value: one for one in inside for value in one.results}
        for dot in (one for one in inside if one.kind == "dot"):
            if any(one.kind == "dot" for one in all_makers(made.get, dot.operands[:2])):
                return True
    return False


def waits_for_atomics(prediction: Prediction) -> bool:
    return dict(prediction.waits).get("atomics", 0.0) >= _MOSTLY


_LEAST_OF_ATOMICS = 0.25
"""The part of the time that the L2 cache serialises them, or that warps wait for them, if they limit a launch."""
_MOSTLY = 0.4
SATURATED = 0.9
"""The part of the time that a unit is busy at its limit."""
_OVERHEAD = ("CTA start", "atomics")
"""Units whose work is none of the kernel's own."""
_OF_GRID = ("last wave", "too few CTAs", "CTAs of unequal length", "CTA start")
"""Bounds that no line of the kernel has."""
_IN_TURN = ("tensor cores", "special functions", "integer and logic", "FMA")
"""Units that dots of one iteration, and the operations between them, use one after another."""
_WAITS = ("atomics", "spills")
"""Reasons to wait that say more than the unit that is busiest."""
_REASONS = {
    "latency: too little in flight": ("IRS201", "IRS202", "IRS203", "IRS502"),
    "barriers": ("IRS205",),
    "atomics": ("IRS602", "IRS605"),
    "spills": ("IRS501",),
    "last wave": ("IRS507",),
}
_IN_FLIGHT = (
    "more bytes in flight: larger tiles, several loads before the first use, more warps or CTAs per multiprocessor"
)
_BOUNDS = {
    "latency: too little in flight": ("exposed latency: too little is in flight to hide it", _IN_FLIGHT),
    "barriers": ("warps wait for one another at barriers", "fewer warps, or fewer reductions and conversions"),
    "atomics": (
        "warps wait for atomics, which the L2 cache serialises per address",
        "reduce in the CTA first, fewer CTAs that add, or partial sums that a second kernel adds up"
    ),
    "spills": ("warps wait for spilled registers", "more warps, smaller tiles"),
    "CTA start": (
        "short CTAs: starting one takes longer than its work",
        "more work for each CTA: several rows in a tile, a loop over tiles, fewer CTAs"
    ),
    "FMA": ("bound by the FMA units", "less arithmetic, or dots on the tensor cores"),
    "tensor cores": ("bound by the tensor cores", "operands of fewer bits, or fewer iterations"),
    "memory pipe": ("bound by the memory pipe: shuffles and accesses", "fewer reductions, wider accesses"),
    "float64": ("bound by the float64 units", "float32"),
    "too few CTAs": ("too few CTAs for the GPU", "smaller tiles, or split the longest loop over more CTAs"),
    "last wave": ("the last wave of CTAs leaves multiprocessors idle or half empty", "a persistent kernel"),
    "CTAs of unequal length": (
        "CTAs of unequal length: the longest ones end last", "start the longest CTAs first, or take work from a counter"
    ),
    "DRAM": ("bound by DRAM, which moves more than the minimum", "an order of CTAs that reuses tiles in the L2 cache"),
    "issue": ("bound by the instructions issued", "fewer instructions: wider accesses, less arithmetic for addresses"),
    "integer and logic": (
        "bound by integer arithmetic", "less arithmetic for addresses and masks: hoist it out of loops, use 32 bits"
    ),
    "L1": ("bound by L1", "wider and coalesced accesses, or tiles in shared memory"),
    "L2": ("bound by the L2 cache", "larger tiles, which read the same data less often"),
    "L2 port": ("bound by the port to the L2 cache", "larger tiles, which read the same data less often"),
    "shared memory": ("bound by shared memory", "fewer conversions of layouts, fewer bank conflicts"),
    "special functions": ("bound by special functions", "fewer exponentials, logarithms and divisions"),
}  # fmt: skip

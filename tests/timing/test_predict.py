"""Properties of predictions, and launches with a planted bound."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from irscope.api.explain import Explainer
from irscope.api.timing import counted_roofline
from irscope.api.tuning import candidates_of
from irscope.device.clocks import CLOCKS, Clock, clock_of
from irscope.errors import UsageError
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.launch_record import Autotuning, LaunchRecord
from irscope.render.text.findings import render_explanation
from irscope.store.file import load
from irscope.target import Target
from irscope.timing.accesses import GRANULE, Access, _wavefronts  # pyright: ignore[reportPrivateUsage]
from irscope.timing.execution import execute, slices_of
from irscope.timing.predict import Prediction, _timed, _with_fewer, predict_with  # pyright: ignore[reportPrivateUsage]
from irscope.timing.simulate import simulate
from irscope.timing.steps import UNITS, OneStep, Steps, costs_of, demand_of, rates_of
from irscope.timing.trace import Observed, Skip
from irscope.timing.tuning import Candidate, Ranked, Tuning, config_text, perf_model_text
from tests.marks import sampled

COUNTERS = Path(__file__).parents[1] / "data" / "counters"
H100 = CLOCKS["h100"]


@cache
def stored(name: str) -> Capture:
    return load(next(COUNTERS.rglob(f"{name}.irscope")))


def launched(name: str, x: int) -> Capture:
    """A stored kernel as if launched with other CTAs, its tensors as large as these reach."""
    capture = stored(name)
    record = capture.launch.record
    assert record is not None
    rows = tuple(replace(row, storage_bytes=None) for row in record.arguments)
    return replace(capture, launch=replace(capture.launch, grid=(x, 1, 1), record=LaunchRecord(rows)))


def predicted(capture: Capture, **options: bool) -> Prediction:
    return predict_with(capture, part="h100", what_if=options.get("what_if", False))


def seconds(capture: Capture, clock: Clock) -> float:
    return clock.launch_s + _timed(execute(capture, clock), clock).cycles / clock.clock_hz


@pytest.mark.parametrize("name", ["softmax_kernel", "swiglu_backward_kernel", "layer_norm_backward_kernel"])
def test_more_ctas_take_longer(name: str) -> None:
    times = [predicted(launched(name, count)).seconds for count in (64, 1024, 16384)]
    assert times == sorted(times)
    assert times[2] > 4 * times[1]


@pytest.mark.parametrize(
    "name", sampled(["softmax_kernel", "attention_kernel", "matmul_naive_kernel", "triton_rope"], 2)
)
@pytest.mark.parametrize(
    "faster",
    [
        {"dram_bytes_per_s": 2 * H100.dram_bytes_per_s},
        {"l2_bytes_per_s": 2 * H100.l2_bytes_per_s},
        {"dram_latency": H100.dram_latency / 2},
        {"clock_hz": 2 * H100.clock_hz},
    ],
)
def test_a_faster_part_takes_no_longer(name: str, faster: dict[str, float]) -> None:
    base = seconds(stored(name), H100)
    # What queues differently may shift a little.
    assert seconds(stored(name), replace(H100, **faster)) <= 1.03 * base


def test_what_is_said_holds_together() -> None:
    one = predicted(stored("matmul_naive_kernel"), what_if=True)
    assert 0 < one.interval[0] < one.seconds < one.interval[1]
    assert one.seconds >= one.launch_seconds
    assert sum(line.share for line in one.lines) == pytest.approx(1)
    assert sum(part for _, part in one.waits) == pytest.approx(1)
    assert all(0 <= part <= 1.0001 for _, part in one.busy)
    assert all(item.gain >= 1 for item in one.what_if)
    assert all(span.end >= span.start >= 0 for span in one.timeline)


def test_a_stream_is_bound_by_dram() -> None:
    one = predicted(launched("softmax_kernel", 1 << 16))
    assert one.bound == "DRAM"
    # No launch is faster than its bytes.
    assert one.seconds > one.dram_bytes / H100.dram_bytes_per_s


def test_a_launch_that_does_little_is_overhead() -> None:
    assert predicted(launched("softmax_kernel", 1)).bound == "launch overhead"


def test_few_ctas_are_named() -> None:
    assert predicted(stored("matmul_naive_kernel")).bound in ("too few CTAs", "launch overhead")


def test_conflicts_cost_and_their_absence_is_answered() -> None:
    one = predicted(launched("shared_columns", 64), what_if=True)
    gains = {item.name: item.gain for item in one.what_if}
    assert gains["without bank conflicts"] > 1


def test_parts_are_told_apart() -> None:
    slow, fast = (predict_with(launched("softmax_kernel", 1 << 15), part=part) for part in ("h100", "h200"))
    assert fast.seconds < slow.seconds
    assert slow.is_validated
    assert not predict_with(stored("softmax_kernel"), part="h100-pcie").is_validated


def test_why_has_the_time_of_a_launch_whose_machine_code_is_not_modelled() -> None:
    capture = replace(stored("softmax_kernel"), target=Target.parse("hip:gfx942"))
    answer = Explainer().explain(capture)
    assert answer.time.prediction is not None
    assert answer.time.prediction.method == "analytic"
    assert answer.time.model is None
    text = render_explanation(answer.findings, capture, answer.time, width=100, color=False)
    assert text.startswith("softmax_kernel  hip:gfx942, mi300x   predicted ")


def test_what_is_not_known_is_asked_for() -> None:
    capture = stored("softmax_kernel")
    with pytest.raises(UsageError, match="--grid"):
        predict_with(replace(capture, launch=replace(capture.launch, grid=None)))
    record = capture.launch.record
    assert record is not None
    rows = tuple(row for row in record.arguments if row.kind == "tensor")
    with pytest.raises(UsageError, match="--size"):
        predict_with(replace(capture, launch=replace(capture.launch, record=LaunchRecord(rows))))
    with pytest.raises(UsageError, match="no such part"):
        clock_of(Target.parse("cuda:90"), "h1000")
    with pytest.raises(UsageError, match="cuda:80"):
        clock_of(Target.parse("cuda:90"), "a100")


def test_predictions_are_printed_as_a_model_that_runs() -> None:
    one = predicted(stored("softmax_kernel"))
    rows = tuple(
        Ranked(Candidate((("BLOCK", 64 * size), ("num_warps", 4)), None), (replace(one, seconds=size * 1e-6),) * 2)
        for size in (1, 2)
    )
    tuning = Tuning("kernel", "h100", ((("M", 16),), (("M", 4096),)), rows, ())
    assert config_text(rows[0].candidate) == "triton.Config({'BLOCK': 64}, num_warps=4)"
    names: dict[str, object] = {}
    exec(perf_model_text(tuning), names)
    model = names["perf_model"]
    assert callable(model)
    assert model(M=20, BLOCK=128, num_warps=4, num_stages=3) == 2.0
    assert model(M=20, BLOCK=999, num_warps=4) == float("inf")


_NOT_COUNTED = {
    "atomics", "attention_kernel", "column", "copies_of_halves", "liger_cross_entropy_kernel", "masked", "strided",
    "tile", "triangle", "words",
}  # fmt: skip
"""Atomics, masks within a sector, sectors that two CTAs share or that DRAM reads in pairs, indices that are data."""


@pytest.mark.parametrize("name", sorted({path.stem for path in COUNTERS.rglob("*.irscope")} - _NOT_COUNTED))
def test_dram_moves_each_sector_once(name: str) -> None:
    """As many bytes as the count by element gives of a launch that fits into L2, which is another way to them."""
    low, high = counted_roofline(stored(name)).dram_bytes
    assert low == high
    assert predicted(stored(name)).dram_bytes == pytest.approx(low, rel=0.01)
    # What a CTA has in L1 no longer, and what others read too, passes through L2 again.
    assert predicted(stored(name)).l2_bytes >= 0.99 * low


@pytest.mark.parametrize("name", ["looped", "softmax_kernel", "structs", "swiglu_backward_kernel", "transpose_kernel"])
def test_each_byte_that_one_cta_accesses_once_passes_through_l2_once(name: str) -> None:
    low, _ = counted_roofline(stored(name)).dram_bytes
    assert predicted(stored(name)).l2_bytes == pytest.approx(low, rel=0.01)


def _measured_sectors(kind: str) -> list[tuple[float, float, float, float]]:
    """(picoseconds of the whole GPU, sectors, lines, sectors that the bytes fill) of each measured warp instruction."""
    data = Path(__file__).parents[2] / "benchmarks" / "microbench" / "data" / "h100.json"
    rows: list[tuple[float, float, float, float]] = []
    for name, row in json.loads(data.read_bytes())["constants"].items():
        match = re.fullmatch(rf"l2_{kind}_(\d+)B_(\d+)lanes_(\d+)apart", name)
        if match is None or match[3] == "4096":
            continue
        size, lanes, apart = map(int, match.groups())
        addresses = [lane // lanes * apart + lane % lanes * size for lane in range(32)]
        sectors = {place // 32 for first in addresses for place in range(first, first + size, 4)}
        lines = {sector // 4 for sector in sectors}
        rows.append((row["median"], len(sectors), len(lines), size))
    assert len(rows) > 10
    return rows


@pytest.mark.parametrize(("kind", "name"), [("read", "load"), ("write", "store")])
def test_partial_lines_cost_what_was_measured(kind: str, name: str) -> None:
    execution = replace(execute(stored("softmax_kernel"), H100), from_dram={1: 0.0}, written={1: 0.0})
    rates = rates_of(H100, H100.units)
    for measured, sectors, lines, ideal in _measured_sectors(kind):
        access = Access(name, sectors, ideal, lines, array=1)
        cost = costs_of(access, execution, H100, rates)[UNITS.index("L2")] / H100.units / H100.clock_hz * 1e12
        # Below, the loop's own instructions take the time.
        assert 0.65 * min(measured, max(measured - 35, 0)) <= cost <= 1.25 * measured, (sectors, lines)


def _measured_atomics() -> list[tuple[float, Access, float]]:
    """(cycles of the whole part for a warp, its access, the bytes of all) of the atomics of `benchmarks.microbench`."""
    data = Path(__file__).parents[2] / "benchmarks" / "microbench" / "data" / "h200.json"
    rows: list[tuple[float, Access, float]] = []
    for name, row in json.loads(data.read_bytes())["constants"].items():
        match = re.fullmatch(r"red.global.add, lanes (\d+) bytes apart within (\d+) bytes", row["how"])
        if match is None or not int(match[1]):
            continue
        stride, span = map(int, match.groups())
        places = np.arange(32) * stride % span
        size = 16 if "v4" in name else 8 if "v2" in name else 4
        sectors = {(place + part) // 32 for place in places.tolist() for part in range(0, size, 4)}
        access = Access("atomic", len(sectors), lanes=32.0, passes=float(len(sectors)), lines=1.0, array=1)
        rows.append((row["median"], access, span))
    assert len(rows) > 30
    return rows


def test_atomics_take_as_long_as_was_measured() -> None:
    execution = execute(stored("softmax_kernel"), H100)
    rates = rates_of(H100, H100.units)
    for measured, access, span in _measured_atomics():
        spread = replace(execution, atomic_slices={1: slices_of(span / GRANULE)})
        cost = costs_of(access, spread, H100, rates)[UNITS.index("atomics")] / H100.units
        # Up to 16 KiB granules of one slice meet by chance, which is not modelled.
        assert 0.6 * measured <= cost <= 1.25 * measured, (access.sectors, span)


def test_lanes_of_one_bank_of_l1_wait_as_was_measured() -> None:
    data = Path(__file__).parents[2] / "benchmarks" / "microbench" / "data" / "h100.json"
    rows = json.loads(data.read_bytes())["constants"].items()
    measured = {match.groups(): row["median"] for name, row in rows if (match := re.fullmatch(_FROM_L1, name))}
    assert len(measured) > 10
    rates, execution = rates_of(H100, H100.units), execute(stored("softmax_kernel"), H100)
    for (size, apart), cycles in measured.items():
        width, addresses = int(size), np.arange(32)[None, :] * int(apart)
        sectors = len(np.unique(addresses // 32))
        fronts = _wavefronts(addresses, width, None, 32)[0]
        access = Access("load", sectors, width, len(np.unique(addresses // 128)), missed=0.0, wavefronts=fronts)
        cost = costs_of(access, execution, H100, rates)
        assert max(cost[UNITS.index("L1")], cost[UNITS.index("shared memory")]) == pytest.approx(cycles, rel=0.1)


_FROM_L1 = r"l1_read_(\d+)B_(\d+)apart"


def test_the_fma_pipe_holds_up_the_tensor_cores() -> None:
    """One warpgroup multiplies, another one adds: on an H100 16,384 additions take wgmma 14,878 cycles."""
    execution = execute(stored("attention_kernel"), H100)
    code = execution.program.code
    place = next(index for index, item in enumerate(code) if item.opcode.startswith("HGMMA") and "gsb0" in item.text)
    multiplied = [OneStep(place, kind="tensor", last=place) for _ in range(512)]
    waited = OneStep(place, kind="tensor wait", last=place)
    added = [OneStep(0, stall=32, uses=((UNITS.index("FMA"), 32.0),), fma=32.0) for _ in range(128)]

    def cycles(*steps: Steps) -> float:
        return simulate(execution, H100, list(steps), resident=1, waiting=0, active=1).end

    tensor, fma = Steps(4, [*multiplied, waited]), Steps(4, added)
    alone = cycles(tensor)
    assert cycles(fma) == pytest.approx(128 * 32, rel=0.1)
    assert cycles(fma) < alone
    assert cycles(tensor, fma) - alone == pytest.approx(14_878 / 16_384 * 128 * 32, rel=0.1)


def test_a_unit_serves_accesses_in_the_order_of_time() -> None:
    """A warp that computes before it loads, simulated first, does not hold up the loads of another one meanwhile."""
    execution = execute(stored("softmax_kernel"), H100)
    load = Access("load", 4.0, 4.0, 1.0, missed=0.0)

    def loads(stall: float, count: int) -> Steps:
        waited = [OneStep(0, kind="load", access=load, stall=stall, write=0), OneStep(0, awaited=(0,), stall=1.0)]
        return Steps(1, waited * count)

    def cycles(*steps: Steps) -> float:
        return simulate(execution, H100, list(steps), resident=1, waiting=0, active=1).end

    long, short = loads(4000.0, 1), loads(1.0, 20)
    assert cycles(long, short) == pytest.approx(max(cycles(long), cycles(short)), rel=0.02)


def test_ctas_that_are_left_at_the_end_go_on_faster() -> None:
    """Two places of each of 16 multiprocessors: where the end is reached together nothing changes."""
    even, uneven = [4.0] * 32, [4.0] * 16 + [8.0] * 16
    assert _with_fewer(even, 2, (0.2, 0.5)) == pytest.approx(4.0)
    assert _with_fewer(uneven, 2, (1.0, 1.0)) == pytest.approx(8.0)
    assert _with_fewer(uneven, 2, (0.2, 0.5)) == pytest.approx(4.0 + 4.0 * 0.5)
    # The last one, when 15 of 16 multiprocessors have nothing left.
    assert _with_fewer([*[4.0] * 31, 8.0], 2, (0.2, 0.5)) == pytest.approx(4.0 + 4.0 * 0.2)
    assert _with_fewer([*[4.0] * 31, 8.0], 1, (0.2, 1.0)) == pytest.approx(4.0 + 4.0 * 0.2)


def test_loads_stores_and_barriers_leave_the_alu_alone() -> None:
    capture = stored("softmax_kernel")
    execution = execute(capture, H100)
    demand = demand_of(execution, H100, rates_of(H100, H100.units))
    counted = 0.0
    for group in execution.groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if not isinstance(entry, Skip):
                base = execution.program.bases[entry.index if isinstance(entry, Observed) else entry]
                counted += weight * len(group.rows) * (base in _ON_ALU)
    assert demand.cycles[UNITS.index("integer and logic")] == pytest.approx(counted * H100.alu / H100.schedulers)


_ON_ALU = (
    "ISETP",
    "FSETP",
    "SEL",
    "FSEL",
    "LOP3",
    "LEA",
    "SHF",
    "PRMT",
    "IADD3",
    "FMNMX",
    "F2FP",
    "PLOP3",
    "VOTE",
    "MOV",
)


def test_a_configuration_is_what_autotune_states() -> None:
    """Neither an argument that is 1 nor what a heuristic computes; and also what all configurations share."""
    source = "def grouped(x, stride, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, EVEN: tl.constexpr):\n    pass\n"

    def compiled(block: int, number: int, **others: str) -> Capture:
        tuned = Autotuning(number, 2, f"BLOCK_M: {block}, BLOCK_K: 64, num_warps: 4, num_ctas: 1, num_stages: 3")
        constants = {"BLOCK_M": str(block), "BLOCK_K": "64", "EVEN": "True", **others}
        options = (("num_warps", 4), ("num_stages", 3), ("num_ctas", 1))
        launch = Launch(Kernel("grouped", "k.py", 1, source, 1), (), tuple(constants.items()), (), options)
        return Capture(replace(launch, autotuning=tuned), Target("cuda", "90", 32))

    found = candidates_of([compiled(64, 0, stride="1"), compiled(64, 0, EVEN="False"), compiled(128, 1)])
    assert [config_text(one) for one in found] == [
        f"triton.Config({{'BLOCK_M': {block}, 'BLOCK_K': 64}}, num_warps=4, num_stages=3)" for block in (64, 128)
    ]
    # Without autotuning: the declared constants that differ.
    tuned = [compiled(64, 0, stride="1"), compiled(128, 1)]
    plain = [one.with_(launch=replace(one.launch, autotuning=None)) for one in tuned]
    assert [dict(one.config) for one in candidates_of(plain)] == [
        {"BLOCK_M": block, "num_warps": 4, "num_stages": 3} for block in (64, 128)
    ]

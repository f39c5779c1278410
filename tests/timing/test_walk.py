"""Each warp is walked through its own partition, loops to their end, and what a loop loads is as random each time."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from irscope.api.explain import Explainer
from irscope.api.timing import time
from irscope.device.clocks import clock_of
from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.record.variants.completing import reporting
from irscope.render.text.findings import render_explanation
from irscope.timing.accesses import Access
from irscope.timing.execution import execute
from irscope.timing.scalars import ARRAY_BITS, Assumptions
from irscope.timing.trace import is_regular
from irscope.timing.walk import NotFollowed, Observed, Skip
from tests.once import kept

pytestmark = [pytest.mark.triton, pytest.mark.newest]
SCRIPT = Path(__file__).with_name("specialized.py")
SIZE, TILE, STEP = 512, 128, 64
"""As the script has them."""
COLUMNS, ROWS, SETS, STEPS = 64, 32, 9, 40
LENGTHS = [3, 40, 7, 0, 25, 60, 12, 31]
WIDTH = 1024
CHANNELS, PER_GROUP, PIXELS = 320, 10, 32
TILED, DEPTH = 5, 1600
"""As `loops.py` has them."""


def recorded(target: str) -> Capture:
    request = request_for(SCRIPT, targets=(target,), layouts=False)
    (capture,) = kept(("walk", target), lambda: tuple(record_request(request).captures))
    return capture


def _executed(capture: Capture) -> list[tuple[list[int], Counter[str]]]:
    """(warps, opcode → how often each of them executes it), of each group of warps."""
    execution = execute(capture, clock_of(capture.target, None))
    found: list[tuple[list[int], Counter[str]]] = []
    for group in execution.groups:
        counts = Counter[str]()
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if not isinstance(entry, Skip):
                index = entry.index if isinstance(entry, Observed) else entry
                counts[execution.program.bases[index]] += round(weight)
        found.append((group.rows.tolist(), counts))
    return sorted(found)


@pytest.mark.parametrize(
    ("target", "warps", "copies", "multiplies"),
    [("cuda:90", 12, "UTMALDG", "HGMMA"), ("cuda:100", 8, "UTMALDG", "UTCHMMA")],
)
def test_each_partition_is_walked_by_its_warps(target: str, warps: int, copies: str, multiplies: str) -> None:
    found = _executed(recorded(target))
    assert sorted(warp for rows, _ in found for warp in rows) == list(range(warps))
    copying = [counts for _, counts in found if counts[copies]]
    multiplying = [rows for rows, counts in found if counts[multiplies]]
    assert copying
    assert multiplying
    assert not any(counts[multiplies] for counts in copying)
    steps, halves = SIZE // STEP, 2 if target == "cuda:90" else 1
    # Of a step's tile of A the halves are copied apart, for two partitions that multiply.
    assert max(counts[copies] for counts in copying) == steps * (1 + halves)
    # An instruction multiplies 16 columns of A by as many rows of B.
    assert {counts[multiplies] for _, counts in found if counts[multiplies]} == {steps * STEP // 16}


def test_a_loop_is_followed_however_long_its_code_is(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _executed(recorded("cuda:90"))
    monkeypatch.setattr("irscope.timing.walk._MOST_STEPS", 1)
    assert _executed(recorded("cuda:90")) == whole


def test_why_predicts_from_the_work_what_cannot_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.timing.walk._MOST_STEPS", 1)
    monkeypatch.setattr("irscope.timing.walk._MOST_OF_LONG_LOOPS", 1)
    capture = recorded("cuda:90")
    with reporting(lambda _: None):
        answer = Explainer().explain(capture)
    assert answer.time.prediction is not None
    assert answer.time.prediction.method == "analytic"
    text = render_explanation(answer.findings, capture, answer.time, width=None, color=False)
    head, note, *_ = text.split("\n")
    assert "predicted" in head
    assert "was not followed" in note


def test_its_time_is_that_of_its_work() -> None:
    capture = recorded("cuda:90")
    prediction = time(capture)
    assert prediction.method == "simulated"
    bytes_needed = 3 * SIZE * SIZE * 2
    assert bytes_needed <= prediction.dram_bytes < 3 * bytes_needed
    # What the tensor cores of the 16 multiprocessors that have a CTA take for it at their peak.
    floor = 2 * TILE * TILE * SIZE / (989e12 / 132)
    assert floor < prediction.seconds < 20 * floor


def test_where_it_is_not_known_what_warps_run_the_work_alone_is_timed() -> None:
    capture = recorded("cuda:100")
    assert "BRANCH_TARGETS" in capture.text("sass")
    sass = capture.text("sass").replace("BRANCH_TARGETS", "TARGETS")
    artifacts = tuple(replace(one, data=sass) if one.stage == "sass" else one for one in capture.artifacts)
    lost = replace(capture, artifacts=artifacts)
    with pytest.raises(NotFollowed, match="BRX"):
        execute(lost, clock_of(capture.target, None))
    prediction = time(lost)
    assert any("was not followed" in note for note in prediction.notes)
    assert prediction.seconds < 1e-4


def recorded_loops() -> tuple[Capture, ...]:
    script = Path(__file__).with_name("loops.py")
    request = request_for(script, targets=("cuda:90",), layouts=False)
    return kept("loops of the walk", lambda: tuple(record_request(request).captures))


def test_a_loop_within_two_others_is_counted_whole() -> None:
    (capture,) = (one for one in recorded_loops() if one.name == "nested")
    execution = execute(capture, clock_of(capture.target, None))
    assert not execution.assumed
    counts = {"load": 0.0, "store": 0.0}
    for group in execution.groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if isinstance(entry, Observed) and entry.payload is not None:
                counts[entry.payload.kind] += weight * entry.payload.is_on * len(group.rows)
    # All warps load the same, and one of them stores.
    assert counts == {"load": execution.warps * COLUMNS * ROWS * SETS, "store": COLUMNS * ROWS}


def test_lengths_and_indices_that_the_capture_holds_are_followed() -> None:
    (capture,) = (one for one in recorded_loops() if one.name == "ragged")
    execution = execute(capture, clock_of(capture.target, None))
    assert not execution.assumed
    firsts = [sum(LENGTHS[:row]) for row in range(len(LENGTHS) + 1)]
    added = [
        sum(number * 37 % sum(LENGTHS) % 3 != 0 for number in range(first, last)) for first, last in pairwise(firsts)
    ]
    counts = Counter[int]()
    for group in execution.groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if isinstance(entry, Observed) and entry.payload is not None and entry.payload.is_on:
                counts[entry.payload.array] += round(weight * len(group.rows))
    # The row whose length is next to the mean is walked whole, by both warps.
    assert (counts[1], counts[3]) == (2 * added[4], 2 * LENGTHS[4])
    # So many instructions more for each row of `pages`, and so many for each that is added.
    filled = np.array(LENGTHS) > 0
    columns = np.stack([np.ones(len(LENGTHS)), np.array(LENGTHS), np.array(added)], 1)[filled]
    solved, _, rank, _ = np.linalg.lstsq(columns, execution.work[filled], rcond=None)
    assert rank == 3
    assert columns @ solved == pytest.approx(execution.work[filled], rel=1e-6)
    assert execution.work[3] < execution.work[filled].min()


def test_fewer_warps_find_no_more_of_random_data_in_the_caches() -> None:
    times = [time(one).seconds for one in recorded_loops() if one.name == "chase"]
    assert len(times) == 3
    assert max(times) < 1.2 * min(times)


def test_indices_of_loaded_coordinates_lie_all_over_the_row() -> None:
    (capture,) = (one for one in recorded_loops() if one.name == "sampled")
    execution = execute(capture, clock_of(capture.target, None))
    assert "loaded numbers that indices are computed of are assumed uniform between 0 and 1" in execution.assumed
    loads = [entry.payload for group in execution.groups for entry in group.trace if isinstance(entry, Observed)]
    sectors = [one.sectors for one in loads if one is not None and one.array == 2]
    # Of 128 sectors, those that 32 random places are in.
    assert sectors
    assert np.mean(sectors) == pytest.approx(128 * (1 - (1 - 1 / 128) ** 32), rel=0.1)


def _accesses(name: str) -> tuple[set[str], list[tuple[Access, float]]]:
    """What is assumed of a launch; the accesses of the CTA that is walked, each as often as its warps make it."""
    (capture,) = (one for one in recorded_loops() if one.name == name)
    execution = execute(capture, clock_of(capture.target, None))
    return execution.assumed, [
        (entry.payload, weight * len(group.rows) * entry.payload.is_on)
        for group in execution.groups
        for entry, weight in zip(group.trace, group.weights(), strict=True)
        if isinstance(entry, Observed) and entry.payload is not None
    ]


def test_a_binary_search_of_data_reads_all_over_its_table() -> None:
    assumed, accesses = _accesses("searched")
    assert assumed == {"comparisons of data that indices depend on are assumed to hold at random"}
    sectors = sorted(access.sectors for access, _ in accesses if access.array == 2)
    # At each step lanes are at twice as many places: in as many sectors as 32 lanes take of that many at random. The
    # first step is one load, the others one of each of a thread's eight elements.
    taken = [min(places, 32) * (1 - (1 - 1 / min(places, 32)) ** 32) for places in (2, 4, 8, 16, 32, 64)]
    assert sectors == pytest.approx(np.repeat([1, *taken], [1, *[8] * 6]).tolist(), abs=4)
    assert np.mean(sectors) == pytest.approx((1 + 8 * sum(taken)) / 49, rel=0.05)


def test_indices_that_a_scale_gives_are_those_of_the_launch() -> None:
    assumed, accesses = _accesses("resized")
    assert not assumed
    # A thread has four elements, which read one, and a warp 32 side by side.
    assert {access.sectors for access, _ in accesses if access.array == 1} == {4}


@pytest.mark.parametrize("kind", ["load", "store"])
def test_sectors_are_the_mean_of_all_ctas_wherever_they_begin(kind: str) -> None:
    _, accesses = _accesses("groups")
    found = sum(access.sectors * (access.missed if kind == "load" else 1) * times
                for access, times in accesses if access.kind == kind)  # fmt: skip
    begins = [2 * PER_GROUP * group % 32 for group in range(CHANNELS // PER_GROUP)]
    each = np.mean([(begin + 2 * PER_GROUP - 1) // 32 + 1 for begin in begins])
    # A store counts in each instruction that has part of a sector.
    assert found == pytest.approx(PIXELS * each) if kind == "load" else found >= PIXELS * each


def test_subroutines_are_walked_and_give_their_results() -> None:
    (capture,) = (one for one in recorded_loops() if one.name == "quotients")
    execution = execute(capture, clock_of(capture.target, None))
    assert not execution.assumed
    ((rows, counts),) = _executed(capture)
    # Two elements per thread in each iteration, each divided in 64 bits by a call.
    assert len(rows) == 4
    assert counts["CALL"] == counts["RET"] == 2 * STEPS
    loads = [entry.payload for group in execution.groups for entry in group.trace if isinstance(entry, Observed)]
    # The quotients are the places in order: the lanes of a warp load every other one of 64 floats.
    assert {one.sectors for one in loads if one is not None and one.kind == "load"} == {8}


def test_a_cta_at_an_edge_does_not_stand_for_the_launch() -> None:
    """In the middle of the launch a CTA has the first line of an image, above which nothing is loaded."""
    _, accesses = _accesses("above")
    assert {access.is_on for access, _ in accesses if access.kind == "load"} == {1.0}


def test_the_phases_of_barriers_begin_anew_with_each_tile() -> None:
    capture, _ = (one for one in recorded_loops() if one.name == "tiles")
    prediction = time(capture)
    assert prediction.method == "simulated"
    assert not any("not followed" in note for note in prediction.notes)


def test_a_loop_over_tiles_and_their_parts_is_followed_past_the_end_of_a_tile() -> None:
    """One program in five computes 51 of 256 tiles, in 50 steps each: its stores, copies and products."""
    _, flat = (one for one in recorded_loops() if one.name == "tiles")
    count, steps = len(range(TILED // 2, 16 * 16, TILED)), DEPTH // 32
    products = sum(len(rows) * counts["HGMMA"] for rows, counts in _executed(flat))
    execution = execute(flat, clock_of(flat.target, None))
    done = Counter[str]()
    for group in execution.groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if isinstance(entry, Observed) and entry.payload is not None:
                done[entry.payload.kind] += round(weight * entry.payload.is_on * len(group.rows))
    assert (done["bulk store"], done["bulk"]) == (count, 2 * count * steps)
    assert products == 4 * 2 * count * steps


def test_an_access_that_no_lane_makes_in_an_iteration_leaves_the_others_regular() -> None:
    def load(place: int | None) -> Observed:
        return Observed(7, None if place is None else Access("load", place=place))

    assert is_regular(load(0), [load(0), load(None), load(64), load(128)])
    assert not is_regular(load(0), [load(0), load(None), load(64), load(96)])
    assert not is_regular(load(None), [load(0), load(64)])


def test_random_numbers_that_stand_in_for_the_scripts_own_are_named() -> None:
    contents = {1: (0, np.arange(4, dtype="<i4").view(np.uint8)), 2: (0, np.arange(4, dtype="<i4").view(np.uint8))}
    assumed = Assumptions(contents=contents, drawn={2: "lengths"})
    for array in (1, 2):
        words = assumed.held(np.array([[(array << ARRAY_BITS) + 8]]), 4)
        assert words is not None
        assert words[0].item() == 2
        assert assumed.notes == (
            {"random numbers stand in for those that the script draws for lengths"} if array == 2 else set()
        )


def test_a_loop_ends_where_its_lanes_differ() -> None:
    (capture,) = (one for one in recorded_loops() if one.name == "squares")
    ((_, counts), *_) = _executed(capture)
    # The counter is compared for one value alone, and the mask of each lane is another.
    assert counts["REDG"] + counts["RED"] + counts["ATOMG"] >= 64
    assert sum(counts.values()) < 64 * len(execute(capture, clock_of(capture.target, None)).program.code)


def test_a_loop_that_data_end_before_it_runs_is_assumed_short() -> None:
    (capture,) = (one for one in recorded_loops() if one.name == "copies_of")
    prediction = time(capture)
    assert any("data-dependent trip count" in note for note in prediction.notes)
    assert not any("only the first part" in note for note in prediction.notes)
    ((_, counts), *_) = _executed(capture)
    # Two in each iteration, of eight at most.
    assert 2 <= counts["STG"] <= 16


def test_a_cta_that_does_the_work_stands_for_the_launch_where_most_end_at_once() -> None:
    (capture,) = (one for one in recorded_loops() if one.name == "experts")
    execution = execute(capture, clock_of(capture.target, None))
    loads = {
        sum(weight for entry, weight in zip(group.trace, group.weights(), strict=True) if _is_load(entry))
        for group in execution.groups
    }
    assert max(loads) >= 8192 / 256
    assert execution.work.mean() < 0.2
    # 1,024 rows of 32 KB are read once.
    assert 0.8 < time(capture).dram_bytes / (1024 * 8192 * 4) < 1.6


def test_a_prediction_leaves_the_search_for_cycles_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = recorded("cuda:90")
    assert gc.isenabled()
    time(capture)
    assert gc.isenabled()
    monkeypatch.setattr("irscope.api.timing.predict_with", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        time(capture)
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError):
            time(capture)
        assert not gc.isenabled()
    finally:
        gc.enable()


def _is_load(entry: object) -> bool:
    return isinstance(entry, Observed) and isinstance(entry.payload, Access) and entry.payload.kind == "load"

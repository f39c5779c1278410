"""The order of a warp-specialised kernel's operations, against barriers that are simulated."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import pytest

from irscope.analysis.flow.partitions import WarpEvent, WarpSpecialization, channels_of, events_of, read_partitions

WARPS = Path(__file__).parents[2] / "data" / "warps"
NAMES = ("ws_matmul", "ws_attention", "gluon_add")


def read(name: str) -> WarpSpecialization:
    (found,) = read_partitions((WARPS / f"{name}.ttgir").read_text())
    return found


FOUND = {name: read(name) for name in NAMES}


def bytes_of(what: str) -> int:
    """Of `128x64xf16`."""
    *shape, element = what.split("x")
    return math.prod(map(int, shape)) * int(re.sub(r"\D", "", element)) // 8


class Barrier:
    """One mbarrier as PTX describes it: a phase is complete when all arrivals and all bytes are there."""

    def __init__(self, arrivals: int) -> None:
        self.phase, self.arrivals, self.pending, self.bytes = 0, arrivals, arrivals, 0

    def arrive(self, arrivals: int, transferred: int) -> None:
        self.pending -= arrivals
        self.bytes -= transferred
        if self.pending == self.bytes == 0:
            self.phase, self.pending = 1 - self.phase, self.arrivals

    def passes(self, parity: int) -> bool:
        """Whether the phase of that parity is complete: a new barrier lets a wait for 1 pass."""
        return self.phase != parity


@pytest.mark.parametrize("name", NAMES)
def test_no_wait_of_the_first_turn_has_to_wait(name: str) -> None:
    found = FOUND[name]
    sizes = {ring.line: bytes_of(ring.what) for ring in found.buffers}
    barriers = {(ring.line, slot): Barrier(int(ring.what)) for ring in found.barriers for slot in range(ring.slots)}
    # Behind the loops other turns have been.
    events = [event for event in events_of(found) if event.part not in ("end", "after")]
    # A slot that the launch's arguments decide: how often it was arrived at is not known.
    unknown = {line for event in events for line, use in event.touched if use.slot is None}
    checked = 0
    for event in events:
        written = sum(sizes[line] for line, use in event.touched if use.action == "writes" and line in sizes)
        is_tma = "tma" in event.operation
        for line, use in event.touched:
            if use.action not in ("waits", "expects", "arrives") or line in unknown:
                continue
            assert use.slot is not None
            barrier = barriers[line, use.slot]
            if use.action == "waits" and use.first_phase is not None:
                assert barrier.passes(use.first_phase), event
                checked += 1
            elif use.action == "expects":
                assert use.bytes is not None
                barrier.bytes += use.bytes
                barrier.arrive(1, 0)
            elif use.action == "arrives":
                barrier.arrive(0 if is_tma else 1, written if is_tma else 0)
    assert checked >= {"ws_matmul": 4, "ws_attention": 15, "gluon_add": 2}[name]


@pytest.mark.parametrize("name", NAMES)
def test_each_use_is_in_one_place_and_each_lane_in_the_order_of_the_text(name: str) -> None:
    found = FOUND[name]
    events = events_of(found)
    drawn = [ring for ring in found.barriers if any(use.partition for use in ring.uses)]
    wanted = Counter((ring.line, use) for ring in (*found.buffers, *drawn) for use in ring.uses)
    assert Counter(touch for event in events for touch in event.touched) == wanted
    lanes: dict[str, list[int]] = {}
    for event in events:
        if event.part == "loop":
            lanes.setdefault(event.partition, []).append(event.line)
    assert all(lines == sorted(lines) for lines in lanes.values())
    assert len(lanes) == len(found.partitions)


def test_a_barrier_stands_with_the_buffers_of_its_partitions() -> None:
    def told(name: str) -> list[tuple[list[str], list[str]]]:
        channels = channels_of(FOUND[name])
        return [([ring.value for ring in one.buffers], [ring.value for ring in one.barriers]) for one in channels]

    assert told("ws_matmul") == [(["%acc_7"], ["%acc", "%acc_4"]), (["%acc_9", "%a"], ["%acc_10", "%acc_14"])]
    assert told("gluon_add") == [(["%buffers"], ["%full", "%empty"])]
    # K and V are filled by one partition, and freed by another.
    assert (["%score_23", "%acc_32"], ["%score_24", "%score_28", "%acc_33", "%acc_37"]) in told("ws_attention")
    assert sum(len(barriers) for _, barriers in told("ws_attention")) == 14


def test_what_no_loop_repeats_and_what_can_never_run() -> None:
    text = (WARPS / "ws_matmul.ttgir").read_text()
    parts = {event.line: event.part for event in events_of(FOUND["ws_matmul"])}
    assert [parts[line] for line in (33, 66, 84, 111, 126)] == ["before", "loop", "end", "loop", "end"]
    # Each waits for the other: all operations are still there, in some order.
    without = re.sub(r"^ *ttng\.(?:tc_gen5_commit|async_tma_copy_global).*\n", "", text, flags=re.MULTILINE)
    (found,) = read_partitions(without)

    def key(event: WarpEvent) -> tuple[str, int]:
        return event.partition, event.line

    assert sorted(map(key, events_of(found))) == sorted({
        (use.partition, use.line) for ring in (*found.buffers, *found.barriers) for use in ring.uses
    })  # fmt: skip

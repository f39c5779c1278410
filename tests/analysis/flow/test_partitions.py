"""Partitions of a warp-specialised kernel and the rings between them, against a plain reading of its text."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from irscope.analysis.flow.partitions import WarpRing, read_partitions
from irscope.render.capture import (
    barrier_rows,
    buffer_rows,
    partition_rows,
    partitions_json,
    waits_in_vain,
)

TEXT = (Path(__file__).parents[2] / "data" / "warps" / "ws_matmul.ttgir").read_text()
(FOUND,) = read_partitions(TEXT)


def code_of(name: str) -> str:
    """The text of a partition: from its head to the line that closes it, by the indentation."""
    match = re.search(rf"^    {name}\b.*?^    }}", TEXT, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[0]


@pytest.mark.parametrize(
    ("place", "name", "warps", "registers"),
    [(0, "default", 4, None), (1, "partition0", 1, 24), (2, "partition1", 2, 24)],
)
def test_partitions_have_their_warps_and_operations(place: int, name: str, warps: int, registers: int | None) -> None:
    one = FOUND.partitions[place]
    assert (one.name, one.warps, one.registers) == (name, warps, registers)
    names = re.findall(r"(?:= |^ +)((?:ttn?g|tt)\.\w+)", code_of(name), re.MULTILINE)
    kept = [found for found in names if not found.startswith(("ttg.memdesc_", "ttg.warp_"))]
    assert dict(one.operations) == Counter(kept)


def test_barriers_have_all_their_waits() -> None:
    waits = Counter((use.partition, use.action) for ring in FOUND.barriers for use in ring.uses)
    for name in ("default", "partition0", "partition1"):
        code = code_of(name)
        assert waits[name, "waits"] == code.count("ttng.wait_barrier")
        assert waits[name, "expects"] == code.count("ttng.barrier_expect")
    arrivals = r"ttng\.(?:arrive_barrier|tc_gen5_commit|tc_gen5_mma|async_tma_copy_global_to_local) "
    assert sum(count for (_, action), count in waits.items() if action == "arrives") == len(re.findall(arrivals, TEXT))
    assert [ring.slots for ring in FOUND.barriers] == [2, 2, 3, 3]
    assert {ring.what for ring in FOUND.barriers} == {"1"}


def ring(value: str) -> WarpRing:
    return next(one for one in (*FOUND.barriers, *FOUND.buffers) if one.value == value)


def test_who_waits_for_whom() -> None:
    # The loads fill %acc_9 and %a, and complete a phase of %acc_14; the dots free them, at %acc_10.
    assert {(use.partition, use.phase) for use in ring("%acc_14").by("waits")} == {("partition0", "flips")}
    assert {use.partition for use in ring("%acc_14").by("arrives")} == {"partition1"}
    assert {use.operation for use in ring("%acc_10").by("arrives")} == {"ttng.tc_gen5_mma"}
    assert [(use.partition, use.phase) for use in ring("%acc").by("waits")] == [("", "1"), ("partition0", "flips")]
    for value in ("%acc_9", "%a"):
        one = ring(value)
        assert (one.slots, one.what) == (3, "128x64xf16")
        assert {use.partition for use in one.by("writes")} == {"partition1"}
        assert {use.partition for use in one.by("reads")} == {"partition0"}
    accumulator = ring("%acc_7")
    assert (accumulator.slots, accumulator.what) == (2, "128x128xf32")
    assert {use.partition for use in accumulator.by("writes")} == {"", "partition0"}
    assert {use.partition for use in accumulator.by("reads")} == {"default"}


def test_first_phases_slots_and_bytes() -> None:
    # Who fills waits for 1 at first, which a new barrier lets pass, and who reads for 0.
    first = {(ring.value, use.partition): use.first_phase for ring in FOUND.barriers for use in ring.by("waits")}
    assert first["%acc_10", "partition1"] == first["%acc", "partition0"] == 1
    assert first["%acc_14", "partition0"] == 0
    # %acc_24 = %acc_20 + 1, which is 2 of 2 slots at first: slot 0.
    assert [use.slot for use in ring("%acc_4").by("waits") if use.loops] == [0]
    (expected,) = ring("%acc_14").by("expects")
    # Two tiles of 128x64xf16.
    assert expected.bytes == 2 * 128 * 64 * 2
    lines = TEXT.splitlines()
    assert [lines[line - 1].split()[2] for line in expected.loops] == ["scf.for", "scf.for"]


def test_a_wait_that_nothing_arrives_at_is_said() -> None:
    assert waits_in_vain([FOUND]) == []
    without = re.sub(r"^ *ttng\.tc_gen5_commit.*\n", "", TEXT, flags=re.MULTILINE)
    (sentence,) = waits_in_vain(read_partitions(without))
    assert sentence == "%acc_4 (line 28) has a wait, but no operation of this text arrives at it."
    # What is called, or a value that cannot be followed, may arrive at it.
    memdesc = "!ttg.memdesc<1xi64, #shared, #smem, mutable>"
    for use in (f"tt.call @other(%acc_4) : ({memdesc}) -> ()", f"ttng.arrive_barrier %chosen, 1 : {memdesc}"):
        (found,) = read_partitions(
            re.sub(r"^( *ttng\.wait_barrier)", rf"      {use}\n\1", without, count=1, flags=re.MULTILINE)
        )
        assert not found.is_traced
        assert waits_in_vain([found]) == []


def test_rows_and_json() -> None:
    assert [row[:4] for row in partition_rows([FOUND])] == [
        ("default", "4 (0–3)", "–", 54),
        ("partition0", "1", 24, 89),
        ("partition1", "2", 24, 129),
    ]
    load, dot = "partition1: ttng.async_tma_copy_global_to_local (155)", "partition0: ttng.tc_gen5_mma (111)"
    assert ("%acc_9", 37, 3, "128x64xf16", load, dot) in [*buffer_rows([FOUND])]
    assert [row[-1] for row in barrier_rows([FOUND])] == ["1, flips", "flips", "flips", "flips"]
    (value,) = json.loads(json.dumps(partitions_json([FOUND])))
    assert value["barriers"] == json.loads(json.dumps([asdict(one) for one in FOUND.barriers]))
    assert value["partitions"][2]["operations"]["ttng.async_tma_copy_global_to_local"] == 2


def test_of_any_other_text_there_are_none() -> None:
    assert read_partitions("module {\n}\n") == ()
    # A text that ends anywhere is read as far as it goes.
    for end in range(0, len(TEXT), 997):
        read_partitions(TEXT[:end])

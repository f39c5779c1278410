"""Partitions followed side by side, against barriers that a test simulates and what any correct pipeline does."""

from __future__ import annotations

import re

import pytest

from irscope.analysis.flow.partitions import read_partitions
from irscope.analysis.in_flight.find import in_flight
from irscope.analysis.in_flight.model import BEFORE, ExecutedStep, InFlight
from tests.analysis.in_flight.partitioned import LAUNCHED, TURNS, partitioned, text_of


def followed(name: str, text: str = "", **numbers: int) -> InFlight:
    found = in_flight(partitioned(name, text, **numbers))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def flights() -> dict[str, InFlight]:
    return {name: followed(name) for name in LAUNCHED}


@pytest.mark.parametrize("name", LAUNCHED)
def test_no_tile_is_read_too_early_or_written_over(flights: dict[str, InFlight], name: str) -> None:
    found = flights[name]
    assert (found.iterations, found.note) == (TURNS[name], "")
    checked = 0
    for ring in found.rings:
        end = dict.fromkeys(range(ring.slots), -1)
        for stay in ring.stays:
            assert stay.written > end[stay.slot]
            assert not stay.read or stay.landed is None or stay.landed <= min(stay.read)
            # What is done in a loop is waited for: only what runs outside of them may not be.
            assert stay.landed is not None or not stay.read
            ends = [found.steps[one].until for one in stay.read]
            end[stay.slot] = max([stay.written, *(one for one in ends if one is not None)])
            checked += 1
    assert checked >= 2 * TURNS[name] or name == "gluon_add"


@pytest.mark.parametrize("name", LAUNCHED)
def test_its_first_steps_are_those_that_the_text_tells(flights: dict[str, InFlight], name: str) -> None:
    """Slots and phases read off the text by themselves, as `irscope graph --warps` shows them."""
    (known,) = read_partitions(text_of(name))
    first: dict[int, ExecutedStep] = {}
    for step in flights[name].steps:
        first.setdefault(step.line, step)
    rings = flights[name].rings
    told = 0
    for ring in known.buffers:
        for use in ring.uses:
            step = first[use.line]
            if step.buffer is None or rings[step.buffer].line != ring.line or use.slot is None:
                continue
            assert (step.slot, step.partition) == (use.slot, use.partition)
            assert rings[step.buffer].slots == ring.slots
            assert rings[step.buffer].type.replace("×", "x") == ring.what
            told += 1
    assert told >= {"ws_matmul": 4, "ws_attention": 8, "gluon_add": 2}[name]
    waits = [use for ring in known.barriers for use in ring.uses if use.action == "waits" and use.partition]
    passing = {use.line: use.first_phase == 1 for use in waits if use.first_phase is not None}
    assert len(passing) >= 2
    # A new barrier is in phase 0: a first wait for phase 1 passes, one for phase 0 stands behind a step.
    for line in passing.keys() & first.keys():
        assert (first[line].after is None) == passing[line] or first[line].is_off


def test_as_much_is_in_flight_as_there_are_slots(flights: dict[str, InFlight]) -> None:
    found = flights["ws_matmul"]
    dots = [step for step in found.steps if step.kind == "dot"]
    assert [(step.tile, step.iteration) for step in dots] == [(at, at) for at in range(16)]
    before = [step.tile for step in found.steps if step.kind == "copy" and step.iteration == BEFORE]
    assert before == [0, 0, 1, 1, 2, 2]
    # In each turn that copies, the tile three iterations ahead: there are three slots.
    for turn in range(13):
        assert {step.tile for step in found.steps if step.kind == "copy" and step.iteration == turn} == {turn + 3}
    last = {step.iteration: number for number, step in enumerate(found.steps)}
    assert [found.flying(last[turn], "copy") for turn in range(16)] == [6] * 13 + [4, 2, 0]
    # Each result is read once, in the other slot than the one before it.
    results = [step for step in found.steps if step.operation == "ttng.tmem_load"]
    assert [(step.tile, step.slot, step.iteration, step.partition) for step in results] == [
        (0, 0, 7, "default"),
        (1, 1, 15, "default"),
    ]


def test_of_an_attention_each_tile_goes_through_all_partitions(flights: dict[str, InFlight]) -> None:
    found = flights["ws_attention"]
    scores = [step for step in found.steps if step.operation == "ttng.tmem_load" and "score" in step.value]
    assert [step.tile for step in scores] == list(range(16))
    first, second = sorted({step.line for step in found.steps if step.kind == "dot" and step.iteration >= 0})
    for line, count in ((first, 16), (second, 14)):
        tiles = [step.tile for step in found.steps if step.line == line and not step.is_off]
        assert tiles == list(range(16 - count, 16))


@pytest.mark.parametrize(
    ("name", "pattern", "instead", "said"),
    [
        ("ws_matmul", r"^ *ttng\.tc_gen5_commit.*\n", "", r"nothing is known to arrive for the waits? in lines \d+"),
        ("ws_matmul", r"expect (%\w+), 32768", r"expect \1, 32770", "nothing is known to arrive"),
        ("gluon_add", r"init_barrier (%\w+), 1", r"init_barrier \1, 2", "nothing is known to arrive"),
    ],
)
def test_a_kernel_that_hangs_is_not_drawn(name: str, pattern: str, instead: str, said: str) -> None:
    text, count = re.subn(pattern, instead, text_of(name), flags=re.MULTILINE)
    assert count
    found = followed(name, text)
    assert (found.steps, found.rings) == ((), ())
    assert re.search(said, found.note)


def test_what_is_not_known_is_said() -> None:
    found = in_flight(partitioned("ws_attention", n=64))
    assert found is not None
    # In one turn its pipeline never fills; in any other launch a phase depends on the size.
    assert found.iterations == 1
    few = followed("ws_matmul", K=128, M=128, N=128)
    assert few.iterations is None
    assert few.launch_iterations == 2
    assert [step.tile for step in few.steps if step.kind == "dot"] == list(range(12))
    wait = "ttng.wait_barrier %acc_55, %acc_54"
    line = text_of("ws_matmul").partition(wait)[0].count("\n") + 1
    text = text_of("ws_matmul").replace(wait, "ttng.wait_barrier %acc_55, %unknown")
    assert followed("ws_matmul", text).note == f"the phase of the wait in line {line} of the TTGIR is not known"


def test_of_many_iterations_the_first_are_followed() -> None:
    found = followed("ws_matmul", K=64 * 1000)
    assert found.iterations is None
    dots = [step.tile for step in found.steps if step.kind == "dot"]
    assert dots == list(range(96))

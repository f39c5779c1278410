"""The life of a value: back to what made it, on to what removed it, and no further than is known."""

from __future__ import annotations

import pytest

from irscope.analysis.lives.identity import Origin, trail_of
from irscope.analysis.lives.operations import ValueEvent, value_lives
from irscope.errors import UsageError
from tests.analysis.trails import COPY, LOAD, module, sample, store, through


def told(events: list[ValueEvent]) -> list[tuple[int, str, str]]:
    return [(event.step, event.what, event.sighting.name) for event in events]


WIDER = LOAD.replace("sizePerThread = [2]", "sizePerThread = [4]")


def test_a_value_whose_operation_is_rewritten() -> None:
    trail = trail_of(through(LOAD, WIDER, COPY, module(store("%x"))))
    wanted = [
        (-1, "there", "tt.load"),
        (0, "changed", "tt.load"),
        (1, "rewritten", "ttg.local_load"),
        (2, "removed", "ttg.local_load"),
    ]
    for at, name in ((-1, "%1"), (0, "1"), (1, "%9"), (1, "%9#0")):
        (events,) = value_lives(trail, at, name)
        assert told(events) == wanted
        assert events[2].origin == Origin("replaces", ("tt.load",))


def test_a_value_that_a_pass_made() -> None:
    one = module("conv %1 x 7", store("%1"))
    (events,) = value_lives(trail_of(through(module(store("%x")), one)), 0, "%1")
    assert told(events) == [(0, "made", "ttg.convert_layout")]


def test_one_of_equal_ones_is_not_followed() -> None:
    two = module("conv %1 x 7", "conv %2 x 7", store("%1"), store("%2"))
    one = module("conv %1 x 7", store("%1"), store("%1"))
    (events,) = value_lives(trail_of(through(two, one)), 0, "%1")
    assert [(event.what, event.among) for event in events] == [("unclear", 2)]
    (events,) = value_lives(trail_of(through(two, one)), -1, "%2")
    assert [(event.what, event.among) for event in events] == [("there", 1), ("unclear", 2)]


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no value is named '%acc'"):
        value_lives(trail_of(through(LOAD, COPY)), 0, "%acc")


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.parametrize("target", ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.exhaustive)])
def test_every_value_is_found_again_from_the_other_end(target: str) -> None:
    """What a life says of its first text, the life from there says too."""
    trail = trail_of(sample(target))
    last = max(index for index, step in enumerate(trail.steps) if step.label.startswith("ttgir"))
    names = [
        name for name in ("%a", "%b", "%accumulator", "%rows", "%0", "%1") if f"{name} = " in trail.steps[last].right
    ]
    assert names
    for name in names:
        for events in value_lives(trail, last, name):
            first = events[0]
            again = value_lives(trail, first.step, first.value)
            assert any(told(events)[: len(one)] == told(one)[: len(events)] for one in again), (
                name,
                told(events),
                again,
            )

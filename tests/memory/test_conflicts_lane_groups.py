"""The lanes that are served together, against the tables of the sources."""

from __future__ import annotations

import pytest

from irscope.memory.conflicts import lane_groups
from irscope.target import KNOWN_TARGETS, Target

CK_READS = "0-3+20-23 4-7+16-19 8-11+28-31 12-15+24-27 32-35+52-55 36-39+48-51 40-43+60-63 44-47+56-59"
MEASURED_ON_GFX950 = "0-3+12-15+20-27 4-11+16-19+28-31 32-35+44-47+52-59 36-43+48-51+60-63"


def lanes_of(text: str) -> set[frozenset[int]]:
    def run(part: str) -> range:
        first, _, last = part.partition("-")
        return range(int(first), int(last) + 1)

    return {frozenset(lane for part in group.split("+") for lane in run(part)) for group in text.split()}


@pytest.mark.parametrize(
    ("target", "bits", "store", "banks", "groups"),
    [
        ("hip:gfx942", 128, False, 32, CK_READS),
        ("hip:gfx90a", 128, False, 32, CK_READS),
        ("hip:gfx942", 128, True, 32, "0-7 8-15 16-23 24-31 32-39 40-47 48-55 56-63"),
        ("hip:gfx942", 64, False, 32, "0-15 16-31 32-47 48-63"),
        ("hip:gfx950", 128, False, 64, MEASURED_ON_GFX950),
        ("hip:gfx950", 64, False, 64, "0-31 32-63"),
        ("hip:gfx950", 64, True, 32, "0-15 16-31 32-47 48-63"),
        ("cuda:90", 128, False, 32, "0-7 8-15 16-23 24-31"),
        ("cuda:90", 16, True, 32, "0-31"),
    ],
)
def test_groups(target: str, bits: int, store: bool, banks: int, groups: str) -> None:
    parsed = Target.parse(target)
    found = lane_groups(parsed, bits, parsed.warp_size, store=store)
    assert found[0] == banks
    assert {frozenset(group) for group in found[1]} == lanes_of(groups)


@pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)
@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128])
@pytest.mark.parametrize("store", [False, True])
def test_every_lane_is_in_one_group_that_fills_the_banks(target: Target, bits: int, store: bool) -> None:
    banks, groups = lane_groups(target, bits, target.warp_size, store=store)
    assert sorted(lane for group in groups for lane in group) == list(range(target.warp_size))
    assert all(len(group) * max(bits, 32) <= banks * 32 for group in groups)


@pytest.mark.parametrize(
    ("bits", "store", "groups"),
    [(32, False, "0-31"), (64, False, "0-31"), (128, False, "0-15 16-31"), (64, True, "0-15 16-31")],
)
def test_lanes_that_load_the_same_are_served_in_larger_groups(bits: int, store: bool, groups: str) -> None:
    found = lane_groups(Target.parse("cuda:90"), bits, 32, store=store, alike=True)
    assert {frozenset(group) for group in found[1]} == lanes_of(groups)

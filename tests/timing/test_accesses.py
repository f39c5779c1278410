"""What stores and loads cost beyond L1, against microbenchmarks on an H200."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from irscope.device.clocks import CLOCKS
from irscope.ir.asm.sass import parse_sass
from irscope.timing.accesses import KINDS, CtaWatch, _copy_wavefronts, _wavefronts, configured_shared
from irscope.timing.execution import _in_step
from irscope.timing.neighbours import TileWatch
from irscope.timing.program import Program
from irscope.timing.scalars import ARRAY_BITS, State
from irscope.timing.walk import Observed, walk

_HEAD = '\t.section\t.text.k,"ax",@progbits\n.text.k:\n'
_MEASURED = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "microbench" / "data" / "h200.json").read_text()
)["constants"]  # fmt: skip


def _passed(size: int, apart: int, times: int, between: int) -> float:
    """The part of the sectors that leave L1, of stores as `stores_again` of the microbenchmarks makes them."""
    width = {2: ".U16", 4: ""}[size]
    places = [size * number + other * 0x500000 for number in range(times) for other in range(between)]
    lines = [f"STG.E{width} desc[UR4][R2.64+{place:#x}], R8" for place in places]
    text = _HEAD + "".join(
        f"        /*{16 * number:04x}*/                   {line} ;\n" for number, line in enumerate([*lines, "EXIT"])
    )
    program = Program(parse_sass(text)[0], lambda item: item.opcode.partition(".")[0] in KINDS)
    low = (np.arange(32, dtype=np.int64) * apart)[None, :]
    high = np.full((1, 1), 1 << ARRAY_BITS - 32, np.int64)
    state = State(1, 32, {"R2": low, "R3": high, "R8": low}, {}, {})
    (walked,) = walk(program, state, CtaWatch(CLOCKS["h200"], 1, 0, 0, {}))
    accesses = [one.payload for one in walked.trace if isinstance(one, Observed)]
    assert len(accesses) == len(lines)
    assert {one.sectors for one in accesses} == {32 * apart / 32}
    return sum(one.missed for one in accesses) / len(accesses)


@pytest.mark.parametrize(
    ("size", "apart", "times", "between"),
    [(4, 16, 2, 1), (4, 16, 4, 1), (4, 16, 4, 2), (4, 16, 4, 8), (2, 16, 4, 1), (2, 16, 8, 1), (4, 32, 8, 1)],
)
def test_stores_of_words_to_the_same_sectors_are_merged_if_none_comes_between(
    size: int, apart: int, times: int, between: int
) -> None:
    alone = _MEASURED[f"l2_again_{size}B_{apart}apart_1times_1between"]["median"]
    together = _MEASURED[f"l2_again_{size}B_{apart}apart_{times}times_{between}between"]["median"]
    assert _passed(size, apart, times, between) == pytest.approx(together / alone, abs=0.16)


def _missed_again(kilobytes: int, sectors: int, stores: str) -> float:
    """The part of the second pass over some lines that L1 misses, as `reuse` of the microbenchmarks makes it."""
    text = "".join(
        f"        /*{16 * number:04x}*/                   {line} ;\n"
        for number, line in enumerate(("LDG.E R8, desc[UR4][R2.64]", "STG.E desc[UR4][R4.64], R8"))
    )
    load, store = parse_sass(_HEAD + text)[0].instructions
    watch = CtaWatch(CLOCKS["h200"], 1, 0, 0, {})
    lane = np.arange(32, dtype=np.int64)[None, :]
    first = lane // (8 * sectors) * 128 + lane % (8 * sectors) * 4
    high, other = (np.full((1, 1), number << ARRAY_BITS - 32, np.int64) for number in (1, 2))
    step = 4 // sectors * 128
    places = [first + step * turn for turn in range(kilobytes * 1024 // step)]

    def seen(number: int, place: np.ndarray) -> float:
        state = State(1, 32, {"R2": place, "R3": high, "R4": place, "R5": other, "R8": lane}, {}, {})
        access = watch(number, (load, store)[number], state, None, 0)
        assert access is not None
        return access.missed

    assert {seen(0, place) for place in places} == {1}
    if stores == "between":
        for place in places:
            seen(1, place)
    missed = 0.0
    for place in places:
        missed += seen(0, place)
        if stores == "beside":
            seen(1, place)
    return missed / len(places)


@pytest.mark.parametrize(
    ("sectors", "stores", "sizes"),
    [(1, "none", (192, 256)), (1, "between", (96, 128)), (1, "beside", (112, 160, 192, 256)), (4, "beside", (160,))],
)
def test_l1_has_whole_lines_and_those_that_are_stored_to(sectors: int, stores: str, sizes: tuple[int, ...]) -> None:
    times = {size: _MEASURED[f"reuse_{sectors}of4_{size}KiB_stores_{stores}"]["median"] for size in (*sizes, 96, 1024)}
    for size in sizes:
        measured = (times[size] - times[96]) / (times[1024] - times[96])
        assert _missed_again(size, sectors, stores) == pytest.approx(measured, abs=0.12)


def test_shared_memory_is_configured_as_the_driver_does() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "timing" / "data" / "h200-shared-memory.jsonl"
    launches = [json.loads(line) for line in path.read_text().splitlines()]
    agree = [configured_shared(one["ctas_per_sm"], one["shared_bytes"]) == one["configured_bytes"] for one in launches]
    assert len(launches) == 125
    assert sum(agree) >= 122


_COPIES = [name for name in _MEASURED if re.match(r"copy_\d+B_ca_.*_0again", name) and "132to" not in name]
"""Of lanes 132 bytes apart the lookups of 32 lines take longer."""


@pytest.mark.parametrize("name", _COPIES)
def test_copies_from_l1_take_their_conflicts_on_both_sides(name: str) -> None:
    numbers = re.findall(r"\d+", name)
    size, lanes, outside, inside, jump_outside, jump_inside = map(int, numbers[:6])
    lane, group = np.arange(32) % lanes, np.arange(32) // lanes
    source, target = lane * outside + group * jump_outside, lane * inside + group * jump_inside
    wavefronts = _copy_wavefronts(source[None, :], target[None, :], size, None)
    assert wavefronts <= _MEASURED[name]["median"] <= wavefronts + 1.3


@pytest.mark.parametrize("share", [1, 2, 4, 16])
def test_neighbouring_ctas_that_load_the_same_are_served_together(share: int) -> None:
    tiles = TileWatch()
    ctas = np.arange(264)
    tiles.places[1, False] = [(ctas, ctas // share + 1000 * visit) for visit in range(3)]
    served = _in_step(tiles, 264, 264)[1]
    rates = {number: _MEASURED[f"together_next_{number}of264_512x4"]["median"] for number in (1, share)}
    assert served == pytest.approx(rates[1] / rates[share], abs=0.16)
    tiles.places[1, False] = [(ctas, ctas % (264 // share)) for _ in range(3)]
    apart = _in_step(tiles, 264, 264)[1]
    if share <= 8:
        rates = {number: _MEASURED[f"together_apart_{number}of264_512x4"]["median"] for number in (1, share)}
        assert apart == pytest.approx(rates[1] / rates[share], abs=0.16)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_wavefronts_are_the_most_words_of_a_bank(width: int) -> None:
    """Counted word by word, for 32, 16 or 8 lanes together; random places, in which no two lanes share an address."""
    random = np.random.default_rng(width)
    for part in (0.1, 0.5, 1.0):
        addresses = np.stack([random.permutation(4096)[:32] * width for _ in range(3)])
        active = random.random((3, 32)) < part
        together, total = min(32, 128 // width), 0
        for row, on in zip(addresses.tolist(), active.tolist(), strict=True):
            for first in range(0, 32, together):
                words = {
                    (row[lane] + byte) // 4
                    for lane in range(first, first + together)
                    if on[lane]
                    for byte in range(0, width, 4)
                }
                total += max(Counter(word % 32 for word in words).values(), default=0)
        assert _wavefronts(addresses, width, active, 32)[0] == max(total / 3, 1.0)

"""What stores and loads cost beyond L1, against microbenchmarks on an H200."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from irscope.device.clocks import CLOCKS
from irscope.ir.asm.sass import parse_sass
from irscope.timing.accesses import KINDS, CtaWatch, TileWatch, _copy_wavefronts
from irscope.timing.execution import _in_step
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
    clock = CLOCKS["h200"]
    served = 1 - clock.l2_together * (1 - _in_step(tiles, 264, 264)[1])
    rates = {number: _MEASURED[f"together_next_{number}of264_512x4"]["median"] for number in (1, share)}
    assert served == pytest.approx(rates[1] / rates[share], abs=0.16)
    tiles.places[1, False] = [(ctas, ctas % (264 // share)) for _ in range(3)]
    apart = 1 - clock.l2_together * (1 - _in_step(tiles, 264, 264)[1])
    if share <= 8:
        rates = {number: _MEASURED[f"together_apart_{number}of264_512x4"]["median"] for number in (1, share)}
        assert apart == pytest.approx(rates[1] / rates[share], abs=0.16)

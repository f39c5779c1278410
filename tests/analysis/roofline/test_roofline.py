"""The roofline of launches, against NumPy, and what it says of peaks."""

from __future__ import annotations

import importlib
import random
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.roofline.roofline import Roofline, roofline_of
from irscope.device.parts import PEAKS, peaks_of_target
from irscope.errors import IrscopeError, UsageError
from irscope.memory.access import MOST
from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.roofline import roofline_json, roofline_svg, roofline_text
from tests.analysis.roofline.launched import attention

pytestmark = [pytest.mark.triton, pytest.mark.newest, pytest.mark.slow]
pytest.importorskip("triton", reason="the kernels are compiled, and Triton is not installed")
pytest.importorskip("torch", reason="the launches are made with torch")
computing = importlib.import_module("tests.analysis.roofline.computing")


OTHERWISE = {
    # The operands are widened: MI300's matrix cores have another float8.
    ("hip:gfx942", "matmul_f8"): {"matrix f8": "matrix f16"},
    # They have float32, which NVIDIA's have not.
    ("hip:gfx942", "matmul_ieee"): {"vector f32": "matrix f32"},
}
"""(target, kernel) → the unit that does what another one does elsewhere."""


@pytest.fixture(
    scope="module",
    params=["cuda:90", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("cuda:100", "hip:gfx942"))],
)
def every_capture(request: pytest.FixtureRequest) -> dict[str, Capture]:
    asked = request_for(
        Path(str(computing.__file__)), targets=request.param, snapshots="none", disassemble=False, jobs=1
    )
    return {one.name: one for one in record_request(asked).captures}


@pytest.fixture
def captures(every_capture: dict[str, Capture]) -> dict[str, Capture]:
    if str(every_capture["add"].target) != "cuda:90":
        pytest.skip("one target is enough: what it tests does not differ between them")
    return every_capture


def counted(capture: Capture) -> Roofline:
    return roofline_of(capture, peaks_of_target(capture.target)[0])


def test_every_operation_by_hand(every_capture: dict[str, Capture]) -> None:
    """All kernels in one test: they are recorded at once."""
    wrong: list[str] = []
    for name, case in computing.CASES.items():
        capture = every_capture[name]
        found = {str(one.unit): one.flops for one in counted(capture).units}
        units = OTHERWISE.get((str(capture.target), name), {})
        hand = {units.get(unit, unit): (flops, flops) for unit, flops in computing.launch_totals(case).items()}
        if found != hand:
            wrong.append(f"{name}: {found} instead of {hand}")
    assert not wrong, "\n".join(wrong)


def test_what_data_decides_is_a_range(captures: dict[str, Capture]) -> None:
    found = counted(captures["of_data"])
    (unit,) = found.units
    assert unit.flops == (4 * 128, MOST)
    assert found.floor_s is not None
    assert found.floor_s[0] > 0
    assert any("data of tt.load" in note for note in found.notes)


def test_a_dot_counts_as_the_published_formula(captures: dict[str, Capture]) -> None:
    """2·M·N·K of the padded sizes: 150 × 100 × 200 in tiles of 64 × 64 × 32."""
    (unit,) = counted(captures["matmul"]).units
    assert unit.flops[0] == 2 * 192 * 128 * 224


@pytest.mark.parametrize("name", ["matmul", "causal"])
def test_another_step_makes_other_counts(captures: dict[str, Capture], name: str) -> None:
    capture = captures[name]
    text = capture.text("ttgir")
    changed = text.replace("step %c32_i32", "step %c64_i32").replace(
        "%c0_i32 = arith.constant 0 : i32", "%c0_i32 = arith.constant 0 : i32\n    %c64_i32 = arith.constant 64 : i32"
    )
    other = capture.with_(
        artifacts=tuple(replace(one, data=changed) if one.stage == "ttgir" else one for one in capture.artifacts)
    )
    assert changed != text
    first, second = (Counter({str(u.unit): u.flops[0] for u in counted(one).units}) for one in (capture, other))
    assert second["matrix f16"] < first["matrix f16"]


def test_without_a_launch_it_is_refused(captures: dict[str, Capture]) -> None:
    capture = captures["add"]
    with pytest.raises(UsageError, match="holds no launch"):
        counted(capture.with_(launch=replace(capture.launch, record=None)))
    with pytest.raises(UsageError, match="at most"):
        counted(capture.with_(launch=replace(capture.launch, grid=(1 << 23, 1, 1))))


def test_the_least_time_is_the_longest(captures: dict[str, Capture]) -> None:
    found = roofline_of(captures["add"], PEAKS["h100"])
    # Two vectors read and one written: 4500 elements of 4 bytes, in whole sectors.
    assert found.dram_bytes == (3 * 18016, 3 * 18016)
    assert found.floor_s == (3 * 18016 / 3.35e12, 3 * 18016 / 3.35e12)
    assert found.bound_by == ("memory",)
    slower = roofline_of(captures["add"], PEAKS["h100-pcie"])
    assert slower.floor_s is not None
    assert slower.floor_s > (found.floor_s or (0.0, 0.0))
    unknown = roofline_of(captures["add"], None)
    assert unknown.floor_s is None
    assert unknown.dram_bytes == found.dram_bytes


@pytest.fixture(scope="module")
def whole() -> Capture:
    return attention()


def damaged(capture: Capture, seed: int) -> Capture:
    draw = random.Random(seed)
    lines = capture.text("ttgir").split("\n")
    known = list(lines)
    for _ in range(draw.choice((1, 2, 5, 20))):
        at = draw.randrange(len(lines))
        change = draw.randrange(6)
        if change == 0:
            del lines[at]
        elif change == 1:
            lines.insert(at, draw.choice(known))
        elif change == 2:
            lines[at] = re.sub(r"\d+", lambda match: draw.choice((match[0], "0", "-1", "99999999", "3")), lines[at])
        elif change == 3:
            lines[at] = lines[at].replace("i32", draw.choice(("f32", "i1", "i64", "!tt.ptr<f16>")))
        elif change == 4:
            lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
        else:
            other = draw.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    text = "\n".join(lines)
    return capture.with_(
        artifacts=tuple(replace(one, data=text) if one.stage == "ttgir" else one for one in capture.artifacts)
    )


@pytest.mark.parametrize("seed", [13, 145, 148, *range(5)])
def test_damaged_ir_is_counted_or_refused(whole: Capture, seed: int) -> None:
    with suppress(IrscopeError):
        found = roofline_of(damaged(whole, seed), PEAKS["h100"])
        roofline_text(found)
        roofline_json(found)
        spans = [found.dram_bytes, found.distinct_bytes, *(one.flops for one in found.units)]
        assert all(0 <= low <= high for low, high in spans)
        roofline_svg(found)

"""The roofline of launches, against NumPy, what it states of peaks, and the operations of dots alone."""

from __future__ import annotations

import importlib
import random
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.roofline import Roofline, count_dot_flops, roofline_of
from irscope.device.parts import PEAKS, peaks_of_target
from irscope.errors import IrscopeError, UsageError
from irscope.memory.access import MOST
from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.roofline import roofline_json, roofline_svg, roofline_text
from tests.analysis.roofline.launched import attention
from tests.marks import sampled

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


@pytest.mark.parametrize("seed", sampled([13, 145, 148, *range(5)], 3))
def test_damaged_ir_is_counted_or_refused(whole: Capture, seed: int) -> None:
    with suppress(IrscopeError):
        found = roofline_of(damaged(whole, seed), PEAKS["h100"])
        roofline_text(found)
        roofline_json(found)
        spans = [found.dram_bytes, found.distinct_bytes, *(one.flops for one in found.units)]
        assert all(0 <= low <= high for low, high in spans)
        roofline_svg(found)


DOT = "%d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32>"
OPERANDS = "".join(
    f"%{name} = arith.constant dense<0.0> : tensor<{kind}>\n"
    for name, kind in (("a", "64x32xf16"), ("b", "32x16xf16"), ("c", "64x16xf32"), ("z", "64x16xf32"))
)
ONE = 2 * 64 * 32 * 16


def kernel(body: str) -> str:
    body = OPERANDS + body
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return (
        "module {\n  tt.func public @kernel(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %m: i32) {\n"
        f"{lines}\n    tt.return\n  }}\n}}\n"
    )


def loop(bounds: str, inner: str = DOT) -> str:
    return (
        f"%r = scf.for %i = {bounds} iter_args(%c = %z) -> (tensor<64x16xf32>)  : i32 {{\n  {inner}\n  scf.yield %d\n}}"
    )


CONSTANTS = "".join(f"%c{value} = arith.constant {value} : i32\n" for value in (0, 1, 31, 32))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (DOT, ONE),
        (CONSTANTS + loop("%c0 to %n step %c32"), 4 * ONE),
        (
            CONSTANTS
            + "%s = arith.addi %n, %c31 : i32\n%t = arith.divsi %s, %c32 : i32\n"
            + loop("%c0 to %t step %c1"),
            4 * ONE,
        ),
        (CONSTANTS + loop("%c0 to %c0 step %c1"), 0),
        (CONSTANTS + "%g = tt.get_num_programs y : i32\n" + loop("%c0 to %g step %c1"), 3 * ONE),
        # The programs along x begin at 0 to 4.
        (CONSTANTS + "%g = tt.get_program_id x : i32\n" + loop("%g to %n step %c1"), 126 * ONE),
    ],
)
def test_counts(body: str, expected: int) -> None:
    found = count_dot_flops(kernel(body), {"n": 128, "m": 7}, (5, 3, 1))
    assert (found.flops, found.why_not, found.dtype) == (15 * expected, "", "float16")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("%0 = arith.constant 0 : i32", "no dot"),
        (CONSTANTS + "%g = tt.load %p : !tt.ptr<i32>\n" + loop("%c0 to %g step %c1"), "data of tt.load"),
        (CONSTANTS + loop("%c0 to %n step %c0"), ""),
    ],
)
def test_what_cannot_be_counted_is_not_guessed(body: str, why: str) -> None:
    found = count_dot_flops(kernel(body), {"n": 128, "m": 7}, (5, 3, 1))
    assert found.flops is None
    assert why in found.why_not


def test_batches_and_other_types() -> None:
    dot = (
        DOT.replace("64x32xf16", "4x64x32xbf16")
        .replace("32x16xf16", "4x32x16xbf16")
        .replace("64x16xf32", "4x64x16xf32")
    )
    text = kernel(dot)
    for one in ("64x32xf16", "32x16xf16"):
        text = text.replace(f"<{one}>", f"<4x{one.replace('f16', 'bf16')}>")
    found = count_dot_flops(text.replace("<64x16xf32>", "<4x64x16xf32>"), {}, (1, 1, 1))
    assert (found.flops, found.dtype) == (4 * ONE, "bfloat16")


@pytest.mark.parametrize("text", ["", "module {", "tt.func @f() {\n tt.dot", "\x00"])
def test_never_raises(text: str) -> None:
    assert count_dot_flops(text, {}, (1, 1, 1)).flops is None

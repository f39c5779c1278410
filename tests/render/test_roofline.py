"""A roofline as text: of a launch that is known exactly, and of one that is not."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from irscope.analysis.roofline import Roofline, roofline_of
from irscope.device.parts import PEAKS
from irscope.errors import UsageError
from irscope.model.evidence import Ceilings
from irscope.render.roofline import bytes_text, duration_text, roofline_json, roofline_svg, roofline_text
from tests.analysis.roofline.launched import BATCH, HEADS, LENGTH, TENSOR_BYTES, WIDTH, attention

# Of 2 blocks of queries the first meets one block of keys, the second two.
PAIRS = BATCH * HEADS * 3
DOTS = PAIRS * 2 * 2 * 128 * 128 * WIDTH


@pytest.fixture(scope="module")
def exact() -> Roofline:
    return roofline_of(attention(), PEAKS["h100"])


def test_attention_by_hand(exact: Roofline) -> None:
    flops = {str(one.unit): one.flops for one in exact.units}
    assert flops["matrix f16"] == (DOTS, DOTS)
    # Two exponentials of each score's block, and of its rows.
    assert flops["special f32"] == (PAIRS * (128 * 128 + 128),) * 2
    assert exact.dram_bytes == (4 * TENSOR_BYTES, 4 * TENSOR_BYTES)
    assert LENGTH == 128 * 2


def test_the_text_says_what_is_exact_and_why(exact: Roofline) -> None:
    text = roofline_text(exact)
    assert "peaks of NVIDIA H100 SXM5; --part h100-pcie or h200 for another" in text
    assert "between bounds" not in text
    assert "Not known" not in text
    for title in exact.peaks.source.split("; ") if exact.peaks is not None else ["?"]:
        assert title in text
    time = 4 * TENSOR_BYTES / 3.35e12
    assert f"Minimum time: {duration_text(time)}, bound by memory." in text


def test_bounds_and_their_reason_stand_in_the_text() -> None:
    text = roofline_text(roofline_of(attention(without="nk"), PEAKS["h100"]))
    assert "between bounds" in text
    assert "Not known: how often lines" in text
    assert "executed (nk has no value)" in text
    assert "inf" not in text


def test_no_peak_is_said() -> None:
    found = roofline_of(attention(), None)
    text = roofline_text(found)
    assert "no known peak" in text
    assert "The minimum time is unknown" in text
    assert roofline_json(found)["part"] is None


def test_measured_rates_stand_beside_the_vendors() -> None:
    ceilings = Ceilings("NVIDIA H100 80GB HBM3", "cuda:90", 2e12, (("float16", 5e14),), "2026-01-01")
    found = roofline_of(attention(), PEAKS["h100"], ceilings)
    text = roofline_text(found)
    assert "500 TFLOP/s" in text
    assert "2 TB/s" in text
    assert f"At the rates measured on NVIDIA H100 80GB HBM3: {duration_text(4 * TENSOR_BYTES / 2e12)}." in text
    assert found.floor_s == roofline_of(attention(), PEAKS["h100"]).floor_s


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 ns"), (1.5e-10, "0.15 ns"), (4.5e-7, "450 ns"), (2e-3, "2 ms"), (3.0, "3 s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5 GiB")])
def test_sizes(value: int, text: str) -> None:
    assert bytes_text(value) == text


SVG = "{http://www.w3.org/2000/svg}"
SCALE = {"G": 1e9, "T": 1e12, "P": 1e15, "M": 1e6, "k": 1e3, "": 1.0}


def axes(root: ElementTree.Element) -> tuple[dict[float, float], dict[float, float]]:
    """Pixel → value of the labelled lines of both axes."""
    across: dict[float, float] = {}
    up: dict[float, float] = {}
    for text in root.iter(f"{SVG}text"):
        words = (text.text or "").split()
        if text.get("text-anchor") == "middle" and len(words) == 1:
            across[float(text.get("x", ""))] = float(words[0])
        elif text.get("text-anchor") == "end" and len(words) == 2 and words[1] in SCALE:
            up[float(text.get("y", "")) - 4] = float(words[0]) * SCALE[words[1]]
    return across, up


def read(pixel: float, labels: dict[float, float]) -> float:
    """The value at a pixel of a logarithmic axis."""
    (first, low), *_, (last, high) = sorted(labels.items())
    return low * (high / low) ** ((pixel - first) / (last - first))


def test_points_stand_where_the_figures_say() -> None:
    found = roofline_of(attention(), PEAKS["h100"])
    root = ElementTree.fromstring(roofline_svg(found))
    across, up = axes(root)
    points = {(one.findtext(f"{SVG}title") or "").partition(":")[0]: one for one in root.iter(f"{SVG}path")}
    del points[""]
    assert found.floor_s is not None
    assert points.keys() == {str(one.unit) for one in found.units}
    for one in found.units:
        # M699.8 192a5.5 5.5 0 1 0 11 0: a disc, from its left edge
        disc = re.match(r"M([\d.]+) ([\d.]+)a5\.5", points[str(one.unit)].get("d", ""))
        assert disc is not None
        assert read(float(disc[1]) + 5.5, across) == pytest.approx(found.intensity(one)[0], rel=0.01)
        assert read(float(disc[2]), up) == pytest.approx(one.flops[0] / found.floor_s[0], rel=0.01)


def test_roofs_begin_at_their_ridges() -> None:
    found = roofline_of(attention(), PEAKS["h100"])
    root = ElementTree.fromstring(roofline_svg(found))
    across, up = axes(root)
    # M705.3 192L976 192
    roofs = [
        match
        for path in root.iter(f"{SVG}path")
        if "grid" not in path.get("class", "")
        if (match := re.fullmatch(r"M([\d.]+) ([\d.]+)L976 \2", path.get("d", "")))
    ]
    seen = sorted((read(float(one[1]), across), read(float(one[2]), up)) for one in roofs)
    for (ridge, rate), unit in zip(seen, sorted(found.units, key=lambda one: one.rate or 0), strict=True):
        assert ridge == pytest.approx(found.ridge(unit), rel=0.01)
        assert rate == pytest.approx(unit.rate, rel=0.01)


def test_measured_roofs_are_dashed() -> None:
    ceilings = Ceilings("NVIDIA H100 80GB HBM3", "cuda:90", 2e12, (("float16", 5e14),))
    svg = roofline_svg(roofline_of(attention(), PEAKS["h100"], ceilings))
    assert svg.count('measured"') == 2


def test_without_a_peak_there_is_no_picture() -> None:
    with pytest.raises(UsageError, match="no roof to draw"):
        roofline_svg(roofline_of(attention(), None))

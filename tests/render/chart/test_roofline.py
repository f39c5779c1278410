"""The chart of a roofline: its points and roofs, read back from the picture."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from irscope.analysis.roofline.roofline import roofline_of
from irscope.device.parts import PEAKS
from irscope.errors import UsageError
from irscope.model.evidence import Ceilings
from irscope.render.chart.roofline import roofline_svg
from tests.analysis.roofline.launched import attention

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
        if "roof-g" not in path.get("class", "")
        if (match := re.fullmatch(r"M([\d.]+) ([\d.]+)L976 \2", path.get("d", "")))
    ]
    seen = sorted((read(float(one[1]), across), read(float(one[2]), up)) for one in roofs)
    for (ridge, rate), unit in zip(seen, sorted(found.units, key=lambda one: one.rate or 0), strict=True):
        assert ridge == pytest.approx(found.ridge(unit), rel=0.01)
        assert rate == pytest.approx(unit.rate, rel=0.01)


def test_measured_roofs_are_dashed() -> None:
    ceilings = Ceilings("NVIDIA H100 80GB HBM3", "cuda:90", 2e12, (("float16", 5e14),))
    svg = roofline_svg(roofline_of(attention(), PEAKS["h100"], ceilings))
    assert svg.count('roof-measured"') == 2


def test_without_a_peak_there_is_no_picture() -> None:
    with pytest.raises(UsageError, match="no roof to draw"):
        roofline_svg(roofline_of(attention(), None))

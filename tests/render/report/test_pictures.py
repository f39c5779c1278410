"""The poster in a report: that of the command, with every look of it in the page's style."""

from __future__ import annotations

import re

import pytest

from irscope.analysis.findings.quick import quick_findings
from irscope.errors import DAMAGE
from irscope.render.canvas import THEMES, theme_named
from irscope.render.poster.poster import poster_svg
from irscope.render.report.pictures import packed_poster, poster_style
from tests.analysis.in_flight.launched import matmul
from tests.render.poster.texts import texts_of

LAUNCHED = matmul("matmul-cuda-80", 1024)


@pytest.fixture(scope="module")
def packed() -> str:
    return packed_poster(LAUNCHED, (), quick_findings(LAUNCHED), None)


def test_it_is_the_poster_without_a_style(packed: str) -> None:
    drawn = poster_svg(LAUNCHED, costs=(), findings=quick_findings(LAUNCHED))
    assert [one.text for one in texts_of(packed)] == [one.text for one in texts_of(drawn)]
    assert len(texts_of(packed)) > 40
    assert "<style>" not in packed
    assert len(packed.splitlines()) > 100


def test_each_look_has_a_rule_in_every_theme(packed: str) -> None:
    looks = {name for found in re.findall(r'class="([^"]*)"', packed) for name in found.split()}
    assert "p-panel" in looks
    light, _, rest = poster_style().partition("@media screen")
    dark, _, paper = rest.partition("@media print")
    for name, style in zip(("light", "dark", "print"), (light, dark, paper), strict=True):
        assert name in THEMES
        assert looks <= set(re.findall(r"\.drawn \.([\w-]+)\{", style)), name
        assert f".drawn .p-page{{fill:{theme_named(name).page}}}" in style


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_has_none(damage: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise damage("planted")

    monkeypatch.setattr("irscope.render.poster.poster.poster_svg", fail)
    assert packed_poster(LAUNCHED, (), (), None) == ""

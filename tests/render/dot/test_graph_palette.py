"""The themes of graphs: each colour that is drawn has one in the dark, and every text can be read."""

from __future__ import annotations

import re

import pytest

from irscope.render.canvas import THEMES, fills, hexadecimal, luminance, mix, shade_of
from irscope.render.dot import graph as palette
from irscope.render.dot.flows import passes_graph, stage_graph
from irscope.render.dot.graph import has_dot, in_theme, render_bytes
from tests.report_browser.captures import softmax

# What is drawn on which ground.
_GROUNDS = ("PAPER", "PLAIN", "FRAME", "LOOP", "INNER_LOOP", "BRANCH", "CHANGED", "IDLE", "UNSURE", "FAILED")


def in_(theme: str, color: str) -> str:
    return in_theme(f'color="{color}"', theme).removeprefix('color="').removesuffix('"')


def contrast(one: str, other: str) -> float:
    bright, dim = sorted(
        (luminance(tuple(int(color[at : at + 2], 16) for at in (1, 3, 5))) for color in (one, other)),  # pyright: ignore[reportArgumentType]
        reverse=True,
    )
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ground", _GROUNDS)
def test_text_can_be_read(theme: str, ground: str) -> None:
    fill = in_(theme, getattr(palette, ground))
    assert contrast(in_(theme, palette.INK), fill) >= 7
    if ground in ("PAPER", "FRAME", "IDLE"):
        assert contrast(in_(theme, palette.SOFT), fill) >= 4.5


def test_each_color_is_of_the_palette_or_of_a_layout() -> None:
    graphs = [stage_graph(softmax(), of) for of in ("ttgir", "sass")]
    sources = [one.drawing.source for one in graphs if one is not None]
    sources += [one.source for one in (passes_graph(softmax()),) if one is not None]
    assert len(sources) >= 3
    layouts = {each for fill in fills(16) for each in (fill, mix(fill, (255, 255, 255), 0.45))}
    kept = {hexadecimal(fill) for fill in layouts} | {shade_of(fill).text for fill in layouts}
    kept |= set(palette.PART_COLORS.values())
    for source in sources:
        dark = in_theme(source, "dark")
        left = set(re.findall(r'="(#[0-9a-f]{6})"', dark)) & set(re.findall(r'="(#[0-9a-f]{6})"', source))
        assert left <= kept
        assert in_theme(source, None) == source


def test_what_a_label_says_stays() -> None:
    label = r'x [label="a \"#16181d\" <#ffffff>" fillcolor="#ffffff"] y [label=<&quot;#16181d&quot;>]'
    assert in_theme(label, "dark") == label.replace('fillcolor="#ffffff"', 'fillcolor="#101216"')


@pytest.mark.skipif(not has_dot(), reason="needs Graphviz")
def test_without_a_theme_a_picture_has_the_dark_colors_too() -> None:
    graph = stage_graph(softmax(), "ttgir")
    assert graph is not None
    light, dark = (render_bytes(graph.drawing, "svg", theme=name).decode() for name in (None, "dark"))
    _, _, rules = light.partition("@media(prefers-color-scheme:dark){")
    swaps = dict(re.findall(r'\[(fill="#\w{6}|stroke="#\w{6})"\]\{\w+:(#\w{6})\}', rules.partition("</style>")[0]))

    def themed(found: re.Match[str]) -> str:
        return f'{found[1]}="{swaps.get(found[0][:-1], found[2])}"'

    body = rules.partition("</style>")[2]
    # What the rules make of the light picture is the dark one.
    assert re.sub(r'(fill|stroke)="(#\w{6})"', themed, body) == dark[dark.index("<g ") :]

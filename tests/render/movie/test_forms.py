"""An animated movie: its numbers are the analysis's, its tiles the maps', no texts meet, nothing is hidden."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.movie.make import movie_of
from irscope.analysis.movie.model import COUNTERS, Movie, Tile
from irscope.errors import UsageError
from irscope.layout.computed import computed_map
from irscope.layout.maps import MemoryMap, ThreadMap
from irscope.layout.typed import parse_typed
from irscope.model.capture import Capture, Target
from irscope.model.layout import LayoutRefusal
from irscope.render.canvas import LEAST, THEMES
from irscope.render.movie.forms import frame_svg, movie_svg
from irscope.render.movie.tiles import COLORS, Answers, draw_tile
from irscope.store.file import load
from tests.analysis.movie.staged import staged
from tests.render.poster.texts import texts_of, wrong_boxes

SVG = "{http://www.w3.org/2000/svg}"
LAYOUTS = Path(__file__).parents[2] / "data" / "layouts"
MATMUL, SOFTMAX = "matmul.cuda90", "softmax.cuda90"


@pytest.fixture(scope="module", params=[MATMUL, SOFTMAX])
def made(request: pytest.FixtureRequest) -> tuple[Capture, Movie, str]:
    capture = staged(request.param)
    movie = movie_of(capture)
    return capture, movie, movie_svg(capture, movie, seconds=0.5)


def groups(svg: str) -> list[ElementTree.Element]:
    return [one for one in ElementTree.fromstring(svg).iter(f"{SVG}g") if "shot" in one.get("class", "").split()]


def lines(element: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in element.iter(f"{SVG}text")]


def test_its_numbers_are_those_of_the_analysis(made: tuple[Capture, Movie, str]) -> None:
    _, movie, svg = made
    drawn = groups(svg)
    assert len(drawn) == len(movie.frames)
    for at, (group, frame) in enumerate(zip(drawn, movie.frames, strict=True)):
        texts = lines(group)
        assert texts[0] == f"{at}/{len(movie.frames) - 1}"
        assert (frame.name in texts[2]) if at else ("before the first pass" in texts)
        big = [
            int(one.text or "")
            for one in group.iter(f"{SVG}text")
            if (one.get("x"), one.get("font-size")) == ("950", "16")
        ]
        assert big == [getattr(frame.counts, field) for field, _ in COUNTERS]
        if at == 0:
            continue
        rows = [(one.made, one.removed) for one in frame.changes]
        told = [text for text in texts if re.fullmatch(r"~?[+−]\d+", text)]
        for made_, removed in rows[:4] if not frame.net else []:
            assert not made_ or f"+{made_}" in {text.lstrip("~") for text in told}
            assert not removed or f"−{removed}" in {text.lstrip("~") for text in told}


def test_every_frame_has_its_time_and_the_first_is_seen_without(made: tuple[Capture, Movie, str]) -> None:
    _, movie, svg = made
    assert "<script" not in svg
    assert re.findall(r'(?:href|src)="(?!#)', svg) == []
    delays = [float(one[1]) for one in re.finditer(r"animation-delay:([\d.]+)s", svg)]
    assert delays == [0, *(1.0 + 0.5 * at for at in range(len(movie.frames) - 1))]
    (total,) = re.findall(r"animation-duration:([\d.]+)s", svg)
    assert float(total) == delays[-1] + 1.5
    assert "prefers-reduced-motion:reduce" in svg
    assert [("first" in one.get("class", "")) for one in groups(svg)] == [True] + [False] * (len(delays) - 1)
    # No rule of the drawing's own is about a frame: it would outline the letters in it.
    assert re.findall(r"\.shot\{(\w+)", svg) == ["visibility", "animation"]
    assert ".first{visibility:visible}" in svg
    assert len(svg) < 1_000_000


@pytest.mark.parametrize("theme", THEMES)
def test_no_two_texts_of_a_frame_meet(made: tuple[Capture, Movie, str], theme: str) -> None:
    capture, movie, _ = made
    for at in range(0, len(movie.frames), 1 if theme == "light" else 9):
        texts = texts_of(frame_svg(capture, movie, at, theme))
        assert wrong_boxes(texts) == [], at
        assert min(one.size for one in texts) >= LEAST


def test_a_tile_is_used_where_it_is_drawn(made: tuple[Capture, Movie, str]) -> None:
    _, movie, svg = made
    root = ElementTree.fromstring(svg)
    ids = {one.get("id") for one in root.iter(f"{SVG}g") if (one.get("id") or "").startswith("tile")}
    used = {(one.get("href") or "").removeprefix("#") for one in root.iter(f"{SVG}use")} - {"cards"}
    assert ids == used
    assert len(ids) > 2
    assert movie.values


def test_where_no_tile_is_left_instructions_are_shown(made: tuple[Capture, Movie, str]) -> None:
    capture, movie, svg = made
    lowered = [at for at, frame in enumerate(movie.frames) if frame.families]
    assert bool(lowered) == (capture.snapshots == staged(SOFTMAX).snapshots)
    drawn = groups(svg)
    for at in lowered:
        texts = lines(drawn[at])
        start = texts.index("Instructions in the code of one thread")
        told = dict(movie.frames[at].families)
        for name, count in told.items():
            assert texts[texts.index(name, start) + 1] == str(count)
        assert not list(drawn[at].iter(f"{SVG}use"))
    for at in range(lowered[0] if lowered else 3):
        assert next(drawn[at].iter(f"{SVG}use")).get("href") == "#cards"


def test_bad_numbers_are_refused(made: tuple[Capture, Movie, str]) -> None:
    capture, movie, _ = made
    with pytest.raises(UsageError, match="seconds a pass"):
        movie_svg(capture, movie, seconds=0)
    with pytest.raises(UsageError, match="there is no frame 999"):
        frame_svg(capture, movie, 999)
    with pytest.raises(UsageError, match="no IR of a pass"):
        movie_svg(capture, replace(movie, frames=()))


ENCODINGS = (
    "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>",
    "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], order = [0, 1]}>",
    "#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>",
    "#ttg.padded_shared<[128:+8] {order = [1, 0], shape = [64, 32]}>",
)


def cells(tile: Tile, target: Target, answers: Answers | None = None) -> dict[tuple[int, int], int]:
    """(row, column) -> the colour, of each element that is shown."""
    drawn = draw_tile(tile, answers or {}, target)
    high, wide = drawn.rows // len(drawn.colors), drawn.columns // len(drawn.colors[0])
    return {
        (row, column): int(drawn.colors[row // high][column // wide])
        for row in range(drawn.rows)
        for column in range(drawn.columns)
    }


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("shape", [(64, 32), (16, 64)])
def test_a_tile_has_the_colours_of_each_element(encoding: str, shape: tuple[int, int]) -> None:
    """Against the map, element by element."""
    encoding = encoding.replace("[64, 32]", str(list(shape)))
    tile = Tile(shape, "f16", encoding, "#x", shape)
    found = computed_map(parse_typed(encoding, shape), shape)
    assert found is not None
    colors = cells(tile, Target.parse("cuda:90"))
    assert len(colors) >= 256
    if "shared" in encoding:
        memory = MemoryMap.of(found.layout, 16, found.padding)
        wanted = {at: memory.place(at[0] * shape[1] + at[1])[1] // 16 % COLORS for at in colors}
    else:
        threads = ThreadMap.of(found.layout)
        wanted = {at: threads.owners_at(at[0] * shape[1] + at[1])[0].warp % COLORS for at in colors}
        drawn = draw_tile(tile, {}, Target.parse("cuda:90"))
        held = {(row, column + more) for row, column, count in drawn.held for more in range(count)}
        own = {at for at in colors if any(o[:3] == (0, 0, 0) for o in threads.owners_at(at[0] * shape[1] + at[1]))}
        assert held == own
    assert colors == wanted


@pytest.mark.parametrize("name", ["flash_attention-cuda-90", "matmul-hip-gfx942", "matmul-cuda-80"])
def test_the_compilers_maps_are_drawn(name: str) -> None:
    """Those of stored captures: mma, wgmma, mfma and their operands."""
    capture = load(LAYOUTS / f"{name}.irscope")
    answers: Answers = {(row.encoding, row.shape): row.answer for row in capture.layouts}
    seen: set[str] = set()
    for row in capture.layouts:
        if row.map is None or len(row.shape) != 2:
            continue
        tile = Tile(row.shape, row.elements[0], row.encoding, row.alias, row.shape)
        colors = cells(tile, capture.target, answers)
        if "register" not in row.map.layout.in_dims:
            seen.add(row.map.layout.in_dims[0])
            continue
        seen.add("register")
        threads = ThreadMap.of(row.map.layout)
        step = max(len(colors) // 500, 1)
        for at in list(colors)[::step]:
            assert colors[at] == threads.owners_at(at[0] * row.shape[1] + at[1])[0].warp % COLORS
    assert "register" in seen


def test_a_layout_without_a_map_says_so() -> None:
    tile = Tile((8, 8), "f16", "#ttg.odd<{}>", "#o", (8, 8))
    refused = {(tile.encoding, tile.covered): LayoutRefusal("unsupported", "this Triton gives none")}
    drawn = draw_tile(tile, refused, Target.parse("cuda:90"))
    assert drawn.colors == ()
    assert drawn.caption == "no map: this Triton gives none"
    assert draw_tile(Tile((8, 8), "f16"), {}, Target.parse("cuda:90")).caption == "no layout yet"

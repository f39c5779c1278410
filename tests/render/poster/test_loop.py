"""The poster of specialised warps: its cells, slots and iterations are those of the commands and legible."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from irscope.analysis.flow.partitions import read_partitions
from irscope.analysis.in_flight.find import as_json, in_flight
from irscope.analysis.in_flight.model import ExecutedStep, InFlight, StepKind
from irscope.render.canvas import LEAST, THEMES, Canvas, Rect
from irscope.render.capture import partitions_json
from irscope.render.poster.loop import draw_loop, lanes_of, title_of
from irscope.render.poster.poster import poster_svg
from irscope.store.file import save
from tests.analysis.in_flight.partitioned import LAUNCHED, partitioned, text_of
from tests.render.poster.test_poster import printed
from tests.render.poster.texts import Text, texts_of, wrong_boxes

_SVG = "{http://www.w3.org/2000/svg}"
_PANEL = 896.0
"""The right edge of the loop's panel."""


@dataclass(frozen=True)
class Drawn:
    """The loop of one poster, and what commands print of its capture."""

    svg: str
    texts: list[Text]
    loop: dict[str, Any]
    warps: dict[str, Any]


@cache
def followed(name: str) -> InFlight:
    found = in_flight(partitioned(name))
    assert found is not None
    return found


def panel(name: str, theme: str = "light") -> str:
    """The panel of the loop, where the poster has it."""
    canvas = Canvas(theme)
    draw_loop(canvas, canvas.panel(Rect(24, 72, 872, 400), *title_of(followed(name))), followed(name))
    return canvas.svg(name)


@pytest.fixture(scope="module", params=LAUNCHED)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    svg = panel(request.param)
    (known,) = partitions_json(read_partitions(text_of(request.param)))
    return Drawn(svg, texts_of(svg), as_json(followed(request.param)), known)


def cells(svg: str) -> list[tuple[str, float, float]]:
    """(operation and value, left, top) of each step that is drawn."""
    found: list[tuple[str, float, float]] = []
    for one in ElementTree.fromstring(svg).iter(f"{_SVG}rect"):
        title = one.findtext(f"{_SVG}title") or ""
        if title.startswith(("tt.", "ttg.", "ttng.")) and "in flight" not in title:
            found.append((title.partition(": masked")[0], float(one.get("x", "0")), float(one.get("y", "0"))))
    return found


def columns(drawn: Drawn) -> dict[int, tuple[float, float]]:
    """Turn -> the left and the right edge of its column, by the lines between them and the names above."""
    edges = sorted({float(match[1]) for match in re.finditer(r'class="line" d="M([\d.]+) [\d.]+V', drawn.svg)})
    heads = [one for one in drawn.texts if re.fullmatch(r"(?:iteration )?\d+|before", one.text) and one.area.top < 140]
    found: dict[int, tuple[float, float]] = {}
    for one in heads:
        middle = one.area.left + one.area.width / 2
        left = max((edge for edge in edges if edge < middle), default=0.0)
        right = min((edge for edge in edges if edge > middle), default=_PANEL)
        found[-1 if one.text == "before" else int(one.text.removeprefix("iteration "))] = (left, right)
    return found


def test_each_cell_is_a_step_of_the_json_in_its_turn(drawn: Drawn) -> None:
    steps = [one for one in drawn.loop["steps"] if one["kind"] != "wait"]
    checked = 0
    for turn, (left, right) in columns(drawn).items():
        shown = sorted(name for name, x, _ in cells(drawn.svg) if left <= x < right)
        names = {name for name, _, _ in cells(drawn.svg)}
        wanted = sorted(
            name for one in steps
            if one["iteration"] == turn and (name := f"{one['operation']} {one['value']}".strip()) in names
        )  # fmt: skip
        assert shown == wanted, turn
        checked += len(shown)
    assert checked >= 20


def test_the_numbers_of_a_lane_are_its_tiles_in_their_order(drawn: Drawn) -> None:
    shown = columns(drawn)
    lanes: dict[float, list[tuple[float, str]]] = {}
    for name, x, y in cells(drawn.svg):
        lanes.setdefault(y, []).append((x, name))
    for top, row in lanes.items():
        names = {name for _, name in row}
        numbers = [
            int(one.text) for one in sorted(drawn.texts, key=lambda one: one.area.left)
            if one.text.isdecimal() and top < one.area.top + one.area.height / 2 < top + 22 and one.look.startswith("x")
        ]  # fmt: skip
        wanted = [
            one["tile"] for one in drawn.loop["steps"]
            if f"{one['operation']} {one['value']}".strip() in names and one["tile"] is not None
            and one["iteration"] in shown and not one["is_off"]
        ]  # fmt: skip
        # What is behind the last turn has a column without a name.
        assert numbers[: len(wanted)] == wanted or len(names) > 1
    assert len(lanes) >= 3


def test_partitions_slots_and_iterations_are_those_of_the_commands(drawn: Drawn) -> None:
    lines = [one.text for one in drawn.texts]
    names = [one["name"] for one in drawn.warps["partitions"]]
    assert drawn.loop["partitions"] == names
    warps = {one["name"]: one["warps"] for one in drawn.warps["partitions"]}
    for one in drawn.texts:
        below = [
            text.text
            for text in drawn.texts
            if text.area.left == one.area.left and 0 < text.area.top - one.area.top < 30
        ]
        if one.text in names and below and "warp" in below[0]:
            assert below[0] == f"{warps[one.text]} warp{'s' * (warps[one.text] > 1)}"
    assert sum(name in lines for name in names) >= 2
    assert any(f"{drawn.loop['iterations']} iterations in program" in line for line in lines)
    known = {one["value"]: one for one in drawn.warps["buffers"]}
    rings = [one for one in drawn.loop["rings"] if one["value"] in known]
    assert rings
    for ring in rings:
        assert (ring["slots"], ring["type"].replace("×", "x")) == (
            known[ring["value"]]["slots"],
            known[ring["value"]]["what"],
        )
    slots = [int(line.removeprefix("slot ")) for line in lines if re.fullmatch(r"slot \d+", line)]
    drawn_rings = [one for one in rings if one["value"] in lines or one["value"].partition("_")[0] in lines]
    assert sum(one["slots"] for one in drawn_rings if one["slots"] > 1) >= len(slots) >= 2
    in_flight = [
        int(one.text) for one in sorted(drawn.texts, key=lambda one: one.area.left)
        if one.look == "t" and one.text.isdecimal()
    ]  # fmt: skip
    last = {one["iteration"]: one["copies_in_flight"] for one in drawn.loop["steps"]}
    shown = columns(drawn)
    assert in_flight[: len(shown)] == [last[turn] for turn in sorted(shown)]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", LAUNCHED)
def test_all_of_it_can_be_read(name: str, theme: str) -> None:
    texts = texts_of(panel(name, theme))
    assert wrong_boxes(texts, Rect(24, 72, 872, 400)) == []
    assert min(one.size for one in texts) >= LEAST
    assert not [one.text for one in texts if one.text.endswith("…")]


def test_the_poster_has_it_and_the_commands_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = partitioned("gluon_add")
    save(capture, tmp_path / "x.irscope")
    (poster,) = printed(capsys, "draw", "poster", tmp_path / "x.irscope", "--json")
    (graph,) = printed(capsys, "draw", "warps", tmp_path / "x.irscope", "--json")
    assert poster["loop"] == json.loads(json.dumps(as_json(followed("gluon_add"))))
    assert graph["warp_specialization"] == json.loads(
        json.dumps(partitions_json(read_partitions(text_of("gluon_add"))))
    )
    texts = texts_of(poster_svg(capture, costs=(), findings=()))
    assert wrong_boxes(texts) == []
    # The panel is the same but for what there is room for below it.
    shown = {one.text for one in texts}
    assert {one.text for one in texts_of(panel("gluon_add"))} <= shown


def test_why_there_is_no_loop_is_said() -> None:
    text = re.sub(r"init_barrier (%\w+), 1", r"init_barrier \1, 2", text_of("gluon_add"))
    lines = [one.text for one in texts_of(poster_svg(partitioned("gluon_add", text), costs=(), findings=()))]
    assert any(line.startswith("no loop is drawn: nothing is known to arrive for the wait") for line in lines)


def test_of_too_many_lanes_those_that_matter_stay_and_the_others_are_counted() -> None:
    def step(kind: StepKind, value: str, turn: int, number: int) -> ExecutedStep:
        return ExecutedStep(turn, kind, f"ttg.{kind}", f"%{value}", 9, f"k.py:{number}", 0, None, None, False, number)

    kinds: list[tuple[StepKind, str]] = [
        *[("write", f"w{letter}") for letter in "abcdefgh"],
        *[("read", f"r{letter}") for letter in "abcdefgh"],
        ("copy", "a"), ("copy", "b"), ("dot", "acc"), ("store", "c"),
    ]  # fmt: skip
    steps = tuple(step(kind, value, turn, at) for turn in range(2) for at, (kind, value) in enumerate(kinds))
    flight = replace(followed("gluon_add"), steps=steps, rings=(), partitions=(), iterations=2)
    lanes, of_step, left_out = lanes_of(flight)
    assert [one.name.split()[0] for one in lanes] == ["copy"] * 2 + ["write"] * 7 + ["dot", "store"]
    assert (len(lanes) + left_out, of_step.count(-1)) == (len(kinds), 2 * left_out)
    canvas = Canvas("light")
    draw_loop(canvas, Rect(38, 106, 844, 354), flight)
    texts = texts_of(canvas.svg("kernel"))
    assert f"{left_out} more rows" in {one.text for one in texts}
    assert wrong_boxes(texts) == []


@pytest.mark.parametrize("widths", [(1, 2), (3, 1), (1, 1), (30, 1), (50, 1)])
def test_the_names_of_narrow_phases_do_not_meet(widths: tuple[int, int]) -> None:
    def step(turn: int, number: int) -> ExecutedStep:
        return ExecutedStep(turn, "store", "tt.store", "", 9, "k.py:1", None, None, None, False, number)

    steps = tuple(step(turn, 0) for turn, width in enumerate(widths) for _ in range(width))
    flight = replace(followed("gluon_add"), steps=steps, rings=(), partitions=(), iterations=1)
    canvas = Canvas("light")
    draw_loop(canvas, Rect(38, 106, 844, 354), flight)
    texts = texts_of(canvas.svg("kernel"))
    assert sum(one.text.startswith("the loop") for one in texts) == 1
    assert sum(one.text == "after it" for one in texts) == 1
    assert wrong_boxes(texts) == []

"""The picture of partitions: what it says is what `irscope show --json` says, and all of it can be read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from typing import Any

import pytest

from irscope.analysis.flow.partitions import WarpSpecialization, read_partitions
from irscope.render.canvas import LEAST, THEMES, Rect
from irscope.render.capture import partitions_json
from irscope.render.warps import grid_of, warps_svg
from tests.analysis.flow.test_partitions_turns import FOUND, NAMES, WARPS
from tests.render.poster.texts import texts_of, wrong_boxes

_SVG = "{http://www.w3.org/2000/svg}"
# line 105: ttng.wait_barrier waits %acc_14 (slot 0; phase flips; at first 0), …
_TOLD = re.compile(r"line (\d+): (\S+) (.*)")
_USE = re.compile(r"(\w+) (%[\w#]+)(?: \(([^)]*)\))?")


def drawn(found: WarpSpecialization, theme: str = "light", lines: dict[int, str] | None = None) -> str:
    return warps_svg(found, ("kernel", "cuda:100"), theme, lines)


PICTURES = {name: drawn(found) for name, found in FOUND.items()}


def told(svg: str) -> Counter[tuple[Any, ...]]:
    """(line, operation, action, ring, details) of each use that a picture shows."""
    found: Counter[tuple[Any, ...]] = Counter()
    for node in ElementTree.fromstring(svg).iter(f"{_SVG}g"):
        for one in (node.findtext(f"{_SVG}title") or "").split("; line "):
            match = _TOLD.fullmatch(one if one.startswith("line ") else f"line {one}")
            assert match is not None
            for use in _USE.finditer(match[3]):
                found[int(match[1]), match[2], use[1], use[2], use[3] or ""] += 1
    return found


def details(use: dict[str, Any]) -> str:
    first = use["first_phase"]
    parts = [
        f"slot {use['slot']}" if use["slot"] is not None else "",
        f"phase {use['phase']}" if use["phase"] else "",
        f"at first {first}" if first is not None and use["phase"] not in ("0", "1") else "",
        f"{use['bytes']} bytes" if use["bytes"] is not None else "",
    ]
    return "; ".join(filter(None, parts))


@pytest.mark.parametrize("name", NAMES)
def test_each_use_of_a_ring_is_that_of_the_json(name: str) -> None:
    (known,) = partitions_json([FOUND[name]])
    rings = [*known["buffers"], *(one for one in known["barriers"] if any(use["partition"] for use in one["uses"]))]
    wanted = Counter(
        (use["line"], use["operation"], use["action"], ring["value"], details(use))
        for ring in rings
        for use in ring["uses"]
    )
    assert told(PICTURES[name]) == wanted
    assert len(wanted) >= 6


@pytest.mark.parametrize("name", NAMES)
def test_cards_say_warps_registers_and_slots(name: str) -> None:
    (known,) = partitions_json([FOUND[name]])
    texts = Counter(one.text for one in texts_of(PICTURES[name]))
    for one in known["partitions"]:
        assert texts[one["name"]] == 1
        assert one["registers"] is None or texts[f"{one['registers']} registers per thread"]
        assert any(text.startswith(f"{one['warps']} warp") for text in texts)
    for ring in known["buffers"]:
        assert texts[ring["value"]] == 1
        assert texts[f"{ring['slots']}× {ring['what']}"]
    for ring in known["barriers"]:
        shown = ring["value"] + (f" ×{ring['slots']}" if ring["slots"] > 1 else "")
        assert texts[shown] == any(use["partition"] for use in ring["uses"])
    warps = sum(one["warps"] for one in known["partitions"])
    assert any(f"{len(known['partitions'])} partitions · {warps} warps" in text for text in texts)
    expected = {f"expect {use['bytes']:,} B" for ring in known["barriers"] for use in ring["uses"]
                if use["bytes"] is not None and use["loops"]}  # fmt: skip
    assert expected <= set(texts)


@pytest.mark.parametrize("name", NAMES)
def test_lines_lead_from_a_lane_to_a_ring(name: str) -> None:
    grid = grid_of(FOUND[name])
    edges = {round(edge, 1) for area in grid.lanes.values() for edge in (area.left, area.right)}
    rings = {round(x, 1) for x in grid.rings.values()}
    links = re.findall(r'<path class="line s\d" d="M([\d.]+) ([\d.]+)H([\d.]+)"/>', PICTURES[name])
    shown = [one for row in grid.rows for one in row.event.touched]
    assert len(links) == len(shown)
    for start, _, end in links:
        assert float(end) in rings
        assert min(abs(float(start) - edge) for edge in edges) <= 20
    # What is handed over is written, or arrives, above where it is awaited: time goes down.
    for x, y, height in re.findall(
        r'<rect class="f\d" x="([\d.]+)" y="([\d.]+)" width="[37]" height="([\d.]+)"', PICTURES[name]
    ):
        assert float(height) >= grid.row - 1, (x, y)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", NAMES)
def test_no_two_texts_meet_and_all_can_be_read(name: str, theme: str) -> None:
    lines = {number: str(1000 + number) for number in range(1, 500)}
    svg = drawn(FOUND[name], theme, lines)
    grid = grid_of(FOUND[name])
    texts = texts_of(svg)
    assert wrong_boxes(texts, Rect(0, 0, grid.width, grid.height)) == []
    assert min(one.size for one in texts) >= LEAST
    assert not [one.text for one in texts if one.text.endswith("…") and not re.search(r" [01],[01]…$", one.text)]
    assert grid.width / grid.height == pytest.approx(16 / 9, abs=0.02)
    shown = {1000 + row.event.line for row in grid.rows}
    assert {int(one.text[1:]) for one in texts if re.fullmatch(r":\d+", one.text)} == shown


def test_a_wait_in_vain_is_said() -> None:
    text = (WARPS / "ws_matmul.ttgir").read_text()
    (found,) = read_partitions(re.sub(r"^ *ttng\.tc_gen5_commit.*\n", "", text, flags=re.MULTILINE))
    svg = drawn(found)
    assert "Nothing in this text arrives at %acc_4." in svg
    assert [one.text for one in texts_of(svg) if one.look == "bad"] == [
        "%acc_4 ×2",
        "Nothing in this text arrives at %acc_4.",
    ]
    assert "Nothing in this text" not in PICTURES["ws_matmul"]


def test_many_operations_and_none() -> None:
    text = (WARPS / "ws_matmul.ttgir").read_text()
    wait = next(line for line in text.splitlines() if "ttng.wait_barrier %acc_55" in line)
    (found,) = read_partitions(text.replace(wait, "\n".join([wait] * 300)))
    grid = grid_of(found)
    assert grid.left_out > 100
    assert f"{grid.left_out} more operations are not drawn" in drawn(found)
    (alone,) = read_partitions(re.sub(r"^ *tt(?:n?g)\.(?!warp_).*\n", "", text, flags=re.MULTILINE))
    svg = drawn(alone)
    assert "The partitions share no buffer and no barrier." in svg
    assert {"default", "partition0", "partition1"} <= {one.text for one in texts_of(svg)}
    assert wrong_boxes(texts_of(svg), Rect(0, 0, 1280, 720)) == []

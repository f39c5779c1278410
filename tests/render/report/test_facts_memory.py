"""The data of the Memory tab: its types in Python and in TypeScript, and that nothing in it is made up."""

from __future__ import annotations

import re
import types
import xml.etree.ElementTree as ElementTree
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import irscope.render.report.facts as memory_data
from irscope.memory.access import Certainty, Cost, GlobalAccess, Span, Traffic
from irscope.memory.allocation import Buffer, allocations_of
from irscope.memory.costs import as_json, costs_of
from irscope.model.capture import Capture
from irscope.model.evidence import OperationLines
from irscope.render.layout.timeline import timeline_svg
from irscope.render.report.facts import Holder, Memory, MemoryOverTime, packed_memory, stage_locations
from tests.hostile.payload import with_payload
from tests.memory.cases import too_large
from tests.report_browser.captures import attention, failed, hostile, softmax

SVG = "{http://www.w3.org/2000/svg}"
SOURCES = Path(memory_data.__file__).parent / "frontend" / "src" / "data"
# export interface Traffic { … }
INTERFACE = re.compile(r"export interface (\w+) \{(.*?)\n\}", re.DOTALL)
#   executions: Span;
FIELD = re.compile(r"^  (\w+)\??: (.*);$", re.MULTILINE)


def written(name: str) -> dict[str, str]:
    """The fields of an interface, and their types."""
    found = dict(INTERFACE.findall((SOURCES / "memory.ts").read_text("utf-8")))
    return dict(FIELD.findall(found[name]))


def typescript(kind: Any) -> str:
    """A type as TypeScript writes it, of a value that has been through JSON."""
    names = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
    if kind in names:
        return names[kind]
    if is_dataclass(kind):
        return kind.__name__  # type: ignore[union-attr]
    if kind == Span:
        return "Span"
    if kind == Certainty:
        return "Certainty"
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in inner)
    if origin in (Union, types.UnionType):
        return " | ".join(map(typescript, inner))
    if origin is dict:
        return "Figures"
    assert origin is tuple
    if inner[-1] is not ...:
        return f"[{', '.join(map(typescript, inner))}]"
    element = typescript(inner[0])
    return f"({element})[]" if "|" in element else f"{element}[]"


@pytest.mark.parametrize("noun", [Traffic, GlobalAccess, Cost, Buffer, Holder, MemoryOverTime, Memory])
def test_typescript_has_the_nouns_of_python(noun: type) -> None:
    hints = get_type_hints(noun)
    assert written(noun.__name__) == {one.name: typescript(hints[one.name]) for one in fields(noun)}


def test_the_figures_that_typescript_knows_are_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "json.md").read_text("utf-8")
    section = text.partition("### figures")[2].partition("\n### ")[0]
    documented = set(re.findall(r"^\| `(\w+)`\?", section, re.MULTILINE))
    assert set(written("Figures")) <= documented


def test_the_rows_are_those_of_the_command() -> None:
    capture = attention(width=65)
    costs = costs_of(capture)
    packed = packed_memory(capture, costs)
    assert list(packed["costs"]) == [row for row in as_json(costs) if row["kind"] != "conversion"]
    assert {row["kind"] for row in packed["costs"]} == {"global", "shared"}
    (memory,) = packed["memories"]
    (allocation,) = allocations_of(capture)
    assert memory["held_at_peak"] == allocation.held_at_peak
    assert [one["buffer"]["offset"] for one in memory["holders"]] == [one.offset for one in allocation.buffers]


@pytest.mark.parametrize("make", [attention, too_large])
def test_the_picture_is_the_renderers(make: Any) -> None:
    capture = make()
    svg = timeline_svg(f"{capture.name} {capture.target}", allocations_of(capture))
    drawn, packed = (ElementTree.fromstring(one) for one in (svg, packed_memory(capture, [])["picture"]))
    texts = [(one.get("x"), one.get("y"), one.text) for one in drawn.iter(f"{SVG}text")]
    assert texts == [(one.get("x"), one.get("y"), one.text) for one in packed.iter(f"{SVG}text")]
    boxes = [one.get("data-buffer") for one in drawn.iter(f"{SVG}g")]
    assert boxes == [one.get("data-buffer") for one in packed.iter(f"{SVG}g")]


@pytest.mark.parametrize(
    "capture",
    [softmax(), failed(), hostile(), with_payload(softmax()), with_payload(attention()), with_payload(too_large())],
    ids=["no allocation", "failed", "hostile", "payload", "payload with memory", "payload too large"],
)
def test_any_capture_has_its_data(capture: Capture) -> None:
    packed = packed_memory(capture, [])
    assert packed["costs"] == ()
    assert bool(packed["picture"]) == bool(packed["memories"])


def test_operations_come_back() -> None:
    capture = softmax()
    lines = capture.text("ptx").count("\n") + 1
    rows = OperationLines.of("ptx", [number % 7 for number in range(lines)])
    packed = stage_locations(capture.with_(operations=(rows, OperationLines("sass", reason="it made no sass"))))
    runs = packed["operations"]["ptx"]
    back = [line for line, count in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]
    assert back == [number % 7 for number in range(lines)]
    assert "sass" not in packed["operations"]
    text = capture.text("ttgir").split("\n")
    assert packed["owners"]
    for line, first in packed["owners"]:
        assert first < line
        # What continues an operation closes a region that its first line opened.
        assert text[line - 1].strip().startswith(("}", "^"))
    assert stage_locations(capture)["owners"] == []

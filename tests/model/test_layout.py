"""Layout rows to and from their JSON form: round trips, stored captures, and what is damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from irscope.model.layout import UNASKED, LayoutMap, LayoutRefusal, LayoutRow, layout_from_json, layout_to_json
from irscope.store.file import from_bytes, load, to_bytes
from tests.layout.values import rows

STORED = Path(__file__).parent.parent / "data" / "layouts"


@given(rows)
def test_a_row_comes_back_as_it_was(row: LayoutRow) -> None:
    assert layout_from_json(json.loads(json.dumps(layout_to_json(row)))) == row


def test_a_code_of_a_newer_irscope_does_no_harm() -> None:
    assert layout_from_json({"code": "moon", "reason": "no air"}).answer == LayoutRefusal("unasked", "no air")
    assert layout_from_json({}).answer == UNASKED


@pytest.mark.parametrize(
    "damage",
    [
        {"bases": {"lane": [[1]]}},
        {"bases": {"lane": [[1]]}, "out_dims": [["dim0", 3]]},
        {"bases": {"lane": [[1, 0]]}, "out_dims": [["dim0", 2]]},
        {"bases": {"lane": [[2]]}, "out_dims": [["dim0", 2]]},
        {"bases": {"lane": [[0]] * 99}, "out_dims": [["dim0", 1]]},
    ],
)
def test_bases_that_are_no_layout_are_a_refusal(damage: dict) -> None:
    answer = layout_from_json(damage).answer
    assert isinstance(answer, LayoutRefusal)
    assert answer.code == "damaged"


@pytest.mark.parametrize("path", sorted(STORED.glob("*.irscope")), ids=lambda path: path.stem)
def test_stored_captures_load_whole(path: Path) -> None:
    capture = load(path)
    assert capture.layouts
    assert all(isinstance(row.answer, LayoutMap) and row.operations for row in capture.layouts)
    refused = replace(capture.layouts[0], answer=LayoutRefusal("crash", "signal 6"))
    changed = capture.with_(layouts=(refused, *capture.layouts[1:]))
    assert from_bytes(to_bytes(changed)) == changed

"""Layout rows to and from their JSON form: round trips, and the forms of older captures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from irscope.model.layout import UNASKED, LayoutMap, LayoutRefusal, LayoutRow, layout_from_json, layout_to_json
from irscope.store.file import from_bytes, load, to_bytes
from tests.layout.values import rows

OLD = Path(__file__).parent.parent / "data" / "layouts"


@given(rows)
def test_a_row_comes_back_as_it_was(row: LayoutRow) -> None:
    assert layout_from_json(json.loads(json.dumps(layout_to_json(row)))) == row


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("irscope does not know what vendor.thing spreads its elements over", "unknown-encoding"),
        ("the shape 3×64 has a size that is no power of two, and linear layouts have only such", "shape"),
        ("the compiler does not read this type: unknown attribute", "unreadable"),
        ("Triton 3.6 gives no map of tensor memory: 3.7 and later do", "unsupported"),
        ("the compiler gives no map for the layout of scales in tensor memory", "unsupported"),
        ("the compiler does not survive the question: the process was ended by signal 6", "crash"),
        ("the compiler says: incompatible function arguments", "error"),
        ("the compiler could not be asked: the process took more than 20 s", "unasked"),
        ("the compiler was not queried", "unasked"),
        ("RuntimeError: no", "unasked"),
    ],
)
def test_the_sentences_of_older_captures_become_codes(reason: str, code: str) -> None:
    row = layout_from_json({"alias": "#a", "encoding": "#a", "shape": [1], "reason": reason, "unread": True})
    assert row.answer == LayoutRefusal(code, reason)  # type: ignore[arg-type]
    assert layout_from_json(layout_to_json(row)) == row


def test_a_code_of_a_newer_irscope_does_no_harm() -> None:
    assert layout_from_json({"code": "moon", "reason": "the compiler says: no"}).answer == LayoutRefusal(
        "error", "the compiler says: no"
    )
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


@pytest.mark.parametrize("path", sorted(OLD.glob("*.irscope")), ids=lambda path: path.stem)
def test_older_captures_load_whole(path: Path) -> None:
    capture = load(path)
    assert capture.layouts
    assert all(isinstance(row.answer, LayoutMap) and row.operations for row in capture.layouts)
    refused = replace(capture.layouts[0], answer=LayoutRefusal("crash", "signal 6"))
    changed = capture.with_(layouts=(refused, *capture.layouts[1:]))
    assert from_bytes(to_bytes(changed)) == changed

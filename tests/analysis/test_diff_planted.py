"""The comparison finds one planted change and nothing else, and nothing where only names differ."""

from __future__ import annotations

import random

import pytest

from irscope.analysis.diff import TextDiff, diff_texts
from irscope.ir.normalize import normalize
from tests.analysis.patching import check
from tests.analysis.planting import PLANTERS, Plant, plant, renumbered
from tests.analysis.snapshots import distinct_modules

OPS = {
    "attribute": "changed",
    "type": "changed",
    "swapped": "changed",
    "inserted": "added",
    "removed": "removed",
    "moved": "moved",
}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_500_renumbered_copies_differ_in_nothing(part: int) -> None:
    rng = random.Random(part)
    modules = distinct_modules()
    for _ in range(50):
        module = rng.choice(modules)
        copy = renumbered(module, rng)
        diff = check(diff_texts(module, copy, "mlir"))
        assert diff.is_empty, diff.unified(0)
        assert normalize(module, "mlir") == normalize(copy, "mlir")


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLANTERS)
def test_500_planted_changes_are_found_and_nothing_else(kind: str) -> None:
    rng = random.Random(kind)
    modules = distinct_modules()
    planted = 0
    while planted < 84:
        module = rng.choice(modules)
        change = plant(module, kind, rng)
        if change is None:
            continue
        planted += 1
        diff = check(diff_texts(module, renumbered(change.text, rng), "mlir"))
        assert_shows(diff, change)


def assert_shows(diff: TextDiff, change: Plant) -> None:
    # A layout that is named first or last brings or takes its definition, which no operation is.
    entries = [
        entry
        for entry in diff.entries
        if entry.op != "equal"
        and not all(
            line.startswith("#")
            for line in (*(diff.left_lines[n] for n in entry.left), *(diff.right_lines[n] for n in entry.right))
        )
    ]
    left = [diff.left_lines[line].strip() for entry in entries for line in entry.left]
    right = [line for entry in entries for line in entry.right]
    assert {entry.op for entry in entries} == {OPS[change.kind]}, (change, diff.unified(0))
    assert left == ([change.left] if change.left else []), (change, diff.unified(0))
    assert len(right) == (1 if change.right else 0), (change, diff.unified(0))


def test_a_changed_attribute_is_marked() -> None:
    left = 'module {\n  %0 = "a.make"() : () -> i32\n  %1 = "a.op"(%0) {size = 8 : i32} : (i32) -> i32\n}\n'
    right = 'module {\n  %7 = "a.make"() : () -> i32\n  %8 = "a.op"(%7) {size = 16 : i32} : (i32) -> i32\n}\n'
    diff = check(diff_texts(left, right, "mlir"))
    (entry,) = [entry for entry in diff.entries if entry.op != "equal"]
    assert entry.op == "changed"
    (left_mark,), (right_mark,) = diff.marks(entry)
    assert diff.left_lines[entry.left.start][slice(*left_mark)] == "8"
    assert diff.right_lines[entry.right.start][slice(*right_mark)] == "16"

"""Which texts a compiler makes the same of."""

from __future__ import annotations

import random

import pytest

from irscope.analysis.code import STRICT, alike, same_text
from tests.analysis.planting import PLANTERS, plant, renumbered
from tests.analysis.snapshots import snapshots

MODULES = [text for _, text in snapshots("softmax.cuda90")[::8]]


def test_names_and_locations_do_not_count() -> None:
    for number, text in enumerate(MODULES):
        again = renumbered(text, random.Random(number))
        assert same_text(text, again, "ttgir")
        assert alike(text, again, STRICT)


@pytest.mark.parametrize("kind", PLANTERS)
def test_a_planted_change_counts(kind: str) -> None:
    planted = [plant(text, kind, random.Random(7)) for text in MODULES]
    assert any(planted) or kind == "moved"  # that one has no place here
    for text, change in zip(MODULES, planted, strict=True):
        assert change is None or not same_text(text, renumbered(change.text, random.Random(8)), "ttgir")


def test_an_order_counts_to_a_compiler_alone() -> None:
    head, tail = "module {\n  func.func @f(%a: i32) {\n", "    return\n  }\n}\n"
    one, other = ("    %{} = arith.constant 1 : i32\n", "    %{} = arith.constant 2 : i32\n")
    left = head + one.format(0) + other.format(1) + tail
    right = head + other.format(0) + one.format(1) + tail
    assert alike(left, right, STRICT)
    assert not same_text(left, right, "ttgir")

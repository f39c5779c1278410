"""The schedules of SASS compared: planted changes of control fields and of reuse, against the encoding's own bits."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from irscope.analysis.diff.captures import diff, diff_schedules
from irscope.analysis.diff.texts import diff_texts
from irscope.ir.asm.instructions import ControlInfo
from irscope.ir.asm.sass import format_sass, parse_sass
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Target
from irscope.render.text.diff import comparison_json, render_comparison

LISTING = (Path(__file__).parents[2] / "data" / "asm" / "softmax_90.nvdisasm.txt").read_text()
(FUNCTION,) = parse_sass(LISTING)


def planted(count: int, rng: random.Random) -> tuple[str, set[int]]:
    """The listing's normal form with that many schedules changed in their bits, and their offsets."""
    items = list(FUNCTION.instructions)
    chosen = rng.sample(range(len(items) - 8), count)
    for index in chosen:
        low, high = items[index].encoding or (0, 0)
        high ^= 1 << rng.randrange(105 - 64, 122 - 64)
        items[index] = replace(items[index], control=ControlInfo.decode((low, high)), encoding=None)
    changed = {
        item.offset for item, old in zip(items, FUNCTION.instructions, strict=True) if item.control != old.control
    }
    return format_sass([replace(FUNCTION, instructions=tuple(items))]), changed


def capture(sass: str) -> Capture:
    return Capture(Launch(Kernel("softmax_kernel")), Target("cuda", "90", 32), artifacts=(Artifact("sass", sass),))


def test_every_planted_schedule_is_found_and_nothing_else() -> None:
    left = format_sass([FUNCTION])
    for seed in range(20):
        right, offsets = planted(seed, random.Random(seed))
        texts = diff_texts(left, right, "sass")
        assert texts.is_empty
        found = diff_schedules(left, right, texts)
        assert {change.left_offset for change in found.changes} == offsets
        assert found.compared == len(FUNCTION.instructions)
        assert found.unpaired == 0


def test_reuse_counts_as_schedule_and_not_as_text() -> None:
    left = format_sass([FUNCTION])
    right = left.replace(".reuse", "")
    assert left != right
    texts = diff_texts(left, right, "sass")
    assert texts.is_empty
    names = {field.name for change in diff_schedules(left, right, texts).changes for field in change.fields}
    assert names == {"reuse"}


def test_a_difference_in_scheduling_alone_is_said() -> None:
    left = format_sass([FUNCTION])
    right, offsets = planted(3, random.Random(1))
    comparison = diff(capture(left), capture(right))
    assert comparison.is_empty
    said = render_comparison(comparison, stages=[])
    assert f"the same instructions; the schedule differs in {len(offsets)}: --schedule shows it" in said
    shown = render_comparison(comparison, stages=[], schedule=True)
    assert f"schedule of sass: {len(offsets)} of {len(FUNCTION.instructions)} instructions differ" in shown
    assert len(comparison_json(comparison, [])["schedule"]["changes"]) == len(offsets)
    same = diff(capture(left), capture(left))
    assert "schedule" not in render_comparison(same, stages=[])

"""Pairs of a report's captures compared: the tables, and the diffs of their stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from irscope.analysis.compare import Comparison, diff
from irscope.capture import Capture
from irscope.render.report_blobs import Blobs
from irscope.render.report_diffs import packed_diff

MAX_PAIRS = 6
"""Pairs that are compared beforehand; of more captures, the first ones with the first."""


def chosen_pairs(count: int) -> list[tuple[int, int]]:
    """Which captures are compared, by number."""
    pairs = sorted(combinations(range(count), 2))
    return pairs[:MAX_PAIRS]


def packed_pairs(captures: Sequence[Capture], blobs: Blobs) -> list[dict[str, Any]]:
    """Every chosen pair: `left`, `right`, where its tables are packed, and where each stage's diff is."""
    return [_pair(captures, one, other, blobs) for one, other in chosen_pairs(len(captures))]


def _pair(captures: Sequence[Capture], one: int, other: int, blobs: Blobs) -> dict[str, Any]:
    comparison = diff(captures[one], captures[other])
    left, right = comparison.left, comparison.right
    diffs = {
        stage: blobs.add(packed_diff(found, left.text(stage), right.text(stage))) for stage, found in comparison.diffs
    }
    return {"left": one, "right": other, "tables": blobs.add(_tables(comparison)), "diffs": diffs}


def _tables(comparison: Comparison) -> dict[str, Any]:
    return {
        "empty": comparison.is_empty,
        "differences": [asdict(change) for change in comparison.differences],
        "stages": [
            {
                "stage": stage.stage,
                "state": stage.state,
                "operations": stage.operations,
                "changes": [[change.name, change.difference] for change in stage.largest],
                "summary": stage.summary,
            }
            for stage in comparison.stages
        ],
        "resources": [asdict(change) for change in comparison.resources],
        "instructions": [asdict(change) for change in comparison.instructions],
        "lines": [asdict(line) for line in comparison.lines[:200]],
        "passes": [asdict(row) for row in comparison.passes],
    }

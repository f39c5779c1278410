"""`profile` on the GPU, as a user types it: the counters of a launch, and of a variant of it."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.gpu.test_gpu_commands import SCRIPTS, irscope

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.triton,
    pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute is not installed: there is no ncu"),
]


def figures(row: dict[str, Any], operation: str) -> dict[str, dict[str, Any]]:
    (found,) = [one for one in row["operations"] if one["operation"] == operation]
    return {one["quantity"]: one for one in found["comparisons"]}


def test_a_launch_and_a_variant_of_it() -> None:
    answer = irscope("profile", SCRIPTS / "copy_tiles.py", "--vs", "-coalesce", "--json")
    assert answer.returncode == 0, answer.stderr
    whole, narrow = json.loads(answer.stdout)
    assert whole["by_operation"]
    assert whole["own_binary"]
    assert whole["counters"]["samples"] > 0
    tiles = 16384 * 8192
    for operation in ("tt.load", "tt.store"):
        one, other = figures(whole, operation), figures(narrow, operation)
        assert [one[name]["verdict"] for name in ("instructions", "sectors", "lines")] == ["equal"] * 3
        assert [other[name]["verdict"] for name in ("instructions", "sectors", "lines")] == ["equal"] * 3
        # Every byte is asked for once: coalesced in full sectors, otherwise in more instructions.
        assert one["sectors"]["measured"] == tiles / 32
        assert other["instructions"]["measured"] > one["instructions"]["measured"]
    assert narrow["variant"] == "-coalesce"


def test_the_capture_keeps_its_profile() -> None:
    answer = irscope("profile", SCRIPTS / "row_sum.py", "--json")
    assert answer.returncode == 0, answer.stderr
    (measured,) = json.loads(answer.stdout)
    again = irscope("profile", measured["id"], "--json")
    assert json.loads(again.stdout)[0]["counters"] == measured["counters"]

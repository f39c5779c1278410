"""`irscope why --time` on the GPU: what a mend is worth."""

from __future__ import annotations

import json

import pytest

from tests.gpu.test_gpu_commands import SCRIPTS, irscope

pytestmark = [pytest.mark.gpu, pytest.mark.triton]


def test_a_mend_that_holds_in_the_launch_is_timed() -> None:
    answer = irscope("why", SCRIPTS / "hidden_stride.py", "--time", "--json")
    assert answer.returncode == 0, answer.stderr
    ((found,),) = [one["findings"] for one in json.loads(answer.stdout)]
    (suggestion,) = found["suggestions"]
    assert (found["code"], suggestion["outcome"]) == ("IRS101", "better")
    assert suggestion["time"]["verdict"] == "identical"
    assert suggestion["time"]["ratio"]["low"] <= suggestion["time"]["ratio"]["value"]


def test_other_tiles_are_timed_on_their_own_grid() -> None:
    answer = irscope("why", SCRIPTS / "small_tiles.py", "--time", "--json")
    assert answer.returncode == 0, answer.stderr
    ((found, *_),) = [one["findings"] for one in json.loads(answer.stdout)]
    assert found["code"] == "IRS308"
    (tiles,) = [one for one in found["suggestions"] if any("BLOCK" in each for each in one["changes"])]
    assert tiles["time"]["ratio"]["value"] < 0.5
    assert tiles["time"]["verdict"] in ("identical", "close")

"""`ablate` and `bisect` on the GPU: a planted slow-down and a planted race are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "tests" / "gpu" / "scripts"

pytestmark = [pytest.mark.gpu, pytest.mark.triton]


def irscope(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "irscope", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)


def test_ablate_measures_what_a_pass_is_worth() -> None:
    answer = irscope("ablate", SCRIPTS / "copy_tiles.py", "--pass", "coalesce", "--pass", "ttgir:cse", "--json")
    assert answer.returncode == 0, answer.stderr
    rows = {row["off"][0]: row for row in json.loads(answer.stdout)["variants"]}
    slow = rows["ttgir:coalesce#1"]
    assert slow["agreement"]["verdict"] == "identical"
    assert slow["ratio"]["low"] > 1.0
    # It changes nothing of this kernel: the same program, measured once.
    assert rows["ttgir:cse#1"]["program"] != slow["program"]
    assert rows["ttgir:cse#1"]["agreement"]["verdict"] == "identical"


def test_bisect_finds_a_planted_slow_down() -> None:
    plan = ("-d", "ttgir:coalesce", "-d", "ttgir:cse", "-d", "ttgir:symbol_dce", "-d", "ttgir:reorder_instructions")
    answer = irscope("ablate", SCRIPTS / "copy_tiles.py", *plan, "--check", "time=1.04", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["guilty"] == ["ttgir:coalesce#1"]


def test_bisect_finds_a_planted_race() -> None:
    fences = ["ttgir:fence_insertion#1", "llir:proxy_fence_insertion#1"]
    plan = [word for name in (*fences, "ttgir:symbol_dce", "ttgir:reorder_instructions") for word in ("-d", name)]
    # Where the first alone is off, is the fence still there? Then it is lost with both, and the last to go is guilty.
    alone = irscope("dump", SCRIPTS / "scaled_matmul.py", "-d", fences[0], "--snapshots", "none", "--stage", "ptx")
    # With a fence lost the script's own check of the product may fail: that is exit code 1, and the PTX is there.
    assert alone.stdout, alone.stderr
    guilty = fences if "fence.proxy.async" in alone.stdout else fences[:1]
    for _ in range(3):
        # A race need not be lost each time.
        answer = irscope("ablate", SCRIPTS / "scaled_matmul.py", *plan, "--check", "result", "--json")
        if answer.returncode == 0:
            break
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)["guilty"]
    assert len(found) == 1
    assert set(found) <= set(guilty)

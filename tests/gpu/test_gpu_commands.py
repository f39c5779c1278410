"""`run`, `bench` and `doctor --gpu` on the GPU, as a user types them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "tests" / "gpu" / "scripts"

pytestmark = [pytest.mark.gpu, pytest.mark.triton]


def irscope(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "irscope", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)


def run_json(script: str, *arguments: object) -> tuple[int, dict[str, Any], str]:
    answer = irscope("run", SCRIPTS / script, "--json", *arguments)
    return answer.returncode, json.loads(answer.stdout), answer.stderr


def test_a_script_that_is_well() -> None:
    code, found, said = run_json("row_sum.py", "-d", "cse")
    assert code == 0, said
    assert found["passes"]
    assert [row["verdict"] for row in found["launches"]] == ["identical"]
    assert "relative error" in said


def test_an_autotuned_script_is_checked_at_its_own_launches_alone() -> None:
    code, found, said = run_json("tuned.py", "--all", "-d", "combine")
    assert code == 0, said
    assert [row["count"] for row in found["launches"]] == [1, 2, 3]
    assert len({row["launch"] for row in found["launches"]}) == 1


def test_a_race_is_found() -> None:
    for _ in range(4):
        # From Triton 3.7 or so either pass puts the fence there that the other leaves out.
        code, found, _ = run_json("scaled_matmul.py", "-d", "fence_insertion", "-d", "proxy_fence_insertion")
        if code:
            break
    assert code == 1
    assert found["launches"][0]["verdict"] in ("different", "nan")


@pytest.mark.parametrize("kernel", ["softmax_backward_kernel", "layer_norm_kernel", "cross_entropy_kernel"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_sums_in_another_order_are_close(kernel: str, dtype: str) -> None:
    code, found, said = run_json("ten_kernels.py", "-d", "coalesce", "--", kernel, dtype)
    assert code == 0, said
    (row,) = found["launches"]
    assert row["verdict"] in ("identical", "close")
    if row["verdict"] == "close":
        assert row["over_noise"] <= 1.0
        assert row["noise"] > 0
        assert "moved by one unit" in row["noise_of"]
        assert "other roundings" in row["noise_of"]


@pytest.mark.parametrize("kernel", ["rope_kernel torch.bfloat16", "histogram_kernel torch.float32"])
def test_planted_mistakes_are_different(kernel: str) -> None:
    answer = subprocess.run(
        [sys.executable, ROOT / "tests" / "gpu" / "judgement.py", "plants", "--only", kernel],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert re.search(r"^\d\d plants, 0 judged wrongly", answer.stdout, re.MULTILINE)


def test_a_fault_is_reported_with_its_kernel() -> None:
    code, found, said = run_json("out_of_bounds.py", "-d", "cse")
    assert code == 1
    assert [(row["kernel"], row["verdict"]) for row in found["launches"]] == [
        ("fill_kernel", "identical"),
        ("far_kernel", "fault"),
    ]
    assert "illegal memory access" in found["launches"][1]["detail"]
    assert "its process ended" in said
    assert "not reached" not in said


def test_a_hang_is_reported_with_its_kernel() -> None:
    code, found, said = run_json("endless.py", "--launch-timeout", "4")
    assert code == 1
    assert [(row["kernel"], row["verdict"]) for row in found["launches"]] == [("wait_kernel", "timeout")]
    assert "its process ended" in said


def test_the_scripts_own_check_counts() -> None:
    code, found, said = run_json("fails_itself.py")
    assert code == 1
    assert [row["verdict"] for row in found["launches"]] == ["identical"]
    assert "257 was wanted" in found["script"]["message"]
    assert "fails_itself.py stopped" in said


def test_a_nan_never_passes() -> None:
    code, found, _ = run_json("makes_nan.py")
    assert code == 1
    assert found["launches"][0]["verdict"] == "nan"
    assert found["launches"][0]["detail"] == "3 NaNs computed, 3 of them under the empty plan too"


def test_a_plan_that_does_not_compile_is_a_result() -> None:
    code, found, said = run_json("row_sum.py", "-d", "convert_to_ttgpuir")
    assert code == 1
    assert found["launches"][0]["verdict"] == "failed"
    # The first pass that needs what that one makes.
    assert "it does not compile: ttgir:coalesce#1" in found["launches"][0]["detail"]
    assert "Traceback" not in said


def test_bench(tmp_path: Path) -> None:
    saved = tmp_path / "other.irscope"
    made = irscope("dump", SCRIPTS / "copy_tiles.py", "-d", "coalesce", "--snapshots", "none", "-o", saved)
    assert made.returncode == 0, made.stderr
    answer = irscope(
        "bench", SCRIPTS / "copy_tiles.py", "-d", "coalesce", "--vs", "num_warps=8", "--vs", saved, "--json"
    )
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    base, slow, warps, capture = found["variants"]
    assert base["ratio"] is None
    assert slow["ratio"]["low"] > 1.02
    assert capture["ratio"]["low"] > 1.02
    assert warps["ratio"]["high"] < slow["ratio"]["high"]
    assert {row["result"]["verdict"] for row in (slow, warps, capture)} == {"identical"}
    assert found["bytes"] == 2 * 8192 * 8192 * 2
    assert 0.5 < base["bytes_per_s"] / found["ceilings"]["bytes_per_s"] < 1.1
    assert found["flops"] is None


def test_bench_of_dots() -> None:
    answer = irscope("bench", SCRIPTS / "scaled_matmul.py", "--warm", "--rounds", 20)
    assert answer.returncode == 0, answer.stderr
    assert "baseline, again" in answer.stdout
    assert "identical, same binary" in answer.stdout
    assert f"FLOPs: {2 * 2048**3:,}, of its dots" in answer.stdout
    assert "torch.matmul of float16" in answer.stdout


def test_an_upgrade_to_a_slower_compiler(tmp_path: Path) -> None:
    """The same Triton without ptxas's optimiser: slower by far, and it computes the same on the same inputs."""
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nexport DISABLE_PTXAS_OPT=1\nexec "{sys.executable}" "$@"\n')
    slow.chmod(0o755)
    answer = irscope(
        "upgrade", SCRIPTS / "row_sum.py", "--from", sys.executable, "--to", slow, "--time", "--no-blame", "--json"
    )
    assert answer.returncode == 3, answer.stdout + answer.stderr
    found = json.loads(answer.stdout)
    (row,) = found["rows"]
    assert found["device"] == row["measured"]["device"]
    assert row["measured"]["ratio"]["low"] > 1.02
    assert row["measured"]["result"]["passes"]
    assert row["changes"][0]["fact"] == "time_us"


def test_an_upgrade_that_changes_the_binary_and_nothing_else(tmp_path: Path) -> None:
    """Without line information the binary is another, and its machine code the same: there is nothing to measure."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexport TRITON_DISABLE_LINE_INFO=1\nexec "{sys.executable}" "$@"\n')
    bare.chmod(0o755)
    command = ["upgrade", SCRIPTS / "row_sum.py", "--from", sys.executable, "--to", bare, "--time", "--no-blame"]
    answer = irscope(*command, "--all", "--json")
    (row,) = json.loads(answer.stdout)["rows"]
    assert row["measured"] is None
    assert row["why_not_measured"] == "both run the same machine code"
    assert row["verdict"] == "same"


def test_doctor() -> None:
    answer = irscope("doctor", "--gpu", "--json")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert all(row["state"] == "ok" for row in json.loads(answer.stdout))
    assert "the right result" in answer.stdout


def test_predictions_stand_next_to_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path))
    answer = irscope("tune", SCRIPTS / "row_sum.py", "--vs", "num_warps=2,4", "--top", "2", "--time", "--json")
    assert answer.returncode == 0, answer.stderr
    rows = json.loads(answer.stdout)["configs"]
    assert [row["why_not_measured"] for row in rows] == ["", ""]
    assert all(row["measured"]["median_us"] > 0 for row in rows)
    answer = irscope("time", "--calibrate", "--json")
    assert answer.returncode == 0, answer.stderr
    part = json.loads(answer.stdout)["part"]
    answer = irscope("bench", SCRIPTS / "row_sum.py", "--rounds", "10", "--json")
    assert answer.returncode == 0, answer.stderr
    for row in json.loads(answer.stdout)["variants"]:
        assert row["predicted_us"] is None or 0.2 < row["predicted_us"] / row["time"]["median_us"] < 5
    answer = irscope("time", SCRIPTS / "row_sum.py", "--part", part, "--json")
    assert json.loads(answer.stdout)[0]["is_calibrated"]

"""`run`, `bench` and `doctor --gpu` where there is no GPU, and when they are misused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "gpu" / "scripts" / "row_sum.py"


def irscope(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "irscope", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture
def no_gpu() -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists():
        pytest.skip("this machine has a GPU")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    "arguments",
    [("run", SCRIPT), ("run", SCRIPT, "-d", "cse", "--json"), ("bench", SCRIPT), ("bench", SCRIPT, "--vs", "-cse")],
)
def test_without_a_gpu_it_is_said_what_is_missing(arguments: tuple[object, ...]) -> None:
    answer = irscope(*arguments)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == (
        "irscope: There is no GPU here that Triton's driver takes: launching needs one, with its driver and a torch "
        "for it.\n"
    )


@pytest.mark.usefixtures("no_gpu")
def test_doctor_says_that_there_is_none() -> None:
    answer = irscope("doctor", "--gpu")
    assert answer.returncode == 1
    assert "missing" in answer.stdout
    assert "GPU" in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run",), 2, "give its FILE"),
        (("bench",), 2, "give its FILE"),
        (("bench", "last"), 2, "'last' is not a Python script"),
        (("run", "capture.irscope"), 2, "is not a Python script"),
        (("run", "nowhere.py"), 1, "'nowhere.py' does not exist"),
        (("run", SCRIPT, "-d", "#3"), 1, "'#3' is not a pass"),
        (("bench", SCRIPT, "--vs", "num_warps="), 2, "write KEY=VALUE"),
        (("bench", SCRIPT, "--vs", "nothing"), 1, "is not a plan (-combine), an option (num_warps=8) or a capture"),
        (("bench", SCRIPT, "--vs", "-com bine"), 1, "'bine' must begin with"),
        (("bench", SCRIPT, "--rounds", "5"), 2, "--rounds"),
        (("bench", SCRIPT, "--flops", "0"), 2, "--flops"),
        (("doctor", "--gpu", "--python", "/no/python"), 1, ""),
    ],
)
def test_misuse(arguments: tuple[object, ...], code: int, said: str) -> None:
    answer = irscope(*arguments)
    assert answer.returncode == code, answer.stderr
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_variants_of_the_command_line() -> None:
    from irscope.cli.bench import variants_of
    from irscope.plan import PassPlan

    plan = PassPlan.parse("-cse")
    one, two, three = variants_of(plan, ["-combine -ttgir:coalesce", "num_warps=8,maxnreg=128"])
    assert (one.name, one.plan) == ("-cse", plan)
    assert two.plan == PassPlan.parse("-combine -ttgir:coalesce")
    assert three.options == (("num_warps", 8), ("maxnreg", 128))
    assert variants_of(PassPlan(), []) == []

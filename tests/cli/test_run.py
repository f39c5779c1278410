"""`run`, `bench` and `doctor --gpu` where there is no GPU, and when they are misused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.record.gpu.on_machine import session_on_machine
from irscope.store.recent import CaptureStore
from tests.cli.product import ROOT, Run

SCRIPT = ROOT / "tests" / "gpu" / "scripts" / "row_sum.py"


@pytest.fixture
def no_gpu() -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists():
        pytest.skip("this machine has a GPU")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", SCRIPT),
        ("bench", SCRIPT, "--vs", "-cse"),
    ],
)
def test_without_a_gpu_it_is_said_what_is_missing(irscope: Run, arguments: tuple[object, ...]) -> None:
    code, out, err = irscope(*arguments)
    assert (code, out) == (1, "")
    assert err == (
        "irscope: Triton's driver finds no GPU on this machine: launching needs one, with its driver and a torch that "
        "supports it.\n"
    )


ADDED = """
import sys
sys.path.insert(0, {examples!r})
import torch
from vector_add import vector_add
x, y = torch.randn(2, 1500).unbind()
for side in (x, x[::3]):
    vector_add(side.cuda(), y[: len(side)].cuda())
"""


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script that launches the kernel of the example on few elements, aligned and not."""
    path = tmp_path_factory.mktemp("added") / "added.py"
    path.write_text(ADDED.format(examples=str(ROOT / "examples")))
    return path


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.triton
def test_without_a_gpu_results_are_checked_on_the_cpu(irscope: Run, added: Path) -> None:
    pytest.importorskip("torch", reason="the script makes tensors of torch")
    code, out, err = irscope("run", added, "-d", "cse", "--json")
    row = json.loads(out)
    assert (code, row["plan"], row["passes"]) == (0, "-cse", True)
    assert {one["verdict"] for one in row["launches"]} == {"identical"}
    assert {one["kernel"] for one in row["launches"]} == {"add_kernel"}
    assert "the CPU runs the launches" in err


@pytest.mark.triton
def test_results_take_a_target_a_stage_and_a_pass(irscope: Run, added: Path) -> None:
    pytest.importorskip("torch", reason="the script makes tensors of torch")
    subject = ("run", added)
    code, out, _ = irscope(*subject, "--target", "hip:gfx942", "--at", "coalesce", "--programs", "2", "--json")
    assert (code, json.loads(out)["passes"]) == (0, True)
    code, _, err = irscope(*subject, "--cpu", "--at", "colaesce")
    assert (code, "Did you mean 'coalesce'" in err) == (1, True)
    code, _, err = irscope(*subject, "--cpu", "--stage", "ptx")
    assert (code, "the CPU runs ttir and ttgir" in err) == (2, True)


@pytest.mark.triton
def test_show_prints_the_values_of_a_launch(irscope: Run, added: Path) -> None:
    pytest.importorskip("torch", reason="the script makes tensors of torch")
    assert irscope("dump", added, "--target", "cuda:90")[0] == 0
    code, out, err = irscope("show", "last::add_kernel", "--values", "--program", "0", "--json")
    observed = json.loads(out)["captures"][0]
    assert code == 0
    assert "drawn at random" in err
    assert "arith.addf" in {one["operation"] for one in observed["values"]}
    code, out, _ = irscope("show", "last::add_kernel", "--values", "--value", observed["values"][-1]["name"])
    assert (code, observed["values"][-1]["name"] in out) == (0, True)
    code, _, err = irscope("show", "last", "--program", "0")
    assert (code, "give --values with them" in err) == (2, True)


@pytest.mark.usefixtures("no_gpu")
def test_doctor_says_that_there_is_none(irscope: Run) -> None:
    code, out, err = irscope("doctor", "--gpu")
    assert code == 1
    assert "missing" in out
    assert "GPU" in out
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run",), 2, "give its FILE"),
        (("bench",), 2, "give its FILE"),
        (("bench", "last"), 2, "'last' is not a Python script"),
        (("run", "capture.irscope"), 2, "is not a Python script"),
        (("run", SCRIPT, "--sanitize", "memroy"), 2, "mean 'memory'"),
        (("run", SCRIPT, "--sanitize", "fp"), 2, "give --disable-pass"),
        (("run", SCRIPT, "--sanitize", "global", "--cpu"), 2, "runs on this machine's GPU"),
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
def test_misuse(irscope: Run, arguments: tuple[object, ...], code: int, said: str) -> None:
    found, _, err = irscope(*arguments)
    assert found == code, err
    assert said in err
    assert "Traceback" not in err


def test_variants_of_the_command_line() -> None:
    from irscope.cli.bench import variants_of
    from irscope.plan import PassPlan

    plan = PassPlan.parse("-cse")
    one, two, three = variants_of(plan, ["-combine -ttgir:coalesce", "num_warps=8,maxnreg=128"])
    assert (one.name, one.plan) == ("-cse", plan)
    assert two.plan == PassPlan.parse("-combine -ttgir:coalesce")
    assert three.options == (("num_warps", 8), ("maxnreg", 128))
    assert variants_of(PassPlan(), []) == []


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.triton
def test_without_a_gpu_the_cpu_judges_variants(irscope: Run, added: Path) -> None:
    """An edit that stores something else is told from one that does not, by what the launch leaves."""
    pytest.importorskip("torch", reason="the script makes tensors of torch")
    assert irscope("record", added, "--target", "cuda:90", "--launch", "1")[0] == 0
    code, out, err = irscope(
        "ablate", "last::add_kernel", "--pass", "coalesce", "--pass", "reorder_instructions", "--json"
    )
    ablation = out
    rows = json.loads(out)["variants"]
    assert (code, {row["agreement"]["verdict"] for row in rows}) == (0, {"identical"})
    assert "the CPU (ttgir" in err
    code, _, err = irscope("ablate", "last::add_kernel", "--check", "result", "--stage", "ttgir")
    assert (code, "the CPU (ttgir" in err) == (1, True)
    code, _, err = irscope("ablate", "last::add_kernel", "--check", "time=2", "--stage", "ttgir")
    assert (code, "need a GPU" in err) == (1, True)

    session = session_on_machine(CaptureStore().load(json.loads(ablation)["capture"]))
    right = session.baseline
    wrong = right.text("ttgir").replace("arith.addf", "arith.subf")
    artifacts = tuple(replace(one, data=wrong) if one.stage == "ttgir" else one for one in right.artifacts)
    assert session.check(right).verdict == "identical"
    assert session.check(replace(right, artifacts=artifacts)).verdict == "different"

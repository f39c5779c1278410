"""`irscope bisect` as a user types it: planted passes are found, both sides hold, and wrong input is said."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irscope.analysis.passes.bisection import short_plan
from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.model.capture import Capture
from irscope.plan import PassPlan
from irscope.record.gpu import session as gpu_session
from irscope.record.process.requests import RecordRequest
from irscope.store.file import save
from irscope.store.recent import CaptureStore
from irscope.store.shelf import StoredCaptures
from tests.cli.product import FEW, KERNELS, Run

# What `irscope show {capture} --stage STAGE` prints, in a tenth of the time.
_STAGE = "import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read('stages/' + sys.argv[2]))"
COMPILED = ("--stage", "ttir")
"""For `dump` where only the compile is looked at: nothing is disassembled then, nor are layouts asked for."""
SHOW = f"{sys.executable} -ISc {shlex.quote(_STAGE)} {{capture}}"


def found(irscope: Run, *arguments: object) -> dict[str, Any]:
    code, out, err = irscope("ablate", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.exhaustive
@pytest.mark.newest
@pytest.mark.triton
def test_the_pass_that_makes_copies_asynchronous(irscope: Run, product: Capture) -> None:
    data = found(irscope, "last", "--stage", "ttgir", "--check", f"{SHOW} ptx | grep -q cp.async")
    assert data["guilty"][0] in ("ttgir:assign_latencies#1", "ttgir:schedule_loops#1", "ttgir:pipeline#1")
    assert data["left"]["off"] == []
    assert data["right"]["off"] == data["guilty"]
    assert (data["left"]["judgement"], data["right"]["judgement"]) == ("good", "bad")
    assert len(data["steps"]) <= 3 + 6
    assert data["diff"]["pass"] == data["guilty"][0]


@pytest.mark.triton
@pytest.mark.newest
def test_the_pass_that_brings_wgmma_though_the_compile_fails_without_it(irscope: Run, product: Capture) -> None:
    check = f"{SHOW} ttgir | grep -q warp_group_dot"
    data = found(irscope, "last", "--stage", "ttgir", "--partial", "--check", check)
    assert data["guilty"] == ["ttgir:accelerate_matmul#1"]
    assert "warp_group_dot" in data["diff"]["unified"]
    assert data["kept"] == []


@pytest.mark.triton
@pytest.mark.newest
def test_counted_from_the_front_it_is_the_pass_whose_presence_decides(irscope: Run, product: Capture) -> None:
    check = f"{SHOW} ttgir | grep -q async_copy"
    data = found(irscope, "last", "--stage", "ttgir", "--mode", "first", "--check", check)
    assert data["guilty"] == ["ttgir:pipeline#1"]
    order = data["passes"]
    behind = order[order.index("ttgir:pipeline#1") + 1 :]
    assert data["left"]["off"] == [label for label in behind if label not in data["kept"]]
    assert data["right"]["off"] == ["ttgir:pipeline#1", *data["left"]["off"]]


@pytest.mark.triton
@pytest.mark.newest
def test_registers_and_the_commands_of_both_sides(irscope: Run, product: Capture) -> None:
    most = product.resources.registers
    code, out, _ = irscope("ablate", "last", "--stage", "ttgir", *FEW, "--check", f"registers={most}")
    assert code == 0
    commands = [line.strip() for line in out.splitlines() if line.strip().startswith("irscope dump")]
    assert len(commands) == 2
    counted: list[int] = []
    for command in commands:
        assert irscope(*shlex.split(command)[1:], *COMPILED)[0] == 0
        capture = CaptureStore().load("last")
        assert capture.resources.registers is not None
        counted.append(capture.resources.registers)
    assert counted[0] <= (most or 0) < counted[1]
    assert f"good (registers {counted[0]})" in out
    assert f"bad (registers {counted[1]})" in out
    assert "its absence alone decides" in out
    assert "--- before" in out


@pytest.mark.newest
@pytest.mark.triton
def test_which_pass_of_a_plan_makes_the_compile_fail(irscope: Run, product: Capture) -> None:
    off = ("cse", "accelerate_matmul", "ttgir:triton_licm", "llir:cse", "ttir:combine")
    plan = [word for name in off for word in ("--disable-pass", name)]
    data = found(irscope, "last", "--check", "compiles", *plan)
    assert data["guilty"] == ["ttgir:accelerate_matmul#1"]
    assert data["kept"] == []
    assert "fails in llir:to_llvmir#1" in data["right"]["observed"]
    code, out, _ = irscope("ablate", "last", "--check", "registers=1", *plan)
    assert code == 1
    assert "under the plan it cannot be judged" in out
    assert "--check compiles finds which" in out


@pytest.mark.triton
@pytest.mark.newest
def test_a_failed_capture_brings_its_own_plan(irscope: Run, product: Capture) -> None:
    off = ("--disable-pass", "accelerate_matmul", "--disable-pass", "ttgir:triton_licm")
    assert irscope("dump", "last", *off, *COMPILED)[0] == 1
    failed = CaptureStore().load("last")
    data = found(irscope, failed.id, "--check", "compiles")
    assert data["guilty"] == ["ttgir:accelerate_matmul#1"]
    assert data["passes"] == ["ttgir:accelerate_matmul#1", "ttgir:triton_licm#1"]
    # The command names the capture with every pass on, not the one with the plan.
    assert irscope(*str(data["left"]["command"]).split()[1:], *COMPILED)[0] == 0
    assert CaptureStore().load(str(data["left"]["command"]).split()[2]).plan == PassPlan()


@pytest.mark.newest
@pytest.mark.triton
def test_two_that_must_be_absent_together(irscope: Run, product: Capture) -> None:
    both = "case $IRSCOPE_PLAN in *ttgir:triton_licm*) case $IRSCOPE_PLAN in *ttir:combine*) exit 1;; esac;; esac"
    plan = [word for name in ("ttir:combine", "ttir:cse", "ttgir:triton_licm") for word in ("-d", name)]
    code, out, _ = irscope("ablate", "last", *plan, "--check", both)
    assert code == 0
    assert "its absence alone does not decide, only together with" in out


@pytest.mark.newest
@pytest.mark.triton
def test_what_cannot_be_judged_is_gone_around(irscope: Run, product: Capture) -> None:
    plan = [word for name in ("ttir:combine", "ttir:cse", "ttgir:triton_licm") for word in ("-d", name)]
    check = "case $IRSCOPE_PLAN in '') exit 0;; *ttir:combine*) exit 1;; *) exit 125;; esac"
    code, out, _ = irscope("ablate", "last", *plan, "--check", check)
    assert code == 0
    assert "ttir:combine#1" in out


@pytest.mark.newest
@pytest.mark.triton
def test_spilled_bytes_none_of_which_is_allowed(irscope: Run, product: Capture) -> None:
    code, out, _ = irscope("ablate", "last", "-d", "ttir:combine", "--check", "spills=0")
    assert code == 1
    assert "spilled bytes ≤ 0" in out
    assert "spills 0, spills 0" in out


@pytest.mark.newest
@pytest.mark.triton
def test_nothing_to_find_is_said(irscope: Run, product: Capture) -> None:
    code, out, _ = irscope("ablate", "last", "--stage", "ttir", "--check", "registers=10000")
    assert code == 1
    assert "Nothing to bisect: it is good with every pass on and with all of them off" in out


@pytest.mark.newest
@pytest.mark.triton
def test_a_check_that_is_not_steady_is_said(irscope: Run, product: Capture, tmp_path: Path) -> None:
    # Bad only on its second call: the first question has been answered by then, and asked again it is good.
    count = tmp_path / "count"
    check = f"echo >> {count}; [ $(wc -l < {count}) != 2 ]"
    code, out, _ = irscope("ablate", "last", "-d", "ttir:combine", "--check", check)
    assert code == 1
    assert "the check is not deterministic" in out


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--check", "registers=3", "--pairs"], 2, "--pairs is of the table of all passes"),
        (["--mode", "first"], 2, "--mode and --partial go with --check"),
        (["--check", "registers=3", "--mode", "on"], 2, "--mode 'on': write off or first"),
        (["--check", "registers=3", "--partial"], 2, "--partial goes with --check CMD"),
        (["--check", "registers=3", "--stage", "sas"], 2, "--stage 'sas': there is no such stage"),
        (["--check", "registers=3", "-d", "nosuch"], 1, "no pass of this Triton is named 'nosuch'"),
        (["--check", "registers=3", "-d", "ttir:cse", "--stage", "llir"], 1, "switches off no pass of llir"),
        (["--check", "result"], 1, "the CPU cannot judge the result"),
        (["--check", "time=1.1"], 1, "need a GPU"),
        (["--check", "no-such-command", "-d", "ttir:cse"], 1, "exited with 127, which is not a judgement"),
    ],
)
def test_wrong_input(irscope: Run, product: Capture, arguments: Sequence[str], code: int, said: str) -> None:
    answer, out, err = irscope("ablate", "last", *arguments)
    assert answer == code
    assert out == ""
    assert said in err


class FakeSession:
    """A GPU that stands in: without the pipeliner a launch computes something else, and takes twice as long."""

    def __init__(self, baseline: Capture) -> None:
        self.baseline = baseline

    def check(self, capture: Capture) -> Agreement:
        return Agreement("different" if "pipeline" in str(capture.plan) else "identical")

    def time(self, captures: Sequence[Capture], *, rounds: int, cold: bool = True) -> tuple[tuple[Timing, Ratio], ...]:
        (capture,) = captures
        ratio = Ratio(2.0, 1.9, 2.1) if "pipeline" in str(capture.plan) else Ratio(1.0, 0.9, 1.1)
        return ((Timing(5, 4, 6, rounds), ratio),)


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize("check", [["--check", "result"], ["--check", "time=1.05"]])
def test_results_and_times_of_a_gpu(
    irscope: Run, product: Capture, monkeypatch: pytest.MonkeyPatch, check: list[str]
) -> None:
    with_gpu = replace(product, environment=replace(product.environment, gpu="NVIDIA H200"))

    @contextmanager
    def device_session(request: RecordRequest, launch: int | None, **_: object) -> Iterator[FakeSession]:
        yield FakeSession(with_gpu)

    monkeypatch.setattr(gpu_session, "device_session", device_session)
    monkeypatch.setattr("irscope.cli.launches.captures_of", lambda *_, **__: StoredCaptures.of([with_gpu]))
    off = [word for name in ("ttgir:triton_licm", "ttgir:pipeline", "ttir:cse") for word in ("-d", name)]
    data = found(irscope, KERNELS, *off, *check)
    assert data["guilty"] == ["ttgir:pipeline#1"]
    assert data["right"]["observed"] in ("different", "2.00x (1.90 to 2.10)")


def test_the_shorter_way_to_write_a_plan() -> None:
    every = ["ttir:a#1", "ttgir:b#1", "ttgir:b#2", "ttgir:c#1", "ttgir:d#1"]
    assert str(short_plan({"ttgir:b#2"}, every)) == "-ttgir:b#2"
    assert str(short_plan({"ttgir:b#1", "ttgir:b#2", "ttgir:c#1"}, every)) == "+ttgir:d#1"
    assert str(short_plan(set(every), every)) == "-ttir:a#1 -ttgir:*"
    assert str(short_plan((), every)) == ""


def judged_again(irscope: Run, step: dict[str, Any]) -> Capture:
    """What a printed command compiles."""
    irscope(*shlex.split(str(step["command"]))[1:], *COMPILED)
    return CaptureStore().load("last")


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize("stage", [["--stage", "ttgir"], ["--stage", "ttir"], []])
def test_the_whole_plan_is_compiled_whatever_stage_is_searched(
    irscope: Run, product: Capture, tmp_path: Path, stage: list[str]
) -> None:
    """Each variant that is judged has the passes off that are reported, and the printed commands make them again."""
    off = ("ttir:cse", "ttir:combine", "ttgir:triton_licm", "ttgir:cse", "llir:cse")
    plan = [word for name in off for word in ("-d", name)]
    told = tmp_path / "told"
    note = f'echo "$IRSCOPE_PLAN|$IRSCOPE_PASSES_OFF" >> {told}'
    check = f'{note}; ! echo "$IRSCOPE_PASSES_OFF" | grep -qE "ttgir:triton_licm|ttir:combine"'
    code, out, err = irscope("ablate", "last", *plan, *stage, "--check", check, "--json")
    data = json.loads(out)
    every = list(product.passes())
    planned = {one.label for one in every if PassPlan.parse(" ".join(f"-{name}" for name in off)).skips(one)}
    searched = {label for label in planned if not stage or label.startswith(stage[1])}
    assert set(data["passes"]) == searched
    assert set(data["fixed"]) == planned - searched
    for line in told.read_text().splitlines():
        text, _, labels = line.partition("|")
        gone = {one.label for one in every if PassPlan.parse(text).skips(one)}
        assert gone == set(labels.split()) >= planned - searched
    for side in ("left", "right"):
        again = judged_again(irscope, data[side])
        gone = {one.label for one in again.passes() if one.outcome == "skipped"}
        assert gone == {*data[side]["off"], *data["fixed"]}
        is_good = not gone & {"ttgir:triton_licm#1", "ttir:combine#1"}
        assert (data[side]["judgement"] == "good") == is_good
    if not stage:
        assert code == 0, err
        assert set(data["guilty"]) <= {"ttgir:triton_licm#1", "ttir:combine#1"}
    else:
        # The pass of the other stage is off throughout, and it decides: there is nothing to find.
        assert (code, data["guilty"]) == (1, [])


@pytest.mark.newest
@pytest.mark.triton
def test_a_check_is_told_of_each_pass_that_is_off(irscope: Run, product: Capture, tmp_path: Path) -> None:
    """Where most of a stage is off, its plan names what stays on; and a file's other target is the command's too."""
    told, file = tmp_path / "told", save(product, tmp_path / "product.irscope")
    check = f'echo "$IRSCOPE_PLAN|$IRSCOPE_PASSES_OFF" >> {told}; test -z "$IRSCOPE_PASSES_OFF"'
    data = found(irscope, file, "-t", "cuda:80", "--stage", "ttir", "--check", check)
    again = judged_again(irscope, data["right"])
    assert str(again.target) == "cuda:80"
    every = list(again.passes())
    rows = [line.partition("|") for line in told.read_text().splitlines()]
    assert any(plan.startswith("+") for plan, _, _ in rows)
    for plan, _, labels in rows:
        assert labels.split() == [one.label for one in every if PassPlan.parse(plan).skips(one)]

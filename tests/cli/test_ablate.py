"""`irscope ablate` as a user types it: the table, resuming, pairs, files, AMD, a GPU that stands in, wrong input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.errors import DeviceFault
from irscope.model.capture import Capture
from irscope.plan import PassPlan
from irscope.record.gpu import session as gpu_session
from irscope.record.process.requests import RecordRequest, request_for
from irscope.record.process.session import record_request
from irscope.store.file import load
from irscope.store.recent import CaptureStore
from irscope.store.shelf import StoredCaptures
from tests.cli.product import KERNELS, ROOT, Run

pytestmark = pytest.mark.triton


@pytest.fixture
def sums(product: Capture) -> Capture:
    """A kernel of as many passes, each of whose variants is compiled in half the time; it is `last`."""
    asked = request_for(
        KERNELS.with_name("sums.py"), kernel="row_sums", targets="cuda:90", signature="*fp32:16, *fp32:16, 32, 64",
        disassemble=False, layouts=False,
    )  # fmt: skip
    capture = record_request(asked).captures[0]
    CaptureStore().add(capture)
    return capture


@pytest.mark.exhaustive
@pytest.mark.newest
def test_each_pass_of_ttgir_in_one_table(irscope: Run, sums: Capture) -> None:
    code, out, err = irscope("ablate", "last", "--json", "--jobs", 2)
    assert code == 0
    data = json.loads(out)
    labels = [snapshot.label for snapshot in sums.passes() if snapshot.stage == "ttgir"]
    assert [row["off"] for row in data["variants"]] == [[label] for label in labels]
    rows = {row["off"][0]: row for row in data["variants"]}
    assert data["baseline"]["counts"]["registers"] == sums.resources.registers
    assert data["baseline"]["counts"]["instructions"] == sums.resources.instruction_count
    assert rows["ttgir:convert_to_ttgpuir#1"]["failed_in"] == "ttgir:coalesce#1"
    assert "number of warps" in rows["ttgir:convert_to_ttgpuir#1"]["message"]
    assert rows["ttgir:coalesce#1"]["differs_from"] == "ttgir"
    assert rows["ttgir:coalesce#1"]["differences"]["instructions"] != 0
    assert rows["ttgir:fuse_nested_loops#1"]["identical"] is True
    assert any(row["differences"]["shared"] for row in data["variants"] if row["compiles"])
    assert data["capture"] == sums.id
    assert "the CPU cannot judge the result" in err

    code, out, err = irscope("ablate", "last")
    assert code == 0
    assert f"{len(labels)} of {len(labels)} variants were compiled before" in err
    lines = out.splitlines()
    assert lines[2].split()[:2] == ["off", "artifacts"]
    failing = [index for index, line in enumerate(lines) if "fails in" in line]
    assert failing == list(range(4, 4 + len(failing)))
    listed = out.partition("change nothing: ")[2].partition(".\n")[0].replace("\n ", "")
    idle = sorted(label for label, row in rows.items() if row["identical"])
    assert sorted(listed.split(", ")) == idle
    assert all(label not in out.partition("change nothing")[0] for label in idle)


@pytest.mark.newest
def test_a_variant_is_what_dump_compiles(irscope: Run, product: Capture) -> None:
    code, out, _ = irscope("ablate", product.id, "--pass", "ttgir:coalesce", "--json")
    assert code == 0
    (row,) = json.loads(out)["variants"]
    assert irscope("dump", product.id[:8], "--disable-pass", "ttgir:coalesce#1")[0] == 0
    other = CaptureStore().load("last")
    assert str(other.plan) == row["plan"]
    assert other.resources.registers == row["counts"]["registers"]
    assert other.resources.instruction_count == row["counts"]["instructions"]


@pytest.mark.newest
def test_files_by_their_suffix(irscope: Run, product: Capture, tmp_path: Path) -> None:
    few = ("ablate", "last", "--pass", "coalesce", "--pass", "ttgir:cse", "--virtual", "-o")
    for name in ("table.html", "table.json", "table.txt"):
        code, out, err = irscope(*few, tmp_path / name)
        assert (code, out) == (0, "")
        assert f"wrote {tmp_path / name}" in err
        assert "no GPU" not in err
    assert 'data-opened="tab=results"' in (tmp_path / "table.html").read_text("utf-8")
    assert len(json.loads((tmp_path / "table.json").read_text())["variants"]) == 2
    assert "every pass on" in (tmp_path / "table.txt").read_text()


@pytest.mark.newest
def test_pairs_of_the_passes_that_are_named(irscope: Run, product: Capture) -> None:
    # No other test compiles these pairs.
    some = [word for name in ("combine", "reorder_broadcast", "loop_unroll") for word in ("--pass", f"ttir:{name}")]
    code, out, err = irscope("ablate", "last", *some, "--pairs", "--json", "--virtual")
    assert code == 0
    rows = json.loads(out)["variants"]
    singles = [row["off"] for row in rows if len(row["off"]) == 1]
    pairs = [row["off"] for row in rows if len(row["off"]) == 2]
    assert len(pairs) == len(singles) * (len(singles) - 1) // 2
    assert f"{len(pairs)} pairs of passes to compile" in err


@pytest.mark.newest
def test_amd(irscope: Run, product: Capture) -> None:
    code, out, _ = irscope("ablate", "last", "--target", "hip:gfx942", "--pass", "pipeline", "--pass", "coalesce")
    assert code == 0
    assert "hip:gfx942" in out
    assert "VGPRs" in out
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    assert "512 -2048" in rows["ttgir:pipeline#1"]


@pytest.mark.newest
def test_under_a_plan_it_is_switched_off_besides(irscope: Run, product: Capture) -> None:
    code, out, _ = irscope("ablate", "last", "--disable-pass", "ttgir:pipeline", "--pass", "coalesce", "--json")
    assert code == 0
    data = json.loads(out)
    assert data["baseline"]["plan"] == "-ttgir:pipeline"
    assert data["variants"][0]["plan"] == "-ttgir:pipeline -ttgir:coalesce#1"


@pytest.mark.newest
def test_an_interrupted_one_goes_on(recorded: tuple[Path, Path]) -> None:
    # In a home of its own: nothing is compiled yet.
    command = [sys.executable, "-m", "irscope", "ablate", str(recorded[0]), "--stage", "ttir", "--jobs", "1"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    variants = Path(os.environ["IRSCOPE_HOME"]) / "variants"
    deadline = time.monotonic() + 60
    while len(list(variants.glob("*/*.irscope"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "every pass on" in out
    assert "more were not compiled" in out
    assert "the same command resumes" in err
    kept = len(list(variants.glob("*/*.irscope"))) - 1
    again = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert again.returncode == 0
    assert re.search(rf"^{kept} of \d+ variants were compiled before", again.stderr, re.MULTILINE)
    assert "not compiled" not in again.stdout


@pytest.mark.newest
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["last", "--stage", "ttgr"], 2, "--stage 'ttgr': there is no such stage"),
        (["last", "--pass", "coalesc"], 1, "no pass is named 'coalesc'. Did you mean 'coalesce'"),
        (["last", "--pass", "ttir:cse", "--stage", "llir"], 1, "--stage ttir selects it"),
        (["last", "--sort", "size"], 2, "--sort 'size': write one of effect, time, pass"),
        (["last", "--jobs", "0"], 2, "--jobs"),
        (["last", "--disable-pass", "ttgir:convert_to_ttgpuir"], 1, "there is nothing to compare with under the plan"),
        (["nothing"], 1, "neither a file nor a stored capture's id"),
    ],
)
def test_wrong_input(irscope: Run, product: Capture, arguments: Sequence[str], code: int, said: str) -> None:
    answer, out, err = irscope("ablate", *arguments)
    assert answer == code
    assert out == ""
    assert said in " ".join(err.replace("│", " ").split())


class FakeSession:
    """A GPU that stands in: it runs nothing, and answers by what it is asked."""

    def __init__(self, baseline: Capture) -> None:
        self.baseline = baseline
        self.checked: list[str] = []
        self.timed: list[list[str]] = []

    def check(self, capture: Capture) -> Agreement:
        self.checked.append(str(capture.plan))
        return (
            Agreement("fault", detail="illegal address") if "coalesce" in str(capture.plan) else Agreement("identical")
        )

    def time(self, captures: Sequence[Capture], *, rounds: int, cold: bool = True) -> tuple[tuple[Timing, Ratio], ...]:
        self.timed.append([str(capture.plan) for capture in captures])
        if len(captures) > 1 and any("pipeline" in str(capture.plan) for capture in captures):
            raise DeviceFault("only now and then")
        ratio = Ratio(2.0, 1.9, 2.1)
        return tuple((Timing(5, 4, 6, rounds), ratio) for _ in captures)


@pytest.mark.newest
def test_on_a_gpu_each_distinct_program_is_measured_once(
    irscope: Run, product: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpu = replace(product, environment=replace(product.environment, gpu="NVIDIA H200"))
    session = FakeSession(with_gpu)
    asked: list[tuple[str, int | None]] = []

    @contextmanager
    def device_session(request: RecordRequest, launch: int | None, **_: object) -> Iterator[FakeSession]:
        asked.append((Path(request.path).name, launch))
        yield session

    monkeypatch.setattr(gpu_session, "device_session", device_session)
    monkeypatch.setattr("irscope.cli.launches.captures_of", lambda *_, **__: StoredCaptures.of([with_gpu]))
    few = [word for name in ("coalesce", "pipeline", "fuse_nested_loops") for word in ("--pass", name)]
    code, out, err = irscope("ablate", KERNELS, "--launch", 3, *few, "--json", "--rounds", 7)
    assert code == 0, err
    data = json.loads(out)
    assert asked == [(KERNELS.name, 3)]
    programs = {row["program"] for row in [data["baseline"], *data["variants"]] if row["program"]}
    assert len(session.checked) == len(set(session.checked)) == len(programs)
    rows = {row["off"][0]: row for row in data["variants"]}
    assert rows["ttgir:coalesce#1"]["agreement"]["verdict"] == "fault"
    assert rows["ttgir:coalesce#1"]["ratio"] is None
    assert not any("coalesce" in plan for plans in session.timed for plan in plans)
    assert rows["ttgir:pipeline#1"]["timing"] is not None
    idle = next(row for row in data["variants"] if row["same_program"])
    assert idle["ratio"]["value"] == 2.0
    assert idle["timing"]["count"] == 7
    assert data["gpu"] == "NVIDIA H200"
    assert all(row["ratio"] or not row["program"] or row["agreement"]["verdict"] == "fault" for row in rows.values())

    session.baseline = replace(with_gpu, artifacts=(replace(with_gpu.artifacts[0], data="another"),))
    code, _, err = irscope("ablate", KERNELS, *few)
    assert code == 1
    assert "launched another kernel" in err


@pytest.mark.newest
def test_a_kept_variant_is_a_capture_that_any_command_reads(irscope: Run, product: Capture) -> None:
    assert irscope("ablate", "last", "--pass", "coalesce")[0] == 0
    files = list((Path(os.environ["IRSCOPE_HOME"]) / "variants").glob("*/*.irscope"))
    plans = {str(load(file).plan): file for file in files}
    assert {"", "-ttgir:coalesce#1"} <= plans.keys()
    code, out, _ = irscope("show", plans[""], "--stage", "source")
    assert code == 0
    assert "tt.func" in out
    assert CaptureStore().load("last").plan == PassPlan()


@pytest.mark.newest
@pytest.mark.gpu
def test_on_the_gpu_itself(irscope: Run) -> None:
    pytest.importorskip("torch", reason="the example imports torch")
    which = ("--pass", "ttgir:coalesce", "--pass", "ttgir:fuse_nested_loops", "--rounds", 20)
    code, out, err = irscope("ablate", ROOT / "examples" / "softmax.py", "--launch", 1, *which, "--json")
    assert code == 0, err
    data = json.loads(out)
    rows = {row["off"][0]: row for row in data["variants"]}
    assert data["gpu"]
    assert data["baseline"]["agreement"]["verdict"] == "identical"
    assert all(row["agreement"]["passes"] and row["ratio"]["value"] > 0 for row in rows.values())
    assert rows["ttgir:fuse_nested_loops#1"]["same_program"] is True
    assert rows["ttgir:coalesce#1"]["differs_from"] == "ttgir"

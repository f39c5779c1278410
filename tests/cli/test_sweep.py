"""A sweep on a cluster of processes: what it compiles, what a killed worker costs, and what is not made twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irscope.api import sweeping as module
from irscope.api.sweeping import client_of, sweep
from irscope.cli.sweep import points_of
from irscope.model.capture import Capture
from irscope.model.trial import Point, SweepRow
from irscope.record.process import child
from irscope.record.process.requests import request_for, request_from_capture
from irscope.record.process.session import record_request
from irscope.store.file import save, to_bytes
from irscope.store.recent import CaptureStore
from irscope.store.table import Journal, load_table, save_table
from tests.cli.json_reference import Reference, check, unseen
from tests.cli.product import ROOT, Run
from tests.store.test_table import ROW
from tests.verify.test_safety import captures as safety_captures

pytest.importorskip("distributed", reason="pip install 'irscope[sweep]'")
pytestmark = [pytest.mark.triton, pytest.mark.newest, pytest.mark.filterwarnings("ignore")]

NO_TORCH = ROOT / "tests" / "record" / "kernels" / "no_torch.py"


@pytest.fixture(scope="module")
def client(clean_session: None) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with client_of("", 2) as client:
            yield client


@pytest.fixture(scope="module")
def capture(clean_session: None) -> Capture:
    request = request_for(
        NO_TORCH, kernel="axpy", targets="cuda:90", signature="*fp32, *fp32, i32, fp32",
        constexprs={"BLOCK": "256"}, disassemble=False, layouts=False,
    )  # fmt: skip
    return record_request(request).captures[0]


def swept(
    client: Any,
    capture: Capture,
    table: Path,
    *versus: str,
    known: tuple[SweepRow, ...] = (),
    each: Any = None,
    verifies: bool = False,
    compiles: int = 1,
) -> tuple[list[SweepRow], list[SweepRow]]:
    """(the rows, those that were compiled now)"""
    made: list[SweepRow] = []

    def progress(done: int, total: int, row: SweepRow | None) -> None:
        if row is not None:
            made.append(row)
            if each is not None:
                each(len(made))

    rows = sweep(
        client, {(): [capture]}, points_of(versus), Journal(table), known, timeout_s=60, progress=progress,
        verifies=verifies, compiles=compiles,
    )  # fmt: skip
    return rows, made


def test_nobody_else_reaches_the_cluster(client: Any) -> None:
    """Any user of the machine could reach a port of loopback, and have code run by who listens there."""
    import distributed

    address = client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    for other in (address.replace("tls://", "tcp://"), address):
        security = distributed.Security.temporary() if other == address else None
        with pytest.raises((OSError, TimeoutError)):
            distributed.Client(other, security=security, timeout=2)
    ports = [client.scheduler_info()["services"]["dashboard"]]
    ports += [row["services"]["dashboard"] for row in client.scheduler_info()["workers"].values()]
    for port in ports:
        for path in ("", "info/main/workers.html", "health", "api/v1/adaptive_target", "metrics", "json/counts.json"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10)


@pytest.mark.exhaustive
def test_a_killed_worker_loses_nothing(client: Any, capture: Capture, tmp_path: Path) -> None:
    before = set(client.run(os.getpid).values())

    def kill(made: int) -> None:
        # One after another, so that it is both the one that is given what is sent first, and the other.
        if made in (1, 3):
            os.kill(sorted(before)[made == 3], signal.SIGKILL)

    ways = ("num_warps=2,8", "target=hip:gfx942")
    rows, made = swept(client, capture, tmp_path / "a.csv", *ways, each=kill)
    assert len(rows) == len({one.key for one in rows}) == len({one.vs for one in rows}) == 3 * 2
    assert {one.status for one in rows} == {"ok"}
    assert sorted(one.key for one in made) == sorted(one.key for one in rows)
    assert set(client.run(os.getpid).values()) - before, "no worker was started in place of the one that was killed"
    # Against the compile of a recording process of its own.
    wide = record_request(
        request_from_capture(capture, options={"num_warps": 8}, targets="hip:gfx942", disassemble=False, layouts=False)
    ).captures[0]
    (row,) = [one for one in rows if one.vs == "num_warps=8 target=hip:gfx942"]
    held = wide.resources
    assert (row.id, row.registers, row.shared_bytes, row.code_bytes, row.instructions) == (
        wide.id, held.registers, held.shared_bytes, held.code_bytes, held.instruction_count
    )  # fmt: skip
    assert (row.num_warps, row.target, row.capture) == (8, "hip:gfx942", capture.id)
    # What is there is not made again: from the journal, from the table, and the rest of it.
    assert swept(client, capture, tmp_path / "a.csv", *ways)[1] == []
    more, made = swept(client, capture, tmp_path / "b.csv", *ways, "num_warps=4", known=tuple(rows))
    assert {one.vs.partition(" ")[0] for one in made} == {"num_warps=4"}
    assert len(more) == 4 * 2


def test_all_tasks_of_a_worker_fork_the_same_process(capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing Triton takes longer than most compiles."""
    started: list[str] = []
    start = child.module_command

    def noted(name: str, *arguments: str, interpreter: str | None = None) -> list[str]:
        started.append(name)
        return start(name, *arguments, interpreter=interpreter)

    monkeypatch.setattr(child, "module_command", noted)
    packed = to_bytes(module.light(capture))
    try:
        for warps in (2, 4, 8):
            point = Point(options=(("num_warps", warps),))
            # As dask runs each.
            row = Context().run(module.compile_point, module.SweepWork(str(warps), capture.id, point, 60), packed)
            assert (row.status, row.num_warps) == ("ok", warps)
    finally:
        module.close_pools()
    assert started == ["irscope.record.process.fork_server"]


def test_a_failure_is_a_row(client: Any, capture: Capture, tmp_path: Path) -> None:
    rows, _ = swept(client, capture, tmp_path / "a.csv", "num_warps=3", "bogus=1")
    by_way = {one.vs: one for one in rows}
    assert (by_way[""].status, by_way[""].failure) == ("ok", "")
    assert by_way["num_warps=3"].status == "failed"
    assert by_way["num_warps=3"].message
    assert by_way["bogus=1"].failure == "refused"
    assert "bogus" in by_way["bogus=1"].message
    without = replace(capture, artifacts=tuple(one for one in capture.artifacts if one.stage == "cubin"))
    rows, _ = swept(client, without, tmp_path / "b.csv")
    assert (rows[0].failure, "holds no source stage" in rows[0].message) == ("refused", True)


def test_the_meaning_of_each_compile_is_a_column(client: Any, capture: Capture, tmp_path: Path) -> None:
    """The pipeliner of every released Triton moves the load of a recurrence before the store that it reads."""
    pytest.importorskip("torch", reason="the kernel is recorded with tensors of torch")
    launched = safety_captures("cuda:90")["recurrence_pipelined"]
    rows, _ = swept(client, launched, tmp_path / "a.csv", "plan=-pipeline", verifies=True)
    assert {one.vs: one.meaning for one in rows} == {"": "changed", "plan=-pipeline": "same"}
    assert swept(client, launched, tmp_path / "a.csv", "plan=-pipeline", known=tuple(rows), verifies=True)[1] == []
    # Without a launch there are no arguments to run it with.
    assert swept(client, capture, tmp_path / "b.csv", verifies=True)[0][0].meaning == "not decided"


def test_compiles_ranked_by_time_are_made_several_times(client: Any, capture: Capture, tmp_path: Path) -> None:
    (once,), _ = swept(client, capture, tmp_path / "a.csv")
    assert once.processor_most_us is None
    (row,), made = swept(client, capture, tmp_path / "b.csv", known=(once,), compiles=3)
    assert len(made) == 1
    assert row.processor_us is not None
    assert row.processor_most_us is not None
    assert 0 < row.processor_us < row.processor_most_us
    assert row.id == once.id


def test_what_its_workers_were_ended_by_is_tried_again(client: Any, capture: Capture, tmp_path: Path) -> None:
    lost = replace(
        swept(client, capture, tmp_path / "a.csv")[0][0], status="failed", failure="worker", message="killed"
    )
    rows, made = swept(client, capture, tmp_path / "b.csv", known=(lost,))
    assert [one.status for one in rows] == ["ok"]
    assert len(made) == 1


def test_the_command(
    client: Any, capture: Capture, irscope: Run, reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def lent(scheduler: str, jobs: int | None) -> Iterator[Any]:
        yield client

    monkeypatch.setattr(module, "client_of", lent)
    CaptureStore().add(capture)
    kernels = tmp_path / "kernels"
    save(capture, kernels / "a.irscope")
    table = tmp_path / "table.parquet"
    ways = ("--vs", "num_warps=3,8", "--vs", "plan=-combine", "-o", table)
    summary = check(reference, irscope, "sweep", "sweep", kernels, *ways)
    assert (summary["rows"], summary["ok"]) == (6, 4)
    assert not list(tmp_path.glob("*.partial"))
    assert {one.plan for one in load_table(table)} == {"", "-combine"}
    code, out, said = irscope("sweep", kernels, *ways)
    assert (code, out.splitlines()[0]) == (0, "6 compiles: 4 ok, 2 failed.")
    assert "6 of 6 are there already." in said
    code, out, _ = irscope("sweep", kernels, "--vs", "foo=1", "-o", tmp_path / "none.csv")
    assert (code, out.splitlines()[0]) == (1, "2 compiles: 1 ok, 1 failed.")
    code, out, _ = irscope("sweep", "--show", table, "--json", "--by", "instructions")
    assert (code, json.loads(out)["by"]) == (0, "instructions")
    save_table([ROW], tmp_path / "found.csv")
    assert check(reference, irscope, "sweep", "sweep", "--show", tmp_path / "found.csv")["findings"] == {
        "IRS101": 1, "IRS402": 1
    }  # fmt: skip
    timed = check(reference, irscope, "sweep", "sweep", kernels, "--by", "processor_us", "-o", tmp_path / "timed.csv")
    assert 1 < timed["spread"]["median"] <= timed["spread"]["most"]
    code, out, _ = irscope("sweep", "--show", tmp_path / "timed.csv", "--by", "processor_us")
    assert (code, "The shortest of 3 compiles counts" in out) == (0, True)
    assert unseen(reference, "sweep") == []


def test_a_script_without_a_guard_sweeps(capture: Capture, tmp_path: Path) -> None:
    save(capture, tmp_path / "it.irscope")
    script = tmp_path / "script.py"
    script.write_text(
        "import irscope\nprint(len(irscope.sweep(irscope.load('it.irscope'), {'num_warps': [2]}, jobs=1)))\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from no_torch import axpy
class Tensor:
    dtype = "fp32"
    def data_ptr(self): return 0
axpy[(4,)](Tensor(), Tensor(), 64, 2.0, BLOCK=16)
"""


def test_a_constant_is_recorded_anew(
    client: Any, irscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def lent(scheduler: str, jobs: int | None) -> Iterator[Any]:
        yield client

    monkeypatch.setattr(module, "client_of", lent)
    script, table = tmp_path / "program.py", tmp_path / "table.csv"
    script.write_text(PROGRAM.format(folder=str(NO_TORCH.parent)))
    code, out, _ = irscope("sweep", script, "--vs", "BLOCK=16,1024", "-o", table)
    assert (code, out.splitlines()[0]) == (0, "2 compiles: 2 ok, 0 failed.")
    own, other = load_table(table)
    assert (own.vs, other.vs) == ("", "BLOCK=1024")
    assert [one.constants.split()[0] for one in (own, other)] == ["BLOCK=16", "BLOCK=1024"]
    # What the front end made of it, not only its name.
    texts = [CaptureStore().load(one.capture).text("ttir") for one in (own, other)]
    assert ["tensor<16xf32>" in one for one in texts] == [True, False]
    assert ["tensor<1024xf32>" in one for one in texts] == [False, True]
    save(CaptureStore().load(own.capture), held := tmp_path / "held.irscope")
    code, _, said = irscope("sweep", held, "--vs", "BLOCK=32", "-o", table)
    assert code == 2
    assert "it is a tl.constexpr" in said
    assert "give the FILE" in said


def test_wrong_input(irscope: Run, tmp_path: Path) -> None:
    one = ROOT / "tests" / "data" / "layouts" / "matmul-cuda-80.irscope"
    for arguments, code, message in (
        (("--by", "beauty", "--show", "a.csv"), 2, "--by 'beauty': write registers"),
        (("x.irscope", "--show", "a.csv"), 2, "--show summarises a table that is there"),
        (("--show", tmp_path / "none.csv"), 1, "No such file"),
        (("-o", "a.xlsx"), 2, "'a.xlsx' is not the name of a table"),
        ((one, "-o", tmp_path / "a.csv", "--scheduler", "tcp//x"), 1, "no scheduler answers there"),
    ):
        assert (answer := irscope("sweep", *arguments))[:2] == (code, "")
        assert message in answer[2]

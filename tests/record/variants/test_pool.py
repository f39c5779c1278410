"""The pool of warm workers: the same captures as a process of their own gives, and each failure is one variant's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import irscope
from irscope.errors import RecordingError, TargetError
from irscope.model.capture import Capture, Environment
from irscope.plan import PassPlan
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import record_request
from irscope.record.variants import compiles as variant_store
from irscope.record.variants.compiles import Variants
from irscope.record.variants.pool import VariantPool, variant_request
from tests.record.cold import no_block

KERNELS = Path(__file__).parents[1] / "kernels"
pytestmark = pytest.mark.triton


@pytest.fixture(scope="module")
def axpy() -> Capture:
    return irscope.record(
        KERNELS / "no_torch.py",
        kernel="axpy",
        signature="*fp32:16, *fp32:16, i32:16, fp32",
        constexprs={"BLOCK": 256},
        target="cuda:90",
    )


@pytest.fixture(scope="module")
def pool() -> Iterator[VariantPool]:
    with VariantPool(jobs=2) as warm:
        yield warm


def planned(capture: Capture, *plans: str) -> list[RecordRequest]:
    return [variant_request(capture, PassPlan.parse(plan)) for plan in plans]


def timeless(capture: Capture) -> Capture:
    """A capture without what differs from run to run."""
    return replace(
        capture,
        environment=replace(capture.environment, date="", command=""),
        artifacts=tuple(replace(artifact, duration_us=None, processor_us=None) for artifact in capture.artifacts),
        snapshots=tuple(replace(snapshot, duration_us=None) for snapshot in capture.snapshots),
        compile_us=None,
    )


@pytest.mark.parametrize("plan", ["", "-ttgir:coalesce", "-llvm-opt", "-convert_to_ttgpuir"])
@pytest.mark.parametrize("snapshots", [pytest.param("none", marks=pytest.mark.exhaustive), "triton"])
def test_the_same_capture_as_from_a_process_of_its_own(
    pool: VariantPool, axpy: Capture, plan: str, snapshots: str
) -> None:
    request = variant_request(axpy, PassPlan.parse(plan), snapshots=snapshots)  # pyright: ignore[reportArgumentType]
    ours = pool.compile_one(request)
    (theirs,) = record_request(request).captures
    if ours.failure is not None and theirs.failure is not None:
        # A process of its own adds the IR before the pass that failed; what was printed names addresses.
        assert ours.failure.pass_label == theirs.failure.pass_label
        ours, theirs = (replace(one, failure=None, snapshots=(), snapshot_level="none") for one in (ours, theirs))
    assert timeless(ours) == timeless(theirs)
    assert ours.environment != Environment()


@pytest.mark.newest
def test_many_at_a_time_keep_their_places(pool: VariantPool, axpy: Capture) -> None:
    labels = [f"ttgir:{snapshot.name}#{snapshot.occurrence}" for snapshot in axpy.passes() if snapshot.stage == "ttgir"]
    requests = planned(axpy, *(f"-{label}" for label in labels[:7]))
    found = dict(pool.compile(requests))
    assert sorted(found) == list(range(7))
    for index, capture in found.items():
        assert str(capture.plan) == f"-{labels[index]}"
        assert [one.label for one in capture.passes() if one.outcome == "skipped"] == [labels[index]]


def planted(folder: Path, code: str) -> str:
    """An interpreter whose compiles do something else first; `plan` is what they compile under."""
    path = folder / "python"
    path.write_text(
        f"""#!{sys.executable}
import os, runpy, subprocess, sys
from irscope.record.compile import recompile
from irscope.record.process.events import StageBegun
real = recompile._run_stages
def run_stages(request, *given):
    plan = str(request.plan)
    given[-2].report(StageBegun(given[-2].number, "ttir"))
{code}
    return real(request, *given)
recompile._run_stages = run_stages
sys.argv = ["zygote", sys.argv[-1]]
runpy.run_module("irscope.record.process.fork_server", run_name="__main__")
"""
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.newest
def test_an_abort_a_hang_and_a_crash_are_one_variants_failure(
    axpy: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    code = """
    if plan == "-ttir:cse": print("assertion failed", file=sys.stderr, flush=True); os.abort()
    if plan == "-ttir:combine": subprocess.run(["sleep", "600"])
    if plan == "-ttir:inliner": os.kill(os.getpid(), 11)
    if plan == "-ttir:symbol_dce": os._exit(7)
    if plan == "-ttir:reorder_broadcast": raise ValueError("no such luck")
"""
    plans = [f"-ttir:{name}" for name in ("cse", "combine", "inliner", "symbol_dce", "reorder_broadcast")]
    with no_block(), VariantPool(jobs=3, timeout_s=4, interpreter=planted(tmp_path, code)) as pool:
        found = dict(pool.compile(planned(axpy, *plans, "", "-ttgir:coalesce")))
    assert not list(scratch.iterdir())
    failures = [found[index].failure for index in range(7)]
    assert [failure and failure.kind for failure in failures] == [
        "abort",
        "timeout",
        "abort",
        "abort",
        "compile",
        None,
        None,
    ]
    assert failures[0] is not None
    assert "SIGABRT" in failures[0].message
    assert "assertion failed" in failures[0].diagnostics
    assert failures[1] is not None
    assert "longer than 4 s" in failures[1].message
    assert failures[2] is not None
    assert "SIGSEGV" in failures[2].message
    assert failures[3] is not None
    assert "code 7" in failures[3].message
    assert failures[4] is not None
    assert "no such luck" in failures[4].message
    assert found[5].stages[-1] == "cubin"


def running(text: str) -> int:
    """How many processes have this in their command line."""
    count = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                count += text.encode() in (folder / "cmdline").read_bytes()
            except OSError:
                continue
    return count


def becomes(condition: Callable[[], bool]) -> bool:
    """Whether it is true within a few seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.newest
def test_closing_the_iterator_ends_what_is_under_way(axpy: Capture, tmp_path: Path) -> None:
    code = """
    if plan: subprocess.run(["sleep", "61.75"])
"""
    with VariantPool(jobs=2, interpreter=planted(tmp_path, code)) as pool:
        captures = pool.compile(planned(axpy, "", "-ttir:cse", "-ttir:cse"))
        index, capture = next(captures)
        assert (index, capture.status) == (0, "ok")
        assert becomes(lambda: running("61.75") == 1)
        captures.close()
        assert becomes(lambda: running("61.75") == 0)
        assert pool.compile_one(planned(axpy, "")[0]).status == "ok"


@pytest.mark.newest
def test_a_pool_whose_process_is_gone_starts_others_and_leaves_no_process_and_no_file(
    axpy: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with no_block(), VariantPool(jobs=1) as pool:
        pool.compile_one(planned(axpy, "")[0])
        pids = [pool._server_of(None).server.pid]
        pool._server_of(None).server.end()
        assert pool.compile_one(planned(axpy, "")[0]).status == "ok"
        pids.append(pool._server_of(None).server.pid)
    assert not list(tmp_path.iterdir())
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_warm_process_is_safe_to_fork(pool: VariantPool, axpy: Capture) -> None:
    pool.compile_one(planned(axpy, "")[0])
    assert len(list(Path(f"/proc/{pool._server_of(None).server.pid}/task").iterdir())) == 1


@pytest.mark.newest
def test_what_a_worker_refuses_is_raised(pool: VariantPool, axpy: Capture) -> None:
    with pytest.raises(TargetError, match="'nothing:1' is not a target"):
        pool.compile_one(replace(planned(axpy, "")[0], targets=("nothing:1",)))
    with pytest.raises(RecordingError, match="mode 'script'"):
        pool.compile_one(RecordRequest(mode="script"))
    assert pool.compile_one(planned(axpy, "")[0]).status == "ok"


@pytest.mark.newest
def test_an_interpreter_that_is_none_or_has_no_triton(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be started"), VariantPool(interpreter=str(tmp_path / "nothing")):
        pass
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    with (
        VariantPool(interpreter=str(bare)) as pool,
        pytest.raises(irscope.IrscopeError, match="Triton is not installed"),
    ):
        _ = pool.compiler


@pytest.mark.newest
def test_variants_are_kept_and_taken_from_there(pool: VariantPool, axpy: Capture) -> None:
    plans = [PassPlan.parse(plan) for plan in ("", "-ttgir:coalesce", "-convert_to_ttgpuir")]
    first = list(Variants(pool, axpy).compile_all(plans))
    assert [kept for _, _, kept in first] == [False, False, False]
    again = list(Variants(pool, axpy).compile_all([*plans, PassPlan.parse("-ttir:cse")]))
    assert [(index, kept) for index, _, kept in again] == [(0, True), (1, True), (2, True), (3, False)]
    assert sorted((index, capture.status) for index, capture, _ in again) == [
        (0, "ok"),
        (1, "ok"),
        (2, "failed"),
        (3, "ok"),
    ]
    for index, capture, _ in first:
        assert capture == {place: one for place, one, _ in again}[index]
    fresh = list(Variants(pool, axpy, fresh=True).compile_all(plans))
    assert [kept for _, _, kept in fresh] == [False, False, False]


@pytest.mark.newest
def test_the_ones_of_long_ago_are_dropped(pool: VariantPool, axpy: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Variants(pool, axpy)
    ours.compile(PassPlan())
    old = ours.folder.parent / "old"
    old.mkdir()
    (old / "x.irscope").write_bytes(b"x" * 1000)
    os.utime(old, (1, 1))
    Variants(pool, axpy)
    assert old.is_dir()
    monkeypatch.setattr(variant_store, "LIMIT_BYTES", 1000)
    Variants(pool, axpy)
    assert not old.exists()
    assert ours.load(PassPlan()) is not None


def test_another_compiler_has_variants_of_its_own(
    pool: VariantPool, axpy: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Variants(pool, axpy).folder
    monkeypatch.setattr(VariantPool, "compiler", property(lambda _: ("3.9.0", "rebuilt")))
    assert Variants(pool, axpy).folder != ours


@pytest.mark.newest
def test_what_ran_out_of_time_is_tried_again(axpy: Capture) -> None:
    with VariantPool(jobs=1, timeout_s=0.001) as pool:
        capture = Variants(pool, axpy).compile(PassPlan())
        assert capture.failure is not None
        assert capture.failure.kind == "timeout"
        assert Variants(pool, axpy).load(PassPlan()) is None


@pytest.mark.newest
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no way to load one core alone")
def test_a_loaded_machine_ends_no_compile(axpy: Capture) -> None:
    """The limit is of processor time: beside eight others on one core a compile takes far longer by the clock."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(8)]
    try:
        with VariantPool(jobs=1, timeout_s=2.0) as pool:
            captures = [capture for _, capture in pool.compile(planned(axpy, "", "-coalesce"))]
        assert [capture.failure for capture in captures] == [None, None]
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, cores)

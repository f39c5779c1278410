"""Passes that run in one manager are told apart by MLIR's own report of their times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from irscope.record.compile.pass_timing import pass_count, read_report, split_durations, timed

# Triton 3.6.0, cuda:90, with MLIR_ENABLE_TIMING=1 (some rows left out).
REPORT = """\
===-------------------------------------------------------------------------===
                         ... Execution time report ...
===-------------------------------------------------------------------------===
  Total Execution Time: 0.1673 seconds

  ----Wall Time----  ----Name----
    0.0791 ( 47.3%)  ConvertTritonGPUToLLVM
    0.0256 ( 15.3%)  Canonicalizer
    0.0124 (  7.4%)  CSE
    0.0000 (  0.0%)    (A) DominanceInfo
    0.0052 (  3.1%)  'any' Pipeline
    0.0052 (  3.1%)    ReconcileUnrealizedCastsPass
    0.0029 (  1.7%)  CSE
    0.0000 (  0.0%)    (A) DominanceInfo
    0.0014 (  0.8%)  'llvm.func' Pipeline
    0.0014 (  0.8%)    CanonicalizeLLVMIR
   -0.0046 ( -2.7%)  Rest
    0.1673 (100.0%)  Total

"""
DURATIONS = (79100, 25600, 12400, 2900, 1400)


def test_a_report_gives_one_time_a_pass_in_order() -> None:
    assert read_report(REPORT) == (DURATIONS, "\n")


def test_what_stands_around_a_report_is_kept() -> None:
    durations, rest = read_report(f"kernel.py:3:1: remark: before\n{REPORT}after\n")
    assert durations == DURATIONS
    assert rest == "kernel.py:3:1: remark: before\n\nafter\n"


@pytest.mark.parametrize("text", ["", "error: no report\n", "=" * 79])
def test_without_a_report_there_are_no_times(text: str) -> None:
    assert read_report(text) == ((), text)


@pytest.mark.parametrize(
    ("pipeline", "count"),
    [
        ("any()", 0),
        ("any(cse)", 1),
        ("any(tritongpu-pipeline{num-stages=3 dump={a=1,b=2}})", 1),
        ("any(llvm.func(canonicalize-llvm-ir))", 1),
        ("any(convert-warp-specialize-to-llvm,any(reconcile-unrealized-casts))", 2),
        ("any(cse,llvm.func(a{x=1},b),c)", 4),
    ],
)
def test_the_passes_of_a_pipeline_are_counted(pipeline: str, count: int) -> None:
    assert pass_count(pipeline) == count


def test_times_are_given_to_the_pipelines_whose_passes_took_them() -> None:
    assert split_durations((1, 2, 3), ["any(a)", "any(b,any(c))"]) == [1, 5]
    assert split_durations((1, 2), ["any(a)", "any(b,any(c))"]) == [None, None]


def test_a_run_is_timed_and_leaves_standard_error_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    seen = []

    def run() -> None:
        seen.append(os.environ.get("MLIR_ENABLE_TIMING"))
        os.write(2, f"note\n{REPORT}".encode())

    assert timed(run) == DURATIONS
    os.write(2, b"later\n")
    assert seen == ["1"]
    assert "MLIR_ENABLE_TIMING" not in os.environ
    assert capfd.readouterr().err == "note\n\nlater\n"


def test_a_run_that_fails_hands_on_what_it_printed(capfd: pytest.CaptureFixture[str]) -> None:
    def run() -> None:
        os.write(2, b"kernel.py:3:1: error: no\n")
        raise RuntimeError("PassManager::run failed")

    with pytest.raises(RuntimeError, match="PassManager"):
        timed(run)
    assert capfd.readouterr().err == "kernel.py:3:1: error: no\n"


@pytest.mark.triton
@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_passes_that_run_together_are_recorded_one_by_one(target: str) -> None:
    """The same passes, in the same order, as when each runs by itself; each with a time."""
    pytest.importorskip("triton", reason="it compiles with Triton")
    import irscope

    file = Path(__file__).parents[1] / "kernels" / "no_torch.py"
    how = {"kernel": "tile_product", "target": target, "signature": "*fp16:16, *fp16:16, *fp32:16, i32:16, 64"}
    together, alone = (irscope.record(file, **how, snapshots=level) for level in ("triton", "all"))
    assert [snapshot.label for snapshot in together.passes()] == [snapshot.label for snapshot in alone.passes()]
    assert all(snapshot.duration_us is not None for snapshot in together.passes())
    assert [artifact.data for artifact in together.artifacts] == [artifact.data for artifact in alone.artifacts]
    ends = [[one.text for one in capture.passes() if one.argument and one.text] for capture in (together, alone)]
    assert ends[0][-1] == ends[1][-1]


def test_which_of_several_passes_failed_is_found_by_running_them_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded as failed in a stage, with the passes that ran together not told of."""
    from dataclasses import replace

    from irscope.model.capture import Artifact, Capture, Failure, Kernel, Launch, PassSnapshot
    from irscope.record.process import session
    from irscope.target import Target

    ran = PassSnapshot(0, "llir", "to_llvmir", 1, text="module {}", changed=True)
    capture = Capture(
        Launch(Kernel("k", "k.py")),
        Target.parse("cuda:90"),
        artifacts=(Artifact("source", "module {}"),),
        snapshots=(ran,),
        status="failed",
        failure=Failure("abort", "the compiler was ended by SIGABRT.", "llir"),
    )
    failed = PassSnapshot(1, "llir", "cse", 1, outcome="failed")
    exact = replace(capture, snapshots=(ran, failed), failure=Failure("abort", "it died", "llir", failed.label))
    asked = []

    def record_request(request: object, **how: object) -> session.Recording:
        asked.append(request)
        return session.Recording((exact,), None, (), "")

    monkeypatch.setattr(session, "record_request", record_request)
    found = session._with_text_before_failure(capture, 10.0, None)
    assert [request.snapshots for request in asked] == ["all"]
    assert found.failure == exact.failure
    assert found.text_before(failed) == "module {}"
    # A stage without passes, or a failure that names its pass and has the text before it, is left as it is.
    ptxas = replace(capture, failure=Failure("assembler", "ptxas died", "cubin"))
    assert session._with_text_before_failure(ptxas, 10.0, None) is ptxas
    assert session._with_text_before_failure(exact, 10.0, None) is exact
    assert len(asked) == 1

"""`irscope reduce` as a user types it: the result fails as its capture does, its command too; bad input is said."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irscope.analysis.findings.find import findings_of
from irscope.analysis.reduce.model import PythonCase, ReducedPython, likeness_of
from irscope.api.reduction.kept import kept_check, kept_failure, kept_finding, kept_meaning, refuse_lost
from irscope.api.texts import one_pass
from irscope.errors import UsageError
from irscope.machine.captured import Inputs, run_text
from irscope.machine.launch import Pointer
from irscope.model.capture import Capture, Failure
from irscope.plan import PassPlan
from irscope.record.process.requests import RecordRequest
from irscope.render.text.searches import python_file, reduction_json, reduction_markdown, reduction_text
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore
from tests.analysis.findings.cases import compiled
from tests.analysis.findings.every import EVERY
from tests.analysis.recorded import stored
from tests.cli.json_reference import Reference, check
from tests.cli.product import Run
from tests.verify.test_safety import captures as safety_captures

FAILING = Path(__file__).parents[1] / "record" / "kernels" / "failing.py"
COUNTERS = Path(__file__).parents[1] / "data" / "counters"
REQUEST = RecordRequest(mode="text")


def run_line(file: Path, tool: str) -> list[str]:
    (line,) = re.findall(rf"^// RUN: ({tool} .*)", file.read_text(), re.MULTILINE)
    return shlex.split(line.replace("%s", str(file)))


@pytest.mark.triton
@pytest.mark.newest
def test_a_failure_is_reduced_and_runs_again(
    reference: Reference, irscope: Run, product: Capture, tmp_path: Path
) -> None:
    plan = ("--disable-pass", "accelerate_matmul")
    irscope("dump", "last", *plan)
    failed = CaptureStore().load("last")
    wanted = likeness_of(failed.failure or Failure("pass", ""))
    file, issue = tmp_path / "reduced.mlir", tmp_path / "issue.md"
    code, out, err = irscope("reduce", failed.id, "-o", file, "--markdown", issue, "-j", 1)
    assert (code, out) == (0, ""), err
    # Its own commands show it.
    flags = run_line(file, "triton-opt")[2:]
    assert [flag.partition("=")[0] for flag in flags] == ["--convert-triton-gpu-to-llvm"]
    code, out, err = irscope(*run_line(file, "irscope")[1:])
    assert code == 1
    again = CaptureStore().load("last")
    assert again.failure is not None
    assert likeness_of(again.failure) == wanted
    assert [one.label for one in again.passes() if one.outcome != "skipped"] == [again.failure.pass_label]
    assert wanted.said.split()[0] in issue.read_text()
    # The same again compiles nothing but the result.
    document = check(reference, irscope, "reduce", "reduce", failed.id)
    assert document["ir"]["compiled"] == 0
    assert document["ir"]["text"].strip() in file.read_text()
    assert document["ir"]["after"]["operations"] <= 8
    assert document["ir"]["after"]["characters"] * 8 < document["ir"]["before"]["characters"]


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.newest
def test_python_text_is_reduced_where_there_is_no_ir(
    reference: Reference, irscope: Run, product: Capture, tmp_path: Path
) -> None:
    irscope("dump", f"{FAILING}::chain", "--signature", "*fp32", "--constexpr", "BLOCK=64")
    failed = CaptureStore().load("last")
    assert failed.stages == ()
    file = tmp_path / "reduced.py"
    document = check(reference, irscope, "reduce", "reduce", failed.id, "--python-output", file, "-j", 1)
    assert document["ir"] is None
    assert document["python"]["lines"] < document["python"]["lines_before"]
    assert "missing_in_helper" in document["python"]["text"]
    (line,) = re.findall(r"^# RUN: irscope (.*)", file.read_text(), re.MULTILINE)
    assert irscope(*shlex.split(line.replace("%s", str(file))))[0] == 1
    again = CaptureStore().load("last")
    assert failed.failure is not None
    assert likeness_of(failed.failure).is_of(again.failure)


def test_reduced_python_is_as_the_page_says(reference: Reference) -> None:
    failure = Failure("pass", "no", "ttgir", "ttgir:coalesce#1")
    case = PythonCase("def chains(x_ptr):\n    pass\n", (("x_ptr", "*fp32:16", False), ("BLOCK", "64", True)))
    made = ReducedPython(
        capture=replace(stored("chains", "cuda:90"), plan=PassPlan.parse("-coalesce")), kept="it fails", case=case,
        lines_before=12, options=(("maxnreg", 64),), versions=(("triton", "3.9.0"),), failure=failure,
        taken=(("statements", 3),), compiled=9, seconds=1.5,
    )  # fmt: skip
    assert [*reference.misfits(reduction_json(None, made), reference.prints("reduce"))] == []
    command = (
        "irscope dump %s::chains --signature '*fp32:16' --constexpr BLOCK=64 --target cuda:90 --disable-pass coalesce"
    )
    assert python_file(made).startswith(f"# RUN: {command} --option maxnreg=64\n")
    assert "```python\ndef chains(x_ptr):" in reduction_markdown(None, made)
    assert "12 → 2 lines; removed: 3 statements" in reduction_text(None, made)


def test_wrong_input_is_said(irscope: Run, tmp_path: Path) -> None:
    path = tmp_path / "it.irscope"
    save(capture := stored("chains", "cuda:90"), path)
    ir = tmp_path / "it.ptx"
    ir.write_text("x")
    rows = {
        ("reduce", path): "did not fail",
        ("reduce", path, "--check", "true", "--finding", "IRS101"): "--check and --finding are several criteria",
        ("reduce", path, "--finding", "IRS999"): "no finding has that code",
        ("reduce", path, "--finding", "IRS701"): "has no finding IRS701",
        ("reduce", path, "--check", "true", "--stage", "llir"): "--stage 'llir': write source, ttir, ttgir",
        ("reduce", path, "--check", "true", "--stage", "ttir", "--before", "coalesce"): "do not go together",
        ("reduce", path, "--differs", "shared"): "go with --vs",
        ("reduce", path, "--vs", "num_warps"): "write KEY=VALUE",
        ("reduce", path, "--vs", "num_warps=8", "--differs", "share"): "Did you mean",
        ("reduce", path, "--vs", "kernel=other"): "both sides compile one text",
        ("reduce", path, "--vs", "triton=nowhere"): "neither a Python",
        ("reduce", path, "--vs", "num_warps=8", "--result"): "the CPU cannot judge the result",
        ("reduce", path, "--check", "true", "--python-output", tmp_path / "a.py"): "give --trust too",
        ("dump", ir, "--into", "ttgir"): "--into is for files of MLIR",
    }
    for words, said in rows.items():
        code, out, err = irscope(*words)
        assert (code in (1, 2), out) == (True, ""), words
        assert said in err, (words, err)
    assert capture.failure is None


@pytest.mark.triton
@pytest.mark.newest
def test_a_pass_that_changes_the_meaning_is_kept() -> None:
    pytest.importorskip("torch", reason="the kernels are recorded with tensors of torch")
    moved, right = (safety_captures("cuda:90")[name] for name in ("recurrence_pipelined", "recurrence"))
    pipeline = next(one for one in moved.passes() if one.label == "ttgir:pipeline#1")
    kept = kept_meaning(moved, pipeline)
    assert kept.last_stage == "ttgir"
    assert kept.judge(REQUEST, (moved,)) is True
    # The same kernel with a loop that is not pipelined, and one with other parameters.
    assert kept.judge(REQUEST, (right,)) is False
    assert kept.judge(REQUEST, (safety_captures("cuda:90")["copy_to_n"],)) is False
    # Another pass that changed the text, and not the meaning.
    assert kept_meaning(moved, one_pass(moved, "coalesce")).judge(REQUEST, (moved,)) is False
    with pytest.raises(UsageError, match="passes of ttir and ttgir are compared"):
        kept_meaning(moved, one_pass(moved, "to_llvmir"))


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.newest
def test_a_changed_meaning_is_reduced(irscope: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the kernel is recorded with tensors of torch")
    path, file = tmp_path / "moved.irscope", tmp_path / "reduced.mlir"
    save(safety_captures("cuda:90")["recurrence_pipelined"], path)
    code, _, err = irscope("reduce", path, "--meaning", "pipeline", "-o", file, "-j", 1)
    assert (code, "22 → 13 operations" in err) == (0, True), err
    assert irscope(*run_line(file, "irscope")[1:])[0] == 0
    again = CaptureStore().load("last")
    pipeline = one_pass(again, "pipeline")
    # Before the pass each iteration adds to what the last one stored; after it some read what was there before.
    assert _counted_to(again.text_before(pipeline)) == 8
    assert _counted_to(again.text_after(pipeline)) < 8


def _counted_to(text: str | None) -> float:
    memory = np.zeros(4, np.uint8)
    assert text is not None
    return run_text(text, (1, 1, 1), Inputs((Pointer(memory), 8), {"x": memory.view(np.float32)}, ()))["x"][0]


def test_a_check_judges_failed_compiles_too(tmp_path: Path) -> None:
    capture = stored("chains", "cuda:90")
    failed = replace(capture, status="failed", failure=Failure("pass", "no", "ttgir", "ttgir:coalesce#1"))
    for one in (capture, failed):
        assert kept_check("test -f {capture}", 9, None).judge(REQUEST, (one,))
        assert not kept_check("exit 1", 9, None).judge(REQUEST, (one,))
        # It cannot judge.
        assert not kept_check("exit 125", 9, None).judge(REQUEST, (one,))


def test_a_finding_is_looked_for() -> None:
    capture = load(COUNTERS / "every_second.irscope")
    code = findings_of(capture)[0].code
    kept = kept_finding(capture, code)
    assert kept.judge(REQUEST, (capture,))
    assert not kept.judge(REQUEST, (replace(capture, artifacts=(), layouts=(), operations=()),))


@pytest.mark.triton
@pytest.mark.newest
def test_a_finding_that_sass_alone_has_is_looked_for() -> None:
    """No recording of a reduction has SASS."""
    capture = compiled(EVERY["IRS602-added-adjacent pairs of f16"].planted, "cuda:90", False)
    assert "sass" not in capture.stages
    kept = kept_finding(capture, "IRS602")
    assert kept.judge(REQUEST, (capture,))
    assert not kept.judge(REQUEST, (replace(capture, artifacts=()),))


def test_what_cannot_be_reduced_says_why() -> None:
    sourceless = stored("chains", "cuda:90")
    kernel = replace(sourceless.launch.kernel, source="def chains(): pass")
    capture = replace(sourceless, launch=replace(sourceless.launch, kernel=kernel))
    unread = str(refuse_lost(capture, "it failed in parsing the ttir", [], ["stage ttir"]))
    assert "cannot parse stage ttir" in unread
    assert unread.endswith("irscope reduce --python-output FILE reduces the Python text of the kernel.")
    assert "the capture holds no IR" in str(refuse_lost(capture, "it failed", []))
    unparsed = replace(capture, failure=Failure("parse", "custom op is unknown", "ttgir"))
    told = str(refuse_lost(unparsed, "it failed in parsing the ttgir", []))
    assert "cannot parse the ttgir" in told
    assert "--python" not in told
    lost = str(refuse_lost(capture, "it failed", ["stage ttir"], ["stage source"], capture))
    assert "but not when it is compiled again from stage ttir" in lost
    assert "--python" not in str(refuse_lost(sourceless, "it failed", []))


def test_the_figures_are_those_of_the_smaller_case() -> None:
    """What a header says of bytes is what the file needs, not what the kernel needed."""
    capture = stored("chains", "cuda:90")
    large, small = (
        replace(capture, failure=Failure("fit", f"shared memory: {size} bytes, and 232448 there are", "cubin"))
        for size in (327_680, 262_144)
    )
    kept = kept_failure(large)
    assert "327680" in kept.text
    assert "262144" in kept.text_of(small)
    assert kept.text_of(capture) == kept.text

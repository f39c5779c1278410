"""Each pass of a matmul switched off, one at a time: every outcome is a capture, none a crash of irscope."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import irscope
from irscope.errors import PlanError, RecordingError
from irscope.model.capture import Capture
from irscope.plan import PassPlan, PassRule
from irscope.record.process.requests import request_from_capture
from irscope.record.process.session import record_request
from irscope.record.variants.pool import VariantPool
from irscope.render.reproduction.program import render_reproduction

KERNELS = Path(__file__).parents[1] / "record" / "kernels"

pytestmark = pytest.mark.triton


@pytest.fixture(scope="module")
def product() -> Capture:
    return irscope.record(
        KERNELS / "no_torch.py", kernel="tile_product", signature="*fp16:16, *fp16:16, *fp32:16, i32:16, 32"
    )


def again(capture: Capture, plan: str, snapshots: str = "triton", disassemble: bool = False) -> Capture:
    how = {"plan": plan, "snapshots": snapshots, "disassemble": disassemble, "layouts": False, "timeout_s": 120.0}
    (fresh,) = record_request(request_from_capture(capture, **how)).captures
    return fresh


@pytest.mark.newest
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.exhaustive) for part in range(1, 12))])
def test_every_pass_off_is_a_capture(product: Capture, part: int) -> None:
    labels = [snapshot.label for snapshot in product.snapshots][part::12]
    assert len(labels) > 3
    ok = 0
    # Forks of one process: each compile is one of its own all the same, and starts warm.
    requests = [
        replace(request_from_capture(product, plan=f"-{label}", snapshots="all"), disassemble=False, layouts=False)
        for label in labels
    ]
    with VariantPool(jobs=1, timeout_s=120) as pool:
        captures = sorted(pool.compile(requests), key=lambda row: row[0])
    for label, (_, capture) in zip(labels, captures, strict=True):
        skipped = [snapshot.label for snapshot in capture.snapshots if snapshot.outcome == "skipped"]
        assert skipped == [label]
        if capture.status == "ok":
            ok += 1
            assert capture.stages[-1] == "cubin"
            continue
        failure = capture.failure
        assert failure is not None, label
        assert failure.message, label
        assert failure.stage in ("ttir", "ttgir", "llir", "ptx", "cubin"), label
        if failure.pass_label:
            failed = next(snapshot for snapshot in capture.snapshots if snapshot.label == failure.pass_label)
            assert failed.outcome == "failed"
            assert capture.text_before(failed) is not None
    assert ok >= len(labels) // 2


@pytest.mark.newest
def test_a_failing_pass_is_named_with_the_ir_before_it(product: Capture) -> None:
    capture = again(product, "-accelerate_matmul")
    assert capture.status == "failed"
    assert capture.failure is not None
    assert capture.failure.kind in ("pass", "abort")
    assert capture.failure.pass_label == "llir:to_llvmir#1"
    failed = next(snapshot for snapshot in capture.snapshots if snapshot.outcome == "failed")
    before = capture.text_before(failed)
    assert before is not None
    assert "tt.dot" in before


def test_one_occurrence_alone_is_switched_off(product: Capture) -> None:
    capture = again(product, "-ttgir:canonicalizer#2")
    outcomes = [
        snapshot.outcome
        for snapshot in capture.snapshots
        if (snapshot.stage, snapshot.name) == ("ttgir", "canonicalizer")
    ]
    assert outcomes[1] == "skipped"
    assert outcomes.count("skipped") == 1


@pytest.mark.newest
def test_only_keeps_one_pass_of_a_stage(product: Capture) -> None:
    capture = again(product, "+ttir:combine")
    outcomes = {snapshot.label: snapshot.outcome for snapshot in capture.snapshots if snapshot.stage == "ttir"}
    assert outcomes.pop("ttir:combine#1") == "ran"
    assert set(outcomes.values()) == {"skipped"}


def test_llvm_and_ptxas_optimisers_are_steps_of_the_plan(product: Capture) -> None:
    plain, no_llvm, no_ptxas = product, again(product, "-llvm-opt"), again(product, "-ptxas-opt", disassemble=True)
    assert plain.ttgir == no_llvm.ttgir
    assert plain.llir != no_llvm.llir
    assert plain.ptx == no_ptxas.ptx
    assert plain.resources.instruction_count is not None
    assert no_ptxas.resources.instruction_count is not None
    assert no_ptxas.resources.instruction_count > plain.resources.instruction_count


def test_levels_and_options_of_ptxas_are_steps_of_the_plan(product: Capture) -> None:
    def named(capture: Capture) -> dict[str, str]:
        return {one.name: one.outcome for one in capture.passes() if one.name.startswith("ptxas-")}

    assert {"ptxas-opt", "ptxas-O3", "ptxas-O2", "ptxas-O1", "ptxas-fmad"} <= named(product).keys()
    lower = again(product, "-ptxas-O1", disassemble=True)
    assert named(lower)["ptxas-O1"] == "skipped"
    assert lower.ptx == product.ptx
    assert (lower.resources.instruction_count or 0) > (product.resources.instruction_count or 0)
    request = request_from_capture(product, snapshots="none", layouts=False)
    limited = replace(
        request, options=(*request.options, ("ptx_options", "--maxrregcount=32 --override-directive-values"))
    )
    (narrow,) = record_request(limited).captures
    (wide,) = record_request(replace(limited, plan=PassPlan.parse("-ptxas-maxrregcount"))).captures
    assert (narrow.resources.registers or 0) <= 32 < (wide.resources.registers or 0)
    # No file with Triton alone switches them.
    with pytest.raises(RecordingError, match="compiled without cubin:ptxas-O1#1"):
        render_reproduction(lower)
    with pytest.raises(PlanError, match=r"no step of ptxas is named 'ptxas-maxregcount'.* 'maxrregcount'"):
        again(product, "-ptxas-maxregcount")


@pytest.mark.newest
def test_all_snapshots_hold_every_text(product: Capture) -> None:
    capture = again(product, "", snapshots="all")
    mlir = [snapshot for snapshot in capture.snapshots if snapshot.argument]
    assert all(snapshot.changed is not None for snapshot in mlir)
    assert all((snapshot.text is not None) == bool(snapshot.changed) for snapshot in mlir)
    last_of = {snapshot.stage: capture.text_after(snapshot) for snapshot in mlir}
    assert last_of["ttgir"] == capture.ttgir
    none = again(product, "", snapshots="none")
    assert all(snapshot.text is None for snapshot in none.snapshots)
    assert any(snapshot.text_left_out for snapshot in none.snapshots)


def test_a_rule_that_names_nothing_is_an_error(product: Capture) -> None:
    with pytest.raises(PlanError, match=r"no pass is named 'ttgir:combine'\. The pipeline has combine, 1 in ttir"):
        PassPlan((PassRule.parse("ttgir:combine"),)).check(list(product.passes()))


def test_llvm_passes_are_a_group_of_their_own() -> None:
    capture = irscope.record(
        KERNELS / "no_torch.py",
        kernel="axpy",
        signature="*fp32:16, *fp32:16, i32:16, fp32",
        constexprs={"BLOCK": 256},
        llvm_passes=True,
    )
    llvm = list(capture.passes("llvm"))
    assert len(llvm) > 50
    changed = [snapshot for snapshot in llvm if snapshot.text is not None]
    assert 0 < len(changed) < len(llvm)
    assert {"llir"} <= {snapshot.stage for snapshot in llvm} <= {"llir", "ptx"}
    assert all(snapshot.group == "mlir" for snapshot in capture.passes())

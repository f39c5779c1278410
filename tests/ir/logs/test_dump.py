"""Logs of MLIR_ENABLE_DUMP and LLVM_IR_ENABLE_DUMP: real ones of four versions."""

from __future__ import annotations

import pytest

from irscope.ir.logs.dump import captures_from_log
from irscope.store.file import from_bytes, to_bytes
from tests.ir.dump_logs import DATA, TARGETS, VERSIONS, captures, labels, log


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_and_specialisations_are_told_apart(version: str, target: str) -> None:
    found = captures(f"{version}.{target}.mlir")
    assert [capture.name for capture in found] == ["add", "add", "calls", "dot", "dot"]
    assert [capture.launch.option("num_warps") for capture in found] == [1, 1, 1, 4, 2]
    assert len({capture.id for capture in found}) == 5
    assert {str(capture.target) for capture in found} == {"cuda:90" if target == "cuda90" else "hip:gfx942"}
    assert {capture.target.warp_size for capture in found} == {32 if target == "cuda90" else 64}
    assert "end = 64 : i32" in found[0].source
    assert "end = 128 : i32" in found[1].source


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_stages_are_where_the_pipeline_has_them(version: str, target: str) -> None:
    for capture in captures(f"{version}.{target}.mlir"):
        assert capture.stages == ("source", "ttir", "ttgir")
        first = {
            stage: next(each for each in capture.snapshots if each.stage == stage)
            for stage in ("ttir", "ttgir", "llir")
        }
        assert [snapshot.name for snapshot in first.values()] == [
            "inliner",
            "convert_to_ttgpuir",
            "combine_tensor_select_and_if" if target == "cuda90" else "update_async_wait_count",
        ]
        assert "ttg.num-warps" not in capture.ttir
        assert "ttg.num-warps" in capture.ttgir
        assert capture.text_before(first["ttgir"]) == capture.ttir
        assert capture.text_before(first["llir"]) == capture.ttgir


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_each_pass_found_what_the_log_printed_before_it(version: str, target: str) -> None:
    text = log(f"{version}.{target}.mlir")
    # Told apart by hand: what stands under each header, up to the blank line that MLIR prints behind a module.
    printed = [block.partition("\n")[2].rstrip("\n") + "\n" for block in text.split("// -----// IR Dump Before ")[1:]]
    printed = [block.partition("\n\n")[0].rstrip("\n") + "\n" for block in printed]
    position = 0
    for capture in captures(f"{version}.{target}.mlir"):
        for snapshot in capture.passes():
            before = capture.text_before(snapshot)
            while printed[position] != before:
                position += 1
            position += 1
    # What follows the last pass was printed within one (reconcile-unrealized-casts), or is nothing.
    assert len(printed) - position <= 1


def test_what_a_launch_was_is_read_from_the_ir() -> None:
    capture = captures("3.9.0.cuda90.mlir")[3]
    launch = capture.launch
    assert launch.signature == (("a", "*fp16"), ("b", "*fp16"), ("c", "*fp16"), ("K", "i32"))
    assert launch.attributes == tuple((name, "tt.divisibility=16") for name in "abc")
    lines = (DATA / "kernels.py").read_text().splitlines()
    assert launch.kernel.file == "kernels.py"
    assert lines[launch.kernel.line - 1].startswith("def dot")
    assert launch.option("num_stages") == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_the_last_pass_is_said_to_be_unknown(version: str) -> None:
    capture = captures(f"{version}.cuda90.mlir")[0]
    last = capture.snapshots[-1]
    assert (last.name, last.changed, last.text, last.text_left_out) == ("di_scope", None, None, True)
    assert any(last.label in note for note in capture.notes)
    assert all(snapshot.changed is not None for snapshot in capture.snapshots[:-1])


def test_only_what_changed_keeps_its_text() -> None:
    for capture in captures("3.6.0.hipgfx942.mlir"):
        for snapshot in capture.snapshots[:-1]:
            assert (snapshot.text is not None) == snapshot.changed
            if snapshot.changed:
                assert snapshot.text != capture.text_before(snapshot)


def test_names_arguments_and_options_of_both_forms_of_header() -> None:
    old = captures("3.6.0.cuda90.mlir")[0].snapshots
    new = captures("3.9.0.cuda90.mlir")[0].snapshots
    assert (old[0].name, old[0].argument, old[0].options) == ("inliner", "inline", "")
    assert (new[0].name, new[0].argument) == ("inliner", "inline")
    assert new[0].options == "default-pipeline=canonicalize inlining-threshold=4294967295 max-iterations=4"
    assert "tritongpu-remove-layout-conversions" in {snapshot.argument for snapshot in old}
    assert "ttgir:remove_layout_conversions#2" in labels(old)


def test_the_passes_that_a_pass_runs_within_itself_are_its_own() -> None:
    for name in ("3.6.0.cuda90.mlir", "3.9.0.cuda90.mlir"):
        for capture in captures(name):
            names = [snapshot.name for snapshot in capture.snapshots]
            # The inliner canonicalises each function, optimize_dot_operands the module, as they begin.
            assert {snapshot.scope for snapshot in capture.snapshots if snapshot.stage == "ttir"} == {""}
            last = len(names) - 1 - names[::-1].index("optimize_dot_operands")
            assert names[last + 1] == "coalesce_async_copy"
            assert "reconcile_unrealized_casts" not in names


def test_a_pass_over_several_functions_is_one_occurrence() -> None:
    capture = captures("3.9.0.hipgfx942.mlir")[2]
    hoisting = [snapshot for snapshot in capture.snapshots if snapshot.name == "hoist_layout_conversions"]
    assert {snapshot.occurrence for snapshot in hoisting} == {1}
    assert len({snapshot.scope for snapshot in hoisting}) == len(hoisting) == 3
    assert "calls" in {snapshot.scope for snapshot in hoisting}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_failed_pass_is_a_result(version: str) -> None:
    (capture,) = captures(f"{version}.failing")
    assert capture.status == "failed"
    assert capture.failure is not None
    assert capture.failure.pass_label == "llir:to_llvmir#1"
    assert "failed to legalize operation 'tt.descriptor_load'" in capture.failure.message
    assert "mlir_reproducer" not in capture.failure.diagnostics
    assert [snapshot.outcome for snapshot in capture.snapshots] == ["ran", "ran", "failed"]
    assert "unrealized_conversion_cast" in (capture.snapshots[-1].text or "")
    assert any("begins with" in note for note in capture.notes)


def test_a_pass_fails_and_the_next_compile_goes_on() -> None:
    text = log("3.9.0.failing") + log("3.9.0.cuda90.mlir")
    assert [capture.status for capture in captures_from_log(text, "")] == ["failed"] + ["ok"] * 5
    twice = captures_from_log(log("3.6.0.failing") * 2, "")
    assert [capture.status for capture in twice] == ["failed", "failed"]


# Every version's for one target, and the newest's for the other.
@pytest.mark.parametrize(
    ("version", "target"),
    [
        pytest.param(
            version, target, marks=pytest.mark.exhaustive if target != "cuda90" and version != VERSIONS[-1] else ()
        )
        for target in TARGETS
        for version in VERSIONS
    ],
)
def test_a_log_with_both_dumps_gives_both_groups(version: str, target: str) -> None:
    found = captures(f"{version}.{target}.stderr")
    assert [capture.name for capture in found] == ["add", "dot"]
    assembly = "ptx" if target == "cuda90" else "amdgcn"
    for capture in found:
        llvm = list(capture.passes("llvm"))
        assert {snapshot.stage for snapshot in llvm} == {"llir", assembly}
        assert [snapshot.index for snapshot in llvm] == list(range(len(llvm)))
        # Each pass is told of as often as it was printed, and in that order.
        assert len(llvm) > 150
        assert from_bytes(to_bytes(capture)) == capture
    assert next(labels(capture.passes()) for capture in found) == labels(
        captures(f"{version}.{target}.mlir")[0].passes()
    )

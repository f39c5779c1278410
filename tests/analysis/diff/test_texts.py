"""The structural comparison, on real passes and stages."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest

from irscope.analysis.diff.texts import Ignored, diff_texts
from irscope.render.text.diff import render_unified
from tests.analysis.patching import check
from tests.analysis.snapshots import DUMPS, KINDS, TEXTS, around, snapshots, stage_text
from tests.work import lines_run


@pytest.mark.parametrize("name", DUMPS)
def test_every_pass_makes_a_patch_that_applies(name: str) -> None:
    modules = [module for _, module in snapshots(name)]
    for before, after in pairwise(modules):
        diff = check(diff_texts(before, after, "mlir"))
        assert diff.fallback is None
        assert before != after or diff.is_empty


@pytest.mark.parametrize("name", DUMPS)
def test_with_nothing_ignored_the_left_lines_are_the_text(name: str) -> None:
    modules = [module for _, module in snapshots(name)][::7]
    for before, after in pairwise(modules):
        if len(before) + len(after) > 200_000:
            continue
        diff = check(diff_texts(before, after, "mlir", ignore=frozenset()))
        text = re.sub(r"  // (?:no predecessors|.* preds?:.*|pred: .*)", "", before)
        assert list(diff.left_lines) == [line for line in text.split("\n") if line.strip()]
        assert diff_texts(after, after, "mlir", ignore=frozenset()).is_empty


@pytest.mark.parametrize("name", TEXTS)
def test_later_stages(name: str) -> None:
    kind = KINDS[name.rpartition(".")[2]]
    four, eight = stage_text(name, 4), stage_text(name, 8)
    assert check(diff_texts(four, four, kind)).is_empty
    ignored: tuple[frozenset[Ignored], ...] = (
        frozenset({"locations"}),
        frozenset(),
        frozenset({"locations", "names", "attributes"}),
    )
    for ignore in ignored:
        diff = check(diff_texts(four, eight, kind, ignore=ignore))
        assert diff.fallback is None
        assert not diff.is_empty
        assert diff.counts["equal"] > len(diff.right_lines) / 4


def test_coalescing_changes_the_layouts_of_loads_and_stores(golden: Callable[[str, str], None]) -> None:
    before, after = around("matmul.cuda90", "TritonGPUCoalesce")
    diff = diff_texts(before, after, "mlir")
    changed = [diff.right_lines[entry.right.start].split()[2] for entry in diff.entries if entry.op == "changed"]
    assert changed.count("tt.load") == 2
    assert not diff.counts["removed"]
    golden("diff/coalesce.txt", render_unified(diff, context=1))


def test_accelerate_matmul_gives_the_dot_an_mma_layout(golden: Callable[[str, str], None]) -> None:
    before, after = around("matmul.cuda80", "TritonGPUAccelerateMatmul")
    diff = diff_texts(before, after, "mlir")
    (mma,) = [line for line in diff.right_lines if line.startswith("#mma")]
    assert "nvidia_mma" in mma
    assert mma not in diff.left_lines
    (dot,) = [
        entry for entry in diff.entries if entry.op == "changed" and "tt.dot" in diff.left_lines[entry.left.start]
    ]
    _, marks = diff.marks(dot)
    line = diff.right_lines[dot.right.start]
    assert any("#mma" in line[start:end] for start, end in marks)
    golden("diff/accelerate_matmul.txt", render_unified(diff, context=1))


def test_pipelining_multiplies_the_buffers(golden: Callable[[str, str], None]) -> None:
    before, after = around("matmul.cuda80", "TritonGPUPipeline")
    diff = diff_texts(before, after, "mlir")
    added = [diff.right_lines[line] for entry in diff.entries if entry.op == "added" for line in entry.right]
    buffers = [line for line in added if "ttg.local_alloc" in line]
    assert len(buffers) == 2
    assert all("memdesc<2x" in line or "memdesc<3x" in line for line in buffers)
    golden("diff/pipeline.txt", render_unified(diff, context=0))


def test_lowering_to_branches_keeps_the_body_of_the_loop() -> None:
    before, after = around("matmul.cuda80", "SCFToControlFlow")
    diff = check(diff_texts(before, after, "mlir"))
    assert diff.counts["equal"] > 0.9 * len(diff.left_lines)
    assert diff.counts["moved"] == 0


def test_motion_out_of_a_loop_is_a_move() -> None:
    left = """module {
  tt.func @f(%a: i32, %n: i32) {
    %0 = arith.constant 0 : i32
    scf.for %i = %0 to %n step %a  : i32 {
      %1 = arith.muli %a, %n : i32
      "test.use"(%1, %i) : (i32, i32) -> ()
    }
    tt.return
  }
}
"""
    lines = left.splitlines()
    right = "\n".join([*lines[:3], lines[4][2:], lines[3], *lines[5:], ""])
    diff = check(diff_texts(left, right, "mlir"))
    assert dict(diff.counts) == {"equal": 9, "moved": 1}
    there, back = (entry for entry in diff.entries if entry.op == "moved")
    first, second = (there, back) if there.left else (back, there)
    assert diff.left_lines[first.left.start] == lines[4]
    assert first.partner == second.right
    assert second.partner == first.left


def test_equal_constants_that_became_one_are_told_apart_from_changes() -> None:
    left = """module {
  %0 = arith.constant 7 : i32
  %1 = arith.constant 7 : i32
  %2 = "test.make"() : () -> i32
  %3 = arith.addi %2, %0 : i32
  %4 = arith.muli %2, %1 : i32
}
"""
    right = left.replace("  %1 = arith.constant 7 : i32\n", "").replace("%2, %1", "%2, %0")
    diff = check(diff_texts(left, right, "mlir"))
    assert diff.counts["removed"] == 1
    (changed,) = [entry for entry in diff.entries if entry.op == "changed"]
    assert changed.is_rewired


def test_what_is_ignored_does_not_count() -> None:
    left = 'module {\n  tt.func @f(%a: i32) {\n    %0 = "t.op"(%a) {n = 1 : i32} : (i32) -> i32 loc(#loc3)\n  }\n}\n'
    other_name, other_attribute = left.replace("@f", "@g"), left.replace("n = 1", "n = 2")
    assert not diff_texts(left, other_name, "mlir").is_empty
    assert not diff_texts(left, other_attribute, "mlir").is_empty
    assert check(diff_texts(left, other_name, "mlir", ignore=frozenset({"names"}))).is_empty
    assert check(diff_texts(left, other_attribute, "mlir", ignore=frozenset({"attributes", "locations"}))).is_empty
    assert diff_texts(left, left.replace("#loc3", "#loc4"), "mlir").is_empty
    assert not diff_texts(left, left.replace("#loc3", '"x.py":1:2'), "mlir", ignore=frozenset()).is_empty


def test_texts_that_cannot_be_read_are_compared_by_lines() -> None:
    diff = check(diff_texts("1 ;\n2 ;\n3 ;\n", "1 ;\n4 ;\n3 ;\n", "mlir"))
    assert diff.fallback is not None
    assert "line by line" in diff.fallback
    assert dict(diff.counts) == {"equal": 2, "removed": 1, "added": 1}


def test_kernels_with_nothing_in_common_end_fast_and_say_so() -> None:
    left = snapshots("matmul.cuda80")[0][1]
    right = snapshots("softmax.cuda90")[-1][1]
    diff = check(diff_texts(left, right, "mlir"))
    work = lines_run(lambda: diff_texts(left, right, "mlir"))
    assert work < 400 * (left.count("\n") + right.count("\n")), "no more than reading and anchoring them takes"
    assert diff.is_unrelated
    assert "nothing in common" in diff.summary


def test_empty_texts() -> None:
    assert check(diff_texts("", "", "mlir")).is_empty
    diff = check(diff_texts("", "module {\n}\n", "mlir"))
    assert dict(diff.counts) == {"added": 2}

"""Logs in forms that no installed Triton prints: older headers, prints after passes, other programs' words."""

from __future__ import annotations

import re

import pytest

from irscope.ir.logs.dump import captures_from_log
from irscope.ir.logs.dump_mlir import completed, read_mlir_dump
from tests.ir.dump_logs import LAYOUTS, LLVM, dump, labels, log, module


def test_headers_without_arguments() -> None:
    text = dump("IR Dump Before Inliner //----- //", module("k")) + dump(
        "IR Dump Before CSE //----- //", module("k", "", "%0 = x\n")
    )
    (only,) = read_mlir_dump(text)
    assert labels(only.snapshots) == ["ttir:inliner#1", "ttir:cse#1"]
    assert [snapshot.argument for snapshot in only.snapshots] == ["", ""]
    assert only.snapshots[0].changed is True


def test_prints_after_each_pass() -> None:
    text = dump("IR Dump After Inliner (inline) //----- //", module("k"))
    text += dump("IR Dump After CSE (cse) //----- //", module("k", "", "%0 = x\n    "))
    (only,) = read_mlir_dump(text)
    assert [snapshot.text for snapshot in only.snapshots] == [module("k"), module("k", "", "%0 = x\n    ")]
    assert [snapshot.changed for snapshot in only.snapshots] == [None, None]


def test_prints_before_and_after() -> None:
    text = dump("IR Dump Before Inliner (inline) //----- //", module("k"))
    text += dump("IR Dump After Inliner (inline) //----- //", module("k", "", "%0 = x\n    "))
    text += dump("IR Dump Before CSE (cse) //----- //", module("k", "", "%0 = x\n    "))
    (only,) = read_mlir_dump(text)
    assert [snapshot.changed for snapshot in only.snapshots] == [True, None]
    assert only.snapshots[0].text == module("k", "", "%0 = x\n    ")


def test_ir_files_and_compiles_that_begin_in_the_middle() -> None:
    builtin = "('builtin.module' operation) //----- //"
    once = dump(f"IR Dump Before SCFToControlFlow (convert-scf-to-cf) {builtin}", module("k", LAYOUTS))
    once += dump(f"IR Dump Before Canonicalizer (canonicalize) {builtin}", LLVM)
    found = captures_from_log(once * 2, "")
    assert [labels(capture.snapshots) for capture in found] == [["llir:scf_to_cf#1", "llir:canonicalizer#1"]] * 2
    assert [capture.stages for capture in found] == [("ttgir",)] * 2
    assert str(found[0].target) == "cuda:80"
    assert found[0].launch.option("num_warps") == 8


def test_another_kernel_is_another_compile() -> None:
    builtin = "('builtin.module' operation) //----- //"
    text = dump(f"IR Dump Before CSE (cse) {builtin}", module("k", LAYOUTS))
    text += dump(f"IR Dump Before CSE (cse) {builtin}", module("other", LAYOUTS))
    assert [item.kernel for item in read_mlir_dump(text)] == ["k", "other"]


def test_gluon_inlines_twice_in_one_compile() -> None:
    builtin = "('builtin.module' operation) //----- //"
    once = dump(f"IR Dump Before GluonInline (gluon-inline) {builtin}", module("k", LAYOUTS))
    once += dump(f"IR Dump Before SCFToControlFlow (convert-scf-to-cf) {builtin}", module("k", LAYOUTS))
    once += dump(f"IR Dump Before GluonInline (gluon-inline) {builtin}", module("k", LAYOUTS))
    found = captures_from_log(once * 2, "")
    expected = ["ttgir:inliner#1", "llir:scf_to_cf#1", "llir:inliner#1"]
    assert [labels(capture.snapshots) for capture in found] == [expected] * 2
    assert found[0].stages == ("source", "ttgir")


def test_other_programs_words_are_passed_over() -> None:
    text = log("3.9.0.cuda90.mlir")
    quiet = captures_from_log(text, "")
    loud = re.sub(r"\n\n(?=// -----//)", "\n\nepoch 1: loss 0.1 }\n{\n#1 warning\n", text)
    loud = loud.replace("// -----// IR Dump Before CSEPass", "50%|#### | // -----// IR Dump Before CSEPass")
    found = captures_from_log("Traceback:\n  module {\n" + loud, "")
    assert [capture.snapshots for capture in found] == [capture.snapshots for capture in quiet]


@pytest.mark.parametrize(
    "text", ["", "\n", "module {\n}\n", "// -----// IR Dump", "no log at all", "// -----// IR Dump Before\n"]
)
def test_what_is_no_log_has_no_compile(text: str) -> None:
    assert all(not capture.artifacts for capture in captures_from_log(text, ""))


def test_what_a_stage_made_completes_it() -> None:
    text = dump("IR Dump Before Inliner (inline) //----- //", module("k"))
    (only,) = read_mlir_dump(text)
    whole = completed(only, {"ttir": module("k", "", "%0 = x\n    ")})
    assert whole.snapshots[0].changed is True
    assert not any("does not hold" in note for note in whole.notes)
    assert completed(only, {"ttir": module("k")}).snapshots[0].changed is False
    assert completed(only, {}) == only

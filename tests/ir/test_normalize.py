"""Canonical names."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.analysis.diff import diff_texts
from irscope.capture import StageKind
from irscope.ir.normalize import normalize
from tests.analysis.planting import renumbered
from tests.analysis.snapshots import KINDS, TEXTS, distinct_modules, stage_text

ALL_TEXTS = [(stage_text(name, warps), KINDS[name.rpartition(".")[2]]) for name in TEXTS for warps in (4, 8)]


def test_values_labels_aliases_and_locations_get_numbers_in_order() -> None:
    text = """#b7 = #ttg.blocked<{order = [0]}>
#b2 = #ttg.blocked<{order = [1]}>
#loc = loc("k.py":1:1)
module {
  tt.func @k(%n: i32 loc("n"(#loc))) {
    %acc_3:2 = "a.b"(%n) : (i32) -> (tensor<4xi32, #b2>, tensor<4xi32, #b7>) loc(#loc)
    cf.br ^bb7(%acc_3#1 : tensor<4xi32, #b7>) loc(#loc)
  ^bb7(%x: tensor<4xi32, #b7>):  // pred: ^bb0
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
    assert (
        normalize(text, "mlir")
        == """#blocked = #ttg.blocked<{order = [1]}>
#blocked1 = #ttg.blocked<{order = [0]}>
module {
  tt.func @k(%0: i32) {
    %1:2 = "a.b"(%0) : (i32) -> (tensor<4xi32, #blocked>, tensor<4xi32, #blocked1>)
    cf.br ^bb0(%1#1 : tensor<4xi32, #blocked1>)
  ^bb0(%2: tensor<4xi32, #blocked1>):
    tt.return
  }
}
"""
    )


def test_symbols_and_attributes_go_where_they_are_ignored() -> None:
    text = 'module {\n  tt.func @k(%n: i32 {a = 1}) {\n    "x.y"(%n) <{b}> {c = 2} : (i32) -> ()\n  }\n}\n'
    assert normalize(text, "mlir", frozenset({"names"})) == text.replace("@k", "@_").replace("%n", "%0")
    assert normalize(text, "mlir", frozenset({"attributes"})) == (
        'module {\n  tt.func @k(%0: i32) {\n    "x.y"(%0) : (i32) -> ()\n  }\n}\n'
    )


def test_llvm_ir_loses_debug_information_and_keeps_its_meaning() -> None:
    text = """; ModuleID = 'm'
define void @f(ptr %0, i32 %n) #3 !dbg !9 {
  br label %2
2:                                                ; preds = %1
  %x = load i32, ptr %0, align 4, !dbg !12, !range !7
  ret void
}
attributes #3 = { nounwind }
!7 = !{i32 0, i32 8}
!9 = distinct !DISubprogram(name: "f", file: !10)
!12 = !DILocation(line: 1, column: 2, scope: !9)
"""
    assert (
        normalize(text, "llvm")
        == """define void @f(ptr %0, i32 %1) #0 {
  br label %3
3:
  %4 = load i32, ptr %0, align 4, !range !0
  ret void
}
attributes #0 = { nounwind }
!0 = !{i32 0, i32 8}
"""
    )


def test_virtual_registers_are_numbered_by_class_and_physical_ones_stay() -> None:
    ptx = "{\n\t.reg .b32 \t%r<9>;\n\tmov.u32 \t%r7, %tid.x;\n\tcvt.u64.u32 \t%rd9, %r7;\n$L__BB0_3:\n\tret;\n}\n"
    assert normalize(ptx, "ptx").split("\n")[1:5] == [
        "    .reg .b32 %r<>;",
        "    mov.u32 %r0, %tid.x;",
        "    cvt.u64.u32 %rd0, %r0;",
        "$L0:",
    ]
    sass = "        /*0010*/  @P0 IADD3 R5, R4, R3, RZ ;  /* 0x01 */\n.L_x_7:\n"
    assert normalize(sass, "sass") == "    @P0 IADD3 R5, R4, R3, RZ ;\n.L_0:\n"


@pytest.mark.parametrize(("text", "kind"), ALL_TEXTS, ids=[f"{n}-{w}" for n in TEXTS for w in (4, 8)])
def test_normalizing_twice_changes_nothing_more(text: str, kind: StageKind) -> None:
    once = normalize(text, kind)
    assert normalize(once, kind) == once
    assert diff_texts(text, once, kind).is_empty


@given(st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_modules_that_differ_in_names_become_one_text(rng: random.Random) -> None:
    text = rng.choice(distinct_modules(40_000))
    once = normalize(text, "mlir")
    assert normalize(renumbered(text, rng), "mlir") == once
    assert normalize(once, "mlir") == once


@given(st.text(max_size=300), st.sampled_from(["mlir", "llvm", "ptx", "sass", "amdgcn", "binary"]))
@settings(max_examples=300, deadline=None)
def test_no_text_makes_it_raise(text: str, kind: StageKind) -> None:
    normalize(text, kind)

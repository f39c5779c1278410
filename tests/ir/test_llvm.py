"""Reading LLVM IR."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.ir.counts import operation_counts
from irscope.ir.llvm import parse_llvm
from tests.analysis.snapshots import stage_text


def test_functions_blocks_and_instructions() -> None:
    text = stage_text("softmax.hipgfx942.llir")
    (function,) = parse_llvm(text).functions
    lines = text.split("\n")
    assert function.name == "softmax"
    assert lines[function.line - 1].startswith("define")
    assert function.blocks[0].label == f"%{len(function.arguments)}"
    for instruction in function.instructions:
        line = lines[instruction.line - 1].strip()
        assert re.sub(r", !dbg !\d+", "", line) == instruction.text
        assert instruction.opcode
        assert not instruction.result or function.definition(instruction.result) is instruction
        for operand in instruction.operands:
            assert instruction in function.uses(operand)
    called = [line for line in lines if " call " in line and " asm " not in line]
    assert sum(bool(instruction.callee) for instruction in function.instructions) == len(called)


def test_labels_may_be_named_or_numbered_and_follow_their_use() -> None:
    text = """define i32 @f(i32 %a) {
  br label %then
then:
  %x = phi i32 [ %a, %0 ]
  ret i32 %x
}
declare void @g()
"""
    (function,) = parse_llvm(text).functions
    assert [block.label for block in function.blocks] == ["%0", "%then"]
    phi = function.definition("%x")
    assert phi is not None
    assert phi.operands == ("%a", "%0")


def test_counts_are_of_whole_words() -> None:
    text = """define void @add(ptr %p) {
  %1 = addrspacecast ptr %p to ptr addrspace(1)
  %2 = tail call i32 @add.add(i32 1)
  ret void
}
"""
    assert operation_counts(text, "llvm") == {"addrspacecast": 1, "call": 1, "ret": 1}
    assert operation_counts('module {\n  "a.addi"() : () -> ()\n  %0 = arith.addi %1, %1 : i32\n}\n', "mlir") == {
        "builtin.module": 1,
        "a.addi": 1,
        "arith.addi": 1,
    }
    assert operation_counts(stage_text("softmax.cuda90.sass"), "sass")["SHFL.BFLY"] == 14
    assert operation_counts(stage_text("softmax.cuda90.ptx"), "ptx")["shfl.sync.bfly.b32"] == 14
    amd = operation_counts(stage_text("softmax.hipgfx942.amdgcn"), "amdgcn")
    assert amd["s_barrier"] == 3
    assert not any(name.startswith((".", "amdhsa")) for name in amd)


@given(st.text(alphabet=' \n%@!#:=,"{}()[]define0a;', max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_text_makes_it_raise(text: str) -> None:
    for instruction in parse_llvm(text).instructions:
        assert instruction.line >= 1

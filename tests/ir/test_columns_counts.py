"""Operation counts, against what other readers count."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from irscope.ir.asm.control_flow import read_functions
from irscope.ir.columns import operation_counts
from tests.analysis.snapshots import stage_text

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("path", sorted((DATA / "diff").glob("*.sass.xz")), ids=lambda path: path.name)
def test_sass_counts_are_its_instructions(path: Path) -> None:
    from irscope.ir.asm.sass import format_sass, parse_sass

    text = format_sass(
        [function.without_padding() for function in parse_sass(lzma.decompress(path.read_bytes()).decode())]
    )
    instructions = [item for function in read_functions(text, "sass") for item in function.instructions]
    counts = operation_counts(text, "sass")
    assert counts.total() == len(instructions) > 50
    assert counts["EXIT"] == sum(item.opcode == "EXIT" for item in instructions) > 0


def test_a_name_is_a_whole_token() -> None:
    text = "define void @k() {\n  %1 = add i32 1, 2\n  %2 = addrspacecast ptr %p to ptr addrspace(1)\n  ret void\n}\n"
    assert operation_counts(text, "llvm") == {"add": 1, "addrspacecast": 1, "ret": 1}


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

"""The LLVM IR of an AMD kernel as instructions that a CTA executes."""

from __future__ import annotations

from irscope.ir.asm.llvm_threads import llvm_threads

TEXT = """
define amdgpu_kernel void @kernel(ptr addrspace(1) %0) {
  %2 = tail call i32 @llvm.amdgcn.workitem.id.x()
  %3 = trunc i32 %2 to i3
  %4 = tail call i3 @llvm.bitreverse.i3(i3 %3)
  %5 = tail call i32 @llvm.ctpop.i32(i32 %2)
  %6 = tail call i32 @llvm.umin.i32(i32 %2, i32 %5)
  ret void
}
"""


def test_what_depends_on_the_width_has_the_exact_one() -> None:
    function = llvm_threads(TEXT, "kernel", 64)
    assert function is not None
    opcodes = [item.opcode for item in function.instructions]
    assert [one for one in opcodes if one.startswith(("brev", "popc", "min"))] == ["brev.b3", "popc.b32", "min.u32"]

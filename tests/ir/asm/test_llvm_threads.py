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


ASSEMBLY_AND_BUFFERS = """
define amdgpu_kernel void @kernel(ptr addrspace(1) %0, <4 x float> %1) {
  %3 = tail call float asm "v_exp_f32 $0, $1", "=v,v"(float 1.0)
  %4 = tail call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %0, i16 0, i64 64, i32 1)
  tail call void @llvm.amdgcn.raw.ptr.buffer.store.v4f32(<4 x float> %1, ptr addrspace(8) %4, i32 32, i32 0, i32 0)
  store <2 x float> zeroinitializer, ptr addrspace(1) %0, align 8
  ret void
}
"""


def test_inline_assembly_is_passed_and_stores_have_their_addresses_and_widths() -> None:
    function = llvm_threads(ASSEMBLY_AND_BUFFERS, "kernel", 64)
    assert function is not None
    items = [(item.opcode, *item.operands) for item in function.instructions]
    assert ("cvt.u64.u32", "%4@", "32") in items
    assert [item[:2] for item in items if item[0].startswith("st.")] == [
        ("st.global.v4.b32", "[%4@+0]"), ("st.global.v2.b32", "[%0+0]"),
    ]  # fmt: skip

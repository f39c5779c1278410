"""A capture whose memory over time is known, without a compiler."""

from __future__ import annotations

from irscope.model.capture import Artifact, Capture, Kernel, Launch, PassSnapshot, Target

TEXT = """#loc = loc("k<&>.py":7:1)
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, ttg.shared = 120000 : i32, ttg.target = "cuda:120"} {
  tt.func public @kernel(%x: tensor<8xi8, #blocked>, %more: i1) {
    %a = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<60000xi8, #shared, #smem, mutable> loc(#loc)
    %b = ttg.local_alloc {allocation.offset = 60000 : i32} : () -> !ttg.memdesc<60000xi8, #shared, #smem, mutable>
    ttg.local_dealloc %a : !ttg.memdesc<60000xi8, #shared, #smem, mutable>
    %y = ttg.convert_layout %x {allocation.offset = 8 : i32, allocation.size = 16 : i32} : tensor<8xi8, #blocked> -> \
tensor<8xi8, #other>
    ttg.local_dealloc %b : !ttg.memdesc<60000xi8, #shared, #smem, mutable>
    cf.br ^bb1
  ^bb1:
    cf.cond_br %more, ^bb1, ^bb2
  ^bb2:
    tt.return
  }
}
"""


def too_large() -> Capture:
    """120000 bytes of shared memory for a cuda:120, which has 101376."""
    snapshot = PassSnapshot(0, "llir", "allocate_shared_memory_nv", 1, changed=True, text=TEXT)
    launch = Launch(Kernel("kernel", "k.py"), options=(("num_stages", 1),))
    return Capture(launch, Target.parse("cuda:120"), artifacts=(Artifact("ttgir", TEXT),), snapshots=(snapshot,))

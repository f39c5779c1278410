"""Runs a pass on a module that it cannot convert: MLIR then prints the module after the pass too.

    python failing.py
"""

import contextlib
import tempfile

import triton
from triton._C.libtriton import ir, nvidia, passes

# Triton 3.8 no longer takes a tensor within a descriptor's type.
DESCRIPTOR = "128xf32" if triton.__version__ >= "3.8" else "tensor<128xf32>"
MODULE = f"""
#blocked = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>
module attributes {{"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @broken(%x: !tt.tensordesc<{DESCRIPTOR}>, %at: i32) {{
    %0 = tt.descriptor_load %x[%at] : !tt.tensordesc<{DESCRIPTOR}> -> tensor<128xf32, #blocked>
    tt.descriptor_store %x[%at], %0 : !tt.tensordesc<{DESCRIPTOR}>, tensor<128xf32, #blocked>
    tt.return
  }}
}}
"""

context = ir.context()
ir.load_dialects(context)
nvidia.load_dialects(context)
with tempfile.NamedTemporaryFile("w", suffix=".ttgir") as file:
    file.write(MODULE)
    file.flush()
    module = ir.parse_mlir_module(file.name, context)
module.context = context
manager = ir.pass_manager(context)
manager.enable_debug()
passes.common.add_canonicalizer(manager)
passes.convert.add_scf_to_cf(manager)
try:
    nvidia.passes.ttgpuir.add_to_llvmir(manager, 90, 80)
except TypeError:
    # Triton 3.8 alone asks whether the concurrency sanitizer is on.
    nvidia.passes.ttgpuir.add_to_llvmir(manager, 90, 80, False)
with contextlib.suppress(RuntimeError):
    manager.run(module, "failing")

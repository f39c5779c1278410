"""An autotuned kernel that updates its argument, launched three times."""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024})], key=["n"], restore_value=["x_ptr"])
@triton.jit
def increase_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, offsets < n) + 1.0, offsets < n)


x = torch.zeros(10_000, device="cuda")
for _ in range(3):
    increase_kernel[lambda meta: (triton.cdiv(10_000, meta["BLOCK"]),)](x, 10_000)
assert bool((x == 3).all()), "three launches add three"

"""A launch that waits for what never comes."""

import torch
import triton
import triton.language as tl


@triton.jit
def wait_kernel(flag_ptr, out_ptr):
    while tl.load(flag_ptr, volatile=True) == 0:
        tl.store(out_ptr, 1)


flag = torch.zeros(1, dtype=torch.int32, device="cuda")
wait_kernel[(1,)](flag, torch.zeros_like(flag))
torch.cuda.synchronize()
print("not reached")

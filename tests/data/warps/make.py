"""A persistent matrix product whose loop is warp-specialised."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def ws_matmul(a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(pid, tiles_m * tiles_n, tl.num_programs(0), warp_specialize=True, num_stages=1):
        m = tile // tiles_n * BM
        n = tile % tiles_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK, num_stages=3):
            a = a_desc.load([m, k])
            b = b_desc.load([n, k])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([m, n], acc.to(tl.float16))


def main() -> None:
    """Launch it."""
    a = torch.randn(1024, 512, device="cuda", dtype=torch.float16)
    b = torch.randn(1024, 512, device="cuda", dtype=torch.float16)
    c = torch.empty(1024, 1024, device="cuda", dtype=torch.float16)
    tiles = (
        TensorDescriptor.from_tensor(one, list(block))
        for one, block in ((a, (128, 64)), (b, (128, 64)), (c, (128, 128)))
    )
    ws_matmul[(64,)](*tiles, 1024, 1024, 512, 128, 128, 64, num_warps=4)


main()

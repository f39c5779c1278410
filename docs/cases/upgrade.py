"""An upgrade: an attention that fits its registers by Triton 3.6, and spills by Triton 3.9.

docs/cases/upgrade.md explains it. Flops: 4 * heads * n * n * d.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, nq, nk, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64)
    queries = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + (head * nq + queries[:, None]) * D + dims, mask=queries[:, None] < nq, other=0.0)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for first in range(0, nk, BLOCK_N):
        rows = (head * nk + first + keys)[:, None]
        mask = (first + keys)[:, None] < nk
        k = tl.load(k_ptr + rows * D + dims, mask=mask, other=0.0)
        scores = tl.dot(q, k.T) * scale
        scores = tl.where((first + keys)[None, :] < nk, scores, -float("inf"))
        new_largest = tl.maximum(largest, tl.max(scores, axis=1))
        rescale = tl.exp2(largest - new_largest)
        weights = tl.exp2(scores - new_largest[:, None])
        total = total * rescale + tl.sum(weights, axis=1)
        acc = acc * rescale[:, None]
        v = tl.load(v_ptr + rows * D + dims, mask=mask, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc)
        largest = new_largest
    out = (acc / total[:, None]).to(tl.float16)
    tl.store(out_ptr + (head * nq + queries[:, None]) * D + dims, out, mask=queries[:, None] < nq)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block_n: int, num_stages: int) -> torch.Tensor:
    """Return the attention of `q` [heads, nq, d] over `k` and `v` [heads, nk, d], scaled by 1 / sqrt(d)."""
    (heads, nq, d), out = q.shape, torch.empty_like(q)
    # The kernel computes powers of two: log2(e) turns them into those of e.
    scale = 1.4426950408889634 / d**0.5
    attention_kernel[(triton.cdiv(nq, 128), heads)](
        q, k, v, out, nq, k.shape[1], scale, D=d, BLOCK_M=128, BLOCK_N=block_n, num_warps=8, num_stages=num_stages
    )
    return out


def before(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v, block_n=128, num_stages=2)


def after(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v, block_n=64, num_stages=3)


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = (q.double() @ k.double().mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ v.double()


def arguments(large: bool = False) -> tuple[torch.Tensor, ...]:
    """Return queries, keys and values, in the size to check or the one to time."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    heads, n = (64, 4096) if large else (4, 512)
    return torch.randn((3, heads, n, 128), device=device, dtype=torch.float16).unbind()


def main() -> None:
    torch.manual_seed(0)
    given = arguments()
    expected = reference(*given)
    for function in (before, after):
        error = (function(*given).double() - expected).norm() / expected.norm()
        print(f"{function.__name__}: relative error {error.item():.2e}")
        if not error.item() <= 1e-2:
            sys.exit("upgrade: the result is not torch's")


if __name__ == "__main__":
    main()

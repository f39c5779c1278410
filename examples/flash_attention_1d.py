"""Attend over numbers in one pass: z[i] = sum over j of softmax over j of (q[i] * k[j]), times v[j].

Bytes moved at least: (2 * nq + 2 * nk) * element size. Flops: about 6 * nq * nk, and nq * nk exponentials.
docs/examples.md#flash_attention_1d says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def attention_1d_kernel(
    q_ptr, k_ptr, v_ptr, z_ptr, nq, nk,
    stride_q, stride_k, stride_v,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    LOG2_E: tl.constexpr = 1.4426950408889634
    queries = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    q = tl.load(q_ptr + queries * stride_q, mask=queries < nq, other=0.0).to(tl.float32) * LOG2_E
    largest = tl.full((BLOCK_Q,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    for start in range(0, nk, BLOCK_K):
        keys = start + tl.arange(0, BLOCK_K)
        mask = keys < nk
        k = tl.load(k_ptr + keys * stride_k, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + keys * stride_v, mask=mask, other=0.0).to(tl.float32)
        # Queries lie along the lanes and keys inside a thread, so that no sum over keys leaves its thread.
        scores = tl.where(mask[:, None], k[:, None] * q[None, :], -float("inf"))
        new_largest = tl.maximum(largest, tl.max(scores, axis=0))
        # What was summed under the old maximum is brought to the new one.
        rescale = tl.exp2(largest - new_largest)
        weights = tl.exp2(scores - new_largest[None, :])
        total = total * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum(weights * v[:, None], axis=0)
        largest = new_largest
    tl.store(z_ptr + queries, acc / total, mask=queries < nq)


def attention_1d(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return the attention of the queries `q` [nq] over the keys `k` [nk] and the values `v` [nk]."""
    if q.ndim != 1 or k.ndim != 1 or k.shape != v.shape or k.numel() == 0:
        raise ValueError(f"q [nq], k [nk] and v [nk] are needed, not {[*q.shape]}, {[*k.shape]} and {[*v.shape]}")
    nq, nk = q.numel(), k.numel()
    z = torch.empty(nq, device=q.device, dtype=q.dtype)
    block_q, block_k = 64, 64
    attention_1d_kernel[(triton.cdiv(nq, block_q),)](
        q, k, v, z, nq, nk, q.stride(0), k.stride(0), v.stride(0), BLOCK_Q=block_q, BLOCK_K=block_k, num_warps=2
    )
    return z


def torch_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return the same attention by torch's own operations."""
    return torch.softmax(q[:, None] * k[None, :], dim=1) @ v


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(n: int) -> None:
    """Print the median time of `n` float32 queries over `n` keys, beside torch's."""
    q, k, v = torch.randn(3, n, device="cuda").unbind()
    ours_ms = triton.testing.do_bench(lambda: attention_1d(q, k, v), return_mode="median")
    torch_ms = triton.testing.do_bench(lambda: torch_attention(q, k, v), return_mode="median")
    print(f"n={n}: {ours_ms:.4f} ms ({n * n * 1e-9 / ours_ms:.3f} T exponentials/s), torch {torch_ms:.4f} ms")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    def random(n: int) -> torch.Tensor:
        return torch.randn(n, device=device)

    cases = {
        "aligned": (random(1024), random(1024), random(1024)),
        "odd lengths": (random(301), random(1517), random(1517)),
        "every second": (random(400)[::2], random(700)[::2], random(700)[::2]),
        "large scores": (30 * random(100), 30 * random(500), random(500)),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: attention_1d(*case) for name, case in cases.items()}
    torch.use_deterministic_algorithms(False)
    references = {name: torch_attention(*(t.double() for t in case)) for name, case in cases.items()}
    good = [check(name, out, references[name], 1e-4) for name, out in outs.items()]
    if not all(good):
        sys.exit("flash_attention_1d: the result is not torch's")
    if device == "cuda":
        benchmark(4096)
        if "--bench" in sys.argv[1:]:
            benchmark(65536)


if __name__ == "__main__":
    main()

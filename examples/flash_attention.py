"""Attend in one pass over the keys, causal or not: softmax(q @ k.T * scale) @ v, the scores never leaving the chip.

Flops: 4 * batch * heads * nq * nk * d, half of it when causal. Bytes moved at least: 4 * batch * heads * (nq + nk) * d.
docs/examples.md#flash_attention says what the compiler makes of it.
"""

import math
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    acc, total, largest, q, k_ptr, v_ptr, queries, start, end, nk, scale,
    stride_kn, stride_kd, stride_vn, stride_vd,
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Fold the keys from `start` to `end` into the running sum, total and maximum of each query."""
    dims = tl.arange(0, BLOCK_D)[None, :]
    dim_mask = dims < D
    for first_key in tl.range(start, end, BLOCK_N):
        keys = first_key + tl.arange(0, BLOCK_N)
        offsets = keys[:, None].to(tl.int64)
        mask = dim_mask & (keys[:, None] < nk) if MASKED else dim_mask
        k = tl.load(k_ptr + offsets * stride_kn + dims * stride_kd, mask=mask, other=0.0)
        scores = tl.dot(q, k.T)
        if MASKED:
            visible = keys[None, :] < nk
            if CAUSAL:
                visible = visible & (keys[None, :] <= queries[:, None])
            scores = tl.where(visible, scores, -float("inf"))
        # Scaling here is free: it becomes one fused multiply and add with the subtraction below.
        new_largest = tl.maximum(largest, tl.max(scores, axis=1) * scale)
        # What was summed under the old maximum is brought to the new one.
        rescale = tl.exp2(largest - new_largest)
        weights = tl.exp2(scores * scale - new_largest[:, None])
        total = total * rescale + tl.sum(weights, axis=1)
        acc = acc * rescale[:, None]
        v = tl.load(v_ptr + offsets * stride_vn + dims * stride_vd, mask=mask, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc)
        largest = new_largest
    return acc, total, largest


def tile_config(block_m: int, block_n: int, num_warps: int, num_stages: int) -> triton.Config:
    """Return the autotuner's form of one tile shape: queries a program, and keys a turn of its loop."""
    return triton.Config({"BLOCK_M": block_m, "BLOCK_N": block_n}, num_warps=num_warps, num_stages=num_stages)


# A shape that needs more shared memory than a device has is dropped by the autotuner.
@triton.autotune(
    configs=[
        tile_config(128, 128, num_warps=8, num_stages=2),
        tile_config(128, 64, num_warps=8, num_stages=3),
        tile_config(128, 64, num_warps=4, num_stages=3),
        tile_config(64, 64, num_warps=4, num_stages=2),
    ],
    key=["nq", "nk", "D", "CAUSAL"],
)
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, z_ptr, heads, nq, nk, scale,
    stride_qb, stride_qh, stride_qn, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_zb, stride_zh, stride_zn, stride_zd,
    D: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    LOG2_E: tl.constexpr = 1.4426950408889634
    # The last queries come first: when causal they have the most keys, and work that starts last should be short.
    first_query = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    q_ptr += batch * stride_qb + head * stride_qh + first_query.to(tl.int64) * stride_qn
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh
    z_ptr += batch * stride_zb + head * stride_zh + first_query.to(tl.int64) * stride_zn

    rows = tl.arange(0, BLOCK_M)
    queries = first_query + rows
    dims = tl.arange(0, BLOCK_D)[None, :]
    query_mask = (queries[:, None] < nq) & (dims < D)
    q = tl.load(q_ptr + rows[:, None] * stride_qn + dims * stride_qd, mask=query_mask, other=0.0)
    # The change of base turns exp into exp2, the one the hardware has.
    scale *= LOG2_E

    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    # Tiles of keys that every query sees in full need no mask; what is left, the diagonal and the end, does.
    end = tl.minimum(nk, first_query + BLOCK_M) if CAUSAL else nk
    full = (tl.minimum(nk, first_query + 1) if CAUSAL else nk) // BLOCK_N * BLOCK_N
    acc, total, largest = attend(
        acc, total, largest, q, k_ptr, v_ptr, queries, 0, full, nk, scale,
        stride_kn, stride_kd, stride_vn, stride_vd, D, BLOCK_N, BLOCK_D, CAUSAL, MASKED=False,
    )  # fmt: skip
    acc, total, largest = attend(
        acc, total, largest, q, k_ptr, v_ptr, queries, full, end, nk, scale,
        stride_kn, stride_kd, stride_vn, stride_vd, D, BLOCK_N, BLOCK_D, CAUSAL, MASKED=True,
    )  # fmt: skip
    z = acc / total[:, None]
    tl.store(z_ptr + rows[:, None] * stride_zn + dims * stride_zd, z.to(z_ptr.dtype.element_ty), mask=query_mask)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """Return the attention of `q` [batch, heads, nq, d] over `k` and `v` [batch, heads, nk, d], scaled by 1 / sqrt(d).

    When causal, query i sees the keys 0 to i. Raises ValueError where the shapes do not fit or d is over 128.
    """
    if q.ndim != 4 or k.shape != v.shape or k.shape != (*q.shape[:2], k.shape[2], q.shape[3]) or k.shape[2] == 0:
        raise ValueError(f"q, k, v of one batch, heads and d are needed, not {[*q.shape]}, {[*k.shape]}, {[*v.shape]}")
    batch, heads, nq, d = q.shape
    if d > 128:
        raise ValueError(f"heads of at most 128 numbers are needed, not {d}")
    z = torch.empty(q.shape, device=q.device, dtype=q.dtype)
    attention_kernel[lambda meta: (triton.cdiv(nq, meta["BLOCK_M"]), batch * heads)](
        q, k, v, z, heads, nq, k.shape[2], 1 / math.sqrt(d), *q.stride(), *k.stride(), *v.stride(), *z.stride(),
        D=d, BLOCK_D=max(16, triton.next_power_of_2(d)), CAUSAL=causal,
    )  # fmt: skip
    return z


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(batch: int, heads: int, n: int, d: int) -> None:
    """Print the median time of one float16 attention, full and causal, beside torch's."""
    q, k, v = torch.randn(3, batch, heads, n, d, device="cuda", dtype=torch.float16).unbind()
    sdpa = torch.nn.functional.scaled_dot_product_attention
    for causal in (False, True):
        teraflops = 4 * batch * heads * n * n * d * (0.5 if causal else 1) * 1e-12
        ours_ms = triton.testing.do_bench(lambda causal=causal: attention(q, k, v, causal), return_mode="median")
        torch_ms = triton.testing.do_bench(lambda causal=causal: sdpa(q, k, v, is_causal=causal), return_mode="median")
        print(
            f"{batch}x{heads}x{n}x{d}{' causal' if causal else ''}: {ours_ms:.4f} ms "
            f"({teraflops / ours_ms * 1e3:.0f} TFLOP/s), torch {torch_ms:.4f} ms ({teraflops / torch_ms * 1e3:.0f})"
        )


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    def half(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device, dtype=torch.float16)

    cases = {
        "d 64": (half(2, 4, 256, 64), half(2, 4, 256, 64), half(2, 4, 256, 64), False),
        "d 64, causal": (half(2, 4, 256, 64), half(2, 4, 256, 64), half(2, 4, 256, 64), True),
        "d 128, odd lengths": (half(1, 2, 301, 128), half(1, 2, 217, 128), half(1, 2, 217, 128), False),
        "d 128, odd lengths, causal": (half(1, 2, 301, 128), half(1, 2, 301, 128), half(1, 2, 301, 128), True),
        "d 40, batch x n x heads x d in memory": (*(half(2, 200, 3, 40).transpose(1, 2) for _ in range(3)), True),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: attention(*case) for name, case in cases.items()}
    torch.use_deterministic_algorithms(False)
    good = []
    for name, (q, k, v, causal) in cases.items():
        scores = q.double() @ k.double().mT / math.sqrt(q.shape[-1])
        if causal:
            hidden = torch.ones(scores.shape[-2:], device=device, dtype=torch.bool).triu(diagonal=1)
            scores = scores.masked_fill(hidden, -float("inf"))
        good.append(check(name, outs[name], scores.softmax(dim=-1) @ v.double(), 2e-3))
    if not all(good):
        sys.exit("flash_attention: the result is not torch's")
    if device == "cuda":
        benchmark(1, 8, 1024, 64)
        if "--bench" in sys.argv[1:]:
            benchmark(4, 32, 4096, 64)
            benchmark(4, 32, 4096, 128)


if __name__ == "__main__":
    main()

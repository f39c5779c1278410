"""Ten kernels of the usual kinds and their launches, for planted mistakes: `ten_kernels.py KERNEL DTYPE`."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask, -float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * columns + offsets, e / tl.sum(e, 0), mask)


@triton.jit
def softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    y = tl.load(y_ptr + row * stride + offsets, mask, 0.0)
    dy = tl.load(dy_ptr + row * stride + offsets, mask, 0.0)
    total = tl.sum(y * dy, 0).to(y.dtype)
    tl.store(dx_ptr + row * columns + offsets, y * (dy - total), mask)


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask, 0.0).to(tl.float32)
    mean = tl.sum(x, 0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, 0) / columns
    w = tl.load(w_ptr + offsets, mask, 0.0).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask, 0.0).to(tl.float32)
    tl.store(out_ptr + row * columns + offsets, centred * tl.rsqrt(variance + 1e-5) * w + b, mask)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, size, inner, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    ks = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, inner, K):
        mask = start + ks < inner
        a = tl.load(a_ptr + rows[:, None] * inner + (start + ks)[None, :], mask[None, :], 0.0)
        b = tl.load(b_ptr + (start + ks)[:, None] * size + columns[None, :], mask[:, None], 0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + rows[:, None] * size + columns[None, :], total)


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, size, scale, HEAD: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    head = tl.arange(0, HEAD)
    base = tl.program_id(1) * size * HEAD
    q = tl.load(q_ptr + base + rows[:, None] * HEAD + head[None, :])
    top = tl.full((M,), -float("inf"), tl.float32)
    sums = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, HEAD), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * M, N):
        columns = start + tl.arange(0, N)
        k = tl.load(k_ptr + base + columns[None, :] * HEAD + head[:, None])
        scores = tl.dot(q, k, input_precision="ieee") * scale
        scores = tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))
        fresh = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - fresh[:, None])
        shrink = tl.exp(top - fresh)
        sums = sums * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + base + columns[:, None] * HEAD + head[None, :])
        total = tl.dot(p.to(v.dtype), v, total * shrink[:, None], input_precision="ieee")
        top = fresh
    tl.store(out_ptr + base + rows[:, None] * HEAD + head[None, :], total / sums[:, None])


@triton.jit
def cross_entropy_kernel(x_ptr, label_ptr, loss_ptr, dx_ptr, columns, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(label_ptr + row)
    top = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + offsets, offsets < columns, -float("inf")).to(tl.float32)
        fresh = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - fresh) + tl.sum(tl.exp(x - fresh), 0)
        top = fresh
    target = tl.load(x_ptr + row * columns + label).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + top - target)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + offsets, offsets < columns, -float("inf")).to(tl.float32)
        p = tl.exp(x - top) / total
        p = tl.where(offsets == label, p - 1.0, p)
        tl.store(dx_ptr + row * columns + offsets, p / rows, offsets < columns)


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, HALF: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, HALF)
    left = tl.load(x_ptr + row * 2 * HALF + offsets)
    right = tl.load(x_ptr + row * 2 * HALF + HALF + offsets)
    cos = tl.load(cos_ptr + row * HALF + offsets)
    sin = tl.load(sin_ptr + row * HALF + offsets)
    tl.store(out_ptr + row * 2 * HALF + offsets, left * cos - right * sin)
    tl.store(out_ptr + row * 2 * HALF + HALF + offsets, right * cos + left * sin)


@triton.jit
def gelu_kernel(x_ptr, gate_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask).to(tl.float32)
    gate = tl.load(gate_ptr + offsets, mask).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, y * gate, mask)


@triton.jit
def column_sums_kernel(x_ptr, dy_ptr, out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    cols = tl.program_id(0) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, rows, M):
        row = start + tl.arange(0, M)
        mask = (row < rows)[:, None] & (cols < columns)[None, :]
        x = tl.load(x_ptr + row[:, None] * columns + cols[None, :], mask, 0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row[:, None] * columns + cols[None, :], mask, 0.0).to(tl.float32)
        total += x * dy
    tl.store(out_ptr + cols, tl.sum(total, 0), cols < columns)


@triton.jit
def histogram_kernel(x_ptr, sums_ptr, counts_ptr, n, bins, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask, 0.0).to(tl.float32)
    bin = offsets % bins
    tl.atomic_add(sums_ptr + bin, x, mask)
    tl.atomic_add(counts_ptr + bin, 1, mask)


PLANTS = {
    "softmax_kernel": [
        ('tl.load(x_ptr + row * stride + offsets, mask, -float("inf"))', "tl.load(x_ptr + row * stride + offsets)"),
        ("row * stride + offsets, mask, -", "(row ^ 1) * stride + offsets, mask, -"),
        ('-float("inf")).to', "0.0).to"),
        ("row * columns + offsets, e", "row * columns + (offsets ^ 1), e"),
        ("e / tl.sum(e, 0)", "e / tl.sum(tl.where(offsets == 7, 0.0, e), 0)"),
    ],
    "softmax_backward_kernel": [
        (
            "offsets, mask, 0.0)\n    dy = tl.load(dy_ptr + row * stride + offsets, mask, 0.0)",
            "offsets)\n    dy = tl.load(dy_ptr + row * stride + offsets)",
        ),
        ("dy_ptr + row", "dy_ptr + (row ^ 1)"),
        ("(dy - total)", "dy"),
        ("tl.sum(y * dy, 0)", "tl.sum(tl.where(offsets < 32, 0.0, y * dy), 0)"),
    ],
    "layer_norm_kernel": [
        ("x_ptr + row * stride + offsets, mask, 0.0", "x_ptr + row * stride + offsets"),
        ("tl.where(mask, x - mean, 0.0)", "x - mean"),
        ("w_ptr + offsets, mask", "w_ptr + (offsets ^ 1), mask"),
        ("tl.sum(x, 0) / columns", "tl.sum(x, 0) / BLOCK"),
        ("b_ptr + offsets", "w_ptr + offsets"),
    ],
    "matmul_kernel": [
        ("range(0, inner, K)", "range(0, inner - K, K)"),
        ("mask = start + ks < inner", "mask = start + ks >= 0"),
        ("(start + ks)[:, None] * size + columns", "(tl.maximum(start - K, 0) + ks)[:, None] * size + columns"),
        ("(start + ks)[:, None] * size", "(start + (ks ^ 1))[:, None] * size"),
        ("a_ptr + rows[:, None]", "a_ptr + tl.where(rows == 37, 38, rows)[:, None]"),
    ],
    "attention_kernel": [
        ('tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))', "scores"),
        ("rows[:, None] >= columns[None, :]", "rows[:, None] + 1 >= columns[None, :]"),
        ("sums * shrink + tl.sum(p, 1)", "sums + tl.sum(p, 1)"),
        ("v_ptr + base + columns[:, None]", "v_ptr + base + tl.maximum(columns - N, 0)[:, None]"),
        ("columns[None, :] * HEAD + head[:, None]", "(columns ^ 1)[None, :] * HEAD + head[:, None]"),
    ],
    "cross_entropy_kernel": [
        (
            'offsets < columns, -float("inf")).to(tl.float32)\n        fresh',
            "offsets < columns, 0.0).to(tl.float32)\n        fresh",
        ),
        ("tl.load(label_ptr + row)", "tl.load(label_ptr + (row ^ 1))"),
        ("total * tl.exp(top - fresh) +", "total +"),
        ("p / rows, off", "p, off"),
        ("tl.exp(x - top) / total", "tl.exp(x - top) / (total - 1.0)"),
    ],
    "rope_kernel": [
        ("cos_ptr + row", "cos_ptr + (row ^ 1)"),
        ("left * cos - right * sin", "left * cos + right * sin"),
        ("sin_ptr + row * HALF + offsets", "sin_ptr + row * HALF + (offsets ^ 1)"),
        ("HALF + HALF + offsets)\n    cos", "HALF + offsets)\n    cos"),
    ],
    "gelu_kernel": [
        ("gate_ptr + offsets", "gate_ptr + (offsets ^ 1)"),
        ("tl.erf(x * 0.7071067811865476)", "tl.erf(x)"),
        ("y * gate", "y"),
        ("x_ptr + offsets, mask", "x_ptr + offsets, mask & (offsets != 4097), 0.0"),
    ],
    "column_sums_kernel": [
        ("(row < rows)[:, None] & (cols", "(row < rows + 1)[:, None] & (cols"),
        ("range(0, rows, M)", "range(M, rows, M)"),
        ("range(0, rows, M)", "range(0, rows - M, M)"),
        ("dy_ptr + row[:, None]", "dy_ptr + tl.maximum(row - M, 0)[:, None]"),
        ("dy_ptr + row[:, None] * columns + cols", "dy_ptr + row[:, None] * columns + (cols ^ 1)"),
    ],
    "histogram_kernel": [
        ("offsets % bins", "offsets // 2 % bins"),
        ("sums_ptr + bin, x, mask", "sums_ptr + bin, x, mask & (offsets != 77)"),
        ("mask = offsets < n", "mask = offsets < n - 1"),
        ("counts_ptr + bin, 1, mask", "counts_ptr + bin, 1, mask & (offsets != 78)"),
    ],
}
"""Kernel → (what stands in it, what stands there instead): a mistake each."""


def launch(name: str, dtype: torch.dtype) -> None:
    """Launch one of the kernels once, on random tensors."""
    torch.manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device="cuda").to(dtype)

    def empty(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return torch.empty(*shape, device="cuda", dtype=kind)

    if name == "softmax_kernel":
        softmax_kernel[(256,)](normal(257, 1000), empty(256, 1000), 1000, 1000, BLOCK=1024)
    elif name == "softmax_backward_kernel":
        y = torch.softmax(torch.randn(257, 1000, device="cuda"), 1).to(dtype)
        softmax_backward_kernel[(256,)](y, normal(257, 1000), empty(256, 1000), 1000, 1000, BLOCK=1024)
    elif name == "layer_norm_kernel":
        x = (torch.randn(257, 1000, device="cuda") + 0.5).to(dtype)
        layer_norm_kernel[(256,)](x, normal(1001), normal(1001), empty(256, 1000), 1000, 1000, BLOCK=1024)
    elif name == "matmul_kernel":
        a, b = normal(258, 1000)[:256], normal(1064, 256)[:1000]
        matmul_kernel[(4, 4)](a, b, empty(256, 256), 256, 1000, M=64, N=64, K=32)
    elif name == "attention_kernel":
        q, k, v = (normal(8, 512, 64) for _ in range(3))
        attention_kernel[(8, 8)](q, k, v, torch.empty_like(q), 512, 0.125, HEAD=64, M=64, N=64)
    elif name == "cross_entropy_kernel":
        labels = torch.randint(0, 5000, (128,), device="cuda")
        cross_entropy_kernel[(128,)](
            normal(128, 5000), labels, empty(128, kind=torch.float32), empty(128, 5000), 5000, 128, BLOCK=2048
        )
    elif name == "rope_kernel":
        angle = torch.arange(512.0, device="cuda")[:, None] * torch.rand(64, device="cuda")
        rope_kernel[(512,)](normal(512, 128), angle.cos().to(dtype), angle.sin().to(dtype), empty(512, 128), HALF=64)
    elif name == "gelu_kernel":
        gelu_kernel[(98,)](normal(100_004), normal(100_004), empty(100_000), 100_000, BLOCK=1024)
    elif name == "column_sums_kernel":
        x, dy = normal(1001, 700), normal(1001, 700)
        column_sums_kernel[(11,)](x, dy, empty(700, kind=torch.float32), 1000, 700, M=32, N=64)
    elif name == "histogram_kernel":
        sums = torch.zeros(512, device="cuda")
        counts = torch.zeros(512, device="cuda", dtype=torch.int32)
        histogram_kernel[(98,)](normal(100_000), sums, counts, 100_000, 512, BLOCK=1024)
    else:
        raise SystemExit(f"no kernel {name!r}: they are {', '.join(PLANTS)}")


if __name__ == "__main__":
    launch(sys.argv[1], getattr(torch, sys.argv[2]))
    torch.cuda.synchronize()

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({}, num_warps=4), triton.Config({}, num_warps=8)], key=["n"])
@triton.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + at, at < n, -float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * n + at, values / tl.sum(values, 0), at < n)


@triton.jit
def scale(out, x, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * factor, at < n)


def main():
    x = torch.randn(32, 100, device="cuda")
    out = torch.empty_like(x)
    softmax[32,](out, x, 100, BLOCK=128)
    scale[13,](out, x, 0.5, 3200, BLOCK=256)
    scale[25,](out, x, 2.0, 3200, BLOCK=128)


if __name__ == "__main__":
    main()

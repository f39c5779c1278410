"""A product whose loop Triton gives to warps of their own: some copy, others multiply."""

import torch
import triton
import triton.language as tl

SIZE, TILE, STEP = 512, 128, 64


@triton.jit
def product(a, b, c, n, tile: tl.constexpr, step: tl.constexpr):
    row, column = tl.program_id(0) // (n // tile) * tile, tl.program_id(0) % (n // tile) * tile
    left = tl.make_tensor_descriptor(a, [n, n], [n, 1], [tile, step])
    right = tl.make_tensor_descriptor(b, [n, n], [n, 1], [step, tile])
    result = tl.make_tensor_descriptor(c, [n, n], [n, 1], [tile, tile])
    total = tl.zeros((tile, tile), tl.float32)
    for k in tl.range(0, n, step, warp_specialize=True, num_stages=3):
        total = tl.dot(left.load([row, k]), right.load([k, column]), total)
    result.store([row, column], total.to(tl.float16))


def main() -> None:
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    a, b, c = (torch.empty((SIZE, SIZE), device="cuda", dtype=torch.float16) for _ in range(3))
    product[((SIZE // TILE) ** 2,)](a, b, c, SIZE, tile=TILE, step=STEP, num_warps=4)


if __name__ == "__main__":
    main()

"""Launches a kernel of each example, and the Triton kernels of Liger where that is installed, once and small.

It asks which GPU it is on and chooses by that: `many_kernels.py [NAME...]` runs only the functions of those names.
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))


def f16(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.float16)


def f32(*shape):
    return torch.randn(shape, device="cuda")


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * scale, mask=offsets < n)


def by_capability():
    """The warps by the GPU, an unaligned view, a length that no 16 divides, and a default left to the backend."""
    major = torch.cuda.get_device_capability()[0]
    x = f32(4097)
    scale_kernel[(33,)](x[1:], x, 4001, 1.5, BLOCK=128, num_warps=8 if major >= 9 else 4)
    scale_kernel[(33,)](x, x, 4096, 1.5, BLOCK=128)


def elementwise():
    from matrix_copy import matrix_copy
    from matrix_transpose import matrix_transpose
    from mul_relu_backward import mul_relu_backward
    from vector_add import vector_add

    vector_add(f32(4096), f32(4096))
    matrix_copy(f32(512, 512))
    matrix_transpose(f32(512, 512))
    mul_relu_backward(f32(512), f32(512), f32(512, 512))


def rows():
    from cross_entropy import cross_entropy
    from layer_norm import layer_norm
    from softmax import softmax

    softmax(f32(512, 1024))
    cross_entropy(f16(512, 4096), torch.zeros(512, device="cuda", dtype=torch.int64))
    x, weight, bias = (f16(*shape).requires_grad_() for shape in ((512, 1024), (1024,), (1024,)))
    layer_norm(x, weight, bias).sum().backward()


def products():
    from batched_matmul import batched_matmul
    from flash_attention import attention
    from flash_attention_1d import attention_1d
    from matmul import matmul_naive
    from matmul_tma import matmul as matmul_tma

    matmul_naive(f16(512, 512), f16(512, 512))
    batched_matmul(f16(64, 64, 64), f16(64, 64, 64))
    attention_1d(f32(256), f32(256), f32(256))
    attention(f16(1, 2, 512, 64), f16(1, 2, 512, 64), f16(1, 2, 512, 64))
    matmul_tma(f16(512, 512), f16(512, 512))


def liger():
    from liger_kernel.transformers import functional as F

    x, weight = f16(512, 1024).requires_grad_(), f16(1024).requires_grad_()
    F.liger_rms_norm(x, weight, 1e-5).sum().backward()
    F.liger_layer_norm(x, weight, f16(1024).requires_grad_(), 1e-5).sum().backward()
    F.liger_swiglu(x, f16(512, 1024).requires_grad_()).sum().backward()
    F.liger_geglu(x, f16(512, 1024).requires_grad_()).sum().backward()
    labels = torch.zeros(512, device="cuda", dtype=torch.int64)
    F.liger_cross_entropy(f16(512, 4096).requires_grad_(), labels)
    query, key = (f16(2, 8, 128, 64).requires_grad_() for _ in range(2))
    sines = f16(1, 128, 64)
    F.liger_rope(query, key, sines, sines)[0].sum().backward()
    F.liger_softmax(x)


def main():
    names = sys.argv[1:] or ["by_capability", "elementwise", "rows", "products", "liger"]
    for name in names:
        try:
            globals()[name]()
        except Exception as error:
            # A kernel may be refused for a part: what is launched is compared with the same program's.
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)


main()

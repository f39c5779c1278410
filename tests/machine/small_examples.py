"""Launches each kernel of the examples once, at a small and odd size, or a few of them: a script to record."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import batched_matmul
import cross_entropy
import flash_attention
import flash_attention_1d
import gluon_transpose
import layer_norm
import matmul
import matmul_tma
import matrix_copy
import matrix_transpose
import mul_relu_backward
import softmax
import vector_add


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype)


half = torch.float16
vector_add.vector_add(random(2500), random(2500))
matrix_transpose.matrix_transpose(random(70, 150))
softmax.softmax(random(9, 300))
matmul.matmul_naive(random(130, 70, dtype=half), random(70, 140, dtype=half))
matmul_tma.matmul(random(130, 200, dtype=half), random(200, 264, dtype=half))
flash_attention.attention(*(random(1, 2, 150, 64, dtype=half) for _ in range(3)), causal=True)
if "few" not in sys.argv:
    matrix_copy.matrix_copy(random(70, 150))
    gluon_transpose.matrix_transpose(random(70, 150))
    target = torch.tensor([3, 8999, 0, 77, 5], device="cuda")
    cross_entropy.cross_entropy(random(5, 9000, dtype=torch.bfloat16), target)
    mul_relu_backward.mul_relu_backward(random(150), random(300), random(300, 150))
    flash_attention_1d.attention_1d(random(100), random(130), random(130))
    x = random(6, 200, dtype=torch.bfloat16).requires_grad_()
    weight, bias = (random(200, dtype=torch.bfloat16).requires_grad_() for _ in range(2))
    layer_norm.layer_norm(x, weight, bias).backward(random(6, 200, dtype=torch.bfloat16))
    matmul.matmul(random(130, 70, dtype=half), random(70, 140, dtype=half))
    batched_matmul.batched_matmul(random(5, 40, 33, dtype=half), random(5, 33, 50, dtype=half))

"""The backward pass of the examples' layer normalisation at 16384 by 8192 bfloat16, once."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import layer_norm

x = torch.randn(16384, 8192, device="cuda", dtype=torch.bfloat16, requires_grad=True)
weight, bias = (torch.randn(8192, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
layer_norm.layer_norm(x, weight, bias).backward(torch.randn_like(x))
assert x.grad is not None
assert x.grad.isfinite().all()

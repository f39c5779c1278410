"""Flash attention of the examples at 4 batches, 32 heads, 4096 rows and a head of 64, once."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import flash_attention

q, k, v = torch.randn(3, 4, 32, 4096, 64, device="cuda", dtype=torch.float16).unbind()
out = flash_attention.attention(q, k, v)
expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
assert (out - expected).norm() <= 1e-2 * expected.norm()

"""The matmul of `thin.py`, autotuned over two configs: what stands in for examples/matmul.py and its 28 variants."""

import torch
import triton
from thin import tile_product

tuned = triton.autotune([triton.Config({}, num_warps=2), triton.Config({}, num_warps=4)], key=["size"])(tile_product)
a, b = (torch.randn(shape, device="cuda", dtype=torch.float16) for shape in ((32, 256), (256, 16)))
tuned[(1,)](a, b, torch.empty(32, 16, device="cuda"), 256, ROWS=32, COLUMNS=16)

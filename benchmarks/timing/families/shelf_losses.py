"""Losses, softmaxes and embeddings of released libraries: liger, Transformer Engine and fla.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.libraries import released

_HALF, _BRAIN, _LONG = torch.float16, torch.bfloat16, torch.int64


@released(
    "liger_kernel", "ops/tvd", "_tv_distance_kernel", num_warps=16, BLOCK_SIZE=16384, HAS_LABEL=False, reduction=3
)
def shelf_liger_variation() -> Any:
    """Total variation of 4,096 rows of 32,000 bfloat16 and its slopes, in blocks of 16,384."""
    left, right, slopes = (uniform(4096, 32000, dtype=_BRAIN) for _ in range(3))
    strided = left, 32000, right, 32000, zeros(4096), 1, slopes, 32000
    return (4096,), *strided, empty(1), -100, 32000, 1 / 4096


@released(
    "liger_kernel", "ops/kl_div", "_kldiv_kernel_forward", num_warps=16,
    BLOCK_SIZE=16384, reduction=3, log_target=False,
)  # fmt: skip
def shelf_liger_divergence() -> Any:
    """Kullback–Leibler divergence of 4,096 rows of 50,257 float32."""
    guess, target = normal(4096, 50257), uniform(4096, 50257)
    return (4096,), guess, 50257, target, 50257, zeros(4096), 1, 50257, 1e-10


@released("liger_kernel", "ops/kl_div", "_kldiv_kernel_backward", num_warps=16, BLOCK_SIZE=16384, log_target=True)
def shelf_liger_divergence_backward() -> Any:
    """Slopes of that divergence from logarithms, 4,096 rows of 32,000 bfloat16."""
    target, slopes = -uniform(4096, 32000, dtype=_BRAIN), empty(4096, 32000, dtype=_BRAIN)
    return (4096,), target, 32000, slopes, 32000, 32000


@released("liger_kernel", "ops/softmax", "_softmax_single_block_forward_kernel", num_warps=16, BLOCK_SIZE=8192)
def shelf_liger_softmax() -> Any:
    """Softmax of 16,384 rows of 8,000 float32, one block a row."""
    x, out = normal(16384, 8000), empty(16384, 8000)
    return (16384,), out, 8000, x, 8000, 8000


@released("liger_kernel", "ops/sparsemax", "_sparsemax_forward_kernel", num_warps=8, BLOCK_SIZE=4096)
def shelf_liger_sparsemax() -> Any:
    """Sparsemax of 16,384 rows of 4,096 bfloat16 whose sorted float32 are given: a running sum in each."""
    x, out = normal(16384, 4096, dtype=_BRAIN), empty(16384, 4096, dtype=_BRAIN)
    ordered = (4 - uniform(4096).cumsum(0) / 256).expand(16384, 4096).contiguous()
    return (16384,), x, 4096, ordered, 4096, out, 4096, 4096


@released("liger_kernel", "ops/sparsemax", "_sparsemax_backward_kernel", num_warps=8, BLOCK_SIZE=4096)
def shelf_liger_sparsemax_backward() -> Any:
    """Slopes of sparsemax, 16,384 rows of 4,096 bfloat16 read twice."""
    out, slopes, into = (normal(16384, 4096, dtype=_BRAIN) for _ in range(3))
    return (16384,), out, slopes, into, 4096, 4096


@released(
    "liger_kernel", "ops/experimental/embedding", "embedding_forward_kernel",
    embedding_dim=2048, BLOCK_SIZE_M=128, BLOCK_SIZE_N=128,
)  # fmt: skip
def shelf_liger_embedding() -> Any:
    """32,768 of 128,256 rows of 2,048 bfloat16, in tiles of 128 × 128."""
    weights, out = normal(128256, 2048, dtype=_BRAIN), empty(32768, 2048, dtype=_BRAIN)
    return (256, 16), weights, indices(128256, 32768, dtype=_LONG), out, 32768


@released(
    "liger_kernel", "ops/experimental/embedding", "embedding_backward_kernel",
    embedding_dim=768, BLOCK_SIZE_M=128, BLOCK_SIZE_N=128,
)  # fmt: skip
def shelf_liger_embedding_backward() -> Any:
    """Rows of 768 float32 added atomically to 65,536 of 50,257 rows."""
    slopes, sums = normal(65536, 768), zeros(50257, 768)
    return (512, 6), slopes, sums, indices(50257, 65536, dtype=_LONG), 65536


@released(
    "transformer_engine", "common/triton/cross_entropy", "cross_entropy_forward_kernel", num_warps=32,
    label_smoothing=0.1, COUNT_NON_IGNORE=True, COPY_INPUT=True, BLOCK_SIZE=32768,
)  # fmt: skip
def shelf_engine_entropy() -> Any:
    """Cross entropy of 2,048 rows of 128,256 bfloat16, which are copied, 1,024 threads a row."""
    x, kept = normal(1, 2048, 128256, dtype=_BRAIN), empty(1, 2048, 128256, dtype=_BRAIN)
    outs = empty(2048), empty(2048, 2), zeros(1, dtype=_LONG)
    return (2048,), x, *x.stride(), kept, indices(128256, 2048, dtype=_LONG), *outs, 128256, 2048, -100


@released(
    "transformer_engine", "common/triton/cross_entropy", "cross_entropy_backward_kernel", num_warps=32,
    reduce_loss=True, label_smoothing=0.1, BLOCK_SIZE=32768,
)  # fmt: skip
def shelf_engine_entropy_backward() -> Any:
    """Slopes of cross entropy in place, 4,096 rows of 50,304 bfloat16."""
    x, labels = normal(4096, 50304, dtype=_BRAIN), indices(50304, 4096, dtype=_LONG)
    stats, count = uniform(4096, 2) + 1, indices(1, 1, dtype=_LONG) + 4096
    return (4096,), x, labels, stats, count, uniform(1), 0, 0, 1, 50304, -100


@released("fla", "ops/utils/logsumexp", "logsumexp_fwd_kernel", num_warps=16, HAS_SCALE=False)
def shelf_fla_log_sums() -> Any:
    """Logarithms of sums of exponentials of 8,192 rows of 32,000 bfloat16, one block a row."""
    return (8192, 1), normal(8192, 32000, dtype=_BRAIN), empty(8192, 1), None, 32000, 32768


@released("fla", "ops/utils/softmax", "softmax_bwd_kernel", num_warps=4)
def shelf_fla_softmax_backward() -> Any:
    """Slopes of the softmax of 131,072 rows of 512 float32."""
    out, slopes, into = uniform(131072, 512), normal(131072, 512), empty(131072, 512)
    return (131072,), out, slopes, into, 512, 512

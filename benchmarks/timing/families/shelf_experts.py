"""Experts of released libraries: tokens that are routed, permuted, multiplied and summed, of moe-ops and others.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

import random
from typing import Any

import torch
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, table, uniform, zeros
from benchmarks.timing.libraries import released

_BRAIN = torch.bfloat16


def _permutation(*shape: int) -> torch.Tensor:
    """Each number below the product of `shape` once."""
    count = torch.Size(shape).numel()
    return table(torch.randperm(count, generator=torch.Generator().manual_seed(35)).view(shape))


def _starts(groups: int, total: int) -> torch.Tensor:
    """Where each of `groups` groups of rows of different lengths begins, and where the last ends."""
    cuts = sorted(random.Random(35).sample(range(1, total), groups - 1))
    return table([0, *cuts, total])


def _routes(tokens: int, experts: int, chosen: int) -> torch.Tensor:
    """For each token the rows of its copies, then their experts, then their number."""
    generator = torch.Generator().manual_seed(35)
    rows = torch.zeros(tokens, 2 * experts + 1, dtype=torch.int32)
    rows[:, :chosen] = torch.randperm(tokens * chosen, generator=generator).view(tokens, chosen)
    rows[:, experts : experts + chosen] = torch.rand(tokens, experts, generator=generator).argsort(1)[:, :chosen]
    rows[:, 2 * experts] = chosen
    return table(rows)


@released(
    "moe_ops", "grouped_gemm_ops", "gmm_forward_kernel", num_warps=4, num_stages=4,
    BLOCK_SIZE_M=128, BLOCK_SIZE_N=128, BLOCK_SIZE_K=64, TRANS_B=True, BLOCK_DTYPE=tl.bfloat16,
)  # fmt: skip
def shelf_moe_products() -> Any:
    """24,576 rows of 2,048 bfloat16 by the 1,408 × 2,048 of their expert, of 64; most programs have no rows."""
    x, weights = normal(24576, 2048, dtype=_BRAIN), normal(64, 1408, 2048, dtype=_BRAIN)
    return (192, 11, 64), x, weights, empty(24576, 1408, dtype=_BRAIN), _starts(64, 24576), 1408, 2048, 2048, 1408


@released(
    "moe_ops", "grouped_gemm_ops", "gmm_gradB_kernel", num_warps=4, num_stages=4,
    BLOCK_SIZE_M=32, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128, BLOCK_DTYPE=tl.bfloat16,
)  # fmt: skip
def shelf_moe_products_backward() -> Any:
    """Slopes of 64 experts' 1,408 × 2,048 from their rows of 24,576, bfloat16."""
    slopes, x = normal(24576, 1408, dtype=_BRAIN), normal(24576, 2048, dtype=_BRAIN)
    return (11, 16, 64), slopes, x, empty(64, 1408, 2048, dtype=_BRAIN), _starts(64, 24576), 2048, 1408, 1408, 2048


@released("moe_ops", "permute_ops", "_group_offsets_kernel")
def shelf_moe_count() -> Any:
    """Histograms of 2^22 experts of 128, in blocks of 2,048, summed and added atomically."""
    return (2048,), indices(128, 1 << 22), zeros(129, dtype=torch.int32), 1 << 22, 128, 2048, 1


@released("moe_ops", "unpermute_ops", "_unpermute_kernel", num_warps=4, BLOCK_C=2048)
def shelf_moe_sum() -> Any:
    """Weighted sums of 6 rows of 2,048 bfloat16 at listed places for 16,384 tokens."""
    rows, weights, out = normal(98304, 2048, dtype=_BRAIN), uniform(16384, 6), empty(16384, 2048, dtype=_BRAIN)
    return (16384,), rows, _permutation(98304), weights, out, 16384, 2048, 6, *_strides(rows, weights, out)


def _strides(*tensors: torch.Tensor) -> list[int]:
    return [stride for tensor in tensors for stride in tensor.stride()]


@released("moe_ops", "unpermute_ops", "_unpermute_bwd_kernel", num_warps=8, BLOCK_C=2048, BLOCK_K=8)
def shelf_moe_sum_backward() -> Any:
    """Slopes of those sums to rows and weights, 16,384 tokens of 6 rows of 2,048 bfloat16."""
    slopes, rows, into = (normal(count, 2048, dtype=_BRAIN) for count in (16384, 98304, 98304))
    weights, sums = uniform(16384, 6), empty(16384, 6)
    strides = _strides(slopes, rows, into, weights, sums)
    return (16384,), slopes, rows, _permutation(98304), weights, into, sums, 16384, 2048, 6, *strides


@released("moe_ops", "fused_topk_softmax_ops", "_fused_topk_softmax_fwd_kernel_2d", num_warps=2)
def shelf_moe_choose() -> Any:
    """The 8 greatest of 256 float32 of 65,536 tokens, by 8 passes of maxima, and their softmax."""
    logits, weights, chosen = normal(65536, 256), empty(65536, 8), empty(65536, 8, dtype=torch.int32)
    return (2048,), logits, weights, chosen, 65536, 256, 8, 32, 256, 8


@released("moe_ops", "fused_topk_softmax_ops", "_fused_topk_softmax_bwd_kernel_2d", num_warps=4)
def shelf_moe_choose_backward() -> Any:
    """Slopes of the softmax of the chosen 8 of 256, scattered to the rows of 262,144 tokens."""
    count = 1 << 18
    slopes, weights, out = normal(count, 8), uniform(count, 8), zeros(count, 256)
    chosen = (indices(32, count, 8) + table([32 * place for place in range(8)])).to(torch.int32)
    return (2048,), slopes, weights, chosen, out, count, 256, 8, 128, 8


_PERMUTATION = "common/triton/permutation"


@released(
    "transformer_engine", _PERMUTATION, "_permute_kernel",
    num_experts=8, hidden_size=4096, PERMUTE_PROBS=True, PERMUTE_SCALE=False, FUSION_PAD=False, BLOCK_SIZE=1024,
)  # fmt: skip
def shelf_engine_permute() -> Any:
    """16,384 rows of 4,096 bfloat16, each to the places of its two experts, with their weights."""
    x, out = normal(16384, 4096, dtype=_BRAIN), empty(32768, 4096, dtype=_BRAIN)
    weights, moved = uniform(16384, 8), empty(32768)
    given = x, _routes(16384, 8, 2), weights, None, None, None, out, moved, 0, 16384, 32768
    strides = 17, 1, 4096, 1, 4096, 1, 8, 1, None, None, 1, None, None
    return (16384, 4), *given, *strides, out, moved


@released(
    "transformer_engine", _PERMUTATION, "_unpermute_kernel", num_experts=64, hidden_size=2048,
    PROBS_LOAD_WIDTH=64, WITH_MERGING_PROBS=True, PERMUTE_PROBS=False, FUSION_UNPAD=False, BLOCK_SIZE=512,
)  # fmt: skip
def shelf_engine_unpermute() -> Any:
    """Sums of 6 rows of 2,048 bfloat16 by their weights, of 64 experts, for 16,384 tokens."""
    rows, out, weights = normal(98304, 2048, dtype=_BRAIN), empty(16384, 2048, dtype=_BRAIN), uniform(16384, 64)
    given = rows, _routes(16384, 64, 6), weights, None, None, out, None
    strides = 129, 1, 2048, 1, 2048, 1, 64, 1, None, None, None
    return (16384, 4), *given, *strides, out, None


@released(
    "transformer_engine", _PERMUTATION, "_unpermute_bwd_with_merging_probs_kernel",
    num_experts=64, hidden_size=2048, PROBS_LOAD_WIDTH=64, FUSION_UNPAD=False, BLOCK_SIZE=2048,
)  # fmt: skip
def shelf_engine_unpermute_backward() -> Any:
    """Slopes of those sums to rows and weights, a program for each of 16,384 tokens."""
    slopes, rows, into = (normal(count, 2048, dtype=_BRAIN) for count in (16384, 98304, 98304))
    weights, sums = uniform(16384, 64), empty(16384, 64)
    strides = 129, 1, 2048, 1, 2048, 1, 2048, 1, 64, 1, 64, 1
    return (16384,), slopes, rows, weights, _routes(16384, 64, 6), None, *strides, into, sums


@released(
    "transformer_engine", _PERMUTATION, "_sort_chunks_by_map_kernel",
    hidden_size=7168, PERMUTE_PROBS=True, BLOCK_SIZE=4096, FORWARD=True,
)  # fmt: skip
def shelf_engine_sort() -> Any:
    """32,768 rows of 7,168 bfloat16 and a weight of each to listed places."""
    x, out = normal(32768, 7168, dtype=_BRAIN), empty(32768, 7168, dtype=_BRAIN)
    arguments = x, _permutation(32768), uniform(32768), out, 7168, 1, 7168, 1, 1, 1
    return (32768, 2), *arguments, out, empty(32768)


@released(
    "transformer_engine", "common/triton/grouped_dbias_dscales", "_grouped_dbias_kernel", num_warps=4, num_stages=2,
    HAS_SCALES=True, N_ROW_SPLITS=4, BLOCK_M=128, BLOCK_H=128,
)  # fmt: skip
def shelf_engine_bias_backward() -> Any:
    """Sums of the rows of 16 experts, 32,768 of 4,096 bfloat16, weighted, and slopes of the weights."""
    slopes, sums, shifts = normal(32768, 4096, dtype=_BRAIN), zeros(16, 4096), normal(16, 4096, dtype=_BRAIN)
    starts = _starts(16, 32768).to(torch.int64)
    return (16, 4, 32), slopes, sums, starts, uniform(32768), shifts, zeros(32768), 4096

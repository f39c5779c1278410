"""Products and attention of released libraries: flashnn, late-interaction-kernels, fla and others.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

import random
from typing import Any

import torch
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, table, uniform, zeros
from benchmarks.timing.libraries import released

_HALF, _BRAIN, _INT8 = torch.float16, torch.bfloat16, torch.int8


@released(
    "liger_kernel", "ops/experimental/mm_int8int2", "matmul_kernel", num_warps=4, num_stages=4,
    BLOCK_SIZE_M=128, BLOCK_SIZE_N=128, BLOCK_SIZE_K=32, GROUP_SIZE_M=8,
)  # fmt: skip
def shelf_liger_two_bits() -> Any:
    """4,096 × 4,096 int8 times 4,096 × 4,096 weights of 2 bits, to int32."""
    left, packed, out = normal(4096, 4096, dtype=_INT8), indices(256, 1024, 4096, dtype=torch.uint8), (4096, 4096)
    return (1024,), left, packed, empty(*out, dtype=torch.int32), 4096, 4096, 4096, 4096, 1, 4096, 1, 4096, 1


@released(
    "flashnn", "triton_kernels/gemm_a8w8", "_triton_gemm_a8w8_kernel", num_warps=8, num_stages=3,
    BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_SIZE_M=8,
)  # fmt: skip
def shelf_flashnn_int8() -> Any:
    """int8 product of 4,096 × 5,120 × 5,120, the right side transposed, with scales of rows and columns, to float16."""
    left, right, out = normal(4096, 5120, dtype=_INT8), normal(5120, 5120, dtype=_INT8), empty(4096, 5120, dtype=_HALF)
    scales = uniform(4096, dtype=_HALF), uniform(5120, dtype=_HALF)
    return (32 * 20, 1, 1), left, right, out, *scales, 4096, 5120, 5120, 5120, 1, 5120, 1, 5120, 1


@released(
    "flashnn", "triton_kernels/gemm_a16w4", "_triton_gemm_a16w4_per_channel_kernel", num_warps=4, num_stages=1,
    add_bias=False, add_zero_points=False, BLOCK_M=16, BLOCK_N=64, BLOCK_K=64, GROUP_M=1, SPLIT_K=4,
)  # fmt: skip
def shelf_flashnn_four_bits() -> Any:
    """16 × 5,120 float16 times 13,824 × 5,120 weights of 4 bits, 4 parts of the sum added atomically."""
    x, packed, out = normal(16, 5120, dtype=_HALF), normal(6912, 5120, dtype=_INT8), zeros(16, 13824, dtype=_HALF)
    scales = uniform(13824, dtype=_HALF)
    sizes = 16, 6912, 5120, 1, 13, 10
    return (108, 4), x, packed, out, scales, None, None, *sizes, 5120, 1, 5120, 1, 13824, 1, 0, 0, 0, 0


@released(
    "gptq_triton", "quant_linear", "matmul4_kernel", num_warps=4, num_stages=4,
    BLOCK_SIZE_M=64, BLOCK_SIZE_N=128, BLOCK_SIZE_K=32, GROUP_SIZE_M=8,
)  # fmt: skip
def shelf_gptq_product() -> Any:
    """1,024 × 4,096 float16 times 4,096 × 11,008 weights of 4 bits, groups of 128."""
    x, packed, out = normal(1024, 4096, dtype=_HALF), indices(1 << 30, 512, 11008), empty(1024, 11008, dtype=_HALF)
    scales, offsets = uniform(32, 11008, dtype=_HALF), indices(1 << 30, 32, 1376)
    strides = 4096, 1, 11008, 1, 11008, 1, 11008, 1, 1376, 1
    return (16 * 86,), x, packed, out, scales, offsets, 1024, 11008, 4096, *strides, 128, False


@released(
    "late_interaction_kernels", "forward", "_maxsim_fwd_kernel", num_warps=4, num_stages=3,
    has_q_mask=False, has_d_mask=True, save_argmax=False, normalize=False, kd_layout=False,
    BLOCK_Q=32, BLOCK_D=64, COMPUTE_DTYPE=tl.float16,
)  # fmt: skip
def shelf_late_scores() -> Any:
    """Sums of the best products of 32 tokens with those of 1,024 documents of 180, 32 queries, 128 float16."""
    query, documents = normal(32, 32, 128, dtype=_HALF), normal(1024, 180, 128, dtype=_HALF)
    kept = (uniform(1024, 180) < 0.9).to(_INT8)
    unused = empty(1, dtype=_INT8), empty(1, dtype=torch.int32)
    sizes = 32, 1024, 32, 180, 128, 128, *query.stride(), *documents.stride(), 1024, 1, 0, 0, 180, 1, 0, 0
    return (32768,), query, documents, unused[0], kept, empty(32, 1024), unused[1], *sizes


@released(
    "late_interaction_kernels", "score_pairs", "_scatter_fwd_kernel", num_warps=4, num_stages=3,
    BLOCK_Q=32, BLOCK_D=128, COMPUTE_DTYPE=tl.bfloat16, SAVE_ARGMAX=True,
)  # fmt: skip
def shelf_late_pairs() -> Any:
    """The same of 16,384 listed pairs of 256 queries of 8 to 32 tokens and 4,096 documents of 20 to 300, bfloat16."""
    drawn = random.Random(35)
    starts: list[list[int]] = [[0], [0]]
    for kind, (count, least, most) in enumerate(((256, 8, 32), (4096, 20, 300))):
        for _ in range(count):
            starts[kind].append(starts[kind][-1] + drawn.randint(least, most))
    query, documents = (normal(some[-1], 128, dtype=_BRAIN) for some in starts)
    pairs = indices(256, 16384), indices(4096, 16384)
    outs = empty(16384), empty(16384, 32, dtype=torch.int32)
    tables = table(starts[0]), table(starts[1]), *pairs, *outs
    return (16384,), query, documents, *tables, 16384, 32, 300, 128, 128, 128, 1, 128, 1, 32, 1


@released(
    "flashnn", "triton_kernels/flash_attn_v2", "_triton_attn_fwd", num_warps=8, num_stages=2,
    POWER_OF_2_N_CTX=4096, BLOCK_M=64, BLOCK_DMODEL=128, BLOCK_N=64, STAGE=3, GROUPS=4, ORDER_12=False,
)  # fmt: skip
def shelf_flashnn_attention() -> Any:
    """Causal attention of 2 × 32 heads of 128, 8 of keys, 4,000 tokens, float16."""
    query, out = (normal(2, 4000, 32, 128, dtype=_HALF) for _ in range(2))
    key, value = (normal(2, 4000, 8, 128, dtype=_HALF) for _ in range(2))
    strides = [tensor.stride(axis) for tensor in (query, key, value, out) for axis in (0, 2, 1, 3)]
    return (63, 16, 4), query, key, value, 0.0884, out, *strides, 2, 8, 4000


@released(
    "flashnn", "triton_kernels/paged_attn_v1", "_single_query_cached_kv_attention_v1", num_warps=4,
    SLOT_SIZE=16, HEAD_SIZE=128,
)  # fmt: skip
def shelf_flashnn_decode() -> Any:
    """Attention of one query of 40 heads of 128 to the 500 to 2,000 tokens of 64 requests, pages of 16, float16."""
    drawn = random.Random(35)
    lengths = [drawn.randint(500, 2000) for _ in range(64)]
    query, out = normal(64, 40, 128, dtype=_HALF), empty(64, 40, 128, dtype=_HALF)
    keys, values = (normal(8000, 40, 16, 128, dtype=_HALF) for _ in range(2))
    pages = torch.randperm(8000, generator=torch.Generator().manual_seed(35)).view(64, 125)
    tables = table(range(40)), 0.0884, table(pages), table(lengths), 125
    return (40, 64, 1), out, query, keys, values, *tables, 5120, 128, 5120, 128, *keys.stride()[:3]


@released(
    "fla", "ops/attn/parallel", "parallel_attn_fwd_kernel", num_warps=8,
    BT=128, BS=64, BK=64, BV=64, USE_G=True, USE_SINK_BIAS=False, USE_WINDOW=False, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_attention() -> Any:
    """Causal attention that forgets, 4 × 16 heads of 64, 4 of keys, 4,096 tokens, bfloat16."""
    query, out = (normal(4, 4096, 16, 64, dtype=_BRAIN) for _ in range(2))
    key, value = (normal(4, 4096, 4, 64, dtype=_BRAIN) for _ in range(2))
    decays, sums = (-uniform(4, 4096, 16) / 16).cumsum(1), empty(4, 4096, 16)
    sizes = 4096, None, 4, 4, 16, 4, 64, 64
    return (32, 64), query, key, value, out, decays, None, sums, 0.125, None, None, *sizes


@released(
    "flash_kmeans", "assign_euclid_triton", "_euclid_assign_kernel", num_warps=4, num_stages=2,
    BLOCK_N=128, BLOCK_K=64, D_PAD=128,
)  # fmt: skip
def shelf_kmeans_assign() -> Any:
    """The nearest of 1,000 centres of 128 float16 for each of 262,144 points."""
    count, centres = 1 << 18, 1000
    x, means, out = normal(1, count, 128, dtype=_HALF), normal(1, centres, 128, dtype=_HALF), (1, count)
    squares = uniform(1, count) + 100, uniform(1, centres) + 100
    strides = count * 128, 128, 1, centres * 128, 128, 1, count, 1, centres, 1, count, 1
    return (2048, 1), x, means, *squares, empty(*out, dtype=torch.int32), 1, count, centres, 128, *strides

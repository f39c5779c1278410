"""Kernels of libraries that serve language models: sglang, lightllm and conch.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from benchmarks.timing.data import empty, indices, normal, uniform
from benchmarks.timing.libraries import released

_HALF, _BRAIN, _EIGHT = torch.float16, torch.bfloat16, torch.float8_e4m3fn
_ATTENTION = "srt/layers/attention/triton_ops"
_LLAMA = "models/llama/triton_kernel"


def _table(values: Any) -> torch.Tensor:
    return torch.tensor(list(values), device="cuda", dtype=torch.int32)


def _shuffled(count: int) -> torch.Tensor:
    order = list(range(count))
    random.Random(35).shuffle(order)
    return _table(order)


def _lengths(count: int, least: int, most: int) -> list[int]:
    drawn = random.Random(35)
    return [drawn.randrange(least, most + 1) for _ in range(count)]


def _starts(lengths: list[int]) -> list[int]:
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return starts


@released(
    "sglang", f"{_ATTENTION}/decode_attention", "_fwd_grouped_kernel_stage1", num_warps=4, num_stages=2,
    kv_group_num=4, q_head_num=32, BLOCK_DMODEL=128, BLOCK_DPE=0, BLOCK_DV=128, BLOCK_N=32, BLOCK_H=16,
    MIN_BLOCK_KV=32, logit_cap=0.0, xai_temperature_len=-1, Lk=128, Lv=128,
)  # fmt: skip
def library_sglang_decode() -> Any:
    """Attention of one query of 32 heads of 128, 8 of keys, for 32 requests of 1,000 to 8,000 tokens, in 8 splits."""
    starts, splits = _starts(_lengths(32, 1000, 8000)), 8
    query = normal(32, 32, 128, dtype=_BRAIN)
    keys, values = (normal(starts[-1], 8, 128, dtype=_BRAIN) for _ in range(2))
    out, sums = empty(32, 32, splits, 128), empty(32, 32, splits)
    return (
        (32, 8, splits), query, keys, values, 0.0884, _table(starts), _shuffled(starts[-1]), out, sums,
        _table([splits] * 32), *query.stride()[:2], *keys.stride()[:2], *values.stride()[:2], *out.stride()[:3],
    )  # fmt: skip


@released(
    "sglang", f"{_ATTENTION}/decode_attention", "_fwd_kernel_stage2", num_warps=4, num_stages=2,
    MAX_KV_SPLITS=8, MIN_BLOCK_KV=32, BLOCK_DV=512, Lv=512, HAS_SINK=False,
)  # fmt: skip
def library_sglang_decode_join() -> Any:
    """The 8 splits of 256 requests of 16 latent heads of 512, float32, to bfloat16."""
    parts, sums, out = normal(256, 16, 8, 512), normal(256, 16, 8), empty(256, 16, 512, dtype=_BRAIN)
    starts, splits = _table(range(0, 257 * 4096, 4096)), _table([8] * 256)
    return (256, 16), parts, sums, out, 1.0, starts, splits, None, *parts.stride()[:3], *out.stride()[:2]


@released(
    "sglang", f"{_ATTENTION}/merge_state", "merge_state_kernel", num_warps=4,
    HEAD_SIZE=128, PADDED_HEAD_SIZE=128, OUTPUT_LSE=True,
)  # fmt: skip
def library_sglang_merge() -> Any:
    """Attention to a prefix and to the rest made one, 16,384 tokens of 32 heads of 128, bfloat16."""
    out, prefix, rest = (normal(16384, 32, 128, dtype=_BRAIN) for _ in range(3))
    return (16384, 32), out, empty(16384, 32), prefix, normal(16384, 32), rest, normal(16384, 32)


@released(
    "sglang", f"{_ATTENTION}/prefill_attention", "_fwd_kernel", num_warps=8, num_stages=1,
    kv_group_num=4, BLOCK_M=128, BLOCK_DMODEL=128, BLOCK_N=128, IS_CAUSAL=True, Lk=128,
)  # fmt: skip
def library_sglang_prefill() -> Any:
    """Causal attention of 32 heads of 128, 8 of keys, over 16 packed sequences of 100 to 2,000 tokens, bfloat16."""
    lengths = _lengths(16, 100, 2000)
    starts = _starts(lengths)
    query, out = (normal(starts[-1], 32, 128, dtype=_BRAIN) for _ in range(2))
    key, value = (normal(starts[-1], 8, 128, dtype=_BRAIN) for _ in range(2))
    strides = (number for tensor in (query, key, value, out) for number in tensor.stride()[:2])
    grid = 16, 32, -(-max(lengths) // 128)
    return grid, query, key, value, 0.0884, _table(starts), _table(lengths), out, *strides


@released("sglang", "srt/layers/quantization/fp8_kernel", "_per_token_group_quant_8bit", num_warps=1, BLOCK=128)
def library_sglang_group_quantise() -> Any:
    """8,192 × 7,168 bfloat16 to float8, a scale for each group of 128 and a program for each."""
    x, out = normal(8192, 7168, dtype=_BRAIN), empty(8192, 7168, dtype=_EIGHT)
    return (8192 * 56,), x, out, empty(8192, 56), 128, 128, 1e-10, -448.0, 448.0


@released(
    "sglang", "srt/layers/quantization/fp8_kernel", "_w8a8_block_fp8_matmul", num_warps=4, num_stages=3,
    BLOCK_SIZE_M=64, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128, GROUP_SIZE_M=32, needs_masking=False,
)  # fmt: skip
def library_sglang_block_product() -> Any:
    """float8 product of 4,096 × 4,096 × 7,168 with scales of 1 × 128 and 128 × 128."""
    m, n, k = 4096, 4096, 7168
    left, right, out = normal(m, k, dtype=_EIGHT), normal(n, k, dtype=_EIGHT), empty(m, n, dtype=_BRAIN)
    scales = uniform(m, k // 128), uniform(n // 128, k // 128)
    return (
        (m // 64 * (n // 128),),
        left,
        right,
        out,
        *scales,
        m,
        n,
        k,
        128,
        128,
        k,
        1,
        1,
        k,
        n,
        1,
        k // 128,
        1,
        1,
        k // 128,
    )


@released(
    "sglang", "srt/layers/quantization/int8_kernel", "_per_token_quant_int8", num_warps=8, CAL_SUM=False, BLOCK=8192
)
def library_sglang_token_quantise() -> Any:
    """8,192 rows of 8,192 bfloat16 to int8 by their greatest value."""
    x, out = normal(8192, 8192, dtype=_BRAIN), empty(8192, 8192, dtype=torch.int8)
    return (8192,), x, out, empty(8192, 1), None, 8192, 8192, 8192


@released("sglang", "srt/layers/quantization/awq_triton", "awq_dequantize_kernel", BLOCK_SIZE_X=32, BLOCK_SIZE_Y=32)
def library_sglang_awq_dequantise() -> Any:
    """8,192 × 8,192 weights of 4 bits to float16, groups of 128 rows."""
    packed, zeros = indices(1 << 30, 8192, 1024), indices(1 << 30, 64, 1024)
    return (32, 256), packed, uniform(64, 8192, dtype=_HALF), zeros, 128, empty(8192, 8192, dtype=_HALF), 1024, 8192


@released(
    "sglang", "srt/layers/quantization/awq_triton", "awq_gemm_kernel",
    BLOCK_SIZE_M=32, BLOCK_SIZE_N=32, BLOCK_SIZE_K=32, SPLIT_K=8,
)  # fmt: skip
def library_sglang_awq_product() -> Any:
    """32 × 8,192 float16 times 8,192 × 8,192 weights of 4 bits, 8 parts of the sum."""
    packed, zeros = indices(1 << 30, 8192, 1024), indices(1 << 30, 64, 1024)
    x, out, scales = normal(32, 8192, dtype=_HALF), empty(8, 32, 8192, dtype=_HALF), uniform(64, 8192, dtype=_HALF)
    return (256, 8), x, packed, out, zeros, scales, 32, 8192, 8192, 128


@released(
    "sglang", "srt/layers/moe/fused_moe_triton/fused_moe_triton_kernels", "_moe_sum_reduce_kernel", num_warps=16,
    routed_scaling_factor=2.5, BLOCK_M=1, BLOCK_DIM=2048, NUM_STAGE=1,
)  # fmt: skip
def library_sglang_sum_experts() -> Any:
    """Sums of 8 experts' rows of 7,168 bfloat16 for 4,096 tokens."""
    x, out = normal(4096, 8, 7168, dtype=_BRAIN), empty(4096, 7168, dtype=_BRAIN)
    return (4096, 4), x, *x.stride(), out, *out.stride(), 4096, 8, 7168


@released("sglang", "srt/layers/moe/ep_moe/kernels", "post_reorder_triton_kernel", BLOCK_SIZE=512)
def library_sglang_reorder_experts() -> Any:
    """Weighted sums of 8 rows of 7,168 bfloat16 at listed places for 4,096 tokens."""
    rows, out = normal(4096 * 8, 7168, dtype=_BRAIN), empty(4096, 7168, dtype=_BRAIN)
    experts = indices(255, 4096, 8) + 1
    return (4096,), rows, out, _shuffled(4096 * 8), experts, uniform(4096, 8), 8, 7168


@released("sglang", "srt/layers/rotary_embedding/triton_kernels", "_triton_mrope_forward_fused")
def library_sglang_rotate() -> Any:
    """Rotation in place by three positions of each of 16,384 tokens, 32 + 8 heads of 128, bfloat16."""
    query, key = normal(16384, 32 * 128, dtype=_BRAIN), normal(16384, 8 * 128, dtype=_BRAIN)
    places, table = indices(32768, 3, 16384, dtype=torch.int64), normal(32768, 128, dtype=_BRAIN)
    constants = 32, 8, 128, 128, 32, 8, 128, 16, 24, 24, False, False, True
    return (16384,), query, key, table, places, 4096, 1024, 16384, *constants, None


@released("sglang", "srt/layers/attention/linear/lightning_attn", "_linear_attn_decode_kernel")
def library_sglang_linear_decode() -> Any:
    """One step of linear attention: 64 requests of 64 heads with states of 128 × 128 float32."""
    query, key, value, out = (normal(64, 64, 128, dtype=_BRAIN) for _ in range(4))
    states, rates = normal(64, 64, 128, 128), uniform(64)
    strides = *query.stride()[:2], *states.stride()
    return (64, 64, 2), query, key, value, states, rates, _shuffled(64), out, 128, *strides, 64


@released(
    "sglang", "srt/layers/attention/mamba/ops/ssd_chunk_state", "_chunk_state_fwd_kernel",
    HAS_SEQ_IDX=False, BLOCK_SIZE_M=16, BLOCK_SIZE_N=16, BLOCK_SIZE_K=16,
)  # fmt: skip
def library_sglang_chunk_states() -> Any:
    """States of 64 × 128 at the ends of chunks of 256 of 2 × 4,096 steps, 64 heads, bfloat16, in tiles of 16."""
    batch, length, heads, width, states, chunk = 2, 4096, 64, 64, 128, 256
    x, into = normal(batch, length, heads, width, dtype=_BRAIN), normal(batch, length, 1, states, dtype=_BRAIN)
    out, steps = empty(batch, length // chunk, heads, width, states), uniform(batch, heads, length // chunk, chunk)
    decays = -uniform(batch, heads, length // chunk, chunk)
    by_chunk = steps.transpose(1, 2), decays.transpose(1, 2)
    strides = (number for tensor in (x, into, out, *by_chunk) for number in tensor.stride())
    grid = (width // 16) * (states // 16), batch * (length // chunk), heads
    return grid, x, into, out, steps, decays, None, width, states, chunk, batch, length, heads, *strides, 0, 0


@released(
    "lightllm", f"{_LLAMA}/token_attention_nopad_att1", "_fwd_kernel_token_att1", num_warps=4, num_stages=1,
    BLOCK_DMODEL=128, BLOCK_N=32,
)  # fmt: skip
def library_lightllm_scores() -> Any:
    """Scores of one query of 32 heads of 128 against the keys of 16 requests of 2,000 to 4,000 tokens, float16."""
    lengths = _lengths(16, 2000, 4000)
    starts = _starts(lengths)
    query, keys, out = normal(16, 32, 128, dtype=_HALF), normal(starts[-1], 32, 128, dtype=_HALF), empty(32, starts[-1])
    slots = _slots(lengths, 4000)
    tables = slots, _table(range(16)), _table(starts), _table(lengths)
    strides = *slots.stride(), *query.stride(), *keys.stride(), *out.stride()
    return (16, 32, 125), query, keys, 0.0884, *tables, out, *strides, 1


def _slots(lengths: list[int], most: int) -> torch.Tensor:
    """The places of each request's tokens, in rows of `most`."""
    order = list(range(sum(lengths)))
    random.Random(35).shuffle(order)
    rows = [order[first : first + length] for first, length in zip(_starts(lengths), lengths, strict=False)]
    return torch.tensor([row + [0] * (most - len(row)) for row in rows], device="cuda", dtype=torch.int32)


@released(
    "lightllm", f"{_LLAMA}/token_attention_nopad_reduceV", "_fwd_kernel_token_att2", num_warps=4, num_stages=1,
    BLOCK_DMODEL=128, BLOCK_N=128,
)  # fmt: skip
def library_lightllm_values() -> Any:
    """Sums of the values of 16 requests of 2,000 to 4,000 tokens by their probabilities, 32 heads of 128, float16."""
    lengths = _lengths(16, 2000, 4000)
    starts = _starts(lengths)
    weights, values, out = (
        uniform(32, starts[-1]),
        normal(starts[-1], 32, 128, dtype=_HALF),
        empty(16, 32, 128, dtype=_HALF),
    )
    slots = _slots(lengths, 4000)
    tables = slots, _table(range(16)), _table(starts), _table(lengths)
    strides = *slots.stride(), *weights.stride(), *values.stride(), *out.stride()
    return (16, 32), weights, values, out, *tables, *strides, 1


@released(
    "lightllm", f"{_LLAMA}/rotary_emb", "_rotary_kernel", num_warps=4, BLOCK_HEAD=4, BLOCK_SEQ=32, BLOCK_DMODEL=128
)
def library_lightllm_rotate() -> Any:
    """Rotation in place of 16,384 tokens of 32 + 8 heads of 128, float16, tiles of 32 tokens and 4 heads."""
    query, key = normal(16384, 32, 128, dtype=_HALF), normal(16384, 8, 128, dtype=_HALF)
    cosines, sines = normal(16384, 64, dtype=_HALF), normal(16384, 64, dtype=_HALF)
    strides = *query.stride(), *key.stride(), *cosines.stride(), *sines.stride()
    return (8, 512), query, key, cosines, sines, *strides, 16384, 32, 8


@released(
    "lightllm", f"{_LLAMA}/gqa_flash_decoding_stage1", "_fwd_kernel_flash_decode_stage1", num_warps=2, num_stages=2,
    Q_HEAD_NUM=16, BLOCK_SEQ=256, BLOCK_DMODEL=128, BLOCK_N=16,
)  # fmt: skip
def library_lightllm_decode() -> Any:
    """Attention of one query of 32 heads of 128, 8 of keys, for 32 requests of 1,000 to 4,000 tokens, parts of 256."""
    lengths = _lengths(32, 1000, 4000)
    parts = [(request, start) for request, length in enumerate(lengths) for start in range(0, length, 256)]
    query, total = normal(32, 32, 128, dtype=_HALF), sum(lengths)
    keys, values = (normal(total, 8, 128, dtype=_HALF) for _ in range(2))
    out, sums, slots = empty(32, 32, 16, 128), empty(32, 32, 16), _slots(lengths, 4000)
    tables = _table(request for request, _ in parts), _table(start for _, start in parts)
    strides = *slots.stride(), *query.stride(), *keys.stride(), *values.stride(), *out.stride(), *sums.stride()
    arguments = query, keys, values, 0.0884, slots, _table(range(32)), _table(lengths), out, sums, *strides, 4
    return (len(parts), 8), *tables, *arguments


@released(
    "lightllm", "common/basemodel/triton_kernel/quantize_gemm_int8", "quantize_int8_perrow_kernel", num_warps=8,
    num_stages=2, BLOCK_SIZE_M=1, BLOCK_SIZE_K=8192,
)  # fmt: skip
def library_lightllm_quantise_rows() -> Any:
    """8,192 rows of 8,192 float16 to int8 by their greatest value, read twice."""
    x, out, scales = normal(8192, 8192, dtype=_HALF), empty(8192, 8192, dtype=torch.int8), empty(8192)
    return (8192,), x, out, scales, 8192, 8192, *x.stride(), *out.stride(), 1


@released(
    "lightllm", "common/basemodel/triton_kernel/quantize_gemm_int8", "matmul_kernel", num_warps=4, num_stages=4,
    SPLIT_K=1, BLOCK_SIZE_M=128, BLOCK_SIZE_N=128, BLOCK_SIZE_K=32, GROUP_SIZE_M=8,
)  # fmt: skip
def library_lightllm_product() -> Any:
    """int8 product of 4,096 × 4,096 × 4,096 with scales of rows and columns to float16."""
    left, right = normal(4096, 4096, dtype=torch.int8), normal(4096, 4096, dtype=torch.int8)
    scales = uniform(4096), uniform(4096)
    out = empty(4096, 4096, dtype=_HALF)
    sizes = 4096, 4096, 4096, 4096, 1, 1, 1, 4096, 1, 4096, 1
    return (1024, 1), left, scales[0], right, scales[1], out, *sizes


@released(
    "conch", "kernels/vllm/reshape_and_cache", "_reshape_and_cache_kernel",
    cxpr_head_size_padded=128, cxpr_apply_fp8_scaling=False,
)  # fmt: skip
def library_conch_append() -> Any:
    """Keys and values of 32,768 tokens of 8 heads of 128 bfloat16 to their slots of a paged cache."""
    key, value = (normal(32768, 8, 128, dtype=_BRAIN) for _ in range(2))
    keys, values = (empty(2048, 16, 8, 128, dtype=_BRAIN) for _ in range(2))
    strides = *key.stride()[:2], *keys.stride()[:3]
    scales = uniform(1), uniform(1)
    return (32768, 8), key, value, keys, values, _shuffled(32768), *scales, 128, 16, *strides


@released("conch", "kernels/vision/bev_pool", "_bev_pool_kernel", cxpr_num_channels_padded=128, cxpr_block_size=64)
def library_conch_pool() -> Any:
    """Sums of 1 to 40 rows of 80 float32 for each of 40,000 cells of a map."""
    lengths = _lengths(40000, 1, 40)
    starts, points = _starts(lengths), sum(lengths)
    places = torch.cat([indices(256, points, 2), indices(1, points, 2)], 1)
    x, out = normal(points, 80), empty(1, 1, 256, 256, 80)
    tables = _table(starts[:-1]), _table(lengths)
    return (625,), out, x, places, *tables, 80, 40000, 80, 4, *out.stride()[:4]


@released("conch", "kernels/vision/nms", "_create_iou_mask_kernel", cxpr_block_size=128)
def library_conch_overlaps() -> Any:
    """Whether each of 16,384 boxes overlaps each later one by more than half."""
    corners = uniform(16384, 2)
    boxes = torch.cat([corners, corners + uniform(16384, 2)], 1)
    return (16384,), boxes, empty(16384, 16384, dtype=torch.bool), 16384, 0.5, 4, 16384


@released(
    "conch", "kernels/attention/paged_attention", "_paged_attention_compute_splits_kernel",
    cxpr_cache_block_size=32, cxpr_head_size_padded=128, cxpr_query_group_size_padded=16, cxpr_is_softcap=False,
    cxpr_apply_fp8_scaling=False, cxpr_is_rocm=False,
)  # fmt: skip
def library_conch_decode() -> Any:
    """Attention of one query of 32 heads of 128, 8 of keys, for 32 requests of 1,000 to 4,096 tokens in pages of 32."""
    lengths, pages, splits = _lengths(32, 1000, 4096), 128, 8
    out, sums, query = (
        empty(32, splits, 32, 128, dtype=_HALF),
        empty(32, splits, 32, dtype=_HALF),
        normal(32, 32, 128, dtype=_HALF),
    )
    keys, values = (normal(32 * pages, 32, 8, 128, dtype=_HALF) for _ in range(2))
    table = _shuffled(32 * pages).reshape(32, pages)
    strides = *out.stride()[:3], *sums.stride()[:2], *query.stride()[:2], *keys.stride(), pages
    sizes = 0.0884, pages // splits, 0.0, 128, 4
    return (
        (32, splits, 8),
        out,
        sums,
        query,
        keys,
        values,
        table,
        _table(lengths),
        uniform(1),
        uniform(1),
        *sizes,
        *strides,
    )

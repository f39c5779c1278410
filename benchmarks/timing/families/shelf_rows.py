"""Rows of models that released libraries normalise, gate and rotate: liger, torchnorm, unsloth, flashnn and flashlib.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.libraries import released

_HALF, _BRAIN, _INT8 = torch.float16, torch.bfloat16, torch.int8
_PROCESSORS = 132
"""Of an H100 and an H200: some libraries launch a program for each."""


@released(
    "liger_kernel", "ops/geglu", "_geglu_tanh_backward_kernel", num_warps=16, n_cols=14336, BLOCK_SIZE=16384,
)  # fmt: skip
def shelf_liger_geglu_backward() -> Any:
    """Slopes of GEGLU with a tanh in place, 8,192 rows of 14,336 bfloat16."""
    slopes, gate, up = (normal(8192, 14336, dtype=_BRAIN) for _ in range(3))
    return (8192,), slopes, gate, up, 14336


@released("liger_kernel", "ops/relu_squared", "_relu_squared_forward_kernel", num_warps=16)
def shelf_liger_relu_squared() -> Any:
    """Squares of positive values, 8,192 rows of 16,384 bfloat16, one block a row."""
    x, out = normal(8192, 16384, dtype=_BRAIN), empty(8192, 16384, dtype=_BRAIN)
    return (8192,), out, 16384, x, 16384, 16384, 16384


@released("liger_kernel", "ops/group_norm", "_group_norm_forward_kernel", BLOCK_SIZE=16384)
def shelf_liger_group_norm() -> Any:
    """Group norm of 64 × 1,280 channels of 16 × 16 in 32 groups, bfloat16, a group of 10,240 in a program."""
    x, out = normal(64, 32, 10240, dtype=_BRAIN), empty(64, 32, 10240, dtype=_BRAIN)
    means, deviations = empty(64, 32, dtype=_BRAIN), empty(64, 32, dtype=_BRAIN)
    weights = normal(1280, dtype=_BRAIN), normal(1280, dtype=_BRAIN)
    strides = 32 * 10240, 10240
    return (64, 32), out, *strides, x, *strides, means, 32, 1, deviations, 32, 1, *weights, 10240, 40, 1e-6


@released("liger_kernel", "ops/group_norm", "_group_norm_backward_kernel")
def shelf_liger_group_norm_backward() -> Any:
    """Slopes of a group norm of 32 × 320 channels of 64 × 64 in 32 groups, bfloat16, channels one after another."""
    x, slopes, out = (normal(32, 320, 4096, dtype=_BRAIN) for _ in range(3))
    means, deviations = normal(32, 32, dtype=_BRAIN), uniform(32, 32, dtype=_BRAIN)
    weights, sums = normal(320, dtype=_BRAIN), (zeros(320, dtype=_BRAIN), zeros(320, dtype=_BRAIN))
    arguments = x, 320 * 4096, 4096, weights, means, 32, 1, deviations, out, *sums, slopes
    return (32, 32), *arguments, 4096, 10, 4096, tl.bfloat16


@released("liger_kernel", "ops/layer_norm", "_layer_norm_forward_kernel", num_warps=8, BLOCK_SIZE=4096)
def shelf_liger_layer_norm() -> Any:
    """Layer norm of 16,384 rows of 2,560 bfloat16, one block of 4,096 a row."""
    x, out = normal(16384, 2560, dtype=_BRAIN), empty(16384, 2560, dtype=_BRAIN)
    weights, shifts = normal(2560, dtype=_BRAIN), normal(2560, dtype=_BRAIN)
    means, deviations = empty(16384), empty(16384)
    sizes = 2560, 1e-5
    return (16384,), out, 2560, x, 2560, weights, 1, shifts, 1, means, 1, deviations, 1, *sizes


@released(
    "liger_kernel", "ops/layer_norm", "_layer_norm_backward_kernel", num_warps=8, rows_per_program=125, BLOCK_SIZE=4096,
)  # fmt: skip
def shelf_liger_layer_norm_backward() -> Any:
    """Slopes of a layer norm of 16,384 rows of 2,560 bfloat16, 125 rows in a program."""
    x, slopes, out = (normal(16384, 2560, dtype=_BRAIN) for _ in range(3))
    means, deviations = normal(16384), uniform(16384)
    sums = empty(_PROCESSORS, 2560), empty(_PROCESSORS, 2560)
    arguments = x, 2560, normal(2560, dtype=_BRAIN), means, 1, deviations, 1, out, 2560
    return (_PROCESSORS,), *arguments, sums[0], 2560, sums[1], 2560, slopes, 2560, 16384, 2560


@released("liger_kernel", "ops/dyt", "_dyt_fwd_kernel", num_warps=8, num_stages=1, BLOCK_N=2048)
def shelf_liger_dynamic_tanh() -> Any:
    """tanh of scaled values in place of a norm, 16,384 rows of 4,096 bfloat16."""
    x, out = normal(16384, 4096, dtype=_BRAIN), empty(16384, 4096, dtype=_BRAIN)
    weights = normal(1, dtype=_BRAIN), normal(4096, dtype=_BRAIN), normal(4096, dtype=_BRAIN)
    return (2, 16384), x, out, *weights, True, 4096


@released("liger_kernel", "ops/dyt", "_dyt_bwd_kernel", num_warps=4, num_stages=2, BLOCK_N=1024)
def shelf_liger_dynamic_tanh_backward() -> Any:
    """Slopes of that tanh, 16,384 rows of 4,096 bfloat16, each program every 132nd row."""
    slopes, out, x = (normal(16384, 4096, dtype=_BRAIN) for _ in range(3))
    sums = zeros(_PROCESSORS, 8), empty(_PROCESSORS, 4096), empty(_PROCESSORS, 4096)
    weights = normal(1, dtype=_BRAIN), normal(4096, dtype=_BRAIN)
    return (4, _PROCESSORS), slopes, out, *sums, x, *weights, True, 16384, 4096


@released("liger_kernel", "ops/qwen2vl_mrope", "_triton_qwen2vl_mrope", BLOCK_SIZE=32, BACKWARD_PASS=False)
def shelf_liger_rotate() -> Any:
    """Rotation in place by three positions of 16,384 tokens, 28 + 4 heads of 128, bfloat16, all of one in a program."""
    query, key = normal(16384, 28 * 128, dtype=_BRAIN), normal(16384, 4 * 128, dtype=_BRAIN)
    cosines, sines = (normal(3, 1, 16384, 128, dtype=_BRAIN) for _ in range(2))
    return (16384,), query, key, cosines, sines, 16384, 1, 28, 4, 128, 32, 4, 128, 16, 24


@released("torchnorm", "_triton", "_rms_norm_bwd_kernel", BLOCK=4096)
def shelf_torchnorm_rms_backward() -> Any:
    """Slopes of an RMS norm of 8,192 rows of 4,096 bfloat16, those of the weights added atomically by each row."""
    slopes, x, out = (normal(8192, 4096, dtype=_BRAIN) for _ in range(3))
    return (8192,), slopes, x, normal(4096, dtype=_BRAIN), out, zeros(4096), 4096, 4096, 1e-6


@released("torchnorm", "_triton", "_fused_add_rms_norm_fwd_kernel", BLOCK=4096)
def shelf_torchnorm_add_rms() -> Any:
    """A residual added, kept and normalised, 16,384 rows of 4,096 bfloat16 with four warps."""
    x, rest, out, kept = (normal(16384, 4096, dtype=_BRAIN) for _ in range(4))
    return (16384,), x, rest, normal(4096, dtype=_BRAIN), out, kept, 4096, 4096, 1e-6


@released("torchnorm", "_triton", "_layer_norm_fwd_kernel", HAS_BIAS=True, BLOCK=1024)
def shelf_torchnorm_layer_norm() -> Any:
    """Layer norm of 65,536 rows of 768 float16."""
    x, out = normal(65536, 768, dtype=_HALF), empty(65536, 768, dtype=_HALF)
    weights = normal(768, dtype=_HALF), normal(768, dtype=_HALF)
    return (65536,), x, *weights, out, empty(65536), empty(65536), 768, 768, 1e-5


@released("unsloth", "kernels/geglu", "_exact_backward_kernel", BLOCK_SIZE=1024, LONG_INDEXING=0)
def shelf_unsloth_geglu_backward() -> Any:
    """Slopes of GEGLU with erf, three tensors of 8,192 × 14,336 bfloat16 read and written in place."""
    slopes, gate, up = (normal(8192, 14336, dtype=_BRAIN) for _ in range(3))
    return (8192 * 14,), slopes, gate, up, 8192 * 14336


@released("unsloth", "kernels/swiglu", "_fg_kernel", BLOCK_SIZE=1024, LONG_INDEXING=0)
def shelf_unsloth_swiglu() -> Any:
    """SwiGLU of 4,096 × 18,944 bfloat16."""
    gate, up, out = (normal(4096, 18944, dtype=_BRAIN) for _ in range(3))
    return (75776,), gate, up, out, 4096 * 18944


@released("unsloth", "kernels/swiglu", "_DWf_DW_dfg_kernel", BLOCK_SIZE=1024, LONG_INDEXING=0)
def shelf_unsloth_swiglu_backward() -> Any:
    """Slopes of SwiGLU, three tensors of 4,096 × 18,944 float16 read and written in place."""
    slopes, gate, up = (normal(4096, 18944, dtype=_HALF) for _ in range(3))
    return (75776,), slopes, gate, up, 4096 * 18944


@released(
    "unsloth", "kernels/fused_add_rms_layernorm", "_add_rms_layernorm_inference", num_warps=8,
    n_cols=3584, eps=1e-6, HAS_RESIDUAL=True, BLOCK_SIZE=4096,
)  # fmt: skip
def shelf_unsloth_add_rms() -> Any:
    """A residual added and both written in place, 16,384 rows of 3,584 bfloat16."""
    x, rest = normal(16384, 3584, dtype=_BRAIN), normal(16384, 3584, dtype=_BRAIN)
    return (16384,), x, rest, normal(3584, dtype=_BRAIN), 3584, 3584


@released(
    "unsloth", "kernels/layernorm", "layernorm_forward", num_warps=4,
    Y_row_stride=1280, X_row_stride=1280, n_cols=1280, eps=1e-5, LONG_INDEXING=0, BLOCK_SIZE=2048, HAS_BIAS=True,
)  # fmt: skip
def shelf_unsloth_layer_norm() -> Any:
    """Layer norm of 48,000 rows of 1,280 float16, as in a speech encoder."""
    x, out = normal(48000, 1280, dtype=_HALF), empty(48000, 1280, dtype=_HALF)
    weights = normal(1280, dtype=_HALF), normal(1280, dtype=_HALF)
    return (48000,), out, x, *weights, empty(48000), empty(48000)


@released(
    "unsloth", "kernels/nf4", "_nf4_dequant_kernel", num_warps=4,
    HALF=32, BLOCKSIZE2_SHIFT=8, NESTED=True, USE_MUL_RN=True, ROWS=64, WORDS=False, EVICT="", LUT_MODE=0,
)  # fmt: skip
def shelf_unsloth_nf4() -> Any:
    """2^26 NF4 to bfloat16 by a table, whose scales of 64 are bytes with scales of their own."""
    packed, scales = indices(256, 1 << 25, dtype=torch.uint8), indices(256, 1 << 20, dtype=torch.uint8)
    tables = uniform(256), uniform(1 << 12), uniform(1), uniform(16)
    return (1 << 14,), packed, scales, *tables, empty(1 << 26, dtype=_BRAIN), 1 << 26, 1 << 25, 1 << 20


@released("flashnn", "triton_kernels/rms_norm_dquant", "_rms_norm_dquant_kernel", num_warps=8, BLOCK_SIZE=1024)
def shelf_flashnn_rms_quantise() -> Any:
    """RMS norm of 8,192 rows of 8,192 float16 to int8 with a scale for each, the row read three times."""
    x, out = normal(8192, 8192, dtype=_HALF), empty(8192, 8192, dtype=_INT8)
    return (8192, 1, 1), x, out, normal(8192, dtype=_HALF), empty(8192, dtype=_HALF), 8192, 8192, 1e-6


@released("flashnn", "triton_kernels/layer_norm_dquant", "_layer_norm_dquant_kernel", num_warps=4, BLOCK_SIZE=512)
def shelf_flashnn_layer_quantise() -> Any:
    """Layer norm of 8,192 rows of 5,120 float16 and its int8, in passes of 512."""
    x, kept, out = normal(8192, 5120, dtype=_HALF), empty(8192, 5120, dtype=_HALF), empty(8192, 5120, dtype=_INT8)
    weights = normal(5120, dtype=_HALF), normal(5120, dtype=_HALF)
    return (8192,), x, out, *weights, kept, empty(8192, dtype=_HALF), 5120, 5120, 1e-5


@released(
    "flashnn", "triton_kernels/rotary_embedding", "_rotary_embedding_kernel",
    BLOCK_SIZE_SEQ=8, BLOCK_SIZE_BH=8, BLOCK_SIZE_D=64,
)  # fmt: skip
def shelf_flashnn_rotate() -> Any:
    """Rotation of 4,096 positions of 4 sequences, 32 + 8 heads of 128 float16, the position first."""
    query, key = normal(4096, 4, 32, 128, dtype=_HALF), normal(4096, 4, 8, 128, dtype=_HALF)
    outs = empty(4096, 4, 32, 128, dtype=_HALF), empty(4096, 4, 8, 128, dtype=_HALF)
    cosines, sines = normal(4096, 128, dtype=_HALF), normal(4096, 128, dtype=_HALF)
    sizes = 4096, 4, 32, 8, 128
    return (8192, 1, 1), *outs, query, key, cosines, sines, *sizes, *query.stride(), *key.stride(), 0


@released("flashlib", "kernels/norm/triton/norm", "_rmsnorm_fwd_kernel", num_warps=4, BLOCK_M=16)
def shelf_flashlib_rms() -> Any:
    """RMS norm of 2^20 heads of 128 bfloat16, 16 in a program."""
    x, out = normal(1 << 20, 128, dtype=_BRAIN), empty(1 << 20, 128, dtype=_BRAIN)
    return (1 << 16,), x, out, normal(128, dtype=_BRAIN), 128, 128, 1 << 20, 128, 128, 1e-6


@released("flashlib", "kernels/norm/triton/norm", "_layernorm_fwd_kernel", num_warps=8, BLOCK_M=4)
def shelf_flashlib_layer_norm() -> Any:
    """Layer norm of 65,536 rows of 1,152 bfloat16, 4 in a program."""
    x, out = normal(65536, 1152, dtype=_BRAIN), empty(65536, 1152, dtype=_BRAIN)
    weights = normal(1152, dtype=_BRAIN), normal(1152, dtype=_BRAIN)
    return (16384,), x, out, *weights, 1152, 1152, 65536, 1152, 2048, 1e-5, True, True

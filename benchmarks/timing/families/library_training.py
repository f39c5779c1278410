"""Kernels of libraries for training, quantising and filtering: fbgemm, bitsandbytes, torchao, FlagGems and others.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

import random
from typing import Any

import torch
import triton.language as tl

from benchmarks.timing.data import empty, indices, normal, uniform, zeros
from benchmarks.timing.libraries import released

_HALF, _BRAIN, _EIGHT = torch.float16, torch.bfloat16, torch.float8_e4m3fn
_BITS8 = "backends/triton/kernels_8bit_quant"
_FLOAT8 = "prototype/blockwise_fp8_training/kernels"
_JAGGED = "sll/triton/triton_jagged"


def _starts(count: int, most: int, power: int = 1) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Starts and lengths of `count` sequences of 1 to `most` rows, and where the last ends."""
    drawn = random.Random(35)
    lengths, starts = [], [0]
    for _ in range(count):
        lengths.append(drawn.randrange(1, most + 1))
        starts.append(starts[-1] + lengths[-1] ** power)
    tables = [torch.tensor(values, device="cuda", dtype=torch.int32) for values in (starts, lengths)]
    return tables[0], tables[1], starts[-1]


@released(
    "fbgemm_gpu",
    f"{_JAGGED}_bmm",
    "jagged_dense_bmm_kernel",
    allow_tf32=True,
    BLOCK_SIZE_M=64,
    BLOCK_SIZE_N=64,
    BLOCK_SIZE_K=32,
)
def library_fbgemm_jagged_dense() -> Any:
    """1 to 500 rows of 256 float32 by 256 × 256 of their own, 512 times, in TF32."""
    starts, _, total = _starts(512, 500)
    x, weights, out = normal(total, 256), normal(512, 256, 256), empty(total, 256)
    strides = *x.stride(), *weights.stride(), *out.stride()
    return (512, 8 * 4), x, starts, weights, out, 256, 256, *strides, 500


@released(
    "fbgemm_gpu",
    f"{_JAGGED}_bmm",
    "jagged_jagged_bmm_kernel",
    allow_tf32=True,
    BLOCK_SIZE_M=64,
    BLOCK_SIZE_N=64,
    BLOCK_SIZE_K=32,
)
def library_fbgemm_jagged_jagged() -> Any:
    """Products of 256 × rows × 256 over the rows of 512 sequences of 1 to 500, float32 in TF32."""
    starts, _, total = _starts(512, 500)
    left, right, out = normal(total, 256), normal(total, 256), empty(512, 256, 256)
    strides = 1, 256, *right.stride(), *out.stride()
    return (512, 16), left, starts, right, out, 256, 256, *strides, 500


@released("fbgemm_gpu", f"{_JAGGED}2_to_padded_dense", "jagged2_to_padded_dense_kernel", BLOCK_M=32, BLOCK_N=32)
def library_fbgemm_pad() -> Any:
    """Squares of 1 to 200 rows and columns, packed, to 200 × 200, 2,048 of them, float32."""
    starts, lengths, total = _starts(2048, 200, 2)
    out = zeros(2048, 200, 200)
    return (7, 7, 2048), normal(total), lengths, starts, out, *out.stride(), 200


@released("fbgemm_gpu", f"{_JAGGED}_softmax", "jagged_softmax_kernel", max_seq_len=200, BLOCK_SIZE=256)
def library_fbgemm_softmax() -> Any:
    """Softmax along the rows of 2,048 sequences of 1 to 200, a program for each of 32 columns, float32."""
    starts, _, total = _starts(2048, 200)
    return (2048, 32), normal(total, 32), empty(total, 32), starts, 32, 1, 32, 1


@released(
    "fbgemm_gpu", "triton/quantize", "_kernel_quantize_mx4",
    GROUP_SIZE=32, EBITS=2, MBITS=1, ROUNDING_MODE=0, STOCHASTIC_CASTING=False, FP4_EXP_BIAS=1, GROUP_LOAD=64,
    USE_INT64=False,
)  # fmt: skip
def library_fbgemm_quantise() -> Any:
    """8,192 × 4,096 float32 to 4-bit floats with a power of 2 for each 32, many groups in each program."""
    rows, width = 8192, 4096
    groups, programs = rows * width // 32, 5793
    out = empty(groups * 17, dtype=torch.uint8)
    return (programs,), normal(rows, width), out, None, rows, width, width // 32, -(-groups // programs), 0


@released(
    "fbgemm_gpu", f"{_JAGGED}_flash_attention_basic", "jagged_flash_attention_basic_kernel",
    D=128, NEXT_D=128, use_mask=True, allow_tf32=True, BLOCK_SIZE_M=64, BLOCK_SIZE_N=64, BLOCK_SIZE_D=128,
)  # fmt: skip
def library_fbgemm_attention() -> Any:
    """Attention in 1,024 sequences of 1 to 500 rows of 128 bfloat16."""
    starts, _, total = _starts(1024, 500)
    query, key, value = (normal(total, 128, dtype=_BRAIN) for _ in range(3))
    strides = 128, 1, 1, 128, 128, 1, 128, 1
    return (8, 1024), query, key, value, starts, empty(total, 128), empty(total), *strides, 500


@released("bitsandbytes", "backends/triton/kernels_4bit", "dequant_nf4_kernel", QUANT_BLOCK=64, SPLIT_SIZE=512)
def library_bitsandbytes_nf4() -> Any:
    """2^26 NF4 to bfloat16 by comparisons, a scale for each 64."""
    packed, out, scales = indices(256, 1 << 25, dtype=torch.uint8), empty(1 << 26, dtype=_BRAIN), uniform(1 << 20)
    return (1 << 16,), packed, out, scales, 1 << 25, 1 << 26


@released(
    "bitsandbytes", "backends/triton/kernels_4bit", "quantize_nf4_blockwise_kernel", BLOCK_SIZE=64, SPLIT_NUM_BLOCKS=1
)
def library_bitsandbytes_quantise_nf4() -> Any:
    """2^26 bfloat16 to NF4 by comparisons, blocks of 64."""
    x, scales, out = normal(1 << 26, dtype=_BRAIN), empty(1 << 20), empty(1 << 25, dtype=torch.uint8)
    return (1 << 19,), x, scales, out, 1 << 26, 1 << 20


@released("bitsandbytes", _BITS8, "dequant_8bit_kernel", QUANT_BLOCK=256, SPLIT_SIZE=256)
def library_bitsandbytes_bytes() -> Any:
    """2^27 bytes to bfloat16 by a table of 256, a scale for each 256."""
    packed, out = indices(256, 1 << 27, dtype=torch.uint8), empty(1 << 27, dtype=_BRAIN)
    return (1 << 19,), packed, out, uniform(256), uniform(1 << 19), 1 << 27


@released("bitsandbytes", _BITS8, "quantize_8bit_blockwise_kernel", BLOCK_SIZE=256, CODE_SIZE=256, SPLIT_NUM_BLOCKS=1)
def library_bitsandbytes_quantise_bytes() -> Any:
    """2^26 bfloat16 to the nearest of a table of 256 by bisection, blocks of 256."""
    x, scales, out = normal(1 << 26, dtype=_BRAIN), empty(1 << 18), empty(1 << 26, dtype=torch.uint8)
    return (1 << 18,), x, torch.linspace(-1, 1, 256, device="cuda"), scales, out, 1 << 26


@released("bitsandbytes", "backends/triton/kernels_optim", "_optimizer_update_2state_32bit_triton_kernel", num_warps=2)
def library_bitsandbytes_adam() -> Any:
    """A step of AdamW over 2^25 bfloat16 weights with float32 states."""
    slopes, weights = normal(1 << 25, dtype=_BRAIN), normal(1 << 25, dtype=_BRAIN)
    states, rates = (normal(1 << 25), uniform(1 << 25)), (0.9, 0.999, 0.0, 0.0, 1e-8, 0.01)
    steps = 10, 0.35, 0.99, 1e-3, 1.0, False
    return (1 << 17,), slopes, weights, *states, None, 0.0, 0.0, *rates, *steps, 1 << 25, 3, 256, 1


@released(
    "bitsandbytes",
    "backends/triton/kernels_optim",
    "_optimizer_update_2state_8bit_blockwise_triton_kernel",
    num_warps=2,
)
def library_bitsandbytes_adam_bytes() -> Any:
    """A step of AdamW over 2^24 bfloat16 weights with states of a byte, blocks of 256."""
    weights, slopes = normal(1 << 24, dtype=_BRAIN), normal(1 << 24, dtype=_BRAIN)
    states = (indices(256, 1 << 24, dtype=torch.uint8) for _ in range(2))
    tables = torch.linspace(-1, 1, 256, device="cuda"), torch.linspace(0, 1, 256, device="cuda")
    rates, steps, scales = (0.9, 0.999, 0.0, 0.0, 1e-8), (10, 0.35, 0.99, 1e-3), (uniform(1 << 16), uniform(1 << 16))
    return (1 << 16,), weights, slopes, *states, *rates, *steps, *tables, *scales, 0.01, 1.0, 1 << 24, 256, 1, 3


@released("torchao", _FLOAT8, "triton_fp8_gemm_1x128_128x128_kernel", num_warps=4, num_stages=4)
def library_torchao_block_product() -> Any:
    """float8 product of 4,096 × 4,096 × 4,096 with scales of 1 × 128 and 128 × 128, to bfloat16."""
    left, right, out = (
        normal(4096, 4096, dtype=_EIGHT),
        normal(4096, 4096, dtype=_EIGHT),
        empty(4096, 4096, dtype=_BRAIN),
    )
    scales = uniform(32, 4096), uniform(32, 32)
    operands = left, 4096, 1, right, 1, 4096, out, 4096, 1, scales[0], 1, 4096, scales[1], 1, 32
    return (64, 32), *operands, 4096, 4096, 4096, tl.bfloat16, 64, 128, 128


@released(
    "torchao", _FLOAT8, "triton_fp8_blockwise_act_quant_lhs_kernel", num_warps=4, num_stages=2,
    BLOCK_SIZE=128, NUM_GROUPS=16, EPS=1e-12, FP8_MAX=448.0,
)  # fmt: skip
def library_torchao_quantise() -> Any:
    """16,384 × 4,096 bfloat16 to float8, a scale for each 128, computed in float64."""
    x, out = normal(16384, 4096, dtype=_BRAIN), empty(16384, 4096, dtype=_EIGHT)
    return (1024, 32), x, 4096, 1, out, 4096, 1, empty(32, 16384), 1, 16384, 16384, 4096


@released(
    "torchao", "prototype/quantized_training/int8_mm", "_scaled_int8_mm_kernel", num_warps=8, num_stages=3,
    BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, EVEN_K=True, COL_SCALE_SCALAR=False,
)  # fmt: skip
def library_torchao_int8() -> Any:
    """int8 product of 8,192 × 4,096 × 4,096 with scales of rows and columns, to bfloat16."""
    left, right = normal(8192, 4096, dtype=torch.int8), normal(4096, 4096, dtype=torch.int8)
    out, scales = empty(8192, 4096, dtype=_BRAIN), (uniform(8192), uniform(4096))
    return (64 * 16,), left, right, out, *scales, 8192, 4096, 4096, 4096, 1, 1, 4096, 4096, 1


@released(
    "torchao", "prototype/hqq/kernels", "_mixed_mm_kernel", num_warps=4, num_stages=3, IS_BFLOAT16=True,
    QGROUP_SIZE=64, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, SPLIT_K=1, EVEN_K=True,
)  # fmt: skip
def library_torchao_four_bits() -> Any:
    """64 × 8,192 bfloat16 times 8,192 × 8,192 weights of 4 bits, groups of 64."""
    x, packed, out = normal(64, 8192, dtype=_BRAIN), normal(4096, 8192, dtype=torch.int8), empty(64, 8192, dtype=_BRAIN)
    scales = uniform(128, 8192, dtype=_BRAIN), uniform(128, 8192, dtype=_BRAIN)
    return (128, 1), x, packed, *scales, out, 64, 8192, 8192, 8192, 1, 8192, 1, 8192, 1, 8192, 1


@released("torchao", "prototype/float8nocompile/kernels/fp8_dynamic_tensorwise", "_to_fp8_col_major", num_warps=4)
def library_torchao_columns() -> Any:
    """8,192 × 8,192 bfloat16 to float8 by columns, one scale, in tiles of 32 × 32."""
    x, out = normal(8192, 8192, dtype=_BRAIN), empty(8192, 8192, dtype=_EIGHT)
    sizes = 1 << 26, -448.0, 448.0, 8192, 8192, 1, 8192
    return (256, 256), x, out, uniform(1), *sizes, tl.bfloat16, tl.float8e4nv, 32, 32, 1e-12


@released("flag_gems", "ops/log_softmax", "log_softmax_kernel", num_warps=4, BLOCK_M=8, BLOCK_N=256)
def library_flaggems_log_softmax() -> Any:
    """Logarithm of the softmax of 4,096 rows of 32,000 float16 in two passes, 8 rows in a program."""
    x, out = normal(4096, 32000, dtype=_HALF), empty(4096, 32000, dtype=_HALF)
    return (512, 1), out, x, 4096, 32000, 1


@released("flag_gems", "ops/layernorm", "layer_norm_loop_kernel", num_warps=4, TILE_N=1024)
def library_flaggems_layer_norm() -> Any:
    """Layer norm of 4,096 rows of 10,000 float16 by Welford's method in a loop."""
    x, out = normal(4096, 10000, dtype=_HALF), empty(4096, 10000, dtype=_HALF)
    weights = normal(10000, dtype=_HALF), normal(10000, dtype=_HALF)
    return (4096,), x, out, *weights, empty(4096), empty(4096), 4096, 10000, 1e-5


@released(
    "flag_gems",
    "ops/upsample_bicubic2d",
    "_upsample_bicubic2d_row_kernel",
    num_warps=4,
    align_corners=False,
    BLOCK_W=256,
)
def library_flaggems_bicubic() -> Any:
    """Bicubic enlargement of 8 × 64 images of 128 × 128 to 256 × 256, float16."""
    x, out = normal(8, 64, 128, 128, dtype=_HALF), empty(8, 64, 256, 256, dtype=_HALF)
    return (8 * 64 * 256,), x, out, 8, 64, 128, 128, 256, 256, *x.stride(), *out.stride(), 0.5, 0.5


@released("flag_gems", "ops/hadamard_transform", "_fht_kernel_256_4row_native", num_warps=1, SCALE=0.0625)
def library_flaggems_hadamard() -> Any:
    """Hadamard transform of 2^18 rows of 256 bfloat16 by exchanges, four rows in a program of one warp."""
    x, out = normal(1 << 18, 256, dtype=_BRAIN), empty(1 << 18, 256, dtype=_BRAIN)
    return (1 << 16,), x, out, 256, 256, 1 << 18


@released("flag_gems", "ops/reflection_pad2d", "reflection_pad2d_kernel", BLOCK_HW=256)
def library_flaggems_reflect() -> Any:
    """512 images of 250 × 250 float32 with 3 pixels mirrored at each side."""
    x, out = normal(512, 250, 250), empty(512, 256, 256)
    return (512, 256), x, out, 512, 250, 250, 3, 3, 256, 256


@released("flag_gems", "ops/pixel_unshuffle", "pixel_unshuffle_kernel", BLOCK_SIZE=1024)
def library_flaggems_unshuffle() -> Any:
    """16 images of 64 × 256 × 256 float16 to 256 channels of 128 × 128."""
    x, out = normal(16, 64, 256, 256, dtype=_HALF), empty(16, 256, 128, 128, dtype=_HALF)
    return (1 << 16,), x, out, 1 << 26, 16, 64, 256, 256, 2, 256, 128, 128


@released(
    "flag_gems", "ops/conv2d", "conv2d_forward_kernel", num_warps=4, num_stages=3,
    weight_c=64, weight_height=3, weight_width=3, stride_height=1, stride_width=1, padding_height=1, padding_width=1,
    dilation_height=1, dilation_width=1, groups=1, BLOCK_NI_HO_WO=64, BLOCK_CI=32, BLOCK_CO=64,
)  # fmt: skip
def library_flaggems_convolution() -> Any:
    """3 × 3 convolution of 32 images of 64 × 56 × 56 float16 into 128 channels, channels first."""
    x, weights = normal(32, 64, 56, 56, dtype=_HALF), normal(128, 64, 3, 3, dtype=_HALF)
    out, bias = empty(32, 128, 56, 56, dtype=_HALF), normal(128, dtype=_HALF)
    strides = *x.stride(), *weights.stride(), *out.stride()
    return (32 * 56 * 56 // 64, 2, 1), x, weights, out, bias, 32, 56, 56, 128, 56, 56, *strides


@released(
    "adasplash", "triton_entmax", "_fwd_entmax", num_warps=8, N_ITER=5, SIZE_N=16384, FAST_MATH=False, BLOCK_N=4096
)
def library_adasplash_entmax() -> Any:
    """Entmax of 2,048 rows of 16,384 float32 by five of Halley's steps, each a pass over the row."""
    return (2048,), normal(2048, 16384), empty(2048, 16384), 1.5


@released("adasplash", "adasplash_no_block_mask", "_get_output", num_warps=4, num_stages=3)
def library_adasplash_attention() -> Any:
    """Causal attention by entmax with the thresholds given, 2 × 16 heads of 64, 4,096 tokens, bfloat16."""
    query, key, value, out = (normal(2, 16, 4096, 64, dtype=_BRAIN) for _ in range(4))
    thresholds = normal(2, 16, 4096)
    constants = False, True, False, 128, 64, 16, 64, 4096
    return (32, 16, 2), query, key, value, out, None, thresholds, None, 1.5, 0.125, *constants, 4096 * 64, 4096


@released("bm3d_triton", "_backend", "_match", num_warps=8)
def library_bm3d_match() -> Any:
    """The 16 patches of 8 × 8 that are most like each of 7,056 in its neighbourhood of 39 × 39, float32."""
    count, k = 84 * 84, 16
    tables = empty(count, k, dtype=torch.int32), empty(count, dtype=torch.int32)
    return (count,), uniform(256, 256), *tables, 256, 256, 84, 0, k, 2500 * 64 / 255**2


@released("bm3d_triton", "_backend", "_filter")
def library_bm3d_filter() -> Any:
    """Groups of 16 patches of 8 × 8 transformed, weakened and added back, 28,561 groups, float32."""
    count, k, width = 169 * 169, 16, 512
    images = (uniform(width, width) for _ in range(2))
    places = indices(width * (width - 8) - 8, count, k)
    counts = torch.full((count,), k, device="cuda", dtype=torch.int32)
    sums = zeros(width, width), zeros(width, width)
    return (count,), *images, places, counts, uniform(64), *sums, width, k, 0.01, False


@released(
    "cut_cross_entropy", "cce_lse_forward", "_cce_lse_forward_kernel", num_warps=8, num_stages=4,
    B_BIN=4096, HAS_VALIDS=False, BLOCK_B=128, BLOCK_V=128, BLOCK_D=64, GROUP_B=8, EVEN_D=True, HAS_SOFTCAP=False,
    HAS_LA=False, DOT_PRECISION="tf32",
)  # fmt: skip
def library_cce_sums() -> Any:
    """Logarithms of sums of exponentials of 4,096 × 32,768 logits from 2,048 each, under locks, bfloat16."""
    left, right, sums = normal(4096, 2048, dtype=_BRAIN), normal(32768, 2048, dtype=_BRAIN), zeros(4096)
    locks = zeros(32, dtype=torch.int32)
    return (32 * 256,), left, right, sums, None, locks, None, 0.0, 4096, 32768, 2048, 2048, 1, 2048, 1, 1, 1, 32

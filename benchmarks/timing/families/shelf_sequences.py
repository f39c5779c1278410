"""Sequences of released libraries: linear attention, recurrences and scans, of fla, mlstm-kernels and mingru-scans.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl

from benchmarks.timing.data import empty, normal, uniform
from benchmarks.timing.libraries import released

_HALF, _BRAIN = torch.float16, torch.bfloat16


@released(
    "fla", "ops/common/chunk_scaled_dot_kkt", "chunk_scaled_dot_kkt_fwd_kernel", num_warps=4, num_stages=3,
    H=16, HV=16, K=128, BT=64, BK=64, IS_VARLEN=False, USE_G=True,
)  # fmt: skip
def shelf_fla_keys() -> Any:
    """Decayed products of keys with one another in chunks of 64, 4 × 8,192 steps, 16 heads of 128, bfloat16."""
    key, rates = normal(4, 8192, 16, 128, dtype=_BRAIN), uniform(4, 8192, 16, dtype=_BRAIN)
    return (128, 64), key, -uniform(4, 8192, 16), rates, empty(4, 8192, 16, 64), None, None, 8192


@released(
    "fla", "ops/delta_rule/wy_fast", "recompute_w_u_fwd_kernel", num_warps=4, num_stages=3,
    H=16, K=128, V=128, BT=64, BK=64, BV=64, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_delta() -> Any:
    """Keys and values of the delta rule by matrices of 64 × 64, 4 × 8,192 steps, 16 heads of 128, bfloat16."""
    key, value, left, right = (normal(4, 8192, 16, 128, dtype=_BRAIN) for _ in range(4))
    rates, mixed = uniform(4, 8192, 16, dtype=_BRAIN), normal(4, 8192, 16, 64, dtype=_BRAIN)
    return (128, 64), key, value, rates, left, right, mixed, None, None, 8192


@released(
    "fla", "ops/delta_rule/wy_fast", "prepare_wy_repr_bwd_kernel", num_warps=4, num_stages=2,
    H=8, K=128, V=128, BT=64, BK=64, BV=64, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_delta_backward() -> Any:
    """Slopes of those, 4 × 8,192 steps, 8 heads of 128, bfloat16."""
    key, value, left, right, key_out, value_out = (normal(4, 8192, 8, 128, dtype=_BRAIN) for _ in range(6))
    rates, mixed = uniform(4, 8192, 8, dtype=_BRAIN), normal(4, 8192, 8, 64, dtype=_BRAIN)
    outs = key_out, value_out, empty(4, 8192, 8, dtype=_BRAIN)
    return (128, 32), key, value, rates, mixed, left, right, *outs, None, None, 8192


@released(
    "fla", "ops/common/chunk_h", "chunk_fwd_kernel_h", num_warps=4, num_stages=3,
    H=16, K=128, V=128, BT=64, BS=64, BK=64, BV=64, USE_G=False, USE_G_GAMMA=False, USE_GK=True, USE_GV=False,
    USE_INITIAL_STATE=False, STORE_FINAL_STATE=True, IS_VARLEN=False, STATE_V_FIRST=False,
)  # fmt: skip
def shelf_fla_states() -> Any:
    """States of 128 × 128 before each of 64 chunks of 64 steps, 8 sequences of 16 heads, gates of keys, bfloat16."""
    key, value = (normal(8, 4096, 16, 128, dtype=_BRAIN) for _ in range(2))
    gates, states, last = -uniform(8, 4096, 16, 128), empty(8, 64, 16, 128, 128, dtype=_BRAIN), empty(8, 16, 128, 128)
    return (2 * 2 * 128,), key, value, states, None, None, gates, None, None, last, None, None, 4096


@released(
    "fla", "ops/common/chunk_o", "chunk_fwd_kernel_o", num_warps=4, num_stages=3,
    H=16, HV=16, K=128, V=128, BT=64, BK=64, BV=64, USE_G=True, USE_G_GAMMA=False, STATE_V_FIRST=False, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_outputs() -> Any:
    """Outputs of linear attention with a decay from the states of chunks, 8 × 4,096 steps, 16 heads, bfloat16."""
    query, key, value, out = (normal(8, 4096, 16, 128, dtype=_BRAIN) for _ in range(4))
    states, decays = normal(8, 64, 16, 128, 128, dtype=_BRAIN), -uniform(8, 4096, 16)
    return (2 * 64, 128), query, key, value, states, decays, None, out, None, None, 0.0884, 4096


@released(
    "fla", "ops/common/chunk_o", "chunk_bwd_kernel_dqkwg", num_warps=4, num_stages=2,
    BK=128, BV=128, USE_G=True, USE_G_GAMMA=False, USE_DW=False, STATE_V_FIRST=False, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_outputs_backward() -> Any:
    """Slopes to queries, keys and decays of it, 4 × 4,096 steps, 8 heads of 128, bfloat16."""
    query, key, value, slopes, query_out, key_out = (normal(4, 4096, 8, 128, dtype=_BRAIN) for _ in range(6))
    decays, decays_out = -uniform(4, 4096, 8), empty(1, 4, 4096, 8)
    states, state_slopes = (normal(4, 64, 8, 128, 128, dtype=_BRAIN) for _ in range(2))
    given = query, key, value, decays, None, states, slopes, state_slopes, query_out, key_out, None, None, decays_out
    return (64, 32), *given, None, None, 0.0884, 4, 4096, 8, 8, 128, 128, 64


@released(
    "fla", "ops/common/chunk_o", "chunk_bwd_kernel_dv", num_warps=4, num_stages=3,
    H=16, HV=16, K=128, V=128, BT=64, BK=128, BV=128,
    USE_G=True, USE_G_GAMMA=False, IS_VARLEN=False, STATE_V_FIRST=False,
)  # fmt: skip
def shelf_fla_values_backward() -> Any:
    """Slopes to values of it, 8 × 4,096 steps, 16 heads of 128, bfloat16."""
    query, key, slopes, out = (normal(8, 4096, 16, 128, dtype=_BRAIN) for _ in range(4))
    states, decays = normal(8, 64, 16, 128, 128, dtype=_BRAIN), -uniform(8, 4096, 16)
    return (64, 128), query, key, decays, None, slopes, out, states, None, None, 0.0884, 4096


@released(
    "fla", "ops/common/fused_recurrent", "fused_recurrent_fwd_kernel", num_warps=4,
    H=16, K=128, V=128, BK=64, BV=64, REVERSE=False, USE_G=False, USE_G_GAMMA=False, USE_GK=True, USE_GV=False,
    USE_INITIAL_STATE=True, STORE_FINAL_STATE=True, IS_VARLEN=False, STATE_V_FIRST=False,
)  # fmt: skip
def shelf_fla_recurrent() -> Any:
    """Linear attention step by step, 16 sequences of 128 steps, 16 heads with states of 128 × 128, in four parts."""
    query, key, value = (normal(16, 128, 16, 128, dtype=_BRAIN) for _ in range(3))
    gates, out = -uniform(16, 128, 16, 128), empty(2, 16, 128, 16, 128)
    first, last = normal(16, 16, 128, 128), empty(16, 16, 128, 128)
    given = query, key, value, None, None, gates, None, out, first, last, None
    return (4 * 256,), *given, 0.0884, 16, 128


@released(
    "fla", "ops/utils/cumsum", "chunk_local_cumsum_scalar_kernel", num_warps=2,
    B=8, H=32, BT=64, REVERSE=False, HAS_SCALE=False, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_sums() -> Any:
    """Running sums within chunks of 64 of 8 × 8,192 steps, 32 heads side by side, float32."""
    return (128 * 256,), normal(8, 8192, 32), empty(8, 8192, 32), None, None, None, 8192


@released(
    "fla", "ops/utils/pooling", "mean_pooling_fwd_kernel", num_warps=4, H=8, D=128, BT=64, BD=128, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_means() -> Any:
    """Means of each 64 steps of 8 × 16,384, 8 heads of 128, bfloat16."""
    x, out = normal(8, 16384, 8, 128, dtype=_BRAIN), empty(8, 256, 8, 128, dtype=_BRAIN)
    return (256, 64), x, out, None, None, 16384


@released("fla", "ops/rwkv7/channel_mixing", "rwkv_seq_mix_kernel", BLOCK_SIZE=1024)
def shelf_fla_mix() -> Any:
    """Each step mixed with the one before it, 8 × 4,096 of 2,560 bfloat16."""
    x, out = normal(8, 4096, 2560, dtype=_BRAIN), empty(8, 4096, 2560, dtype=_BRAIN)
    return (81920, 1, 1), x, normal(8, 2560, dtype=_BRAIN), uniform(2560, dtype=_BRAIN), out, 8, 4096, 2560


@released(
    "fla", "ops/hgrn/fused_recurrent", "fused_recurrent_hgrn_fwd_kernel", num_warps=1,
    D=2048, BD=32, USE_INITIAL_STATE=False, STORE_FINAL_STATE=False, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_gated() -> Any:
    """A gated recurrence of 32 × 512 steps of 2,048 channels, one warp for 32, bfloat16."""
    x, gates, out = (-uniform(32, 512, 2048, dtype=_BRAIN) for _ in range(3))
    return (64 * 32,), x, gates, out, None, None, None, 512


@released(
    "fla", "ops/hgrn/fused_recurrent", "fused_recurrent_hgrn_bwd_kernel", num_warps=2,
    D=1024, BD=64, USE_INITIAL_STATE=False, USE_FINAL_STATE_GRADIENT=False, IS_VARLEN=False,
)  # fmt: skip
def shelf_fla_gated_backward() -> Any:
    """Its slopes from the last step to the first, 32 × 512 steps of 1,024 channels, bfloat16."""
    gates, out, slopes = (-uniform(32, 512, 1024, dtype=_BRAIN) for _ in range(3))
    outs = empty(32, 512, 1024), empty(32, 512, 1024)
    return (16 * 32,), gates, out, None, *outs, slopes, None, None, None, 512


@released(
    "fla", "modules/rotary/ops", "rotary_embedding_kernel", num_warps=4, num_stages=2,
    B=4, H=32, D=128, R=32, TR=8192, BT=64, BD=64,
    IS_SEQLEN_OFFSETS_TENSOR=False, IS_VARLEN=False, INTERLEAVED=True, CONJUGATE=False,
)  # fmt: skip
def shelf_fla_rotate() -> Any:
    """Rotation of neighbours, half of each of 32 heads of 128, 4 × 8,192 steps, bfloat16."""
    x, out = normal(4, 8192, 32, 128, dtype=_BRAIN), empty(4, 8192, 32, 128, dtype=_BRAIN)
    cosines, sines = normal(8192, 32, dtype=_BRAIN), normal(8192, 32, dtype=_BRAIN)
    return (128, 4, 32), x, cosines, sines, out, None, None, 0, 8192


@released(
    "fla", "modules/token_shift", "token_shift_fwd_kernel_short", num_warps=4, num_stages=1,
    D=2048, BD=2048, IS_VARLEN=False, USE_INITIAL_STATE=False, STORE_FINAL_STATE=False, IS_DECODE=False,
)  # fmt: skip
def shelf_fla_shift() -> Any:
    """Differences of each step and the one before it, 16 × 4,096 of 2,048 bfloat16."""
    x, out = normal(16, 4096, 2048, dtype=_BRAIN), empty(16, 4096, 2048, dtype=_BRAIN)
    return (16, 4096), x, out, None, None, None, 4096


@released(
    "fla", "modules/norm/fused_norm_gate", "layer_norm_gated_fwd_kernel", num_warps=8,
    D=256, BT=32, BD=256, NB=4, ACTIVATION="swish", IS_RMS_NORM=True, STORE_RESIDUAL_OUT=False, HAS_RESIDUAL=False,
    HAS_WEIGHT=True, HAS_BIAS=False,
)  # fmt: skip
def shelf_fla_gated_norm() -> Any:
    """RMS norm of 262,144 heads of 256 bfloat16 times a gate, 32 in a program."""
    count = 1 << 18
    x, gates, out = (normal(count, 256, dtype=_BRAIN) for _ in range(3))
    return (8192,), x, gates, out, normal(256, dtype=_BRAIN), None, None, None, None, empty(count), 1e-5, count


@released("fla", "modules/norm/l2norm", "l2norm_fwd_kernel", num_warps=4, D=64, BD=64, NB=16, BT=64)
def shelf_fla_lengths() -> Any:
    """2^20 heads of 64 bfloat16 made of length 1."""
    x, out = normal(1 << 20, 64, dtype=_BRAIN), empty(1 << 20, 64, dtype=_BRAIN)
    return (1 << 14,), x, out, empty(1 << 20), 1e-6, 1 << 20


@released(
    "mlstm_kernels", "triton/chunkwise/xl_chunk/fw_kernel_parallel", "mlstm_chunkwise__parallel_fw_Hintra_kernel",
    num_warps=4, num_stages=1, siz_b_LQ=64, siz_b_LKV=64, siz_b_DHQK=64, siz_b_DHHV=128,
    DTYPE=tl.bfloat16, OUTPUT_DTYPE=tl.float32, EPS=1e-6, MINIMUM_MAX_VAL=-10.0,
)  # fmt: skip
def shelf_mlstm_outputs() -> Any:
    """Outputs of mLSTM from states of chunks of 128, 8 heads of 256 and 512, 4,096 steps, bfloat16."""
    batch, heads, steps, narrow, wide, length = 1, 8, 4096, 256, 512, 128
    chunks = steps // length
    query, key = (normal(batch, heads, steps, narrow, dtype=_BRAIN) for _ in range(2))
    value, out = (normal(batch, heads, steps, wide, dtype=_BRAIN) for _ in range(2))
    states = normal(batch, heads, (chunks + 1) * narrow, wide), normal(batch, heads, (chunks + 1) * narrow)
    maxima = uniform(batch, heads, chunks + 1)
    gates, sums = (-uniform(batch, heads, chunks, length) for _ in range(2))
    outs = out, empty(batch, heads, steps), empty(batch, heads, steps)
    strides = steps * narrow, narrow, 1, steps * wide, wide, 1, (chunks + 1) * narrow * wide, wide, 1
    rest = (chunks + 1) * narrow, 1, chunks + 1, steps, length, 1, steps, 1
    sizes = batch, heads, steps, narrow, wide, chunks, length
    given = query, key, value, *states, maxima, gates, sums, *outs
    return (wide // 128, length // 64, chunks * batch * heads), *given, narrow**-0.5, *strides, *rest, *sizes


@released(
    "mlstm_kernels", "triton/chunkwise/xl_chunk/fw_kernel_recurrent", "mlstm_chunkwise__recurrent_fw_C_kernel",
    num_warps=4, num_stages=1, siz_b_DHQK=64, siz_b_DHHV=64, save_states_every_nth_chunk=1, USE_INITIAL_STATE=False,
    DTYPE=tl.bfloat16,
)  # fmt: skip
def shelf_mlstm_states() -> Any:
    """States of mLSTM before each chunk of 128, 8 heads of 256 × 512, 4,096 steps, bfloat16 with float32 states."""
    batch, heads, steps, narrow, wide, length = 1, 8, 4096, 256, 512, 128
    chunks = steps // length
    key, value = normal(batch, heads, steps, narrow, dtype=_BRAIN), normal(batch, heads, steps, wide, dtype=_BRAIN)
    forget, into = normal(batch, heads, steps), normal(batch, heads, steps)
    states = empty(batch, heads, (chunks + 1) * narrow, wide), empty(batch, heads, (chunks + 1) * narrow)
    given = key, value, forget, into, None, None, None, *states, empty(batch, heads, chunks + 1)
    strides = steps * narrow, narrow, 1, steps * wide, wide, 1, steps, (chunks + 1) * narrow * wide, wide, 1
    rest = (chunks + 1) * narrow, 1, chunks + 1, 1, 0, 0, 0, 0, 0, 0
    sizes = batch, heads, steps, narrow, wide, chunks, length
    return (narrow // 64, wide // 64, batch * heads), *given, *strides, *rest, *sizes


@released(
    "mlstm_kernels", "triton/recurrent/fw_step_fused", "recurrent_step_fw_kernel", num_warps=4, num_stages=1,
    siz_b_DHQK=64, siz_b_DHHV=64, EPS=1e-6, DTYPE=tl.bfloat16, DTYPE_STATE=tl.float32,
)  # fmt: skip
def shelf_mlstm_step() -> Any:
    """One step of mLSTM, 64 requests of 8 heads with states of 256 × 512 float32."""
    batch, heads, narrow, wide = 64, 8, 256, 512
    old, new = (normal(batch, heads, narrow, wide) for _ in range(2))
    sums, maxima = (normal(batch, heads, narrow), normal(batch, heads, narrow)), uniform(batch, heads, 1)
    query, key = (normal(batch, heads, narrow, dtype=_BRAIN) for _ in range(2))
    value, out = (normal(batch, heads, wide, dtype=_BRAIN) for _ in range(2))
    gates = normal(batch, heads, 1, dtype=_BRAIN), normal(batch, heads, 1, dtype=_BRAIN)
    given = old, sums[0], maxima, query, key, value, *gates, out, new, sums[1], empty(batch, heads, 1)
    strides = narrow * wide, wide, 1, narrow, 1, 1, narrow, 1, wide, 1, 1
    return (1, wide // 64, batch * heads), *given, narrow**-0.5, *strides, batch, heads, narrow, wide


@released("mingru", "triton_scans", "_linear_scan_fwd_kernel", BLOCK_D=128)
def shelf_mingru_scan() -> Any:
    """A linear recurrence and the product of its factors, 64 × 512 steps of 1,024 channels, float32."""
    factors, x, products, out = (uniform(64, 512, 1024) for _ in range(4))
    return (64, 8), factors, x, products, out, 512, 1024


@released("mingru", "triton_scans", "_parallel_scan_log_fwd_kernel", BLOCK_D=128)
def shelf_mingru_log_scan() -> Any:
    """The same in logarithms, 64 × 512 steps of 768 channels, float32."""
    factors, x, out = -uniform(64, 512, 768), normal(64, 513, 768), empty(64, 512, 768)
    return (64, 6), factors, x, out, 512, 768

"""Statistics, clusters, trees and codes of released libraries: flashlib, flash-kmeans, flash-sinkhorn and others.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.timing.data import empty, indices, normal, table, uniform, zeros
from benchmarks.timing.libraries import released

_HALF, _BRAIN = torch.float16, torch.bfloat16


@released("flash_kmeans", "centroid_update_triton", "_centroid_update_chunk_kernel", BLOCK_N=256, D_PAD=64)
def shelf_kmeans_chunks() -> Any:
    """Sums of the points of 1,000 clusters, 262,144 of 64 float16 in the order of their clusters, 256 in a program."""
    count, clusters = 1 << 18, 1000
    order = torch.randperm(count, generator=torch.Generator().manual_seed(35))
    sorted_clusters = torch.randint(0, clusters, (count,), generator=torch.Generator().manual_seed(36)).sort().values
    sums, counts = zeros(1, clusters, 64), zeros(1, clusters, dtype=torch.int32)
    given = normal(1, count, 64, dtype=_HALF), table(order), table(sorted_clusters), sums, counts
    strides = count * 64, 64, 1, count, 1, count, 1, clusters * 64, 64, 1, clusters, 1
    return (1024, 1), *given, *strides, 1, count, 64, clusters


@released("flash_kmeans", "centroid_update_triton", "_centroid_update_kernel", BLOCK_D=128)
def shelf_kmeans_points() -> Any:
    """The same with a program and 128 atomic sums for each of 131,072 points, 4,096 clusters."""
    count, clusters = 1 << 17, 4096
    sums, counts = zeros(1, clusters, 128), zeros(1, clusters, dtype=torch.int32)
    given = normal(1, count, 128, dtype=_HALF), indices(clusters, 1, count), sums, counts
    strides = count * 128, 128, 1, clusters * 128, 128, 1, clusters, 1
    return (count,), *given, *strides, 1, count, 128, clusters


@released("flashlib", "primitives/random_forest/triton/histogram", "_rf_histogram_kernel", N_KEY=65536, BLOCK_N=512)
def shelf_flashlib_histogram() -> Any:
    """Sums of 60,000 slopes into 256 bins of each of 512 features, a program for each, the features side by side."""
    bins, sums = indices(256, 60000, 512), zeros(512, 256)
    return (512,), bins, normal(60000), sums, 60000, 512, 256, 512, 1, 256, 1


@released(
    "flashlib", "primitives/standard_scaler/triton/scaler", "_col_sum_ss_shifted_kernel", num_warps=8, num_stages=2,
    BLOCK_N=4096, BLOCK_D=128, SUB_N=256,
)  # fmt: skip
def shelf_flashlib_moments() -> Any:
    """Sums and squares of the columns of 500,000 × 256 float32, added atomically in float64."""
    x, sums = normal(500_000, 256), [zeros(256, dtype=torch.float64) for _ in range(2)]
    return (123, 2), x, normal(256), *sums, 500_000, 256, 256, 1


@released(
    "flashlib", "primitives/standard_scaler/triton/scaler", "_scale_kernel", num_warps=8, num_stages=2, BLOCK=8192
)
def shelf_flashlib_scale() -> Any:
    """Columns of 400,000 × 300 float32 moved and scaled, their numbers by a remainder in int64."""
    x, out = normal(400_000, 300), empty(400_000, 300)
    return (14649,), x, out, normal(300), uniform(300), 120_000_000, 300


@released(
    "flashlib", "kernels/distance/triton/pairwise", "_pairwise_l2_kernel", num_warps=8, num_stages=2,
    N_KEY=8192, D_KEY=256, FUSE_OP=1, BLOCK_I=128, BLOCK_J=64, BLOCK_D=32,
)  # fmt: skip
def shelf_flashlib_kernel() -> Any:
    """Gaussians of the distances of 8,000 points of 256 float32 from one another."""
    x, out = normal(8000, 256), empty(8000, 8000)
    return (63, 125), x, uniform(8000) + 256, out, uniform(1), 8000, 256, 256, 1, 8000, 1


@released(
    "flashlib", "kernels/distance/triton/knn_gather_l2sq", "_knn_gather_l2sq_kernel", num_warps=4,
    N=65536, D=128, K=32, BN=16, K_BLOCK=32, BLOCK_D=32, SINGLE_D_TILE=False,
)  # fmt: skip
def shelf_flashlib_neighbours() -> Any:
    """Distances of 65,536 points of 128 float16 from 32 listed of 2^20."""
    x, others, out = normal(1, 65536, 128, dtype=_HALF), normal(1, 1 << 20, 128, dtype=_HALF), empty(1, 65536, 32)
    chosen = indices(1 << 20, 1, 65536, 32)
    strides = *x.stride(), *others.stride(), *chosen.stride(), *out.stride()
    return (4096, 1, 1), x, others, chosen, out, 1 << 20, *strides


@released(
    "flashlib", "primitives/umap/triton/smooth_knn_dist", "_smooth_knn_dist_kernel", num_warps=1,
    N_ITER=64, TOL=1e-5, BLOCK_K=16,
)  # fmt: skip
def shelf_flashlib_smooth() -> Any:
    """The width by which 15 distances sum to a given number, 64 bisections for each of 262,144 points, a warp each."""
    count = 1 << 18
    return (count,), uniform(count, 15) + 0.1, empty(count), empty(count), count, 15, 3.906890595608519


@released(
    "flashlib", "primitives/tsne/triton/grad", "_tsne_qsum_kernel", num_warps=4,
    N_KEY=32768, N_LOOP=20096, BLOCK_I=64, BLOCK_J=64,
)  # fmt: skip
def shelf_flashlib_repulsion() -> Any:
    """The sum of 1 / (1 + squared distance) over pairs of 20,000 points of the plane."""
    return (313,), normal(20000, 2), zeros(1), 20000, 2


@released(
    "flashlib", "primitives/tsne/triton/grad", "_tsne_grad_kernel", num_warps=4,
    N_KEY=16384, N_LOOP=10112, BLOCK_I=32, BLOCK_J=64,
)  # fmt: skip
def shelf_flashlib_slopes() -> Any:
    """Slopes of t-SNE for 10,000 points with a matrix of all pairs."""
    points, pairs = normal(10000, 2), uniform(10000, 10000)
    return (313,), points, pairs, uniform(1) + 1e6, empty(10000, 2), 10000, 2, 10000, 1, 2


@released("flashlib", "linalg/gemm/triton/split", "_split_fp32_to_bf16_kernel", num_warps=4, BLOCK=4096)
def shelf_flashlib_split() -> Any:
    """2^27 float32 to bfloat16 and what is left of them."""
    outs = empty(1 << 27, dtype=_BRAIN), empty(1 << 27, dtype=_BRAIN)
    return (1 << 15,), normal(1 << 27), *outs, 1 << 27


@released(
    "flash_sinkhorn", "kernels/sinkhorn_splitn_sqeuclid", "_lse_splitn_partial_kernel", num_warps=4, num_stages=3,
    D=64, ALLOW_TF32=True, USE_EXP2=True, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32,
)  # fmt: skip
def shelf_sinkhorn_sums() -> Any:
    """Sums of exponentials of distances of 4,096 points of 64 float32 from 65,536 others, in 8 parts, in TF32."""
    points, others, shifts = normal(4096, 64), normal(65536, 64), -uniform(65536) * 100
    outs = empty(8, 4096), empty(8, 4096)
    return (32, 8), points, others, shifts, *outs, 4096, 65536, 8192, 64, 1, 64, 1, 1, 2.0, 0.5


@released("flash_sinkhorn", "kernels/sinkhorn_splitn_sqeuclid", "_lse_splitn_reduce_kernel", USE_EXP2=True, BLOCK_B=256)
def shelf_sinkhorn_join() -> Any:
    """The logarithms of those sums from 32 parts of 2^20."""
    parts = normal(32, 1 << 20), uniform(32, 1 << 20) + 1
    return (4096,), *parts, empty(1 << 20), 1 << 20, 32, 0.5, 1.0


@released(
    "flash_sinkhorn", "kernels/c_transform_sqeuclid", "_c_transform_kernel_impl", num_warps=8, num_stages=3,
    D=64, ALLOW_TF32=True, DTYPE_ID=2, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, EVEN_N=True,
)  # fmt: skip
def shelf_sinkhorn_nearest() -> Any:
    """The least shifted distance of each of 16,384 points of 64 float32 from as many others, and which, in TF32."""
    points, others, shifts = normal(16384, 64), normal(16384, 64), uniform(16384) * 100
    outs = empty(16384), empty(16384, dtype=torch.int32)
    return (128,), points, others, shifts, *outs, 16384, 16384, 64, 1, 64, 1, 1, 1, 1, 2.0, 512, 512


@released("ibu_boost", "kernels/screening_split_triton", "_hist_scatter_kernel", F=28, B=255, BLOCK=1024)
def shelf_ibu_histograms() -> Any:
    """Slopes and curvatures of 2^19 rows added to 255 bins of 28 features of 64 leaves."""
    bins, leaves = indices(256, 1 << 19, 28) - 1, indices(64, 1 << 19)
    sums = zeros(64, 28, 255), zeros(64, 28, 255)
    return (512,), bins, normal(1 << 19), uniform(1 << 19), leaves, *sums, 1 << 19


@released("ibu_boost", "kernels/screening_split_triton", "_screening_split_kernel", F=100, B_ACT=255, B_POW2=256)
def shelf_ibu_split() -> Any:
    """The best split of 255 bins of each of 100 features of 1,024 leaves by running sums."""
    sums, rest = (normal(1024, 100, 255), uniform(1024, 100, 255)), (normal(1024, 100), uniform(1024, 100))
    outs = empty(1024, 100), empty(1024, 100, dtype=torch.int32), empty(1024, 100, dtype=torch.int32)
    return (1024, 100), *sums, *rest, *outs, -1.0, 0.0, 1.0, 1e-6


_BITS, _CHECKS, _SHOTS = 8784, 936, 2048
"""A code of circuits of 144 qubits, decoded for so many samples."""


def _edges() -> tuple[torch.Tensor, torch.Tensor, int]:
    """The edges of each check and of each bit, and their number: 2 to 6 a bit."""
    generator = torch.Generator().manual_seed(35)
    degrees = torch.randint(2, 7, (_BITS,), generator=generator)
    count = int(degrees.sum())
    bits = torch.full((_BITS, 6), -1)
    bits[torch.arange(6) < degrees[:, None]] = torch.arange(count)
    most = -(-count // _CHECKS)
    checks = torch.full((_CHECKS * most,), -1)
    checks[:count] = torch.randperm(count, generator=generator)
    return table(checks.view(most, _CHECKS).T.contiguous()), table(bits), count


@released("tridec", "backends/bp_triton", "_check_update_kernel", BLOCK_S=256, INF=1.0e30)
def shelf_tridec_checks() -> Any:
    """Messages of 936 checks to their 38 bits by the two least, 2,048 samples, float32."""
    checks, _, count = _edges()
    messages, out, signs = normal(count, _SHOTS), empty(count, _SHOTS), normal(_CHECKS, _SHOTS).sign()
    sizes = _SHOTS, count, _CHECKS, 0.625, checks.shape[1]
    return (_SHOTS // 256 * _CHECKS,), messages, out, signs, checks, *sizes


@released("tridec", "backends/bp_triton", "_bit_update_kernel", MAXDEG_B=6, BLOCK_S=256)
def shelf_tridec_bits() -> Any:
    """Messages of 8,784 bits to their 2 to 6 checks, 2,048 samples, float32."""
    _, bits, count = _edges()
    messages, out, sums = normal(count, _SHOTS), empty(count, _SHOTS), empty(_BITS, _SHOTS)
    return (_SHOTS // 256 * _BITS,), messages, out, sums, normal(_BITS), bits, _SHOTS, count, _BITS

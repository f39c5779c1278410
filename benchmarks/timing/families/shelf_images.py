"""Images, voxels and points of released libraries: resized, augmented, convolved, sampled and put in order.

A function returns the grid and the arguments of a launch; the kernels are those of `benchmarks.timing.libraries`.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from benchmarks.timing.data import empty, indices, normal, table, uniform
from benchmarks.timing.libraries import released

_HALF, _LONG = torch.float16, torch.int64


def _neighbours(points: int, share: float) -> torch.Tensor:
    """Of each of 27 places about a point the point that is there, mostly near it in order, or -1."""
    generator = torch.Generator().manual_seed(35)
    shifts = torch.tensor([900 * x + 30 * y + z for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)])
    rows = torch.arange(points) + shifts[:, None] + torch.randint(-8, 9, (27, points), generator=generator)
    there = torch.rand(27, points, generator=generator) < share
    there[13] = True
    return torch.where(there, rows.clamp(0, points - 1), -1).to(torch.int32)


@released(
    "spconv_triton", "pytorch/_impl/gemm", "_gather_gemm_kernel", num_warps=4, num_stages=3,
    HAS_BIAS=False, IEEE=False, ALLOW_TF32=False, FP16_ACC=False, USE_MASK=True,
    GROUP_SIZE_M=8, BLOCK_M=128, BLOCK_N=64, BLOCK_R=32,
)  # fmt: skip
def shelf_spconv_gather() -> Any:
    """Sparse convolution of 120,000 voxels of 64 channels float16, those with the same neighbours together."""
    points = 120_000
    pairs = _neighbours(points, 0.35)
    bits = ((pairs >= 0).to(torch.int64) << torch.arange(27)[:, None]).sum(0)
    order = bits.argsort()
    x, weights, out = normal(points, 64, dtype=_HALF), normal(64, 27, 64, dtype=_HALF), empty(points, 64, dtype=_HALF)
    given = x, weights, table(pairs), out, x, table(bits[order]), table(order), points, 64, 64, 27
    return (-(-points // 128),), *given, 64, 1, 64, 1, 27 * 64, points, 1, 64, 1


@released(
    "spconv_triton", "pytorch/_impl/gemm", "_dweight_masked_kernel", num_warps=4, num_stages=3,
    IEEE=False, ALLOW_TF32=False, FP16_ACC=False, BLOCK_P=128, BLOCK_K=64, BLOCK_C=64,
)  # fmt: skip
def shelf_spconv_weights() -> Any:
    """Slopes of the weights of a sparse convolution of 120,000 voxels, 64 to 64 channels float16, in 9 parts."""
    points, splits = 120_000, 9
    pairs = _neighbours(points, 0.35)
    places, outs = (pairs >= 0).nonzero(as_tuple=True)
    starts = torch.zeros(28, dtype=torch.int64)
    starts[1:] = places.bincount(minlength=27).cumsum(0)
    x, slopes = normal(points, 64, dtype=_HALF), normal(points, 64, dtype=_HALF)
    lists = table(pairs[pairs >= 0]), table(outs), table(starts)
    sizes = 64, 64, 27, splits, 64, 1, 64, 1, 27 * 64, 64, 1, 64 * 27 * 64
    return (27 * splits, 1, 1), x, slopes, *lists, empty(splits, 64, 27, 64), *sizes


@released(
    "spconv_triton", "pytorch/_impl/pool", "_maxpool_fwd_kernel", num_warps=4, num_stages=2,
    ACC_F64=False, BLOCK_M=64, BLOCK_C=64,
)  # fmt: skip
def shelf_spconv_maxima() -> Any:
    """Maxima of the neighbours of 80,000 voxels, 128 channels float16."""
    points = 80_000
    x, out = normal(points, 128, dtype=_HALF), empty(points, 128, dtype=_HALF)
    return (1250, 2), x, table(_neighbours(points, 0.4)), out, points, 128, 27, 128, 1, points, 1, 128, 1


@released(
    "spconv_triton", "pytorch/_impl/pool", "_avgpool_bwd_kernel", num_warps=4, num_stages=2,
    ACC_F64=False, BLOCK_M=128, BLOCK_C=32,
)  # fmt: skip
def shelf_spconv_means_backward() -> Any:
    """Slopes of means of neighbours, 200,000 voxels of 32 channels float32."""
    points = 200_000
    slopes, out, counts = normal(points, 32), empty(points, 32), indices(27, points) + 1
    return (1563, 1), slopes, counts, table(_neighbours(points, 0.3)), out, points, 32, 27, 32, 1, points, 1, 32, 1


def _taps(size: int, smaller: int) -> tuple[int, torch.Tensor, torch.Tensor]:
    """The number of pixels that make one of an image made smaller by Lanczos of 3, their weights and the first ones."""
    taps = math.ceil(6 * size / smaller)
    first = ((torch.arange(smaller) + 0.5) * size / smaller - taps / 2).round().clamp(0, size - taps)
    return taps, normal(taps, smaller), table(first)


@released("lanczos_triton", "_kernels", "horizontal", num_warps=4)
def shelf_lanczos_rows() -> Any:
    """4 images of 3 × 2,160 × 3,840 float16 made half as wide by 12 weights."""
    taps, weights, first = _taps(3840, 1920)
    x, out = uniform(4, 3, 2160, 3840, dtype=_HALF), empty(4, 3, 2160, 1920)
    return (30 * 6480,), x, out, weights, first, 3840, 1920, 25920, taps, 64, 4


@released("lanczos_triton", "_kernels", "vertical", num_warps=4)
def shelf_lanczos_columns() -> Any:
    """4 images of 3 × 2,160 × 1,920 float32 made half as high by 12 weights."""
    taps, weights, first = _taps(2160, 1080)
    x, out = uniform(4, 3, 2160, 1920), empty(4, 3, 1080, 1920)
    return (4 * 1080 * 12,), x, out, weights, first, 2160, 1080, 1920, taps, 512


@released("lanczos_triton", "_kernels", "horizontal_wide", num_warps=4)
def shelf_lanczos_thumbnails() -> Any:
    """4 images of 3 × 3,000 × 4,000 float16 made 224 wide by 108 weights, 64 side by side."""
    taps, weights, first = _taps(4000, 224)
    x, out = uniform(4, 3, 3000, 4000, dtype=_HALF), empty(4, 3, 3000, 224)
    total = 4 * 3 * 3000 * 224
    return (total // 16,), x, out, weights, first, 4000, 224, total, taps, 16, 64


@released("triton_augment", "kernels/geometric_kernel", "crop_kernel", BLOCK_SIZE=1024)
def shelf_augment_crop() -> Any:
    """256 × 224 × 224 of each of 256 images of 3 × 256 × 256 float32, at places of their own."""
    x, out, places = uniform(256, 3, 256, 256), empty(256, 3, 224, 224), (indices(33, 256), indices(33, 256))
    return (37632,), x, out, 256, 3, 256, 256, 224, 224, *places, True


@released("triton_augment", "kernels/geometric_kernel", "affine_transform_kernel", BLOCK_SIZE=1024)
def shelf_augment_turn() -> Any:
    """256 images of 3 × 224 × 224 float32 turned by up to 30 degrees, bilinear."""
    angles = (torch.rand(256, generator=torch.Generator().manual_seed(35)) - 0.5) * math.pi / 3
    rows = torch.stack([angles.cos(), -angles.sin(), 9 * angles, angles.sin(), angles.cos(), -5 * angles], 1)
    x, out = uniform(256, 3, 224, 224), empty(256, 3, 224, 224)
    return (37632,), x, out, 256, 3, 224, 224, 224, 224, table(rows, torch.float32), 0.0, 1


@released("triton_augment", "kernels/color_normalize_kernel", "saturation_kernel", BLOCK_SIZE=1024)
def shelf_augment_saturate() -> Any:
    """Saturation of 256 images of 3 × 256 × 256 float32."""
    x, out = uniform(256, 3, 256, 256), empty(256, 3, 256, 256)
    return (16384,), x, out, 256, 3, 256, 256, 1.3


@released("triton_augment", "kernels/fused_kernel", "fused_augment_kernel", num_warps=4, num_stages=3, BLOCK_SIZE=1024)
def shelf_augment_all() -> Any:
    """Crop, mirror, brightness, contrast, saturation, grey and norm of 256 images of 3 × 256 × 256 float32 at once."""
    x, out = uniform(256, 3, 256, 256), empty(256, 3, 224, 224)
    places = indices(33, 256).to(torch.float32), indices(33, 256).to(torch.float32)
    turned, grey = indices(2, 256, dtype=torch.uint8), indices(2, 256, dtype=torch.uint8)
    factors = (uniform(256) + 0.5 for _ in range(3))
    given = x, out, 256 * 3 * 224 * 224, 256, 3, 256, 256, 224, 224, *places, turned, empty(6), 0.0, 0
    return (12544,), *given, uniform(3), uniform(3) + 0.2, *factors, grey, False, True, True, True, True, True


@released("localcorr", "triton/spatial_corr", "_correlation_forward_kernel", BLOCK_H=16, BLOCK_W=16, BLOCK_C=64)
def shelf_correlation() -> Any:
    """Products of each pixel with the 81 about it in another image, 4 × 128 channels of 64 × 112, float32."""
    left, right, out = normal(4, 128, 64, 112), normal(4, 128, 64, 112), empty(4, 9, 9, 64, 112)
    return (4, 4, 7), left, right, out, 4, 128, 64, 112, *left.stride(), *right.stride(), *out.stride(), 4, 1


@released("torch_fps", "_triton", "_fps_single_kernel", num_warps=8, D=3, BLOCK_N=4096, WITH_ASSIGN=True)
def shelf_fps_sample() -> Any:
    """256 points, each farthest from those before it, of each of 256 clouds of 4,096, and the nearest to each point."""
    points, kept, first = normal(256, 4096, 3), uniform(256, 4096) < 0.95, indices(4096, 256, dtype=_LONG)
    chosen, nearest = empty(256, 256, dtype=_LONG), empty(256, 4096, dtype=_LONG)
    return (256,), points, kept, first, chosen, nearest, 4096, 256, 12288, 3, 4096, 256


@released("torch_fps", "_triton", "_nearest_assign_kernel", num_warps=2, D=3, BLOCK_N=16, BLOCK_K=256)
def shelf_fps_nearest() -> Any:
    """The nearest of 256 points for each of 10,000 to 20,000 of 32 clouds, 16 in a program."""
    counts = torch.randint(10_000, 20_001, (32,), generator=torch.Generator().manual_seed(35))
    starts = counts.cumsum(0) - counts
    total = int(counts.sum())
    tables = table(starts, _LONG), table(counts, _LONG), empty(total, dtype=_LONG)
    return (32, 1250), normal(total, 3), normal(32 * 256, 3), *tables, 256, 3, 3


_ORDERS = "torch/_kernels/triton"


@released(
    "hilbertsfc", f"{_ORDERS}/hilbert2d_encode", "hilbert_encode_2d_4bit_sq", num_warps=8,
    BLOCK_SIZE=2048, NBITS=16, SHMEM_LUT=True,
)  # fmt: skip
def shelf_hilbert_encode() -> Any:
    """Places of 2^24 pixels on Hilbert's curve, 4 bits at a time by a table of 1,024."""
    places = indices(1 << 16, 1 << 24), indices(1 << 16, 1 << 24)
    return (8192,), *places, empty(1 << 24, dtype=_LONG), 1 << 24, 0, indices(1024, 1024, dtype=torch.int16)


@released(
    "hilbertsfc", f"{_ORDERS}/hilbert3d_decode", "hilbert_decode_3d_2bit_sb", num_warps=8,
    BLOCK_SIZE=1024, NBITS=10, SHMEM_LUT=True,
)  # fmt: skip
def shelf_hilbert_decode() -> Any:
    """Voxels of 2^23 places on Hilbert's curve, 2 bits at a time by a table of 1,536."""
    places, outs = indices(1 << 30, 1 << 23, dtype=_LONG), [empty(1 << 23, dtype=torch.int32) for _ in range(3)]
    return (8192,), places, *outs, 1 << 23, 0, indices(1536, 1536, dtype=torch.int16)


@released("hilbertsfc", f"{_ORDERS}/morton3d_encode", "morton_encode_3d_kernel", num_warps=4, BLOCK_SIZE=512, NBITS=21)
def shelf_morton_encode() -> Any:
    """Bits of 2^25 voxels put in turn, int64."""
    places = (indices(1 << 21, 1 << 25) for _ in range(3))
    return (1 << 16,), *places, empty(1 << 25, dtype=_LONG), 1 << 25, 0

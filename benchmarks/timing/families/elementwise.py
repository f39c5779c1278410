"""Kernels that compute each element by itself: streams, strides, arithmetic of one pipe."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from benchmarks.timing.data import empty, normal, uniform, zeros
from benchmarks.timing.family import Config, Launch, combine, family, launch

_BLOCKS = (128, 512, 1024, 2048, 4096, 16384)
_WARPS = (1, 2, 4, 8, 16)


@triton.jit
def _add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


@family(combine(BLOCK=_BLOCKS, num_warps=_WARPS))
def add(config: Config) -> Launch:
    """Add two vectors of 2^26 float32."""
    n = 1 << 26
    return launch(_add, (triton.cdiv(n, config["BLOCK"]),), normal(n), normal(n), empty(n), n, config=config)


@family(combine(BLOCK=(64, 256, 1024, 4096, 8192), num_warps=_WARPS))
def add_bytes(config: Config) -> Launch:
    """Add two vectors of 2^27 int8."""
    n = 1 << 27
    x, y = normal(n, dtype=torch.int8), normal(n, dtype=torch.int8)
    return launch(_add, (triton.cdiv(n, config["BLOCK"]),), x, y, torch.empty_like(x), n, config=config)


@triton.jit
def _gelu(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask).to(tl.float32)
    inner = 0.7978845608 * (value + 0.044715 * value * value * value)
    tanh = 2.0 * tl.sigmoid(2.0 * inner) - 1.0
    tl.store(out + offsets, (0.5 * value * (1.0 + tanh)).to(tl.bfloat16), mask)


@family(combine(BLOCK=_BLOCKS, num_warps=_WARPS))
def gelu(config: Config) -> Launch:
    """GELU by tanh of 2^26 bfloat16."""
    n = 1 << 26
    x = normal(n, dtype=torch.bfloat16)
    return launch(_gelu, (triton.cdiv(n, config["BLOCK"]),), x, torch.empty_like(x), n, config=config)


@triton.jit
def _strided(x, out, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets * STRIDE, mask), mask)


@family(combine(STRIDE=(1, 2, 3, 4, 8, 16, 32), BLOCK=(256, 1024, 4096), num_warps=(1, 4, 8)))
def strided_copy(config: Config) -> Launch:
    """Copy every STRIDE-th element of 2^27 float32."""
    n = (1 << 27) // config["STRIDE"]
    return launch(_strided, (triton.cdiv(n, config["BLOCK"]),), normal(1 << 27), empty(n), n, config=config)


@triton.jit
def _saxpy(x, y, a, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(y + offsets, a * tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


@family(combine(programs=(32, 132, 264, 1056), BLOCK=(512, 1024, 4096), num_warps=(4, 8, 16), num_stages=(1, 3)))
def saxpy_persistent(config: Config) -> Launch:
    """y = a x + y of 2^25 float32 in a loop over a fixed number of programs."""
    n = 1 << 25
    return launch(_saxpy, (config["programs"],), normal(n), normal(n), 0.5, n, config=config)


@triton.jit
def _swiglu(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < width
    gate = tl.load(x + row * 2 * width + offsets, mask, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * width + width + offsets, mask, other=0.0).to(tl.float32)
    tl.store(out + row * width + offsets, (gate * tl.sigmoid(gate) * up).to(tl.float16), mask)


@family(combine(BLOCK=(256, 512, 1024, 4096, 16384), num_warps=(1, 4, 8, 16, 32)))
def swiglu(config: Config) -> Launch:
    """SwiGLU of 4,096 rows of 2 × 11,008 float16."""
    rows, width = 4096, 11008
    x = normal(rows, 2 * width, dtype=torch.float16)
    out = empty(rows, width, dtype=torch.float16)
    return launch(_swiglu, (rows, triton.cdiv(width, config["BLOCK"])), x, out, width, config=config)


@triton.jit
def _dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out + offsets, tl.where(keep, value / (1 - p), 0.0).to(x.dtype.element_ty), mask)


@family(combine(BLOCK=(128, 512, 1024, 2048, 4096), num_warps=_WARPS))
def dropout(config: Config) -> Launch:
    """Dropout by Philox of 2^26 float16."""
    n = 1 << 26
    x = normal(n, dtype=torch.float16)
    return launch(_dropout, (triton.cdiv(n, config["BLOCK"]),), x, torch.empty_like(x), n, 0.1, 123, config=config)


@triton.jit
def _polynomial(x, out, n, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask)
    total = value
    for term in range(TERMS):
        total = total * value + 0.5 / (term + 1)
    tl.store(out + offsets, total, mask)


@family(combine(TERMS=(16, 64, 256), BLOCK=(128, 512, 1024, 4096), num_warps=(1, 4, 8)))
def polynomial(config: Config) -> Launch:
    """A polynomial by Horner's rule in 2^23 float32."""
    n = 1 << 23
    return launch(_polynomial, (triton.cdiv(n, config["BLOCK"]),), uniform(n), empty(n), n, config=config)


@triton.jit
def _polynomial_unrolled(x, out, n, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask)
    total = value
    for term in tl.static_range(TERMS):
        total = total * value + 1.0 / (term + 1)
    tl.store(out + offsets, total, mask)


@family(combine(TERMS=(8, 32, 64), BLOCK=(128, 512, 1024, 4096), num_warps=(1, 4, 8)))
def polynomial_double(config: Config) -> Launch:
    """A polynomial by Horner's rule in 2^23 float64."""
    n = 1 << 23
    x = uniform(n, dtype=torch.float64)
    return launch(_polynomial_unrolled, (triton.cdiv(n, config["BLOCK"]),), x, torch.empty_like(x), n, config=config)


@triton.jit
def _transcendental(x, out, n, REPEATS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask)
    for _ in tl.static_range(REPEATS):
        value = tl.exp2(tl.sqrt(tl.abs(value)) - 1.0)
    tl.store(out + offsets, value, mask)


@family(combine(REPEATS=(1, 4, 16), BLOCK=(128, 512, 1024, 4096), num_warps=(1, 4, 8)))
def transcendental(config: Config) -> Launch:
    """Chains of exp2 and square root of 2^24 float32."""
    n = 1 << 24
    return launch(_transcendental, (triton.cdiv(n, config["BLOCK"]),), normal(n), empty(n), n, config=config)


@triton.jit
def _adam(parameter, gradient, first, second, n, rate, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    slope = tl.load(gradient + offsets, mask).to(tl.float32)
    mean = 0.9 * tl.load(first + offsets, mask) + 0.1 * slope
    square = 0.999 * tl.load(second + offsets, mask) + 0.001 * slope * slope
    step = rate * mean / (tl.sqrt(square) + 1e-8)
    tl.store(first + offsets, mean, mask)
    tl.store(second + offsets, square, mask)
    tl.store(parameter + offsets, tl.load(parameter + offsets, mask) - step, mask)


@family(combine(BLOCK=(128, 512, 1024, 2048, 8192), num_warps=_WARPS))
def adam(config: Config) -> Launch:
    """A step of Adam over 2^24 parameters, with gradients in bfloat16."""
    n = 1 << 24
    tensors = normal(n), normal(n, dtype=torch.bfloat16), zeros(n), zeros(n)
    return launch(_adam, (triton.cdiv(n, config["BLOCK"]),), *tensors, n, 1e-3, config=config)


@triton.jit
def _hash(out, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = offsets.to(tl.uint32)
    for _ in tl.static_range(ROUNDS):
        value = value ^ (value << 13)
        value = value ^ (value >> 17)
        value = value ^ (value << 5)
        value = value * 2654435761
    tl.store(out + offsets, value, offsets < n)


@family(combine(ROUNDS=(4, 16, 48), BLOCK=(128, 512, 2048, 4096), num_warps=(1, 4, 8)))
def integer_hash(config: Config) -> Launch:
    """Rounds of shifts, exclusive ors and multiplications of 2^24 integers."""
    n = 1 << 24
    return launch(_hash, (triton.cdiv(n, config["BLOCK"]),), empty(n, dtype=torch.int32), n, config=config)


@triton.jit
def _dequantise(x, scales, out, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask).to(tl.float32)
    tl.store(out + offsets, (value * tl.load(scales + offsets // GROUP, mask)).to(tl.float16), mask)


@family(combine(GROUP=(32, 128), BLOCK=(128, 512, 1024, 4096, 8192), num_warps=(1, 4, 8, 16)))
def dequantise(config: Config) -> Launch:
    """Multiply 2^27 int8 by the scales of their groups."""
    n = 1 << 27
    x, scales = normal(n, dtype=torch.int8), normal(n // config["GROUP"])
    out = empty(n, dtype=torch.float16)
    return launch(_dequantise, (triton.cdiv(n, config["BLOCK"]),), x, scales, out, n, config=config)


@triton.jit
def _accurate_functions(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    left, right = tl.load(x + offsets, mask), tl.load(y + offsets, mask)
    tl.store(out + offsets, libdevice.erf(left) * libdevice.pow(right, left) + libdevice.sin(left), mask)


@family(combine(BLOCK=(128, 256, 512, 1024, 2048, 4096), num_warps=_WARPS))
def accurate_functions(config: Config) -> Launch:
    """Error function, power and sine of libdevice over 2^24 float32."""
    n = 1 << 24
    grid = (triton.cdiv(n, config["BLOCK"]),)
    return launch(_accurate_functions, grid, uniform(n), uniform(n), empty(n), n, config=config)

"""Memory as the values of a dtype: bits, values, units in the last place, poison patterns."""

from __future__ import annotations

from typing import Any

import torch

CHUNK = 1 << 24
"""Elements processed at once: their float64 copies must fit beside the tensors."""

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

# Quiet NaNs of every float format of their size that has several; as integers, values that no kernel is likely to make.
_POISONS = {1: (0x7F, 0xFF), 2: (0x7FDA, -0x26), 4: (0x7FDA5A5A, -0x25A5A6), 8: (0x7FFA5A5A5A5A5A5A, -0x5A5A5A5A5A5A6)}
_INTEGER_POISONS = {
    1: (0x5A, 0xA5),
    2: (0x5A5A, -0x5A5B),
    4: (0x5A5A5A5A, -0x5A5A5A5B),
    8: (0x5A5A5A5A5A5A5A5A, -0x5A5A5A5A5A5A5A5B),
}
# Types of a signature whose tensors may be of another dtype, as `triton.reinterpret` makes them.
_DTYPES = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "fp64": torch.float64,
}
_COMPONENTS = {2: torch.float16, 4: torch.float32, 8: torch.float64}


def bits_of(memory: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Bytes, as integers of the size of a dtype's elements."""
    return memory.view(_BITS[element_bytes(dtype)])


def element_bytes(dtype: torch.dtype) -> int:
    """Bytes of one compared element: a complex number is two."""
    return min(dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize, 8)


def float_format(dtype: torch.dtype) -> torch.dtype | None:
    """The floating-point format of a dtype's elements; None for integers, and for formats packed into bytes."""
    if dtype.is_complex:
        return _COMPONENTS[dtype.itemsize // 2]
    return dtype if dtype.is_floating_point and "float4" not in str(dtype) else None


def poisons_of(dtype: torch.dtype) -> tuple[int, int]:
    """Two bit patterns that stand for "nobody wrote here", as `bits_of` reads them: NaNs with a payload for floats.

    Two, since a byte may well hold the first for good reason: what holds each where each was put, nobody wrote.
    """
    table = _POISONS if dtype.is_floating_point or dtype.is_complex else _INTEGER_POISONS
    return table[element_bytes(dtype)]


def values_of(bits: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The values of the bits, in float64."""
    if (format_ := float_format(dtype)) is not None:
        # The narrow formats convert to float32 alone.
        return bits.view(format_).to(torch.float32 if format_.itemsize == 1 else format_).to(torch.float64)
    if dtype in (torch.uint16, torch.uint32, torch.uint64):
        wide = bits.to(torch.float64)
        return torch.where(bits < 0, wide + 2.0 ** (8 * dtype.itemsize), wide)
    if dtype == torch.int8:
        return bits.view(torch.int8).to(torch.float64)
    return bits.to(torch.float64)


def ulps_of(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """One unit in the last place of each float64 value, in the format of a float dtype; where the value is 0 or
    subnormal, the format's smallest spacing, or float32's smallest normal number where that is larger."""
    format_ = float_format(dtype)
    if format_ is None:
        return torch.zeros_like(values)
    info = torch.finfo(format_)
    # |value| = m · 2**exponent with m in [0.5, 1).
    exponent = torch.frexp(values.abs().clamp(info.tiny, info.max))[1].to(torch.float64)
    spacing = torch.exp2(exponent - 1) * info.eps
    # GPUs flush float32's subnormals to zero, or not, by instruction.
    return spacing.clamp(min=torch.finfo(torch.float32).tiny) if format_ != torch.float64 else spacing


def _bounded(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Float64 values with infinities as the format's next number after its largest, so that they have a distance."""
    format_ = float_format(dtype)
    if format_ is None:
        return values
    largest = torch.finfo(format_).max
    # max is (2 − eps) · 2**k; one unit more is 2**(k + 1).
    beyond = min(largest * (1.0 + torch.finfo(format_).eps), torch.finfo(torch.float64).max)
    return torch.where(values.isinf(), torch.copysign(torch.full_like(values, beyond), values), values)


def distances(bits: torch.Tensor, reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """|value − reference| of each element in float64; NaN where one of them is a NaN."""
    values, wanted = _bounded(values_of(bits, dtype), dtype), _bounded(values_of(reference, dtype), dtype)
    error = (values - wanted).abs()
    if dtype in (torch.int64, torch.uint64):
        # Large ones that differ may round to one value.
        error = torch.where((bits != reference) & (error == 0), 1.0, error)
    return error


TF32_UNIT = 1 << 13
"""float32's units in the last place that are one of TF32, which has 10 bits of the 23."""


def move_one_ulp(bits: torch.Tensor, dtype: torch.dtype, generator: torch.Generator, unit: int = 1) -> None:
    """Move each value, in place, by one unit in its last place, or so many, up or down at random.

    Zeros, infinities and NaNs stay (masks, padding), and so does what would become one of these.
    """
    format_ = float_format(dtype)
    if format_ is None:
        return
    for start in range(0, bits.numel(), CHUNK):
        part = bits[start : start + CHUNK]
        up = torch.randint(0, 2, part.shape, generator=generator, device=part.device, dtype=torch.int8)
        # Sign and magnitude: the next number away from zero is one more, with either sign.
        moved = part + (2 * up - 1).to(part.dtype) * unit
        movable = torch.ones_like(up, dtype=torch.bool)
        for side in (part, moved):
            value = side.view(format_).to(torch.float32) if format_.itemsize == 1 else side.view(format_)
            movable &= value.isfinite() & (value != 0)
        part.copy_(torch.where(movable, moved, part))


def dtype_of_type(kind: Any, otherwise: torch.dtype) -> torch.dtype:
    """The dtype that a kernel sees, by a type of its signature."""
    # *fp16   *kbf16   *fp8e4nv   tensordesc<fp16[64, 64]>
    if not isinstance(kind, str) or not kind.startswith("*"):
        return otherwise
    named = _DTYPES.get(kind.removeprefix("*").removeprefix("k"), otherwise)
    return named if named.itemsize == otherwise.itemsize else otherwise

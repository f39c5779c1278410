"""Compares what a variant left in memory with what the empty plan left there: bit by bit, and by error."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from irscope.analysis.measurement import VERDICTS, Agreement, Verdict

_CHUNK = 1 << 24
"""Elements that are looked at at once: what is made of them in float64 must find room beside the tensors."""

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

# (relative, absolute), as torch.testing.assert_close has them; every other dtype must be equal.
_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
}

# Quiet NaNs of every float format of their size that has several; as integers, values that no kernel is likely to make.
_POISONS = {1: (0x7F, 0xFF), 2: (0x7FDA, -0x26), 4: (0x7FDA5A5A, -0x25A5A6), 8: (0x7FFA5A5A5A5A5A5A, -0x5A5A5A5A5A5A6)}
_INTEGER_POISONS = {
    1: (0x5A, 0xA5),
    2: (0x5A5A, -0x5A5B),
    4: (0x5A5A5A5A, -0x5A5A5A5B),
    8: (0x5A5A5A5A5A5A5A5A, -0x5A5A5A5A5A5A5A5B),
}


def bits_of(memory: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Bytes, as integers of the size of a dtype's elements."""
    return memory.view(_BITS[element_bytes(dtype)])


def element_bytes(dtype: torch.dtype) -> int:
    """Of what is compared as one element: a complex number is two."""
    return min(dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize, 8)


def poisons_of(dtype: torch.dtype) -> tuple[int, int]:
    """Two bit patterns that stand for "nobody wrote here", as `bits_of` reads them: NaNs with a payload for floats.

    Two, since a byte may well hold the first for good reason: what holds each where each was put, nobody wrote.
    """
    table = _POISONS if dtype.is_floating_point or dtype.is_complex else _INTEGER_POISONS
    return table[element_bytes(dtype)]


def tolerance_of(dtype: torch.dtype) -> tuple[float, float]:
    """(relative, absolute) within which values of a dtype are close: the defaults of `torch.testing.assert_close`."""
    if dtype.is_complex:
        dtype = torch.float64 if dtype.itemsize == 16 else torch.float32 if dtype.itemsize == 8 else torch.float16
    return _TOLERANCES.get(dtype, (0.0, 0.0))


def values_of(bits: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What the bits mean, in float64."""
    if dtype.is_complex:
        dtype = {2: torch.float16, 4: torch.float32, 8: torch.float64}[dtype.itemsize // 2]
    if dtype.is_floating_point and "float4" not in str(dtype):
        # The narrow formats convert to float32 alone.
        return bits.view(dtype).to(torch.float32 if dtype.itemsize == 1 else dtype).to(torch.float64)
    if dtype in (torch.uint16, torch.uint32, torch.uint64):
        wide = bits.to(torch.float64)
        return torch.where(bits < 0, wide + 2.0 ** (8 * dtype.itemsize), wide)
    if dtype == torch.int8:
        return bits.view(torch.int8).to(torch.float64)
    return bits.to(torch.float64)


@dataclass(slots=True)
class Difference:
    """How one stretch of memory differs."""

    name: str
    differing: int = 0
    far: int = 0
    """Elements out of tolerance."""
    nan: int = 0
    """NaNs that were computed."""
    nan_in_reference: int = 0
    """Of those, where the empty plan computes one too."""
    never_written: int = 0
    """Elements that the empty plan writes, and this did not."""
    newly_written: int = 0
    """Elements that the empty plan does not write."""
    infinite: int = 0
    """Elements that are infinite on one side alone, or of another sign."""
    outside: bool = False
    """Whether it wrote beyond the tensor's memory."""
    max_abs_error: float | None = None
    max_rel_error: float | None = None

    @property
    def verdict(self) -> Verdict:
        if self.nan:
            return "nan"
        if self.far or self.outside:
            return "different"
        return "close" if self.differing else "identical"

    @property
    def detail(self) -> str:
        said: list[str] = []
        if self.nan:
            said.append(f"{_count(self.nan, 'NaN')} computed, {self.nan_in_reference} of them under the empty plan too")
        if self.never_written:
            said.append(f"{_count(self.never_written, 'element')} never written")
        if self.newly_written:
            said.append(f"{_count(self.newly_written, 'element')} written that the empty plan leaves alone")
        if self.infinite:
            said.append(f"{_count(self.infinite, 'element')} infinite on one side")
        if self.outside:
            said.append("written outside of its memory")
        return "; ".join(said)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def compare_memory(
    name: str,
    dtype: torch.dtype,
    ours: torch.Tensor,
    reference: torch.Tensor,
    *,
    before: torch.Tensor | None = None,
    poison: int | None = None,
    unwritten: torch.Tensor | None = None,
) -> Difference:
    """Compare two stretches of memory, given as `bits_of` them.

    `before`: what it held before the launch; a NaN that neither side touched is not counted. `poison`: what it was
    filled with instead. `unwritten`: where the empty plan leaves the poison; None for nowhere.
    """
    found = Difference(name)
    relative, absolute = tolerance_of(dtype)
    for start in range(0, ours.numel(), _CHUNK):
        part = slice(start, start + _CHUNK)
        out, expected = ours[part], reference[part]
        left = None if unwritten is None else unwritten[part]
        if poison is not None and left is not None:
            expected = torch.where(left, torch.full_like(expected, poison), expected)
        differs = out != expected
        any_differs = bool(differs.any())
        if not any_differs and not (dtype.is_floating_point or dtype.is_complex):
            continue
        values, wanted = values_of(out, dtype), values_of(expected, dtype)
        nan = values.isnan()
        if poison is not None:
            untouched = (out == poison) & (differs if left is None else differs | left)
            nan &= ~untouched
            found.never_written += int((untouched & differs).sum())
        elif before is not None:
            nan &= differs | (out != before[part])
        found.nan += int(nan.sum())
        found.nan_in_reference += int((nan & wanted.isnan()).sum())
        if not any_differs:
            continue
        found.differing += int(differs.sum())
        if left is not None:
            found.newly_written += int((differs & left).sum())
        finite = values.isfinite() & wanted.isfinite()
        found.infinite += int((differs & (values.isinf() | wanted.isinf())).sum())
        error = torch.where(differs & finite, (values - wanted).abs(), 0.0)
        if bool((differs & finite).any()):
            found.max_abs_error = max(found.max_abs_error or 0.0, float(error.max()))
            nonzero = wanted != 0
            share = torch.where(nonzero & finite, error / wanted.abs(), 0.0)
            if bool((differs & finite & nonzero).any()):
                found.max_rel_error = max(found.max_rel_error or 0.0, float(share.max()))
        close = finite & (error <= absolute + relative * wanted.abs())
        if dtype in (torch.int64, torch.uint64):
            # Large ones that differ may round to one value.
            close = torch.zeros_like(close)
        found.far += int((differs & ~close).sum())
    return found


def agreement_of(runs: list[list[Difference]], noise: str = "") -> Agreement:
    """One Agreement of several runs of a variant, each a list with a Difference for every stretch of memory.

    `noise`: what is known of the empty plan's own runs, said where the outputs are not identical.
    """
    worst = max(
        (found for run in runs for found in run),
        key=lambda found: (VERDICTS.index(found.verdict), found.far, found.differing),
        default=None,
    )
    if worst is None:
        return Agreement("identical")
    everything = [found for run in runs for found in run]
    verdicts = [max((found.verdict for found in run), key=VERDICTS.index) for run in runs]
    said = [worst.detail] if worst.detail else []
    as_bad = sum(verdict == worst.verdict for verdict in verdicts)
    if as_bad < len(runs):
        said.append(f"in {as_bad} of {len(runs)} runs on the same inputs")
    if noise and worst.verdict != "identical":
        said.append(noise)
    return Agreement(
        worst.verdict,
        _largest(found.max_abs_error for found in everything) if worst.verdict != "identical" else 0.0,
        _largest(found.max_rel_error for found in everything) if worst.verdict != "identical" else 0.0,
        worst.name if worst.verdict != "identical" else "",
        max(sum(found.differing for found in run) for run in runs),
        "; ".join(said),
    )


def _largest(errors: object) -> float | None:
    known = [error for error in errors if error is not None]  # type: ignore[attr-defined]
    return max(known, default=None)

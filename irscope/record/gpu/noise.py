"""How far a launch's outputs move by rounding alone, element by element, and whether a variant stays within that.

The empty plan's kernel is run on inputs perturbed by one unit in the last place, and compiled so that only the order or
the rounding of its arithmetic differs. `docs/gpu.md` explains the rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from irscope.device.measurement import VERDICTS, Agreement, Verdict

_CHUNK = 1 << 24
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
    """Two bit patterns that stand for "nobody wrote here", NaNs for floats: a byte may hold one for good reason."""
    table = _POISONS if dtype.is_floating_point or dtype.is_complex else _INTEGER_POISONS
    return table[element_bytes(dtype)]


def values_of(bits: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
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
    """Move each value, in place, by one unit in its last place, or so many; zeros, infinities and NaNs stay."""
    format_ = float_format(dtype)
    if format_ is None:
        return
    for start in range(0, bits.numel(), _CHUNK):
        part = bits[start : start + _CHUNK]
        up = torch.randint(0, 2, part.shape, generator=generator, device=part.device, dtype=torch.int8)
        # Sign and magnitude: the next number away from zero is one more, with either sign.
        moved = part + (2 * up - 1).to(part.dtype) * unit
        movable = torch.ones_like(up, dtype=torch.bool)
        for side in (part, moved):
            value = side.view(format_).to(torch.float32) if format_.itemsize == 1 else side.view(format_)
            movable &= value.isfinite() & (value != 0)
        part.copy_(torch.where(movable, moved, part))


def dtype_of_type(kind: Any, otherwise: torch.dtype) -> torch.dtype:
    # *fp16   *kbf16   *fp8e4nv   tensordesc<fp16[64, 64]>
    if not isinstance(kind, str) or not kind.startswith("*"):
        return otherwise
    named = _DTYPES.get(kind.removeprefix("*").removeprefix("k"), otherwise)
    return named if named.itemsize == otherwise.itemsize else otherwise


_MOVED_FACTOR = 2.0
"""Times the largest of the deviations that moved inputs gave at an element."""
_OTHER_FACTOR = 3.0
"""Times the largest that other orders and roundings gave there: those draws are fewer."""
_WIDE_OTHER_FACTOR = 6.0
"""The same where all inputs are wider than 16 bits: sums in long chains are several times as far off as in trees."""
_TYPICAL_FACTOR = 4.0
"""Times the typical deviation of other orders and roundings."""
_REACH_FACTOR = 2.0
"""Times the farthest that any element went in other orders and roundings, in units of what moved inputs do to it."""
_LEAST_REACH = 1.0
_GROUP_LIMIT = 0.8
"""Of the errors of a row or column of a kernel that rounds nothing between (root mean square, in units of what its
elements are allowed): reordered sums round a few of its elements to the other side, and not most of them."""
_LEAST_GROUP = 32
"""Elements of a row or column, below which only each by itself is judged."""
_FINER_SHARE = 0.2
"""A kernel whose other orders do less than this share of what moved inputs do computes more finely than its inputs."""
_LEAST_TYPICAL = 0.1
"""A typical deviation that is never held against a variant, in units of an element's own noise."""
_STRAY_FACTOR = 2.0
"""Times the largest deviation of an element that strayed in the empty plan's own runs."""
_WIDE_FLOOR_ULPS = 8.0
"""Units in the last place that a float32 or float64 may always be off; 1 of a narrower format."""


@dataclass(slots=True)
class _Judgement:
    beyond: int = 0
    worst: float = 0.0
    """The largest ratio of an element's error to its noise."""
    stray: float = 0.0
    squares: float = 0.0
    count: int = 0
    rows: torch.Tensor | None = None
    """Of each row the sum of squares of the errors, in units of what the elements are allowed."""
    columns: torch.Tensor | None = None

    @property
    def typical(self) -> float:
        """Root mean square of the errors in units of the elements' noise."""
        return math.sqrt(self.squares / self.count) if self.count else 0.0


@dataclass(slots=True)
class Noise:
    dtype: torch.dtype
    reference: torch.Tensor
    coarse_inputs: bool = False
    """Whether any input that was moved is in a format of 16 bits or fewer."""
    fine_reach: float | None = None
    """How far another order of its sums takes an element at most, in units of what moved inputs do to it, by the length
    of the sums and the precision that they are added in; None where it may round, or compare, between."""
    shape: tuple[int, int] | None = None
    """Rows and columns of the memory; None if it is not one matrix."""
    moved: torch.Tensor | None = None
    """The largest deviation of each element over the runs on moved inputs; None before the first."""
    other: torch.Tensor | None = None
    """The same over the runs in other orders and roundings."""
    second: torch.Tensor | None = None
    """The second largest of those."""
    other_runs: int = 0
    typical_moved: float = 0.0
    typical_other: float = 0.0
    reach: float = 0.0
    """The farthest that an element went in other orders and roundings, in units of what moved inputs do to it."""
    largest: float = 0.0
    strays: float = 0.0
    """How many elements one run strays from what the other runs allow, on average."""
    stray: float = 0.0
    """The largest deviation of such an element."""
    _steps_only: bool = field(default=True)

    def add_moved(self, bits: torch.Tensor, untouched: torch.Tensor | None = None) -> None:
        """Add a run on moved inputs. `untouched`: elements that the kernel leaves, and which only the move changed."""
        if self.moved is None:
            self.moved = torch.zeros(self.reference.numel(), dtype=torch.float32, device=self.reference.device)
        moved = self.moved
        judgement = _Judgement()
        for part in _parts(self.reference):
            error = self._deviation(bits[part], part)
            if untouched is not None:
                error = torch.where(untouched[part], 0.0, error)
            self._note(error)
            torch.maximum(moved[part], error.to(torch.float32), out=moved[part])
            self._measure(judgement, error, self._unit(part))
        self.typical_moved = max(self.typical_moved, judgement.typical)

    def add_other(self, bits: torch.Tensor) -> None:
        """Add a run on the inputs as they are, with sums in another order or arithmetic rounded otherwise."""
        if self.other is None or self.second is None:
            self.other = torch.zeros(self.reference.numel(), dtype=torch.float32, device=self.reference.device)
            self.second = torch.zeros_like(self.other)
        others, seconds = self.other, self.second
        judgement = _Judgement()
        for part in _parts(self.reference):
            error = self._deviation(bits[part], part)
            self._note(error)
            self._measure(judgement, error, self._unit(part))
            if self.moved is not None:
                share = (error - self._floor(part)) / self.moved[part]
                self.reach = max(self.reach, float(torch.where(self.moved[part] > 0, share, 0.0).max()))
            fresh, largest, second = error.to(torch.float32), others[part], seconds[part]
            torch.maximum(second, torch.minimum(fresh, largest), out=second)
            torch.maximum(largest, fresh, out=largest)
        self.other_runs += 1
        self.typical_other = max(self.typical_other, judgement.typical)

    def finish(self) -> None:
        if self.other is None or self.second is None or self.other_runs < 3:
            return
        strays = 0
        for part in _parts(self.reference):
            allowed = self._allowed(part, self.second[part])
            strayed = self.other[part] > allowed
            strays += int(strayed.sum())
            if bool(strayed.any()):
                self.stray = max(self.stray, float(self.other[part][strayed].max()))
        self.strays = strays / self.other_runs

    def judge(self, judgement: _Judgement, part: slice, error: torch.Tensor, compared: torch.Tensor) -> None:
        """Add a part of a variant's errors to a judgement. `compared`: the elements that are judged by their error."""
        allowed = self._allowed(part, None if self.other is None else self.other[part])
        error = torch.where(compared, error, 0.0)
        # An unknown distance (a NaN on one side) is beyond anything.
        outside = compared & ~(error <= allowed)
        known = torch.where(error.isfinite(), error, 0.0)
        judgement.beyond += int(outside.sum())
        ratio = torch.where(known > 0, known / allowed, 0.0)
        judgement.worst = max(judgement.worst, float(ratio.max()))
        judgement.stray = max(judgement.stray, float(torch.where(outside, known, 0.0).max()))
        if bool((outside & ~error.isfinite()).any()):
            judgement.stray = judgement.worst = math.inf
        self._measure(judgement, known, self._unit(part))
        if self._is_fine and self.shape is not None:
            self._measure_groups(judgement, part, torch.where(known > 0, known / self._limit_of_reach(part), 0.0))

    def _measure_groups(self, judgement: _Judgement, part: slice, share: torch.Tensor) -> None:
        assert self.shape is not None
        rows, columns = self.shape
        if judgement.rows is None or judgement.columns is None:
            judgement.rows, judgement.columns = (share.new_zeros(size) for size in (rows, columns))
        place = torch.arange(part.start, part.start + share.numel(), device=share.device)
        squares = share.clamp(max=10.0) ** 2
        judgement.rows.index_add_(0, place // columns, squares)
        judgement.columns.index_add_(0, place % columns, squares)

    def worst_group(self, judgement: _Judgement) -> tuple[str, float]:
        """(`row 3` or `column 3`, the root mean square of its errors) of the worst one; 0.0 if none is judged."""
        worst = ("", 0.0)
        if self.shape is None or judgement.rows is None or judgement.columns is None:
            return worst
        rows, columns = self.shape
        for name, sums, size in (("row", judgement.rows, columns), ("column", judgement.columns, rows)):
            if size >= _LEAST_GROUP:
                most = float(sums.max())
                worst = max(worst, (f"{name} {int(sums.argmax())}", math.sqrt(most / size)), key=lambda group: group[1])
        return worst

    def is_within(self, judgement: _Judgement) -> bool:
        if judgement.beyond > self.allowed_strays or (
            judgement.beyond and judgement.stray > _STRAY_FACTOR * self.stray
        ):
            return False
        return judgement.typical <= self.typical_limit and self.worst_group(judgement)[1] <= _GROUP_LIMIT

    @property
    def allowed_strays(self) -> int:
        """Elements that may lie beyond their own noise: none where the empty plan's own runs never stray."""
        return math.floor(2.0 * self.strays + 3.0 * math.sqrt(self.strays)) if self.strays else 0

    @property
    def typical_limit(self) -> float:
        """The largest typical deviation of a variant, in units of the elements' noise."""
        # Of few elements a mean says little: rows of a thousand may well share one sum, and its rounding.
        few = 1.0 / math.sqrt(max(self.reference.numel() / 1024, 1e-6))
        if self.other_runs >= 3:
            return max(_TYPICAL_FACTOR * self.typical_other, _LEAST_TYPICAL, few)
        return max(self.typical_moved, self.typical_other, few)

    def _deviation(self, bits: torch.Tensor, part: slice) -> torch.Tensor:
        error = distances(bits, self.reference[part], self.dtype)
        # Where moving the inputs makes a NaN, nothing is learned of a finite element.
        return torch.where(error.isfinite() & (bits != self.reference[part]), error, 0.0)

    def _note(self, error: torch.Tensor) -> None:
        largest = float(error.max()) if error.numel() else 0.0
        self.largest = max(self.largest, largest)
        self._steps_only = self._steps_only and largest <= 1.0

    def _floor(self, part: slice) -> torch.Tensor:
        wanted = values_of(self.reference[part], self.dtype)
        if float_format(self.dtype) is not None:
            # The last rounding may fall to either side; in a wide format those of the last few operations are seen too.
            return ulps_of(wanted, self.dtype) * (1.0 if element_bytes(self.dtype) <= 2 else _WIDE_FLOOR_ULPS)
        # An integer that was rounded from a float moves by one step; an index moves by more, a bool by all there is.
        steps = self._steps_only and self.largest > 0 and self.dtype != torch.bool
        return torch.full_like(wanted, 1.0 if steps else 0.0)

    def _unit(self, part: slice) -> torch.Tensor:
        floor = self._floor(part)
        return floor if self.moved is None else floor + self.moved[part]

    def _allowed(self, part: slice, other: torch.Tensor | None) -> torch.Tensor:
        exact = float_format(self.dtype) is None
        allowed = self._floor(part)
        if self.moved is not None:
            allowed = allowed + self.moved[part] * (1.0 if exact else _MOVED_FACTOR)
        if other is not None:
            factor = _OTHER_FACTOR if self.coarse_inputs else _WIDE_OTHER_FACTOR
            allowed = torch.maximum(allowed, other) if exact else allowed + other * factor
        if self.moved is None or exact or not (self._is_fine or self._is_finer):
            return allowed
        # It computes more finely than its inputs are given: moved inputs show more than its own rounding ever does.
        return torch.where(self.moved[part] > 0, torch.minimum(allowed, self._limit_of_reach(part)), allowed)

    @property
    def _is_finer(self) -> bool:
        return self.coarse_inputs and self.other_runs >= 3 and self.typical_other < _FINER_SHARE * self.typical_moved

    @property
    def _is_fine(self) -> bool:
        """Whether it rounds nothing between coarse inputs and the outputs, and no run says otherwise."""
        known = self.fine_reach is not None and self.moved is not None and self.coarse_inputs
        return known and self.typical_other <= _FINER_SHARE * self.typical_moved

    def _limit_of_reach(self, part: slice) -> torch.Tensor:
        least = self.fine_reach if self._is_fine and self.fine_reach is not None else _LEAST_REACH
        moved = self.moved[part] if self.moved is not None else 0.0
        return self._floor(part) + moved * max(_REACH_FACTOR * self.reach, least)

    def _measure(self, judgement: _Judgement, error: torch.Tensor, unit: torch.Tensor) -> None:
        share = torch.where(error > 0, error / unit, 0.0)
        # A wild element is judged by itself; here it counts as one that is far out.
        judgement.squares += float((share.clamp(max=10.0) ** 2).sum())
        judgement.count += error.numel()


def _parts(memory: torch.Tensor) -> list[slice]:
    return [slice(start, start + _CHUNK) for start in range(0, memory.numel(), _CHUNK)]


@dataclass(slots=True)
class MemoryDifference:
    name: str
    differing: int = 0
    far: int = 0
    """Elements that no rounding explains: written by one side alone, or in memory that is not to be changed."""
    beyond_noise: bool = False
    """Whether the errors as a whole are more than the noise of the empty plan's own runs."""
    nan: int = 0
    nan_in_reference: int = 0
    """Of those, where the empty plan computes one too."""
    never_written: int = 0
    """Elements that the empty plan writes, and this did not."""
    newly_written: int = 0
    infinite: int = 0
    """Elements that are infinite on one side alone, or of another sign."""
    outside: bool = False
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    noise: Noise | None = None
    judgement: _Judgement | None = None

    @property
    def verdict(self) -> Verdict:
        if self.nan:
            return "nan"
        if self.far or self.beyond_noise or self.outside:
            return "different"
        return "close" if self.differing else "identical"

    @property
    def beyond(self) -> int:
        return self.far + (self.judgement.beyond if self.judgement is not None else 0)

    @property
    def detail(self) -> str:
        sentences: list[str] = []
        if self.nan:
            sentences.append(
                f"{_count(self.nan, 'NaN')} computed, {self.nan_in_reference} of them under the empty plan too"
            )
        if self.never_written:
            sentences.append(f"{_count(self.never_written, 'element')} never written")
        if self.newly_written:
            sentences.append(f"{_count(self.newly_written, 'element')} written that the empty plan leaves alone")
        if self.infinite:
            sentences.append(f"{_count(self.infinite, 'element')} infinite on one side")
        if self.outside:
            sentences.append("written outside of its memory")
        if self.beyond_noise and self.noise is not None and self.judgement is not None:
            sentences.append(_why_beyond(self.noise, self.judgement))
        return "; ".join(sentences)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _why_beyond(noise: Noise, judgement: _Judgement) -> str:
    if judgement.beyond > noise.allowed_strays:
        usual = f", {noise.allowed_strays} are usual" if noise.allowed_strays else ""
        return f"{_count(judgement.beyond, 'element')} beyond the noise{usual}"
    if judgement.typical > noise.typical_limit:
        return f"in all {judgement.typical:.2g} of the noise, where reordering explains {noise.typical_limit:.2g}"
    group, share = noise.worst_group(judgement)
    if group and not judgement.beyond:
        return f"{group} is off as a whole: {share:.2g} of what rounding explains of one element"
    return f"{_count(judgement.beyond, 'element')} further beyond the noise than the empty plan's own runs ever are"


def compare_memory(
    name: str,
    dtype: torch.dtype,
    ours: torch.Tensor,
    reference: torch.Tensor,
    *,
    before: torch.Tensor | None = None,
    poison: int | None = None,
    unwritten: torch.Tensor | None = None,
    noise: Noise | None = None,
) -> MemoryDifference:
    """Compare two stretches of memory, given as `bits_of` them: what a variant left with what the empty plan leaves.

    `before`: what it held before the launch. `poison`: what it was filled with instead. `unwritten`: where the empty
    plan leaves that; None for nowhere. `noise`: what rounding explains; None where only the same bits will do.
    """
    judgement = None if noise is None else _Judgement()
    difference = MemoryDifference(name, noise=noise, judgement=judgement)
    for part in _parts(ours):
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
        # Elements that one side alone writes: no error says how far that is off.
        one_sided = torch.zeros_like(differs) if left is None else differs & left
        difference.newly_written += int(one_sided.sum())
        if poison is not None:
            untouched = (out == poison) & (differs if left is None else differs | left)
            nan &= ~untouched
            difference.never_written += int((untouched & differs).sum())
            one_sided |= untouched & differs
        elif before is not None:
            nan &= differs | (out != before[part])
        difference.nan += int(nan.sum())
        difference.nan_in_reference += int((nan & wanted.isnan()).sum())
        if not any_differs:
            continue
        difference.differing += int(differs.sum())
        difference.infinite += int((differs & (values.isinf() | wanted.isinf())).sum())
        finite = differs & values.isfinite() & wanted.isfinite()
        error = torch.where(finite, (values - wanted).abs(), 0.0)
        if bool(finite.any()):
            difference.max_abs_error = max(difference.max_abs_error or 0.0, float(error.max()))
            nonzero = finite & (wanted != 0)
            share = torch.where(nonzero, error / wanted.abs(), 0.0)
            if bool(nonzero.any()):
                difference.max_rel_error = max(difference.max_rel_error or 0.0, float(share.max()))
        if noise is None or judgement is None:
            difference.far += int(differs.sum())
            continue
        difference.far += int(one_sided.sum())
        noise.judge(judgement, part, distances(out, expected, dtype), differs & ~one_sided)
    if noise is not None and judgement is not None and difference.differing:
        difference.beyond_noise = not noise.is_within(judgement)
    return difference


def agreement_of(runs: list[list[MemoryDifference]], noise: str = "", noise_of: str = "") -> Agreement:
    """One Agreement of several runs of a variant, each of every stretch of memory; `noise` is said of a difference."""
    worst = max(
        (difference for run in runs for difference in run),
        key=lambda difference: (
            VERDICTS.index(difference.verdict),
            difference.far,
            difference.beyond,
            difference.differing,
        ),
        default=None,
    )
    if worst is None:
        return Agreement("identical")
    everything = [difference for run in runs for difference in run]
    verdicts = [max((difference.verdict for difference in run), key=VERDICTS.index) for run in runs]
    sentences = [worst.detail] if worst.detail else []
    as_bad = sum(verdict == worst.verdict for verdict in verdicts)
    if as_bad < len(runs):
        sentences.append(f"in {as_bad} of {len(runs)} runs on the same inputs")
    if noise and worst.verdict != "identical":
        sentences.append(noise)
    if worst.verdict == "identical":
        return Agreement("identical", 0.0, 0.0)
    of_worst = [difference.judgement for difference in everything if difference.name == worst.name]
    judgements = [judgement for judgement in of_worst if judgement is not None]
    return Agreement(
        worst.verdict,
        _largest(difference.max_abs_error for difference in everything),
        _largest(difference.max_rel_error for difference in everything),
        worst.name,
        max(sum(difference.differing for difference in run) for run in runs),
        "; ".join(sentences),
        noise=worst.noise.largest if worst.noise is not None else None,
        over_noise=_finite(_largest(judgement.worst for judgement in judgements)),
        typical_over_noise=_finite(_largest(judgement.typical for judgement in judgements)),
        beyond_noise=max(difference.beyond for difference in everything),
        noise_of=noise_of,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _largest(errors: Iterable[float | None]) -> float | None:
    return max((error for error in errors if error is not None), default=None)

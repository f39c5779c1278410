"""Compares what a variant left in memory with what the empty plan left there: bitwise, and by error against noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from irscope.device.measurement import VERDICTS, Agreement, Verdict
from irscope.record.gpu.noise import Judgement, Noise
from irscope.record.gpu.values import CHUNK, distances, values_of


@dataclass(slots=True)
class Difference:
    """How one stretch of memory differs."""

    name: str
    differing: int = 0
    far: int = 0
    """Elements that no rounding explains: written by one side alone, or in memory that is not to be changed."""
    beyond_noise: bool = False
    """Whether the errors as a whole are more than the noise of the empty plan's own runs."""
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
    noise: Noise | None = None
    """What the errors were judged by."""
    judgement: Judgement | None = None

    @property
    def verdict(self) -> Verdict:
        if self.nan:
            return "nan"
        if self.far or self.beyond_noise or self.outside:
            return "different"
        return "close" if self.differing else "identical"

    @property
    def beyond(self) -> int:
        """Elements beyond their own noise, and those that no rounding explains in any case."""
        return self.far + (self.judgement.beyond if self.judgement is not None else 0)

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
        if self.beyond_noise and self.noise is not None and self.judgement is not None:
            said.append(_why_beyond(self.noise, self.judgement))
        return "; ".join(said)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _why_beyond(noise: Noise, judged: Judgement) -> str:
    if judged.beyond > noise.allowed_strays:
        usual = f", {noise.allowed_strays} are usual" if noise.allowed_strays else ""
        return f"{_count(judged.beyond, 'element')} beyond the noise{usual}"
    if judged.typical > noise.typical_limit:
        return f"in all {judged.typical:.2g} of the noise, where reordering explains {noise.typical_limit:.2g}"
    group, share = noise.worst_group(judged)
    if group and not judged.beyond:
        return f"{group} is off as a whole: {share:.2g} of what rounding explains of one element"
    return f"{_count(judged.beyond, 'element')} further beyond the noise than the empty plan's own runs ever are"


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
) -> Difference:
    """Compare two stretches of memory, given as `bits_of` them.

    `before`: what it held before the launch; a NaN that neither side touched is not counted. `poison`: what it was
    filled with instead. `unwritten`: where the empty plan leaves the poison; None for nowhere. `noise`: what rounding
    explains; None where only the same bits will do.
    """
    found = Difference(name, noise=noise)
    judged = found.judgement = None if noise is None else Judgement()
    for start in range(0, ours.numel(), CHUNK):
        part = slice(start, start + CHUNK)
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
        found.newly_written += int(one_sided.sum())
        if poison is not None:
            untouched = (out == poison) & (differs if left is None else differs | left)
            nan &= ~untouched
            found.never_written += int((untouched & differs).sum())
            one_sided |= untouched & differs
        elif before is not None:
            nan &= differs | (out != before[part])
        found.nan += int(nan.sum())
        found.nan_in_reference += int((nan & wanted.isnan()).sum())
        if not any_differs:
            continue
        found.differing += int(differs.sum())
        found.infinite += int((differs & (values.isinf() | wanted.isinf())).sum())
        finite = differs & values.isfinite() & wanted.isfinite()
        error = torch.where(finite, (values - wanted).abs(), 0.0)
        if bool(finite.any()):
            found.max_abs_error = max(found.max_abs_error or 0.0, float(error.max()))
            nonzero = finite & (wanted != 0)
            share = torch.where(nonzero, error / wanted.abs(), 0.0)
            if bool(nonzero.any()):
                found.max_rel_error = max(found.max_rel_error or 0.0, float(share.max()))
        if noise is None or judged is None:
            found.far += int(differs.sum())
            continue
        found.far += int(one_sided.sum())
        noise.judge(judged, part, distances(out, expected, dtype), differs & ~one_sided)
    if noise is not None and judged is not None and found.differing:
        found.beyond_noise = not noise.is_within(judged)
    return found


def agreement_of(runs: list[list[Difference]], noise: str = "", noise_of: str = "") -> Agreement:
    """One Agreement of several runs of a variant, each a list with a Difference for every stretch of memory.

    `noise`: what is known of the empty plan's own runs, said where the outputs are not identical. `noise_of`: the runs
    that the noise was measured by.
    """
    worst = max(
        (found for run in runs for found in run),
        key=lambda found: (VERDICTS.index(found.verdict), found.far, found.beyond, found.differing),
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
    if worst.verdict == "identical":
        return Agreement("identical", 0.0, 0.0)
    judged = [found.judgement for found in everything if found.name == worst.name and found.judgement is not None]
    return Agreement(
        worst.verdict,
        _largest(found.max_abs_error for found in everything),
        _largest(found.max_rel_error for found in everything),
        worst.name,
        max(sum(found.differing for found in run) for run in runs),
        "; ".join(said),
        noise=worst.noise.largest if worst.noise is not None else None,
        over_noise=_finite(_largest(one.worst for one in judged)),
        typical_over_noise=_finite(_largest(one.typical for one in judged)),
        beyond_noise=max(found.beyond for found in everything),
        noise_of=noise_of,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _largest(errors: object) -> float | None:
    known = [error for error in errors if error is not None]  # type: ignore[attr-defined]
    return max(known, default=None)

"""Whether two runs of a launch leave the same in memory, or differ by no more than rounding explains.

The baseline is run again on inputs that are perturbed by one unit in the last place, up or down at random, with
functions that hardware approximates, products that may be fused and the sums of matrix units moved by as much as these
may be off. A deviation that is a few times as large as those are is rounding; of integers, and of what the moved runs
leave alone, only equal bits are the same.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.device.measurement import Agreement
from irscope.machine.arithmetic import Arithmetic, float_bits, is_float
from irscope.machine.captured import Inputs
from irscope.machine.control import Bindings, Executor, Machine, Step
from irscope.machine.elementwise import ELEMENTWISE, reciprocal_root
from irscope.machine.values import Array, Held, unsigned

MOVED_RUNS = 3
_NOISE_FACTOR = 4.0
"""Times the largest deviation that moved inputs gave at an element."""
_WIDE_FLOOR_ULPS = 8.0
"""Units in the last place that a float32 or float64 may always be off; 1 of a narrower format."""
_Wide = NDArray[np.float64]
_ERRORS: Mapping[Callable[..., Any], Callable[[_Wide], _Wide]] = {
    # ex2.approx: 2 units in the last place; before it the product with log2(e) is rounded.
    np.exp: lambda y: y * (2.0**-22 + 2.0**-24 * np.abs(np.log(np.maximum(y, 1e-300)))),
    np.exp2: lambda y: y * 2.0**-22,
    # lg2.approx: an absolute error of 2^-22 for operands of 0.5 to 2, beyond a relative one.
    np.log: lambda y: np.maximum(np.abs(y), 1) * 2.0**-22,
    np.log2: lambda y: np.maximum(np.abs(y), 1) * 2.0**-22,
    # sin.approx and cos.approx: an absolute error of 2^-20.5 up to pi.
    np.sin: lambda y: np.full(y.shape, 2.0**-20.5),
    np.cos: lambda y: np.full(y.shape, 2.0**-20.5),
    reciprocal_root: lambda y: np.abs(y) * 2.0**-22.4,
    np.sqrt: lambda y: np.abs(y) * 2.0**-23,
}
"""A function → how far the instruction of a GPU may be off, by its result. Source: "PTX ISA", section 9.7.3."""


_TRUNCATED = {1: (13, 8), 2: (23, 64), 4: (23, 64)}
"""Bytes of an operand's element → bits to which a matrix unit truncates its sums, and products along k by which it may
be off by as much again: chosen so that sums which are truncated so, and an H200's, are within (docs/truth.md)."""


def _fusable(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
    """A product, moved: in an FMA it is not rounded."""
    (values,) = ELEMENTWISE["arith.mulf"](machine, step, frame)
    arithmetic = machine.arithmetic
    if isinstance(values, np.ndarray) and values.dtype.itemsize >= 4 and isinstance(arithmetic, _Moved):
        return (moved_by_one_ulp(values, arithmetic.random),)
    return (values,)


class _Moved(Arithmetic):
    """Ordinary arithmetic, with what hardware approximates as far off as it may be."""

    executors: Mapping[str, Executor] = {"arith.mulf": _fusable}

    def __init__(self, random: np.random.Generator, towards_zero: bool) -> None:
        """`towards_zero`: sums of matrix units are truncated; else they are off to either side at random."""
        self.random = random
        self._towards_zero = towards_zero

    def approximated(self, function: Callable[..., Array], values: Array) -> Array:
        error = _ERRORS.get(function)
        if error is None or not is_float(values.dtype):
            return values
        wide = values.astype(np.float64)
        sign = self.random.choice((-1.0, 1.0), wide.shape)
        return np.where(np.isfinite(wide), wide + sign * error(wide), wide).astype(values.dtype)

    def product(
        self, left: Array, right: Array, accumulator: Array | None, dtype: np.dtype[Any], precision: str
    ) -> Array:
        """A dot as a matrix unit may sum it: it aligns its addends and truncates them.

        Sources: Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores"; for float8 "DeepSeek-V3 Technical
        Report", section 3.3.2.
        """
        total = super().product(left, right, accumulator, dtype, precision)
        size = left.dtype.itemsize
        if not is_float(left.dtype) or size not in _TRUNCATED or (size == 4 and precision == "ieee"):
            return total
        bits, products = _TRUNCATED[size]
        sizes = [np.abs(one.astype(np.float32, copy=False)) for one in (left, right)]
        addends = np.matmul(*sizes) + (0 if accumulator is None else np.abs(accumulator.astype(np.float32, copy=False)))
        error = addends * (2.0**-bits * (1 + left.shape[-1] / products))
        wide = total.astype(np.float64)
        sign = np.sign(wide) if self._towards_zero else self.random.choice((-1.0, 1.0), wide.shape)
        return np.where(np.isfinite(wide), wide - sign * error, wide).astype(total.dtype)


def moved_by_one_ulp(values: Array, random: np.random.Generator) -> Array:
    """Floats with each moved to one of its neighbours; zeros, infinities and NaN stay, and so does all else."""
    if not is_float(values.dtype) or values.dtype.itemsize == 1:
        return values
    bits = unsigned(np.ascontiguousarray(values))
    up = random.integers(0, 2, values.shape).astype(bits.dtype)
    # Of a tensor without dimensions the bits are a NumPy scalar, which warns where it wraps.
    with np.errstate(over="ignore", invalid="ignore"):
        moved = (bits + up * bits.dtype.type(2) - bits.dtype.type(1)).view(values.dtype)
        stays = ~np.isfinite(values) | (values == 0) | ~np.isfinite(moved)
    return np.where(stays, values, moved)


def moved_runs(
    run: Callable[[Inputs, Arithmetic], dict[str, Array]], inputs: Callable[[], Inputs], seed: int,
    inputs_alone: bool = False,
) -> list[dict[str, Array]]:  # fmt: skip
    """What a baseline leaves with its arithmetic off, and in all runs but the first its inputs by one last place.

    Directions are those of the seed. `inputs_alone`: `run` ignores the arithmetic, so there is no run without moved
    inputs.
    """
    results: list[dict[str, Array]] = []
    for number in range(int(inputs_alone), MOVED_RUNS):
        random = np.random.default_rng((seed, number))
        moved = inputs()
        # The first has the inputs themselves: what is off in them might cancel what is off in the arithmetic.
        for tensor in moved.tensors.values() if number else ():
            tensor[...] = moved_by_one_ulp(tensor, random)
        results.append(run(moved, _Moved(random, towards_zero=not number)))
    return results


@dataclass(slots=True)
class _Difference:
    """How one tensor differs."""

    name: str
    error: float = 0.0
    relative: float = 0.0
    noise: float = 0.0
    over_noise: float = 0.0
    differing: int = 0
    beyond: int = 0
    new_nan: int = 0
    place: tuple[int, ...] = ()
    """Of the first element that is a NaN, or beyond its noise."""


def agreement_of(
    before: Mapping[str, Array], baseline: Mapping[str, Array], moved: Sequence[Mapping[str, Array]],
    found: Mapping[str, Array], noise_of: str,
) -> Agreement:  # fmt: skip
    """How what a variant leaves, each name → elements, agrees with what the baseline leaves and its noise.

    `moved`: what runs of the baseline leave on moved inputs; `noise_of`: what these are, in words.
    """
    with np.errstate(all="ignore"):
        rows = [
            _difference(name, before[name], baseline[name], [one[name] for one in moved], found[name])
            for name in baseline
        ]
    differing = sum(row.differing for row in rows)
    with_nan = next((row for row in rows if row.new_nan), None)
    if with_nan is not None:
        detail = f"{with_nan.new_nan} NaNs in {with_nan.name}, the first at {list(with_nan.place)}"
        return Agreement("nan", argument=with_nan.name, differing=differing, detail=detail)
    if not differing:
        return Agreement("identical", 0.0, 0.0)
    worst = max(rows, key=lambda row: (row.beyond > 0, row.over_noise, row.error))
    detail = f"the first at {list(worst.place)}" if worst.beyond else ""
    return Agreement(
        "different" if worst.beyond else "close", worst.error, worst.relative, worst.name, differing, detail,
        worst.noise, worst.over_noise, None, worst.beyond, noise_of,
    )  # fmt: skip


def _difference(name: str, before: Array, baseline: Array, moved: Sequence[Array], found: Array) -> _Difference:
    row = _Difference(name)
    differs = unsigned(np.ascontiguousarray(baseline)) != unsigned(np.ascontiguousarray(found))
    row.differing = int(differs.sum())
    floats = is_float(found.dtype)
    if floats:
        made = np.isnan(found) & (unsigned(np.ascontiguousarray(found)) != unsigned(np.ascontiguousarray(before)))
        row.new_nan = int(made.sum())
        if row.new_nan:
            row.place = _first(made)
    if not row.differing:
        return row
    wide, reference = found.astype(np.float64), baseline.astype(np.float64)
    error = _distance(wide, reference)
    # Large 64-bit integers that differ may be one float64.
    error = np.where(differs & (error == 0) & (not floats), 1.0, np.where(differs, error, 0.0))
    noise = np.zeros(error.shape)
    for run in moved:
        distance = _distance(run.astype(np.float64), reference)
        noise = np.maximum(noise, np.where(np.isfinite(distance), distance, 0.0))
    allowed = _NOISE_FACTOR * noise + (_floor(reference, found.dtype) if floats else 0.0)
    beyond = differs & ~(error <= allowed)
    row.beyond = int(beyond.sum())
    if row.beyond:
        row.place = _first(beyond)
    known = np.where(np.isfinite(error), error, 0.0)
    row.error = float(known.max())
    sizes = np.abs(np.where(np.isfinite(reference), reference, 0.0))
    row.relative = float((known / np.where(sizes == 0, np.inf, sizes)).max())
    row.noise = float(noise.max())
    row.over_noise = float(np.divide(known, allowed, out=np.zeros(known.shape), where=allowed > 0).max())
    return row


def _distance(values: _Wide, reference: _Wide) -> _Wide:
    """How far values are off; infinitely far where one of both alone is infinite or NaN."""
    error = np.abs(values - reference)
    same = (values == reference) | (np.isnan(values) & np.isnan(reference))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def _floor(reference: _Wide, dtype: np.dtype[Any]) -> _Wide:
    """What the last rounding may do: units in the last place of each value."""
    sizes = np.abs(np.where(np.isfinite(reference), reference, 0.0))
    spacing = np.exp2(np.frexp(np.maximum(sizes, 2.0**-126))[1] - float_bits(dtype))
    return spacing * (1.0 if dtype.itemsize <= 2 else _WIDE_FLOOR_ULPS)


def _first(holds: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(index[0]) for index in np.nonzero(holds))

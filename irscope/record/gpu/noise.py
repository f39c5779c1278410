"""How far a launch's outputs move by rounding alone, element by element, and whether a variant stays within that.

The empty plan's kernel is run on inputs moved by one unit in the last place, and compiled so that only the order or
the rounding of its arithmetic differs. `docs/gpu.md` explains the rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from irscope.record.gpu.values import CHUNK, distances, element_bytes, float_format, ulps_of, values_of

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
class Judgement:
    """A variant's deviation in one stretch of memory, against the noise there."""

    beyond: int = 0
    """Elements beyond their own noise."""
    worst: float = 0.0
    """The largest ratio of an element's error to its noise."""
    stray: float = 0.0
    """The largest error among the elements beyond their noise."""
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
    """The noise of one stretch of memory, measured by runs of the empty plan's kernel."""

    dtype: torch.dtype
    reference: torch.Tensor
    """Its bits after the empty plan's launch."""
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
    """The largest deviation of any run."""
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
        found = Judgement()
        for part in _parts(self.reference):
            error = self._deviation(bits[part], part)
            if untouched is not None:
                error = torch.where(untouched[part], 0.0, error)
            self._note(error)
            torch.maximum(moved[part], error.to(torch.float32), out=moved[part])
            self._measure(found, error, self._unit(part))
        self.typical_moved = max(self.typical_moved, found.typical)

    def add_other(self, bits: torch.Tensor) -> None:
        """Add a run on the inputs as they are, with sums in another order or arithmetic rounded otherwise."""
        if self.other is None or self.second is None:
            self.other = torch.zeros(self.reference.numel(), dtype=torch.float32, device=self.reference.device)
            self.second = torch.zeros_like(self.other)
        others, seconds = self.other, self.second
        found = Judgement()
        for part in _parts(self.reference):
            error = self._deviation(bits[part], part)
            self._note(error)
            self._measure(found, error, self._unit(part))
            if self.moved is not None:
                share = (error - self._floor(part)) / self.moved[part]
                self.reach = max(self.reach, float(torch.where(self.moved[part] > 0, share, 0.0).max()))
            fresh, largest, second = error.to(torch.float32), others[part], seconds[part]
            torch.maximum(second, torch.minimum(fresh, largest), out=second)
            torch.maximum(largest, fresh, out=largest)
        self.other_runs += 1
        self.typical_other = max(self.typical_other, found.typical)

    def finish(self) -> None:
        """Count how often a run strays from the noise that the other runs show."""
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

    def judge(self, found: Judgement, part: slice, error: torch.Tensor, held: torch.Tensor) -> None:
        """Add a part of a variant's errors to a judgement. `held`: the elements that are judged by their error."""
        allowed = self._allowed(part, None if self.other is None else self.other[part])
        error = torch.where(held, error, 0.0)
        # An unknown distance (a NaN on one side) is beyond anything.
        outside = held & ~(error <= allowed)
        known = torch.where(error.isfinite(), error, 0.0)
        found.beyond += int(outside.sum())
        ratio = torch.where(known > 0, known / allowed, 0.0)
        found.worst = max(found.worst, float(ratio.max()))
        found.stray = max(found.stray, float(torch.where(outside, known, 0.0).max()))
        if bool((outside & ~error.isfinite()).any()):
            found.stray = found.worst = math.inf
        self._measure(found, known, self._unit(part))
        if self._is_fine and self.shape is not None:
            self._measure_groups(found, part, torch.where(known > 0, known / self._limit_of_reach(part), 0.0))

    def _measure_groups(self, found: Judgement, part: slice, share: torch.Tensor) -> None:
        """Add a part's errors to those of the rows and columns that they are in."""
        assert self.shape is not None
        rows, columns = self.shape
        if found.rows is None or found.columns is None:
            found.rows, found.columns = (share.new_zeros(size) for size in (rows, columns))
        place = torch.arange(part.start, part.start + share.numel(), device=share.device)
        squares = share.clamp(max=10.0) ** 2
        found.rows.index_add_(0, place // columns, squares)
        found.columns.index_add_(0, place % columns, squares)

    def worst_group(self, found: Judgement) -> tuple[str, float]:
        """(`row 3` or `column 3`, the root mean square of its errors) of the worst one; 0.0 if none is judged."""
        worst = ("", 0.0)
        if self.shape is None or found.rows is None or found.columns is None:
            return worst
        rows, columns = self.shape
        for name, sums, size in (("row", found.rows, columns), ("column", found.columns, rows)):
            if size >= _LEAST_GROUP:
                most = float(sums.max())
                worst = max(worst, (f"{name} {int(sums.argmax())}", math.sqrt(most / size)), key=lambda one: one[1])
        return worst

    def is_within(self, found: Judgement) -> bool:
        """Whether a variant's deviation is no more than noise."""
        if found.beyond > self.allowed_strays or (found.beyond and found.stray > _STRAY_FACTOR * self.stray):
            return False
        return found.typical <= self.typical_limit and self.worst_group(found)[1] <= _GROUP_LIMIT

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

    @property
    def _other_factor(self) -> float:
        return _OTHER_FACTOR if self.coarse_inputs else _WIDE_OTHER_FACTOR

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
            allowed = torch.maximum(allowed, other) if exact else allowed + other * self._other_factor
        if self.moved is None or exact or not (self._is_fine or self._is_finer):
            return allowed
        # It computes more finely than its inputs are given: moved inputs show more than its own rounding ever does.
        return torch.where(self.moved[part] > 0, torch.minimum(allowed, self._limit_of_reach(part)), allowed)

    @property
    def _is_finer(self) -> bool:
        """Whether other orders were seen to do much less than moved inputs."""
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

    def _measure(self, found: Judgement, error: torch.Tensor, unit: torch.Tensor) -> None:
        share = torch.where(error > 0, error / unit, 0.0)
        # A wild element is judged by itself; here it counts as one that is far out.
        found.squares += float((share.clamp(max=10.0) ** 2).sum())
        found.count += error.numel()


def _parts(memory: torch.Tensor) -> list[slice]:
    return [slice(start, start + CHUNK) for start in range(0, memory.numel(), CHUNK)]

"""Whether another Triton compiles longer: the kernel whose compile changed most, the spread, and the pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.passes.times import own_times
from irscope.analysis.upgrade.model import CompileTimeChange, UpgradeCompiler, UpgradeRow
from irscope.model.capture import Capture

_COMPILES = 3
_LEAST_RATIO, _LEAST_US = 1.2, 10_000
"""A change of one compile's time that is worth measuring: the factor, either way, and microseconds."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    before: Capture
    after: Capture
    difference_us: int


def compile_time_change(
    rows: Sequence[UpgradeRow], before: UpgradeCompiler, after: UpgradeCompiler
) -> CompileTimeChange | None:
    """The change of the compile time that grew most, or else shrank most; None where none changed much.

    One compile of each variant is known, which says little on a busy machine: of the variant that differs most each of
    the two compiles several more, and one with a clock at every part.
    """
    found: list[_Candidate] = []
    for row in rows:
        if row.before is None or row.after is None or not (row.before.has_compiled and row.after.has_compiled):
            continue
        was, now = row.before.processor_us, row.after.processor_us
        if was and now and abs(now - was) >= _LEAST_US and max(now / was, was / now) >= _LEAST_RATIO:
            found.append(_Candidate(row.before, row.after, now - was))
    if not found:
        return None
    # A slower one is said first, however much faster another is.
    most = max(found, key=lambda one: (one.difference_us > 0, abs(one.difference_us)))
    ours, theirs = _times_ms(before, most.before), _times_ms(after, most.after)
    if not (ours and theirs):
        return None
    parts = own_times(before.timed(most.before)), own_times(after.timed(most.after))
    sign = 1 if min(theirs) > min(ours) else -1
    names = dict.fromkeys([*parts[0], *parts[1]])
    part = max(names, key=lambda name: sign * (parts[1].get(name, 0) - parts[0].get(name, 0)), default="")
    part_ms = tuple(one.get(part, 0) / 1e6 for one in parts)
    return CompileTimeChange(most.after.name, str(most.after.target), ours, theirs, part, (part_ms[0], part_ms[1]))


def _times_ms(compiler: UpgradeCompiler, capture: Capture) -> tuple[float, ...]:
    made = [one for _, one in compiler.compile([capture] * _COMPILES)]
    return tuple(sorted(one.processor_us / 1000 for one in made if one.processor_us is not None))

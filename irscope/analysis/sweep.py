"""The summary of a sweep's table: the best compile of each kernel, what fails where, how a figure is distributed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from irscope.model.trial import SweepRow

CRITERIA = {
    "registers": False,
    "spilled_bytes": False,
    "shared_bytes": False,
    "instructions": False,
    "code_bytes": False,
    "compile_us": False,
    "processor_us": False,
    "occupancy_percent": True,
}
"""The figures that rank compiles, and whether more is better."""
TIMES = ("compile_us", "processor_us")
"""Those of which a compile again gives another one."""
COMPILES_FOR_TIME = 3
"""How often each is compiled where a time ranks it: the shortest counts."""

_BINS = 10


@dataclass(frozen=True, slots=True)
class _Best:
    """The best compile of a kernel for a target, among those that fit."""

    row: SweepRow
    tied: int
    """How many others are as good by the criterion."""
    own: float | None
    """The figure of the unchanged capture for the same target; None if it is not in the table, or did not compile."""
    compiles: int
    """Of the kernel for this target."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of one kind in one way of compiling."""

    failure: str
    target: str
    vs: str
    count: int
    of: int
    """Compiles of that way for that target."""
    kernels: tuple[str, ...]
    message: str
    """The first line of the first one's message."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a table."""

    by: str
    rows: int
    ok: int
    best: tuple[_Best, ...]
    failures: tuple[Failures, ...]
    """The most frequent first."""
    bins: tuple[tuple[float, float, int], ...]
    """(least, greatest, compiles) of the figure, in bins of equal width; empty ones too."""
    findings: tuple[tuple[str, int], ...]
    """(code, compiles that have it), the most frequent first."""
    spread: tuple[float, float] | None
    """How many times as long the longest of several compiles took as the shortest: the median, the most."""
    foreign: int
    """Compiles by another Triton than the one whose front end made the IR."""


def summary_of(rows: Sequence[SweepRow], by: str) -> Summary:
    """The summary of a table by one of `CRITERIA`."""
    fitting = [one for one in rows if one.status == "ok"]
    return Summary(
        by,
        len(rows),
        len(fitting),
        tuple(_best(rows, by)),
        tuple(_failures(rows)),
        tuple(_bins([float(value) for one in fitting if (value := _figure(one, by)) is not None])),
        tuple(Counter(code for one in rows for code in one.findings).most_common()),
        _spread(fitting) if by in TIMES else None,
        sum(one.triton not in ("", one.source_triton) for one in rows),
    )


def _spread(rows: Sequence[SweepRow]) -> tuple[float, float] | None:
    longer = [one.processor_most_us / one.processor_us for one in rows if one.processor_us and one.processor_most_us]
    return (median(longer), max(longer)) if longer else None


def _figure(row: SweepRow, by: str) -> float | None:
    value: int | float | None = getattr(row, by)
    return value


def _rank(row: SweepRow, by: str) -> float:
    value = _figure(row, by)
    if value is None:
        return float("inf")
    return -value if CRITERIA[by] else value


def _best(rows: Sequence[SweepRow], by: str) -> list[_Best]:
    groups: dict[tuple[str, str, str], list[SweepRow]] = {}
    for one in rows:
        groups.setdefault((one.kernel, one.file, one.target), []).append(one)
    found: list[_Best] = []
    for group in groups.values():
        known = [one for one in group if one.status == "ok" and _figure(one, by) is not None]
        if not known:
            continue
        # Of several the one nearest to the capture's own way.
        first = min(known, key=lambda one: (_rank(one, by), len(one.vs)))
        tied = sum(_rank(one, by) == _rank(first, by) for one in known) - 1
        unchanged = [one for one in known if not one.vs]
        if len(unchanged) > 1:
            unchanged = [one for one in unchanged if one.capture == first.capture]
        own = _figure(unchanged[0], by) if unchanged else None
        found.append(_Best(first, tied, own, len(group)))
    return found


def _failures(rows: Sequence[SweepRow]) -> list[Failures]:
    groups: dict[tuple[str, str, str], list[SweepRow]] = {}
    totals = Counter((one.target, one.vs) for one in rows)
    for one in rows:
        if one.status != "ok":
            groups.setdefault((one.failure, one.target, one.vs), []).append(one)
    found = [
        Failures(
            failure,
            target,
            vs,
            len(group),
            totals[target, vs],
            tuple(dict.fromkeys(one.kernel for one in group)),
            (group[0].message.splitlines() or [""])[0],
        )
        for (failure, target, vs), group in groups.items()
    ]
    return sorted(found, key=lambda one: -one.count)


def _bins(values: Sequence[float]) -> list[tuple[float, float, int]]:
    if not values:
        return []
    least, greatest = min(values), max(values)
    width = (greatest - least) / _BINS
    if not width:
        return [(least, greatest, len(values))]
    counts = Counter(min(int((value - least) / width), _BINS - 1) for value in values)
    return [(least + at * width, least + (at + 1) * width, counts[at]) for at in range(_BINS)]

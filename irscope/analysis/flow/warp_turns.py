"""One turn of a warp-specialised kernel: its operations at barriers and buffers in an order in which they may run.

Of a partition the operations stand in the order of its text. A wait for phase 0 of a barrier stands behind what arrives
at it, a wait for phase 1 passes at first: a new barrier is in phase 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.flow.partitions import WarpRing, WarpRingUse, WarpSpecialization

__all__ = ["Part", "WarpChannel", "WarpEvent", "channels_of", "events_of"]

Part = Literal["before", "begin", "loop", "end", "behind"]
"""Before all partitions, then of a partition before its loop, in it and behind it, and behind all partitions."""
_PARTS: tuple[Part, ...] = ("before", "begin", "loop", "end", "behind")
_Slot = tuple[int, int | None]
"""Line of a ring's allocation, and one of its slots."""


@dataclass(frozen=True, slots=True)
class WarpEvent:
    """One operation at barriers or buffers."""

    partition: str
    """Empty outside of them all."""
    line: int
    """Of the TTGIR, 1-based."""
    operation: str
    part: Part
    loops: tuple[int, ...]
    """Lines of the TTGIR where the loops around it begin, within its partition; the outermost first."""
    touched: tuple[tuple[int, WarpRingUse], ...]
    """(line of the allocation, use) for each ring."""

    @property
    def waits(self) -> WarpRingUse | None:
        """Its use of a barrier that it waits for; None if it does not wait."""
        return next((use for _, use in self.touched if use.action == "waits"), None)


@dataclass(frozen=True, slots=True)
class WarpChannel:
    """Buffers that are handed over together, with the barriers that say so: those next to their accesses."""

    buffers: tuple[WarpRing, ...]
    barriers: tuple[WarpRing, ...]

    @property
    def rings(self) -> tuple[WarpRing, ...]:
        """All of them, the buffers first."""
        return (*self.buffers, *self.barriers)


def events_of(found: WarpSpecialization) -> tuple[WarpEvent, ...]:
    """The operations at a specialisation's barriers and buffers, in an order in which a first turn may run them."""
    lanes = {name: place for place, name in enumerate(["", *(one.name for one in found.partitions)])}
    events = tuple(_events(found))
    arrived: set[_Slot] = set()
    ordered: list[WarpEvent] = []
    for part in _PARTS:
        ordered += _runnable([(lanes[one.partition], one) for one in events if one.part == part], arrived)
    return tuple(ordered)


def _events(found: WarpSpecialization) -> Iterator[WarpEvent]:
    """In the order of the text."""
    touched: dict[int, list[tuple[int, WarpRingUse]]] = {}
    for ring in (*found.buffers, *_barriers(found)):
        for use in ring.uses:
            touched.setdefault(use.line, []).append((ring.line, use))
    in_loops: dict[str, list[int]] = {}
    for line, uses in touched.items():
        if uses[0][1].loops:
            in_loops.setdefault(uses[0][1].partition, []).append(line)
    for line, uses in sorted(touched.items()):
        one = uses[0][1]
        yield WarpEvent(
            one.partition, line, one.operation, _part(one, found.line, in_loops.get(one.partition)), one.loops,
            tuple(uses),
        )  # fmt: skip


def _part(use: WarpRingUse, begin: int, in_loops: Sequence[int] | None) -> Part:
    if not use.partition:
        return "before" if use.line < begin else "behind"
    if in_loops is None or min(in_loops) <= use.line <= max(in_loops):
        return "loop"
    return "begin" if use.line < min(in_loops) else "end"


def _runnable(events: Sequence[tuple[int, WarpEvent]], arrived: set[_Slot]) -> Iterator[WarpEvent]:
    """Of (lane, event) an order in which each lane runs on until it has to wait; what arrives is put into `arrived`."""
    waiting: dict[int, list[WarpEvent]] = {}
    for lane, event in events:
        waiting.setdefault(lane, []).append(event)
    lane = next(iter(waiting), 0)
    while waiting:
        ready = [one for one in waiting if not _is_held(waiting[one][0], arrived)]
        # Where each waits for another one, one of them goes on: what it waits for is not known to be in this turn.
        lane = lane if lane in ready else next(iter(ready or waiting))
        event = waiting[lane].pop(0)
        arrived.update((ring, use.slot) for ring, use in event.touched if use.action == "arrives")
        yield event
        if not waiting[lane]:
            del waiting[lane]


def _is_held(event: WarpEvent, arrived: set[_Slot]) -> bool:
    return any(
        use.action == "waits" and use.first_phase == 0 and (ring, use.slot) not in arrived
        for ring, use in event.touched
    )


def channels_of(found: WarpSpecialization) -> tuple[WarpChannel, ...]:
    """The buffers with their barriers, from those of the first partitions to those of the last."""
    events = tuple(_events(found))
    groups = {ring.line: ring.line for ring in found.buffers}
    of_barrier: dict[int, int] = {}
    for barrier in _barriers(found):
        # What stands outside of the loops may serve several buffers.
        inside = [one for one in events if one.part == "loop"]
        votes = _neighbours(inside, barrier.line, set(groups)) or _neighbours(events, barrier.line, set(groups))
        if not votes:
            continue
        (first, most), *others = votes.most_common()
        of_barrier[barrier.line] = first
        # What copies by TMA complete one phase together is one channel.
        same = {ring for ring, count in others if count == most and _are_together(events, barrier.line, first, ring)}
        for ring in same:
            groups = {line: groups[first] if group == groups[ring] else group for line, group in groups.items()}
    channels = [
        WarpChannel(
            tuple(ring for ring in found.buffers if groups[ring.line] == group),
            tuple(one for one in _barriers(found) if of_barrier.get(one.line) in _members(groups, group)),
        )
        for group in dict.fromkeys(groups.values())
    ]
    channels += [WarpChannel((), (one,)) for one in _barriers(found) if one.line not in of_barrier]
    names = [one.name for one in found.partitions]
    return tuple(sorted(channels, key=lambda one: _middle(one, names)))


def _members(groups: dict[int, int], group: int) -> set[int]:
    return {line for line, own in groups.items() if own == group}


def _barriers(found: WarpSpecialization) -> tuple[WarpRing, ...]:
    """Those that a partition uses."""
    return tuple(ring for ring in found.barriers if any(use.partition for use in ring.uses))


def _middle(channel: WarpChannel, names: Sequence[str]) -> float:
    places = [names.index(use.partition) for ring in channel.rings for use in ring.uses if use.partition in names]
    return (min(places) + max(places)) / 2 if places else 0.0


def _neighbours(events: Sequence[WarpEvent], barrier: int, buffers: set[int]) -> Counter[int]:
    """How much the uses of a barrier tell of each buffer: they are its accesses too, or stand next to one."""
    votes: Counter[int] = Counter()
    for event in events:
        for ring, use in event.touched:
            if ring != barrier or use.action == "expects":
                continue
            own = [line for line, _ in event.touched if line in buffers]
            if own:
                # An MMA has several buffers: others tell more.
                votes.update({line: 1 if _is_mma(event) else 2 for line in own})
                continue
            lane = [one for one in events if one.partition == event.partition]
            at = lane.index(event)
            behind, before = lane[at + 1 :], lane[:at][::-1]
            near, far = (behind, before) if use.action == "waits" else (before, behind)
            access = next((one for one in near if _accessed(one, use, buffers)), None)
            if access is not None:
                votes.update(dict.fromkeys(_accessed(access, use, buffers), 2))
            elif (access := next((one for one in far if _accessed(one, use, buffers)), None)) is not None:
                votes.update(dict.fromkeys(_accessed(access, use, buffers), 1))
    return votes


def _accessed(event: WarpEvent, use: WarpRingUse, buffers: set[int]) -> list[int]:
    """The buffer of an operation next to a use of a barrier; of an MMA what it writes is what is committed."""
    own = [(line, one.action) for line, one in event.touched if line in buffers]
    if _is_mma(event):
        return [line for line, action in own if use.action == "arrives" and action == "writes"]
    return [line for line, _ in own[:1]]


def _is_mma(event: WarpEvent) -> bool:
    return "mma" in event.operation or "dot" in event.operation


def _are_together(events: Sequence[WarpEvent], barrier: int, one: int, other: int) -> bool:
    """Whether operations that arrive at a barrier write both, each one of them."""
    writers = [
        {line for line, use in event.touched if use.action == "writes"}
        for event in events
        if any(line == barrier and use.action == "arrives" for line, use in event.touched)
    ]
    return any(one in written for written in writers) and any(other in written for written in writers)

"""The lanes of a loop's picture: which operations stand in one, and what it is called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.in_flight.model import BEFORE, InFlight, Step

__all__ = ["Lane", "key_of", "lanes_of", "names_of"]

_MOST = 11
_MOST_OF_PARTITIONS = 9
"""Lanes of partitions: what they hand over needs room below."""
# %a_126      %acc_23#0
_NUMBERED = re.compile(r"(?<=\w)_\d+$|#\d+$")
_ORDER = ("load", "copy", "write", "read", "wait", "dot", "reduce", "convert", "tensor", "store", "atomic")
_OTHERS = {
    "wait": "wait",
    "reduce": "reduce",
    "convert": "convert",
    "tensor": "tensor memory",
    "store": "store",
    "atomic": "atomic",
}
_WEIGHTY = ("copy", "dot", "wait", "load", "store", "atomic", "write", "reduce", "tensor", "read", "convert")
"""Kinds of steps, those first that have a lane where there are too many."""
_IN_PARTITIONS = ("copy", "dot", "tensor", "load", "store", "atomic", "write", "read")
"""The same of those that partitions are drawn with."""
_Key = tuple[str, str, str]
"""Partition, kind, and what it is about."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the picture."""

    name: str
    line: str
    """`:33`, the line of Python; or an empty string."""
    partition: str = ""


def lanes_of(flight: InFlight) -> tuple[list[Lane], list[int], int]:
    """The lanes, for each step its lane, or -1 where there is none for it, and how many lanes are left out."""
    keys = _keys(flight)
    rows = list(zip(flight.steps, keys, strict=True))
    # What runs before the loop alone has its place in the code, not in a picture of turns.
    wanted = {key for step, key in rows if step.turn != BEFORE or not flight.line} - {("", "wait", "")}
    found = [key for key in dict.fromkeys(keys) if key in wanted]
    if flight.partitions:
        found = [key for key in found if key[1] in _IN_PARTITIONS]
        order = _of_partitions(found)
    else:
        order = sorted(sorted(found, key=lambda key: _WEIGHTY.index(key[1]))[:_MOST], key=_rank)
    lanes: list[Lane] = []
    for partition, kind, name in order:
        places = {one.place for one, key in rows if key == (partition, kind, name)}
        what = "tmem" if kind == "tensor" and name else _OTHERS.get(kind, kind)
        shown = f"{what} {name if kind != 'dot' else ''}".strip()
        line = next(iter(places)).rpartition(":")[2]
        lanes.append(Lane(shown, f":{line}" if line and len(places) == 1 and kind != "wait" else "", partition))
    return lanes, [order.index(key) if key in order else -1 for key in keys], len(found) - len(order)


def _of_partitions(keys: Sequence[_Key]) -> list[_Key]:
    """Those that hand over most, each partition's together in its order: first what copies, then what multiplies.

    Args:
        keys: in the order in which they are done first.
    """

    def rank(key: _Key) -> int:
        return _IN_PARTITIONS.index(key[1])

    drawn = sorted(keys, key=rank)[:_MOST_OF_PARTITIONS]
    first = {name: min(rank(key) for key in drawn if key[0] == name) for name, _, _ in drawn}
    return sorted(drawn, key=lambda key: (first[key[0]], key[0], keys.index(key)))


def names_of(flight: InFlight) -> dict[str, str]:
    """Name of a ring in the TTGIR -> as it is shown: without its number, unless only that tells it from others."""
    plain = Counter(_plain(ring.value) for ring in flight.rings)
    return {ring.value: ring.value if plain[_plain(ring.value)] > 1 else _plain(ring.value) for ring in flight.rings}


def _plain(value: str) -> str:
    return _NUMBERED.sub("", _NUMBERED.sub("", value))


def _keys(flight: InFlight) -> list[_Key]:
    """The lane of each step: its partition and kind, and what it is about."""
    if flight.partitions:
        names, default = names_of(flight), flight.partitions[0].name
        return [
            (one.partition or default, one.kind, one.place if one.kind == "dot" else names.get(one.value, ""))
            for one in flight.steps
        ]
    awaited: dict[int, str] = {}
    for step in flight.steps:
        if step.until is not None and step.kind in ("copy", "dot"):
            awaited[flight.steps[step.until].line] = step.kind
    return [
        ("", "wait", f"for {awaited[one.line]}" if one.line in awaited else "") if one.kind == "wait" else key_of(one)
        for one in flight.steps
    ]


def _rank(key: _Key) -> float:
    # The wait for a dot stands below it.
    return _ORDER.index("dot") + 0.5 if key[1:] == ("wait", "for dot") else _ORDER.index(key[1])


def key_of(step: Step) -> _Key:
    """The lane of a step that does not wait."""
    if step.kind in _OTHERS:
        return "", step.kind, ""
    if step.kind == "dot":
        return "", step.kind, step.place
    return "", step.kind, _plain(step.value)

"""The texts of a report: each stored once, as the difference to another one where that is smaller, and compressed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

_LEVEL = 6
_MOST_PLACES = 12
"""Places of a repeated line that are tried: more make braces and blank lines slow."""


class Blobs:
    """Values as JSON, deflated one by one and concatenated."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, value: Any) -> tuple[int, int]:
        """Append a value; returns (offset, length) of its compressed bytes."""
        data = pack(value)
        place = self._size, len(data)
        self._parts.append(data)
        self._size += len(data)
        return place

    def to_bytes(self) -> bytes:
        """All of them, concatenated."""
        return b"".join(self._parts)


def pack(value: Any) -> bytes:
    """A value as JSON in ASCII, in raw deflate, as `DecompressionStream("deflate-raw")` reads it."""
    text = json.dumps(value, separators=(",", ":"), default=str)
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(text.encode("ascii")) + packer.flush()


class TextTable:
    """Numbers the texts of a report, and packs them."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        """A text's (chunk, offset, length, base), base -1 for a text stored whole."""
        self._known: dict[bytes, int] = {}
        self._lines: dict[int, list[str]] = {}
        """Of the texts that others may be stored as differences to."""

    def add(self, text: str, chunk: int, blobs: Blobs, bases: Iterable[int] = ()) -> int:
        """The number of a text, which is new or known.

        Args:
            text: any text.
            chunk: the number of `blobs` in the report.
            blobs: where it is packed.
            bases: texts it may be stored as a difference to, if they were not released.
        """
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(digest)
        if known is not None:
            return known
        lines = text.split("\n")
        whole: dict[str, Any] = {"l": text}
        base, packed, size = -1, whole, len(text)
        for other in dict.fromkeys(bases):
            if other not in self._lines:
                continue
            found = difference(self._lines[other], lines)
            found_size = len(found["l"]) + 8 * len(found["o"])
            if found_size < size:
                base, packed, size = other, found, found_size
        number = self._known[digest] = len(self.rows)
        self.rows.append([chunk, *blobs.add(packed), base])
        self._lines[number] = lines
        return number

    def release(self, kept: Iterable[int]) -> None:
        """Forget the lines of all texts but these: no later text is stored as a difference to one of the others."""
        self._lines = {number: self._lines[number] for number in dict.fromkeys(kept) if number in self._lines}


def difference(base: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    """How to make some lines from those of a base.

    Returns `o`, triples of (new lines before it, first line copied, lines copied), the second as a step from where the
    copy before it ended; and `l`, the new lines, each with a line feed. What stands behind the last copy is new.
    """
    places: dict[str, list[int]] = {}
    for number, line in enumerate(base):
        found = places.get(line)
        if found is None:
            places[line] = [number]
        elif len(found) < _MOST_PLACES:
            found.append(number)
    steps: list[int] = []
    fresh: list[str] = []
    new = at = end = 0
    while at < len(lines):
        found = places.get(lines[at])
        if found is None:
            fresh.append(lines[at])
            new += 1
            at += 1
            continue
        start, count = _longest(base, lines, at, found, end)
        steps += [new, start - end, count]
        new = 0
        end = start + count
        at += count
    return {"o": steps, "l": "".join(f"{line}\n" for line in fresh)}


def _longest(base: Sequence[str], lines: Sequence[str], at: int, places: list[int], end: int) -> tuple[int, int]:
    """The longest stretch of the base that stands at a line; where the last copy ended is tried first."""
    best, best_count = 0, 0
    for place in (end, *places):
        count = _common(base, place, lines, at)
        if count > best_count:
            best, best_count = place, count
        if place == end and count > 1:
            break
    return best, best_count


def _common(base: Sequence[str], place: int, lines: Sequence[str], at: int) -> int:
    """How many lines two stretches have in common at their beginning, by slices that double while they are equal."""
    most = min(len(base) - place, len(lines) - at)
    count, step = 0, 1
    while count < most:
        step = min(step, most - count)
        if base[place + count : place + count + step] == lines[at + count : at + count + step]:
            count += step
            step *= 2
        elif step == 1:
            break
        else:
            step = max(1, step // 4)
    return count

"""The texts of a report: each stored once, as the difference to another one where that is smaller, and compressed.

The lines of the other text that are copied nowhere are what the compressor may point back to. Numbers of names are
steps, `%12` after `%11` is `%+1`, so that a line inserted above changes no other line; the page reads them back.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

__all__ = ["with_steps"]

_PREFIX = r"%[A-Za-z_]\w*_|%[a-z]{0,2}|!|#loc"
# "  %12", "%rd7", "%x_12", "!34", "#loc5"
_NUMBERED = re.compile(rf"(?m)(^ *)?({_PREFIX})(0|[1-9]\d{{0,8}})(?!\w)", re.ASCII)
# "%+1", "#loc-12"
_STEP = re.compile(rf"(?:{_PREFIX})[+-]\d+(?!\w)", re.ASCII)


def with_steps(text: str) -> str | None:
    """The text with steps; None if it has something that would be read as one.

    A step counts from the last number of its prefix: of what a line begins with; of metadata and locations the last one
    at all; of registers of PTX the highest. Names of MLIR with a number behind them (`%x_12`) share one count.
    """
    if _STEP.search(text):
        return None
    last: dict[str, int] = {}

    def step(match: re.Match[str]) -> str:
        start, prefix, digits = match.groups()
        kind = "_" if prefix[-1] == "_" else prefix
        number = int(digits)
        before = last.get(kind, 0)
        if start is not None or kind in ("!", "#loc") or (kind[-1].isalpha() and number > before):
            last[kind] = number
        return f"{start or ''}{prefix}{number - before:+d}"

    return _NUMBERED.sub(step, text)


_LEVEL = 9
WINDOW = 1 << zlib.MAX_WBITS
"""How far back compressed data may point."""
_PRINTED = str.maketrans("<>&", ",./")
"""The characters of base 85 that HTML reads as its own, and those that stand for them."""
_HALVES = re.compile("[\ud800-\udfff]")
_MOST_PLACES = 12
"""Places of a repeated line that are tried: more make braces and blank lines slow."""


class Blobs:
    """Values as JSON, deflated one by one and concatenated."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def append(self, data: bytes) -> tuple[int, int]:
        """Append what is compressed already; returns (offset, length)."""
        place = self._size, len(data)
        self._parts.append(data)
        self._size += len(data)
        return place

    def to_bytes(self) -> bytes:
        """All of them, concatenated."""
        return b"".join(self._parts)


def pack(value: Any) -> bytes:
    """A value as JSON in ASCII, in raw deflate, as `DecompressionStream("deflate-raw")` reads it."""
    return deflated(as_bytes(value))


def as_bytes(value: Any) -> bytes:
    """A value as JSON in ASCII."""
    return json.dumps(value, separators=(",", ":"), default=str).encode("ascii")


def printed(data: bytes) -> str:
    """Data in base 85, as `base64.b85encode` has it, with no character that is special to HTML: 5 for 4 bytes."""
    return base64.b85encode(data).decode("ascii").translate(_PRINTED)


def deflated(data: bytes, likely: bytes = b"") -> bytes:
    """Data in raw deflate; `likely`: bytes much like it, which the reader has too."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=likely)
    return packer.compress(data) + packer.flush()


class TextTable:
    """Numbers the texts of a report, and packs them."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        """A text's (chunk, offset, length, length of the steps, base, whether its numbers are steps).

        Base is -1, and the length of the steps 0, for a text stored whole. Of a text that is stored in two parts (the
        text without locations, its margins).
        """
        self._known: dict[bytes, int] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._lines: dict[int, list[str]] = {}
        """Of the texts that others may be stored as differences to, as they are stored."""

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
        stepped = with_steps(text)
        stored = text if stepped is None else stepped
        lines = stored.split("\n")
        base, best, size = -1, None, len(stored)
        for other in dict.fromkeys(bases):
            if other not in self._lines:
                continue
            found = difference(self._lines[other], lines)
            found_size = len(found["l"]) + 8 * len(found["o"])
            if found_size < size:
                base, best, size = other, found, found_size
        steps = b""
        if best is None:
            packed = deflated(_utf8(stored))
        else:
            steps = pack(best["o"])
            packed = deflated(_utf8(best["l"]), _utf8(_left_out(self._lines[base], best["o"]))[-WINDOW:])
        number = self._known[digest] = len(self.rows)
        offset, length = blobs.append(steps + packed)
        self.rows.append([chunk, offset, length, len(steps), base, int(stepped is not None)])
        self._lines[number] = lines
        return number

    def join(self, plain: int, margins: int) -> int:
        """The number of a text that is stored as its lines without locations and its margins."""
        known = self._joined.get((plain, margins))
        if known is None:
            known = self._joined[plain, margins] = len(self.rows)
            self.rows.append([plain, margins])
        return known

    def parts(self, number: int) -> tuple[int, ...]:
        """The numbers of the texts that a text is stored as."""
        row = self.rows[number]
        return tuple(row) if len(row) == 2 else (number,)

    def release(self, kept: Iterable[int]) -> None:
        """Forget the lines of all texts but these: no later text is stored as a difference to one of the others."""
        self._lines = {number: self._lines[number] for number in dict.fromkeys(kept) if number in self._lines}


def _utf8(text: str) -> bytes:
    # No encoding of the web has half a surrogate pair, and none is shown.
    return _HALVES.sub("\ufffd", text).encode()


def _left_out(base: Sequence[str], steps: Sequence[int]) -> str:
    """The lines of a base that are copied nowhere: what is new is often much like them."""
    copied = bytearray(len(base))
    end = 0
    for index in range(0, len(steps), 3):
        start = end + steps[index + 1]
        end = start + steps[index + 2]
        copied[start:end] = b"\1" * (end - start)
    return "\n".join(line for line, is_copied in zip(base, copied, strict=True) if not is_copied)


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

"""Mutates captures, logs and texts, reproducibly: what a damaged or hostile file may look like."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, -(2**40), 10**30, 0.5, 1e308, "", "x", "0", "cuda:90", "\x1b]0;x\x07",
    "\ud800", "a" * 5000, "#a", "%0", "ttgir", [], [[]], [0], [1, 2, 3], ["a", "b"], {}, {"a": 1}, {"name": []}, [{}],
)  # fmt: skip


def mutated_capture(data: bytes, seed: int) -> bytes:
    """A capture file with up to four changes in its manifest and its members."""
    draw = random.Random(seed)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {row.filename: archive.read(row) for row in archive.infolist()}
    manifest = json.loads(members["capture.json"])
    for _ in range(draw.randint(1, 4)):
        if draw.random() < 0.55:
            _change_value(manifest, draw)
        else:
            name = draw.choice([name for name in members if name != "capture.json"])
            members[name] = mutated_text(members[name].decode("utf-8", "surrogateescape"), draw).encode(
                "utf-8", "surrogateescape"
            )
    if draw.random() < 0.1:
        members.pop(draw.choice([name for name in members if name != "capture.json"]))
    members["capture.json"] = json.dumps(manifest).encode("utf-8", "surrogateescape")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    raw = bytearray(buffer.getvalue())
    if draw.random() < 0.05:
        for _ in range(draw.randint(1, 20)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
    return bytes(raw)


def _change_value(value: Any, draw: random.Random) -> None:
    """Change one value somewhere in a tree of JSON, at any depth."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw.choice(keys)
        inner = value[key]
        if isinstance(inner, (dict, list)) and inner and draw.random() < 0.85:
            value = inner
            continue
        kind = draw.random()
        if kind < 0.15:
            del value[key]
        elif kind < 0.3 and isinstance(value, list):
            value.insert(key, inner)
        elif kind < 0.45 and isinstance(inner, (int, float)) and not isinstance(inner, bool):
            value[key] = inner * draw.choice((-1, 2, 3, 1000, 10**9))
        elif kind < 0.55 and isinstance(inner, str):
            value[key] = mutated_text(inner, draw)
        else:
            value[key] = draw.choice(_VALUES)
        return


def mutated_text(text: str, draw: random.Random) -> str:
    """A text with some of its lines, words, numbers or brackets changed."""
    for _ in range(draw.randint(1, 3)):
        text = draw.choice(_TEXT_CHANGES)(text, draw)
    return text


def _cut(text: str, draw: random.Random) -> str:
    return text[: draw.randrange(len(text) + 1)]


def _without_lines(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    start = draw.randrange(len(lines) + 1)
    return "".join(lines[:start] + lines[start + draw.randint(1, 9) :])


def _swapped_lines(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def _repeated(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at = draw.randrange(len(lines))
    return "".join(lines[:at] + lines[at : at + 1] * draw.choice((2, 50, 2000)) + lines[at:])


def _replaced(text: str, draw: random.Random) -> str:
    if not text:
        return text
    at = draw.randrange(len(text))
    sign = draw.choice("()[]{}<>#%!@\"'\\,=:;0x\n\t\x00\x1b\u202e\udc80é→")
    return text[:at] + sign * draw.choice((1, 1, 1, 30)) + text[at + draw.randint(0, 3) :]


def _number(text: str, draw: random.Random) -> str:
    digits = [at for at, sign in enumerate(text[:200_000]) if sign.isdigit()]
    if not digits:
        return text
    at = draw.choice(digits)
    return text[:at] + draw.choice(("-1", "0", "99999999999999999999", "1e9", "7", "3000000000")) + text[at + 1 :]


def _nested(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    sign = draw.choice(("(", "[", "{", "<", "loc(", "#a<", "callsite(", "scf.for {", '"', "/*", "<{"))
    return text[:at] + sign * draw.choice((3, 200, 20_000)) + text[at:]


def _doubling(text: str, draw: random.Random) -> str:
    sign, form = draw.choice((("#a", "#x<{0}, {0}>"), ("!t", "tuple<{0}, {0}>"), ("#loc", "loc(callsite({0} at {0}))")))
    lines = [f"{sign}{number} = {form.format(f'{sign}{number - 1}')}" for number in range(1, 40)]
    return f"{sign}0 = {'loc(unknown)' if sign == '#loc' else '#ttg.y<{}>'}\n" + "\n".join(lines) + f"\n{text}"


_TEXT_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _cut, _without_lines, _swapped_lines, _repeated, _replaced, _replaced, _number, _number, _nested, _doubling,
)  # fmt: skip

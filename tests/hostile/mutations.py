"""Mutates captures, logs and texts, reproducibly: what a damaged or hostile file may look like."""

from __future__ import annotations

import io
import json
import random
import re
import warnings
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, -(2**40), 10**30, 0.5, 1e308, "", "x", "0", "cuda:90", "\x1b]0;x\x07",
    "\ud800", "a" * 5000, "#a", "%0", "ttgir", [], [[]], [0], [1, 2, 3], ["a", "b"], {}, {"a": 1}, {"name": []}, [{}],
)  # fmt: skip

_MOST_REPEATED = 32 << 20
"""Bytes: the mutation itself is to stay below the limit of memory of what is tried."""


def mutated_capture(data: bytes, seed: int) -> bytes:
    """A capture file with up to four changes in its manifest and its members, and of its zip file."""
    draw = random.Random(seed)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {row.filename: archive.read(row) for row in archive.infolist()}
    manifest = json.loads(members["capture.json"])
    for _ in range(draw.randint(1, 4)):
        if draw.random() < 0.55:
            change_value(manifest, draw)
        else:
            name = draw.choice([name for name in members if name != "capture.json"])
            members[name] = (
                mutated_bytes(members[name], draw)
                if members[name][:4] == b"\x7fELF" or draw.random() < 0.1
                else mutated_text(members[name].decode("utf-8", "surrogateescape"), draw).encode(
                    "utf-8", "surrogatepass"
                )
            )
    if draw.random() < 0.1:
        members.pop(draw.choice([name for name in members if name != "capture.json"]))
    members["capture.json"] = json.dumps(manifest).encode("utf-8", "surrogateescape")
    return mutated_bytes(_zipped(members, draw), draw) if draw.random() < 0.08 else _zipped(members, draw)


def _zipped(members: dict[str, bytes], draw: random.Random) -> bytes:
    """The members as a zip file, once in a while one that tricks a reader."""
    trick = draw.random()
    rows = list(members.items())
    if trick < 0.02:
        rows.append(draw.choice(rows))
    elif trick < 0.04:
        rows.append((draw.choice(("../../escaped", "/etc/escaped", "a\\b", "stages/", "con", "x" * 4000)), b"x"))
    elif trick < 0.05:
        rows[-1] = (rows[-1][0], b"a\n" * draw.choice((1 << 20, 40 << 20)))
    buffer = io.BytesIO()
    method = draw.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, member in rows:
            archive.writestr(name, member)
    if 0.05 < trick < 0.06:
        return b"#!/bin/sh\n" * 50 + buffer.getvalue()
    if 0.06 < trick < 0.07:
        return buffer.getvalue() + buffer.getvalue()
    return buffer.getvalue()


def mutated_bytes(data: bytes, draw: random.Random) -> bytes:
    """Bytes with a few of them flipped, cut off, doubled or overwritten by what breaks a table of offsets."""
    raw = bytearray(data)
    for _ in range(draw.randint(1, 20)):
        at = draw.randrange(len(raw) + 1)
        kind = draw.random()
        if kind < 0.6 and at < len(raw):
            raw[at] ^= 1 << draw.randrange(8)
        elif kind < 0.8:
            raw[at : at + 4] = draw.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\1\0\0\0"))
        elif kind < 0.9:
            raw[at:at] = raw[at : at + draw.choice((1, 16, 4096))]
        elif kind < 0.93:
            del raw[at:]
        else:
            del raw[at : at + draw.choice((1, 3, 64))]
    return bytes(raw)


def change_value(value: Any, draw: random.Random) -> None:
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


def mutated_text(text: str, draw: random.Random, others: Sequence[str] = ()) -> str:
    """A text with some of its lines, words, numbers or brackets changed; `others` are texts to mix it with."""
    for _ in range(draw.randint(1, 4)):
        text = _mixed(text, draw, others) if others and draw.random() < 0.06 else draw.choice(_TEXT_CHANGES)(text, draw)
    return text


def _mixed(text: str, draw: random.Random, others: Sequence[str]) -> str:
    """Lines of another text, perhaps of another language, in between."""
    lines, more = text.splitlines(keepends=True), draw.choice(others).splitlines(keepends=True)
    at, start = draw.randrange(len(lines) + 1), draw.randrange(len(more) + 1)
    return "".join(lines[:at] + more[start : start + draw.choice((1, 5, 60))] + lines[at:])


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
    times = min(draw.choice((2, 50, 2000)), 1 + _MOST_REPEATED // len(lines[at]))
    return "".join(lines[:at] + lines[at : at + 1] * times + lines[at:])


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
    return (
        text[:at]
        + draw.choice(("-1", "0", "99999999999999999999", "1e9", "7", "3000000000", "9" * 5000, "٣", "²"))
        + text[at + 1 :]
    )


def _nested(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    sign = draw.choice(("(", "[", "{", "<", "loc(", "#a<", "callsite(", "scf.for {", '"', "/*", "<{"))
    return text[:at] + sign * draw.choice((3, 200, 20_000)) + text[at:]


def _doubling(text: str, draw: random.Random) -> str:
    sign, form = draw.choice((("#a", "#x<{0}, {0}>"), ("!t", "tuple<{0}, {0}>"), ("#loc", "loc(callsite({0} at {0}))")))
    lines = [f"{sign}{number} = {form.format(f'{sign}{number - 1}')}" for number in range(1, 40)]
    return f"{sign}0 = {'loc(unknown)' if sign == '#loc' else '#ttg.y<{}>'}\n" + "\n".join(lines) + f"\n{text}"


def _moved_block(text: str, draw: random.Random) -> str:
    """Some lines elsewhere, or in another order."""
    lines = text.splitlines(keepends=True)
    start = draw.randrange(len(lines) + 1)
    block = lines[start : start + draw.choice((2, 10, 100))]
    rest = lines[:start] + lines[start + len(block) :]
    at = draw.randrange(len(rest) + 1)
    draw.shuffle(block)
    return "".join(rest[:at] + block + rest[at:])


def _joined_lines(text: str, draw: random.Random) -> str:
    """One long line of many."""
    lines = text.splitlines(keepends=True)
    start, count = draw.randrange(len(lines) + 1), draw.choice((2, 50, 100_000))
    return "".join(lines[:start]) + "".join(lines[start : start + count]).replace("\n", draw.choice((" ", "", "\r")))


def _unclosed(text: str, draw: random.Random) -> str:
    """A bracket or a quote less."""
    places = [at for at, sign in enumerate(text[:200_000]) if sign in '()[]{}<>"']
    if not places:
        return text
    at = draw.choice(places)
    return text[:at] + text[at + 1 :]


def _flipped(text: str, draw: random.Random) -> str:
    """Some of its bytes flipped."""
    return mutated_bytes(text.encode("utf-8", "surrogatepass"), draw).decode("utf-8", "surrogateescape")


def _long_word(text: str, draw: random.Random) -> str:
    """A name, a number, a path or a run of blanks that is far too long."""
    at = draw.randrange(len(text) + 1)
    word = draw.choice(
        ("a", "9", " ", "/", "x<", "%", "\t", ", ", "_", "-", "\\", ".", "é", "\n", "{}", "0x", "|", ":")
    )
    return text[:at] + word * draw.choice((100, 5000, 100_000)) + text[at:]


def _escapes(text: str, draw: random.Random) -> str:
    """What a terminal or a page would obey."""
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(_ESCAPES) + text[at:]


def _swapped_names(text: str, draw: random.Random) -> str:
    """One name in place of another: values that use themselves, jumps into the middle, aliases in a circle."""
    names = list(_NAME.finditer(text[:200_000]))
    if len(names) < 2:
        return text
    at, by = draw.choice(names), draw.choice(names)
    return text[: at.start()] + by[0] + text[at.end() :]


# %acc_12   #blocked   !dbg   $L__BB0_2   .L_x_3   R24   v[4:7]   @kernel   loc3
_NAME = re.compile(r"[%#!@$.]+\w+|\b[A-Za-z]+\d+\b")
_ESCAPES = (
    "\x1b[31m", "\x1b]0;x\x07", "\x9b31m", "\u202e", "\ufeff", "\u2028", "\x85", "\x0c", "\x1c", "\0", "\ud800",
    "\udcff", "</script>", "-->", "]]>", "`${1}", "{{", "%s", "\\N{", "\\x", "\r\n", "\r",
)  # fmt: skip

_TEXT_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _cut, _without_lines, _swapped_lines, _repeated, _replaced, _replaced, _number, _number, _nested, _doubling,
    _moved_block, _joined_lines, _unclosed, _unclosed, _flipped, _long_word, _escapes, _swapped_names, _swapped_names,
)  # fmt: skip

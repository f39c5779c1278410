"""Plain tables: aligned columns, no frames, a column too wide is shortened, and what does not fit is set in blocks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence

# -1,234.5      3.2 %      1.8×      +12      –
_NUMBER = re.compile(r"[+\-−]?[\d][\d,_.]*(?:e[+-]?\d+)?(?: ?(?:%|×|x|[kMG]?i?B|[nµm]?s))?$")
_ABSENT = ("", "-", "–", "—", "?")

# What must not reach a terminal from a file that someone else made: a control character other than tab and line feed;
# what reorders, hides or joins the characters around it (bidi overrides, zero-width signs, tags); half a character.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)

_GAP = "  "
_HEADER = "\x1b[1m{}\x1b[22m"
_NARROWEST = 6


def visible(text: str) -> str:
    r"""The text with control characters made visible: an escape is `␛`, others `\x..` or `\u....`; `\r\n` is `\n`."""
    if _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(lambda match: _picture(match[0]), text.replace("\r\n", "\n"))


def masked(text: str) -> str:
    """The text with one sign for each control character, so that no character after it moves."""
    return _CONTROL.sub("�", text).replace("\t", " ").replace("\n", " ")


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is no UTF-8, as `surrogateescape` keeps it.
        return f"\\x{code - 0xDC00:02x}"
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return "\u2421" if code == 0x7F else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    width: int | None = None,
    color: bool = False,
    whole: Collection[str] = (),
) -> str:
    """A table as text.

    Args:
        columns: the header, one text per column; if all are empty there is no header line.
        rows: the cells; None is an empty one, and a row that is too short is filled up with such.
        width: the characters that a line may take; None for any number. The widest columns of text are shortened,
            with `…`, but never columns of numbers.
        color: whether the header is bold.
        whole: the columns that are never shortened: what one reads there is typed again.

    Returns lines that end in a line feed, without blanks at their ends. A column of numbers alone is set to the right.
    Where the columns do not fit, each row is a block of lines: its first cell, and below it the others with their
    columns' names.
    """
    cells = [[_cell(row[index]) if index < len(row) else "" for index in range(len(columns))] for row in rows]
    header = [_cell(column) for column in columns]
    numeric = [_is_numeric([row[index] for row in cells]) for index in range(len(columns))]
    lines = [header, *cells] if any(header) else cells
    widths = [max((display_width(line[index]) for line in lines), default=0) for index in range(len(columns))]
    if width is not None:
        room = width - len(_GAP) * (len(columns) - 1)
        _shrink(widths, [one or name in whole for one, name in zip(numeric, columns, strict=True)], room)
        if sum(widths) > room and any(header):
            return "".join(line for row in cells for line in _block(header, row, width, color))
    result = [_line(line, widths, numeric) for line in lines]
    if color and any(header):
        result[0] = _HEADER.format(result[0])
    return "".join(f"{line}\n" for line in result)


def _block(header: Sequence[str], row: Sequence[str], width: int, color: bool) -> Iterator[str]:
    """The lines of a row that does not fit into one."""
    if row[0]:
        yield f"{_HEADER.format(row[0]) if color else row[0]}\n"
    line = ""
    for name, cell in zip(header[1:], row[1:], strict=True):
        if not cell:
            continue
        item = f"{_GAP}{name} {cell}".rstrip()
        if line and display_width(line + item) > width:
            yield f"{line}\n"
            line = ""
        line += item
    if line:
        yield f"{line}\n"


def display_width(text: str) -> int:
    """The columns of a terminal that a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def shorten(text: str, width: int) -> str:
    """The text, cut to a width with `…` at its end where it does not fit."""
    if display_width(text) <= width:
        return text
    taken, kept = 1, ""
    for character in text:
        taken += _character_width(character)
        if taken > width:
            break
        kept += character
    return kept.rstrip() + "…" if width > 0 else ""


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cell(value: object) -> str:
    return "" if value is None else visible(str(value)).replace("\n", " ").replace("\t", " ")


def _is_numeric(column: Sequence[str]) -> bool:
    filled = [cell for cell in column if cell not in _ABSENT]
    return bool(filled) and all(_NUMBER.match(cell) for cell in filled)


def _shrink(widths: list[int], fixed: Sequence[bool], room: int) -> None:
    """Narrow the widest columns, a character at a time, until the sum fits or none that is not fixed can give way."""
    while sum(widths) > room:
        texts = [index for index, width in enumerate(widths) if not fixed[index] and width > _NARROWEST]
        if not texts:
            return
        widths[max(texts, key=lambda index: widths[index])] -= 1


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts: list[str] = []
    for text, width, is_number in zip(cells, widths, numeric, strict=True):
        short = shorten(text, width)
        blanks = " " * (width - display_width(short))
        parts.append(blanks + short if is_number else short + blanks)
    return _GAP.join(parts).rstrip()

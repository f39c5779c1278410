"""Figures, and plain tables of aligned columns: nothing is cut, long cells wrap, and columns too many go below."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from irscope.ir.locations.model import is_library

# -1,234.5      3.2 %      1.8×      +12      –
_NUMBER = re.compile(r"[+\-−]?[\d][\d,_.]*(?:e[+-]?\d+)?(?: ?(?:%|×|x|[kMG]?i?B|[nµm]?s))?$")
_ABSENT = ("", "-", "–", "—", "?")

# What must not reach a terminal from a file that someone else made: a control character other than tab and line feed;
# what reorders, hides or joins the characters around it (bidi overrides, zero-width signs, tags); half a character.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)

WIDE = 200
"""Columns of a drawing that needs some width, where it is not for a terminal."""

_GAP = "  "
_INDENT = "    "
_HEADER = "\x1b[1m{}\x1b[22m"
_NARROWEST = 32
"""A column of text this wide or narrower is not wrapped."""
_WORD = re.compile(r"\s*\S+")


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
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None, color: bool = False
) -> str:
    """A table as text, without a header line if all of `columns` are empty.

    Within `width`, long cells of text wrap between words; columns for which there is no room stand below the others,
    indented. No cell is ever cut: a line is wider only where one word is. A cell of None is empty, and a row that is
    too short is filled up with such. A column of numbers alone is set to the right.
    """
    return "".join(table_rows(columns, rows, width=width, color=color))


def table_rows(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None, color: bool = False
) -> list[str]:
    """A table as the text of its header, empty if it has none, and that of each row: one line or more."""
    cells = [[_cell(row[index]) if index < len(row) else "" for index in range(len(columns))] for row in rows]
    header = [_cell(column) for column in columns]
    numeric = [_is_numeric([row[index] for row in cells]) for index in range(len(columns))]
    lines = [header, *cells]
    widths = [max(display_width(line[index]) for line in lines) for index in range(len(columns))]
    chosen = list(range(len(columns)))
    if width is None or _total(widths) <= width:
        bands = [chosen]
    else:
        # What is empty in every row needs no column.
        chosen = [index for index in chosen if any(row[index] for row in cells)] or chosen[:1]
        least = [
            natural if is_number else min(natural, max(_NARROWEST, _widest_word([row[index] for row in lines], width)))
            for index, (natural, is_number) in enumerate(zip(widths, numeric, strict=True))
        ]
        bands = _bands(chosen, least, width)
        for number, band in enumerate(bands):
            _shrink(widths, least, band, width - (len(_INDENT) if number else 0))
    texts = [
        "".join(
            f"{_INDENT if number else ''}{part}".rstrip() + "\n"
            for number, band in enumerate(bands)
            for part in _band(line, widths, numeric, band, is_first=not number)
        )
        for line in lines
    ]
    if not any(header):
        texts[0] = ""
    elif color:
        texts[0] = "".join(f"{_HEADER.format(line)}\n" for line in texts[0].splitlines())
    return texts


def counted(count: int, noun: str) -> str:
    """`1 warp`, `2 warps`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def preformatted(text: str) -> str:
    """A text of fixed-width columns as HTML."""
    return f'<pre style="line-height:1.25;overflow-x:auto">{escape(text)}</pre>'


def fenced(text: str, language: str) -> str:
    """A block of code in Markdown, whose text may have a fence of its own."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


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


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _widest_word(column: Sequence[str], width: int) -> int:
    """The columns that the words of most cells need; those of more than half a line count if most cells have such."""
    widest = [max(map(display_width, cell.split()), default=0) for cell in column]
    usual = [word for word in widest if 2 * word <= width]
    return max(usual if 2 * len(usual) >= len(widest) else widest)


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text of one line, broken between words; one is wider only where a word is."""
    if display_width(text) <= width:
        return [text]
    lines = [""]
    for match in _WORD.finditer(text):
        if lines[-1] and display_width(lines[-1]) + display_width(match[0]) > width:
            lines.append(match[0].lstrip())
        else:
            lines[-1] += match[0]
    return lines


def _bands(chosen: Sequence[int], least: Sequence[int], width: int) -> list[list[int]]:
    """The columns that stand beside each other, in order, so that each has the room that it needs at least."""
    bands: list[list[int]] = [[]]
    for index in chosen:
        room = width - (len(_INDENT) if len(bands) > 1 else 0)
        if bands[-1] and _total([least[one] for one in (*bands[-1], index)]) > room:
            bands.append([])
        bands[-1].append(index)
    return bands


def _shrink(widths: list[int], least: Sequence[int], band: Sequence[int], width: int) -> None:
    """Narrow the widest columns of a band, a character at a time, until it fits or none can give way."""
    while _total([widths[index] for index in band]) > width:
        wider = [index for index in band if widths[index] > least[index]]
        if not wider:
            return
        widths[max(wider, key=lambda index: widths[index])] -= 1


def _band(
    cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool], band: Sequence[int], *, is_first: bool
) -> Iterator[str]:
    """The lines of some columns of a row: of the first columns at least one, of others none where all are empty.

    A cell with a word that is wider than its column stands below them.
    """
    columns = [wrapped(cells[index], widths[index]) if cells[index] else [] for index in band]
    below: list[str] = []
    for place, index in enumerate(band):
        if any(display_width(line) > widths[index] for line in columns[place]):
            columns[place] = []
            below += wrapped(cells[index], _total([widths[one] for one in band]))
    for number in range(max(map(len, columns), default=0) or is_first):
        parts: list[str] = []
        for index, lines in zip(band, columns, strict=True):
            text = lines[number] if number < len(lines) else ""
            blanks = " " * (widths[index] - display_width(text))
            parts.append(blanks + text if numeric[index] else text + blanks)
        yield _GAP.join(parts)
    yield from (f"{_INDENT if is_first else ''}{line}" for line in below)


_PERCENT = "_percent"


def percent(fraction: float) -> str:
    """`12.5 %`, `50 %`: one decimal if needed. Tiny shares are distinguished from 0, and almost all from 100 %."""
    value = round(100 * fraction, 1)
    if value == 0 < fraction:
        return "< 0.1 %"
    if value == 100 > 100 * fraction:
        return "> 99.9 %"
    return f"{value:g} %"


def milliseconds(duration_us: float) -> str:
    """`0.42`, `12.5`, `204` of a duration in microseconds: about three digits."""
    decimals = 2 if duration_us < 10_000 else 1 if duration_us < 100_000 else 0
    return f"{duration_us / 1000:.{decimals}f}"


def resource_title(name: str) -> str:
    """`spill store bytes`; a share's name goes without its unit, which stands beside the figure."""
    return name.removesuffix(_PERCENT).replace("_", " ")


def resource_value(name: str, value: Any) -> str:
    """A resource, a dash where it is not known; shares (`occupancy_percent`) as shares."""
    if value is None:
        return "–"
    return percent(value / 100) if name.endswith(_PERCENT) else str(value)


def scaled(value: float, units: Sequence[tuple[float, str]], digits: int = 3) -> str:
    """`4.18 TB/s`: a value in the first unit that it reaches, (factor, name) from the largest on; else in the last."""
    factor, name = next((one for one in units if value >= one[0]), units[-1])
    return f"{value / factor:.{digits}g} {name}".rstrip()


def number_text(value: float | None) -> str:
    """`0.333333`, `16777217`: six digits, and all of a whole number up to 2**53; a dash for None."""
    if value is None:
        return "–"
    return f"{value:.0f}" if abs(value) <= 2**53 and value == int(value) else f"{value:.6g}"


def difference(value: float | None) -> str:
    """`+12.5`, `-3`: how far one figure is from another, to a tenth."""
    return "" if value is None else f"{round(value, 1):+g}"


def short_name(path: str) -> str:
    """A library file's path from `triton/` on; another file's name."""
    plain = path.replace("\\", "/")
    start = f"/{plain}".rfind("/triton/")
    return plain[start:] if start >= 0 and is_library(path) else plain.rpartition("/")[2]


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def duration_text(seconds: float) -> str:
    """`1.25 µs`: three digits."""
    return scaled(seconds, _TIMES)


def least_text(seconds: float, launch_seconds: float) -> str:
    """The minimum time of a launch's work; where an empty launch takes longer, that says enough."""
    if seconds < launch_seconds:
        return f"under {duration_text(launch_seconds)} (an empty launch)"
    return duration_text(seconds)


_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def bytes_text(value: int) -> str:
    """`1.5 MiB`: four digits."""
    return scaled(value, _SIZES, 4)

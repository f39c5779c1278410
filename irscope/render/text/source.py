"""The kernel's Python with the operations of each line, lines of Python in a stage, and columns beside machine code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, get_args

from irscope.analysis.resources import family_rank
from irscope.analysis.source.annotations import AnnotatedCode, AnnotatedInstruction, AnnotatedLines
from irscope.analysis.source.map import SourceMap, StageCount, StageMap, function_blocks
from irscope.ir.locations.model import is_library, text_lines
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture, StageKind, stage_named
from irscope.model.plain import picked
from irscope.render.text.profile import counters_json, stall_text
from irscope.render.text.tables import display_width, percent, short_name, visible, wrapped
from irscope.render.text.terminal import DIM, highlight, highlight_python

Column = Literal["registers", "marks", "stalls"]
COLUMNS: tuple[Column, ...] = get_args(Column)
_TITLES: dict[Column, str] = {"registers": "live", "marks": "marks", "stalls": "stalls"}
_BAR = 8


class AnnotationColumns:
    """The chosen columns of a stage's instructions, each as wide as its widest cell."""

    def __init__(self, found: AnnotatedCode, columns: Sequence[Column]) -> None:
        self.found = found
        self._asked = tuple(columns)
        self.columns: tuple[Column, ...] = tuple(one for one in columns if one != "stalls" or found.stalled is not None)
        self._most = found.peak.live or 0 if found.peak is not None else 0
        cells = {one.line: [self._cell(one, column) for column in self.columns] for one in found.instructions}
        self._widths = [
            max((display_width(row[index]) for row in cells.values()), default=0) for index in range(len(self.columns))
        ]
        self._widths = [max(width, len(_TITLES[name])) for width, name in zip(self._widths, self.columns, strict=True)]
        self._cells = cells

    @property
    def head(self) -> str:
        return self._joined([_TITLES[column] for column in self.columns])

    def at(self, line: int) -> str:
        """The columns of a line of the text; blanks where it is no instruction."""
        return self._joined(self._cells.get(line) or [""] * len(self.columns))

    def sentence(self) -> str:
        """What the columns are of: the peak, and what the stalls are shares of."""
        found, parts = self.found, list[str]()
        if "registers" in self.columns and (peak := found.peak) is not None:
            given = f" of {found.registers} that a thread has" if found.registers is not None else ""
            parts.append(f"at most {peak.live} live registers{given}, at line {peak.line} ({found.counted_by})")
        if "stalls" in self.columns:
            parts.append(f"stalls: shares of {found.stalled} samples of stalled warps")
        elif "stalls" in self._asked:
            parts.append("stalls were not measured: irscope profile measures them on a GPU")
        return "; ".join([f"{found.stage}: {parts[0]}", *parts[1:]]) if parts else ""

    def _joined(self, cells: Sequence[str]) -> str:
        return "  ".join(
            text + " " * (width - display_width(text)) for text, width in zip(cells, self._widths, strict=True)
        )

    def _cell(self, one: AnnotatedInstruction, column: Column) -> str:
        if column == "registers":
            return "" if one.live is None else f"{one.live:3} {'█' * round(one.live / max(self._most, 1) * _BAR)}"
        if column == "marks":
            return " ".join(filter(None, (one.spill and f"spill {one.spill}", one.tick)))
        return self._stalls(one)

    def _stalls(self, one: AnnotatedInstruction | AnnotatedLines) -> str:
        if one.counters is None or not one.counters.stalled or not self.found.stalled:
            return ""
        return f"{percent(one.counters.stalled / self.found.stalled)} {stall_text(one.counters)}"

    def of_lines(self, lines: Iterable[int]) -> dict[Column, str]:
        """The columns of several instructions together, those of a line of Python; of stalls the share alone."""
        one = self.found.together(lines)
        spills = [f"spill ×{one.spills}"] if one.spills else []
        cells: dict[Column, str] = {
            "registers": "" if one.live is None else str(one.live),
            "marks": ", ".join([*spills, *(f"{name} ×{count}" for name, count in one.ticks)]),
            "stalls": self._stalls(one).partition(" %")[0],
        }
        return {column: cells[column] for column in self.columns}


def render_annotated(
    text: str, kind: StageKind, columns: AnnotationColumns, *, loc: bool = False, only: frozenset[int] | None = None,
    color: bool = False,
) -> str:  # fmt: skip
    """A stage's text with the columns before each line; `loc`: also lines that only state a location."""
    return "".join(f"{line.rstrip()}\n" for line in _lines(text, kind, columns, loc, only, color))


def _lines(
    text: str, kind: StageKind, columns: AnnotationColumns, loc: bool, only: frozenset[int] | None, color: bool
) -> Iterator[str]:
    if sentence := columns.sentence():
        yield sentence
    yield columns.head
    # Without locations it has some of its lines, unchanged.
    kept = iter(text_lines(text if loc else strip_locations(text, kind)))
    expected = next(kept, None)
    for number, line in enumerate(text_lines(text), 1):
        if line != expected:
            continue
        expected = next(kept, None)
        if only is None or number in only:
            shown = line.expandtabs(4)
            yield f"{columns.at(number)}  {highlight(shown, kind) if color else visible(shown)}"


def annotations_json(found: AnnotatedCode) -> dict[str, Any]:
    return picked(
        found,
        "stage registers counted_by stalled",
        peak=found.peak and picked(found.peak, "line live"),
        instructions=[
            picked(one, "line live spill tick", counters=one.counters and counters_json(one.counters))
            for one in found.instructions
        ],
    )


Line = tuple[str, int]
"""A Python file and a 1-based line of it."""

_NARROWEST = 44
"""Columns of Python below which the numbers of a line stand under it."""
_LEAST_ROOM = 20
_GAP = "  "
_KINDS = 3
_BOLD = "\x1b[1m{}\x1b[22m"


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    text: str
    counts: tuple[StageCount, ...]
    """Of every stage, in order; none where nothing comes from the line."""


@dataclass(frozen=True, slots=True)
class Block:
    """A function of a Python file."""

    file: str
    rows: tuple[_Row, ...]


def source_blocks(capture: Capture, found: SourceMap, only: Collection[Line] | None = None) -> list[Block]:
    """The functions that something comes from, the kernel's first; with `only` just these lines."""
    texts = {source.path: source.text for source in capture.sources}
    lines_of: dict[str, list[int]] = {}
    for file, line in found.python_lines:
        if only is None or (file, line) in only:
            lines_of.setdefault(file, []).append(line)
    blocks: list[Block] = []
    for file, lines in lines_of.items():
        text = texts.get(file, "")
        rows = dict(enumerate(text.split("\n"), 1))
        spans = function_blocks(text, lines) if only is None else []
        for first, last in spans or [(line, line) for line in lines]:
            counts = {
                line: found.counts(file, line) if (file, line) in found.places_of_line else ()
                for line in range(first, last + 1)
            }
            blocks.append(Block(file, tuple(_Row(line, rows.get(line, ""), own) for line, own in counts.items())))
    kernel = capture.launch.kernel
    blocks.sort(key=lambda one: one.file != kernel.file or all(row.line != kernel.line for row in one.rows))
    return blocks


def render_table(
    capture: Capture,
    found: SourceMap,
    *,
    only: Collection[Line] | None = None,
    columns: AnnotationColumns | None = None,
    width: int | None = None,
    color: bool = False,
) -> str:
    """The table of counts: for each line of Python, the operations at each stage, live registers and instructions.

    `12 (340)` is 12 of the line's own, and 340 with those of the functions that it calls. `columns` stand behind the
    counts, each of the instructions that are the line's own. Within `width` the Python is whole: long lines wrap, and
    where little room is left beside the numbers, these stand below it.
    """
    head, rows = _table_rows(found, source_blocks(capture, found, only), columns)
    widths = [max(map(len, column)) for column in zip(head, *(row.numbers for row in rows), strict=True)]
    room = _room(rows, widths[0] + len(_GAP), sum(widths) + len(_GAP) * len(widths), width)
    title = "marks" if columns is not None and "marks" in columns.columns else "instructions"
    margin = " " * (widths[0] + len(_GAP))
    if room.below:
        titles = [f"{head[0].rjust(widths[0])}{_GAP}Python", f"{margin}{_join(head[1:], widths[1:])}{_GAP}{title}"]
    else:
        titles = [f"{_join(head, widths)}{_GAP}{'Python'.ljust(room.python)}{_GAP}{title}"]
    lines: list[str] = []
    previous: Block | None = None
    for row in rows:
        if previous is None or row.block.file != previous.file or (only is None and row.block is not previous):
            lines.extend(["", _paint(DIM, row.block.file, color)] if lines else [_paint(DIM, row.block.file, color)])
            lines.extend(_paint(_BOLD, line.rstrip(), color) for line in titles)
        previous = row.block
        python = _wrapped_python(row.source, room.python)
        kinds = wrapped(row.text, room.text)
        number, *counts = row.numbers
        if room.below:
            nothing: list[str] = []
            cells = [(number.rjust(widths[0]), python, nothing)]
            if any(counts) or row.text:
                cells.append((f"{margin}{_join(counts, widths[1:])}", [], kinds))
        else:
            cells = [(_join(row.numbers, widths), python, kinds)]
        for numbers, *texts in cells:
            for own, source, kind in zip_longest([numbers], *texts, fillvalue=""):
                painted = highlight_python(source) if color else source
                if texts[0] and texts[1]:
                    painted += " " * (room.python - display_width(source)) + _GAP
                own = own.ljust(display_width(numbers))
                lines.append(f"{own}{_GAP}{painted}{_paint(DIM, kind, color)}".rstrip())
    if only is None:
        lines.extend(_footer(found))
    if columns is not None and (sentence := columns.sentence()):
        lines.extend(["", sentence])
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class _TableRow:
    block: Block
    numbers: list[str]
    source: str
    text: str
    """Its instructions, or its marks."""


@dataclass(frozen=True, slots=True)
class _Room:
    python: int
    text: int
    below: bool
    """Whether the numbers and instructions stand below the Python."""


def _table_rows(
    found: SourceMap, blocks: Sequence[Block], columns: AnnotationColumns | None
) -> tuple[list[str], list[_TableRow]]:
    names = [stage.stage for stage in found.stages]
    with_live = columns is None and any(stage.operations.live for stage in found.stages)
    chosen = columns.columns if columns is not None else ()
    others: list[Column] = [column for column in chosen if column != "marks"]
    own = own_operations(found, found.stage(columns.found.stage)) if columns is not None else {}
    rows: list[_TableRow] = []
    for block in blocks:
        for row in block.rows:
            lines = own.get((block.file, row.line), ())
            cells: dict[Column, str] = columns.of_lines(lines) if columns is not None else {}
            numbers = [*_cells(row, names, with_live), *(cells[column] for column in others)]
            source = visible(row.text.rstrip()).replace("\t", "    ")
            rows.append(_TableRow(block, numbers, source, cells.get("marks", kinds_text(row.counts))))
    return ["line", *names, *(["live"] if with_live else []), *(_TITLES[column] for column in others)], rows


def _room(rows: Sequence[_TableRow], line: int, numbers: int, width: int | None) -> _Room:
    python = max((display_width(row.source) for row in rows), default=0)
    text = max((display_width(row.text) for row in rows), default=0)
    if width is None:
        return _Room(python, text, False)
    python = min(python, max(width - numbers - len(_GAP) - text, _NARROWEST))
    left = width - numbers - python - len(_GAP)
    if left < min(text, _LEAST_ROOM):
        return _Room(width - line, max(width - numbers, _LEAST_ROOM), True)
    return _Room(python, max(left, _LEAST_ROOM), False)


def _wrapped_python(source: str, width: int) -> list[str]:
    """A line of Python in lines of a width; what continues is indented further than its first line."""
    indent = len(source) - len(source.lstrip()) + 4
    if display_width(source) <= width or indent * 2 > width:
        return [source]
    first, *_ = wrapped(source, width)
    rest = wrapped(source[len(first) :].lstrip(), width - indent)
    return [first, *(" " * indent + part for part in rest if part)]


def _cells(row: _Row, names: Sequence[str], with_live: bool) -> list[str]:
    if not row.counts:
        return [str(row.line), *[""] * (len(names) + with_live)]
    live = [str(max((count.live_registers or 0 for count in row.counts), default=0) or "")] if with_live else []
    return [str(row.line), *[_count(count) for count in row.counts], *live]


def _count(count: StageCount) -> str:
    if not count.called:
        return str(count.own or "·")
    return f"{count.own or ''} ({count.total})".lstrip()


def _join(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def kinds_text(counts: Sequence[StageCount]) -> str:
    """The instructions of the lowest assembly that matter most: `wgmma ×4, ld.global.128 ×2, 40 more`."""
    lowest = next(
        (count for count in reversed(counts) if stage_named(count.stage).kind in ("sass", "amdgcn", "ptx")), None
    )
    if lowest is None:
        return ""
    ranked = sorted(lowest.kinds, key=lambda kind: (family_rank(kind[0]), -kind[1]))
    shown = ranked[:_KINDS]
    rest = sum(number for _, number in ranked[_KINDS:])
    parts = [f"{name} ×{number}" for name, number in shown]
    return ", ".join([*parts, *([f"{rest} more"] if rest else [])])


def _footer(found: SourceMap) -> list[str]:
    lines: list[str] = []
    if library := _library_lines(found):
        lines.extend(["", "Triton's own lines, counted above for the line that called them:"])
        for (file, line), stages in library.items():
            counts = ", ".join(f"{stage} {number}" for stage, number in stages.items())
            lines.append(f"  {short_name(file)}:{line}  {counts}")
    if missing := _without_location(found):
        lines.extend(["", f"without a location: {', '.join(f'{stage} {number}' for stage, number in missing.items())}"])
    return lines


def _library_lines(found: SourceMap) -> dict[Line, dict[str, int]]:
    """The lines of Triton's library that operations stand on, with their number at each stage."""
    rows: dict[Line, dict[str, int]] = {}
    for stage in found.stages:
        for line in stage.operations.lines:
            chain = stage.locations.chain_at(line)
            if chain and is_library(chain[0].file):
                counts = rows.setdefault((chain[0].file, chain[0].line), {})
                counts[stage.stage] = counts.get(stage.stage, 0) + 1
    return dict(sorted(rows.items()))


def _without_location(found: SourceMap) -> dict[str, int]:
    """How many operations of each stage have no location; stages where all have one are left out."""
    counts = {
        stage.stage: sum(1 for line in stage.operations.lines if not stage.locations.chain_at(line))
        for stage in found.stages
    }
    return {stage: number for stage, number in counts.items() if number}


def render_interleaved(
    capture: Capture,
    found: SourceMap,
    stage: str,
    *,
    only: Collection[Line] | None = None,
    matching: Collection[int] | None = None,
    columns: AnnotationColumns | None = None,
    color: bool = False,
) -> str:
    """Each line of Python, and under it what it wrote itself at one stage; calls stand after the operation."""
    the_map = found.stage(stage)
    kind = stage_named(stage).kind
    shown = text_lines(capture.text(stage))
    own = own_operations(found, the_map, matching)
    lines = [columns.sentence(), f"{'':13}  {columns.head}".rstrip(), ""] if columns is not None else list[str]()
    previous = ""
    for block in source_blocks(capture, found, only):
        if block.file != previous or only is None:
            lines.extend(["", _paint(DIM, block.file, color)] if previous else [_paint(DIM, block.file, color)])
        previous = block.file
        for row in block.rows:
            operations = own.get((block.file, row.line), [])
            count = next((item for item in row.counts if item.stage == stage), None)
            called = f"  → {count.called} in its callees" if count and count.called and matching is None else ""
            python = row.text.rstrip()
            python = highlight_python(python) if color else visible(python)
            lines.append(f"{_paint(_BOLD, f'{row.line:5}', color)}  {python}{called}".rstrip())
            for number in operations:
                text = strip_locations(shown[number - 1], kind).strip()
                note = _note(found, the_map, number)
                body = highlight(text, kind) if color else visible(text)
                beside = f"  {columns.at(number)}" if columns is not None else ""
                lines.append(f"{number:13}{beside}  {body}{_paint(DIM, note, color)}".rstrip())
    nowhere = [line for line in the_map.operations.lines if not the_map.locations.chain_at(line)]
    if nowhere and only is None:
        lines.extend(["", _paint(DIM, "without a location", color)])
        lines.extend(f"{number:13}  {visible(shown[number - 1].strip())}" for number in nowhere)
    return "".join(f"{line}\n" for line in lines)


def own_operations(found: SourceMap, stage: StageMap, matching: Collection[int] | None = None) -> dict[Line, list[int]]:
    """(file, line) -> the text lines of the operations that it wrote itself."""
    own: dict[Line, list[int]] = {}
    wanted = None if matching is None else set(matching)
    for index, number in enumerate(stage.operations.lines):
        if wanted is None or index in wanted:
            for frame in dict.fromkeys(found.places[place][0] for place in stage.places_at(number)):
                own.setdefault(frame, []).append(number)
    return own


def _note(found: SourceMap, stage: StageMap, line: int) -> str:
    """What stands behind an operation: the library's line that it is of, and the lines that called."""
    chain = stage.locations.chain_at(line)
    parts: list[str] = []
    if chain and is_library(chain[0].file):
        parts.append(f"{short_name(chain[0].file)}:{chain[0].line}")
    callers = [found.places[place][1:] for place in stage.places_at(line)]
    places = dict.fromkeys(" < ".join(str(line) for _, line in caller) for caller in callers if caller)
    if places:
        parts.append(f"called from {' and '.join(places)}")
    return f"   ; {', '.join(parts)}" if parts else ""


def _paint(style: str, text: str, color: bool) -> str:
    return style.format(text) if color and text else text


def counts_json(capture: Capture, found: SourceMap, only: Collection[Line] | None = None) -> dict[str, Any]:
    """For each line of Python that something comes from, the counts at each stage."""
    rows = [
        picked(row, "line text", file=block.file, stages={one.stage: _count_json(one) for one in row.counts})
        for block in source_blocks(capture, found, only)
        for row in block.rows
        if row.counts
    ]
    library = [{"file": file, "line": line, "stages": counts} for (file, line), counts in _library_lines(found).items()]
    return picked(
        capture,
        "id kernel=name target",
        file=found.kernel_file,
        lines=rows,
        library=library,
        without_location=_without_location(found),
    )


def _count_json(count: StageCount) -> dict[str, Any]:
    live = {} if count.live_registers is None else {"live_registers": count.live_registers}
    return picked(count, "own called", kinds=dict(count.kinds), **live)


def operations_json(
    found: SourceMap, stage: str, only: Collection[Line] | None = None, pattern: re.Pattern[str] | None = None
) -> list[dict[str, Any]]:
    """The operations of one stage, each with its whole chain of calls."""
    the_map = found.stage(stage)
    operations = the_map.operations
    wanted = set(range(len(operations.lines))) if pattern is None else set(operations.matching(pattern))
    rows: list[dict[str, Any]] = []
    for index, number in enumerate(operations.lines):
        places = [found.places[place] for place in the_map.places_at(number)]
        is_on_lines = only is None or any(frame in only for place in places for frame in place)
        if index not in wanted or not is_on_lines:
            continue
        row = {
            "text_line": number,
            "operation": operations.full_names[operations.names[index]],
            "kind": operations.kind_names[operations.kinds[index]],
            "chain": [picked(frame, "file line column") for frame in the_map.locations.chain_at(number)],
            "python": [[{"file": file, "line": line} for file, line in place] for place in places],
        }
        live = {"live_registers": operations.live[index]} if operations.live else {}
        rows.append(row | live)
    return rows

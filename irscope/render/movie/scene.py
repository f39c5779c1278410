"""The frames of a movie as one picture of 1280×720: the tiles of its values, what stays, and what each frame shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from irscope.analysis.movie.model import COUNTERS, Change, Frame, Held, MainValue, Movie, Tile
from irscope.errors import DAMAGE, UsageError
from irscope.ir.mlir.attributes import read_encoding
from irscope.ir.mlir.types import element_bits
from irscope.layout.computed import computed_map
from irscope.layout.maps import MemoryMap, Preimage, ThreadMap, span
from irscope.layout.typed import parse_typed
from irscope.model.capture import Capture, Target
from irscope.model.layout import LayoutAnswer, LayoutMap, LayoutRefusal, LayoutRow
from irscope.render.canvas import LEAST, WIDTH, Canvas, Rect
from irscope.render.layout.figure import sizes_of
from irscope.render.text.figures import short_name
from irscope.render.theme import Theme

__all__ = ["COLORS", "HIGH", "WIDE", "Drawn", "Scene", "draw_tile", "layouts_wanted", "state_text", "title_of_tile"]

COLORS = 8
"""Colours of the parts: the next one has the first again."""
WIDE, HIGH = 226.0, 104.0
"""The most pixels of a picture across and down."""
_LEAST_WIDE, _LEAST_HIGH = 72.0, 30.0
_LEAST_CELL = 5.0
"""Pixels of a part; of a finer picture only the upper left is shown, enlarged."""
_MOST_MARKS = 256
_MOST_REGISTER_BITS = 12
_GROUP_BYTES = 16
"""Four banks: what one thread accesses at once at most."""
_LANES_OF_TENSOR_MEMORY = 32
"""Rows of tensor memory that one warp of four reaches. Source: "Parallel Thread Execution ISA", tcgen05.ld."""

Answers = Mapping[tuple[str, tuple[int, ...]], LayoutAnswer]
"""(text of an encoding, shape) -> its map."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture of a tile, in pixels from its upper left."""

    width: float
    height: float
    rows: int
    columns: int
    """Those that are shown."""
    whole: tuple[int, int]
    """All rows and columns."""
    colors: tuple[str, ...]
    """Cells of one size in rows, a digit each: what is held together has one colour. Empty without a layout."""
    held: tuple[tuple[int, int, int], ...]
    """(row, column, elements to the right) of what the first thread holds."""
    caption: str

    def parts(self) -> Iterator[tuple[int, str]]:
        """The path of the cells of each colour."""
        high = self.height / max(len(self.colors), 1)
        paths: dict[int, list[str]] = {}
        for row, colors in enumerate(self.colors):
            wide = self.width / len(colors)
            for column, color in enumerate(colors):
                paths.setdefault(int(color), []).append(_box(column * wide, row * high, wide, high))
        for color, boxes in sorted(paths.items()):
            yield color, "".join(boxes)

    def marks(self) -> str:
        """The path of what the first thread holds."""
        across, down = self.width / self.columns, self.height / self.rows
        return "".join(_box(column * across, row * down, count * across, down) for row, column, count in self.held)

    @property
    def title(self) -> str:
        """What stands above it: its columns, and how much of it is shown."""
        if self.whole == (self.rows, self.columns):
            return str(self.columns)
        return f"the first {self.rows}×{self.columns} of {self.whole[0]}×{self.whole[1]}"


def _box(left: float, top: float, width: float, height: float) -> str:
    return f"M{_n(left)} {_n(top)}h{_n(width)}v{_n(height)}h-{_n(width)}z"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def layouts_wanted(movie: Movie) -> tuple[LayoutRow, ...]:
    """A row for each distinct layout of a movie's tiles, without its map."""
    found: dict[tuple[str, tuple[int, ...]], LayoutRow] = {}
    for tile in (tile for frame in movie.frames for held in frame.held for tile in held.tiles):
        if tile.encoding:
            row = LayoutRow(tile.alias, tile.encoding, tile.covered, (tile.element,))
            found.setdefault((tile.encoding, tile.covered), row)
    return tuple(found.values())


def title_of_tile(tile: Tile) -> str:
    """`128×64 f16 · #blocked1 blocked`."""
    shape = f"{'×'.join(map(str, tile.shape))} {tile.element}"
    if not tile.encoding:
        return shape
    kind = read_encoding(tile.encoding).title
    return f"{shape} · {tile.alias} {kind}" if tile.alias else f"{shape} · {kind}"


def draw_tile(tile: Tile, answers: Answers, target: Target) -> Drawn:
    """Draw a tile; where the map of its layout is not known, an empty one whose caption says so."""
    shape = tile.covered or tile.shape
    rows, columns = sizes_of(shape)
    if not tile.encoding:
        return _empty(rows, columns, "no layout yet")
    answer = _answer(tile, answers)
    if isinstance(answer, LayoutRefusal):
        return _empty(rows, columns, f"no map: {answer.message}")
    space = read_encoding(tile.encoding).space
    layout, word = answer.layout, "wave" if target.backend == "hip" else "warp"
    try:
        if space == "registers":
            return _of_threads(ThreadMap.of(layout), rows, columns, word)
        if space == "shared":
            return _of_memory(MemoryMap.of(layout, element_bits(tile.element) or 16, answer.padding), rows, columns)
        # Rows and columns of tensor memory are the inputs, the first one running fastest.
        low = layout.in_size(layout.in_dims[0]).bit_length() - 1 if layout.in_dims[0] != "row" else 0
        row_bits = (layout.in_size("row") - 1) & ~(_LANES_OF_TENSOR_MEMORY - 1)
        caption = f"tensor memory, {_LANES_OF_TENSOR_MEMORY} rows a {word}"

        def warp_of(place: int) -> int:
            return (place >> low & row_bits) // _LANES_OF_TENSOR_MEMORY

        return _colored(Preimage(layout), rows, columns, row_bits << low, warp_of, caption)
    except (UsageError, *DAMAGE):
        return _empty(rows, columns, "its map cannot be drawn")


def _answer(tile: Tile, answers: Answers) -> LayoutAnswer:
    """The compiler's map, or else one computed from the text."""
    found = answers.get((tile.encoding, tile.covered))
    if isinstance(found, LayoutMap):
        return found
    return _computed(tile.encoding, tile.covered) or found or LayoutRefusal("unasked", "only the compiler tells it")


@lru_cache(maxsize=256)
def _computed(encoding: str, shape: tuple[int, ...]) -> LayoutMap | None:
    try:
        return computed_map(parse_typed(encoding, shape), shape)
    except (UsageError, *DAMAGE):
        return None


def _of_memory(memory: MemoryMap, rows: int, columns: int) -> Drawn:
    group = max(_GROUP_BYTES * 8 // memory.element_bits, 1)
    caption = f"{memory.size_bytes / 1024:g} KiB shared · a colour: {_GROUP_BYTES} B of banks"
    # Padding shifts the banks of all that lies behind it.
    decides = ~(group - 1) if memory.padding else (COLORS - 1) * group

    def banks_of(place: int) -> int:
        return memory.byte(place % memory.offsets) // _GROUP_BYTES % COLORS

    return _colored(memory.places, rows, columns, decides, banks_of, caption)


def _of_threads(threads: ThreadMap, rows: int, columns: int, word: str) -> Drawn:
    shift = len(threads.layout.vectors("register")) + len(threads.layout.vectors("lane"))
    last = len(threads.shape) - 1
    run, dimension = max(((threads.contiguous(one), one) for one in range(last + 1)), default=(1, 0))
    together = f", {run} {'in a row' if dimension == last else 'in a column'}" if run > 1 else ""
    some = f"{threads.warps} {word}{'s' * (threads.warps > 1)}"
    if (copies := threads.replication.warps) > 1:
        # Of those that hold one element, the first one's colour is shown.
        some, together = f"{some}{f', {copies}' * (copies < threads.warps)} hold the same", ""
    caption = f"{some} · {threads.registers} a thread{together}"

    def warp_of(place: int) -> int:
        return (place >> shift) % threads.warps

    drawn = _colored(threads.first_owners, rows, columns, (threads.warps - 1) << shift, warp_of, caption)
    return _marked(drawn, span(threads.layout.flat_vectors("register")[:_MOST_REGISTER_BITS]), columns)


def _colored(places: Preimage, rows: int, columns: int, decides: int, key: Callable[[int], int], caption: str) -> Drawn:
    """A picture whose neighbouring elements with one key are one part.

    Args:
        places: of each element its place; it is linear over GF(2).
        rows: of the tile.
        columns: of the tile.
        decides: the bits of a place that decide its key.
        key: of a place.
        caption: what the colours mean.
    """
    wide, high = _alike(places, columns, 1, decides), _alike(places, rows, columns, decides)
    shown_rows = _shown(rows, high, HIGH, _size(rows, columns)[1])
    shown_columns = _shown(columns, wide, WIDE, _size(rows, columns)[0])
    width, height = _size(shown_rows, shown_columns)
    width = max(width, min(shown_columns // wide * _LEAST_CELL, WIDE))
    height = max(height, min(shown_rows // high * _LEAST_CELL, HIGH))
    colors = tuple(
        "".join(str(key(places[row * columns + column]) % COLORS) for column in range(0, shown_columns, wide))
        for row in range(0, shown_rows, high)
    )
    return Drawn(width, height, shown_rows, shown_columns, (rows, columns), colors, (), caption)


def _shown(size: int, part: int, most: float, pixels: float) -> int:
    """How much of a dimension is shown: all of it, unless its parts were too small to tell apart."""
    if part * pixels / size >= _LEAST_CELL:
        return size
    while size > part and size // part * _LEAST_CELL > most:
        size //= 2
    return size


def _alike(places: Preimage, size: int, stride: int, decides: int) -> int:
    """How many neighbours along a dimension have one key, wherever they begin."""
    count = 1
    while count < size and not places[count * stride] & decides:
        count *= 2
    return count


def _marked(drawn: Drawn, elements: Iterable[int], columns: int) -> Drawn:
    """The same with the elements of one thread marked."""
    places = sorted({divmod(element, columns) for element in elements})
    places = [(row, column) for row, column in places if row < drawn.rows and column < drawn.columns]
    held: list[tuple[int, int, int]] = []
    for row, column in places:
        if held and (row, column) == (held[-1][0], held[-1][1] + held[-1][2]):
            held[-1] = (row, held[-1][1], held[-1][2] + 1)
        else:
            held.append((row, column, 1))
    return replace(drawn, held=tuple(held[:_MOST_MARKS]))


def _empty(rows: int, columns: int, caption: str) -> Drawn:
    width, height = _size(rows, columns)
    return Drawn(width, height, rows, columns, (rows, columns), (), (), caption)


def _size(rows: int, columns: int) -> tuple[float, float]:
    """Pixels of a tile: to scale, unless it is too narrow to see."""
    scale = min(WIDE / columns, HIGH / rows)
    return max(columns * scale, _LEAST_WIDE), max(rows * scale, _LEAST_HIGH)


_MARGIN, _GAP = 24.0, 12.0
_TOP, _BELOW, _END = 122.0, 586.0, 704.0
_CARDS = 900.0
"""The width of the six tiles."""
_MOST_ACROSS = 3
_SIDE_LEFT = _MARGIN + _CARDS + _GAP
_SIDE = WIDTH - _MARGIN - _SIDE_LEFT
_COUNTERS_HIGH = 244.0
_BASE = _BELOW + 68
"""The line of the bars below."""
_ROW = 40.0
_FAMILY = 34.0
"""Pixels of a family of instructions, at most."""
_LINE = 17.0
_BARS = "operations made above the line, removed below; heights by square root, cut where LLVM's dialects begin"
_KEY = (
    "a colour: a warp, or banks of shared memory · dark: what the first thread holds · blue frame: changed by this pass"
)


class Scene:
    """A movie on a canvas."""

    def __init__(self, capture: Capture, movie: Movie, theme: Theme, answers: Answers) -> None:
        self.canvas = Canvas(theme)
        self._capture, self._movie, self._answers = capture, movie, answers
        self._tiles: dict[Drawn, int] = {}
        self._has_cards = False
        count = len(movie.values)
        rows = 1 if count <= _MOST_ACROSS else 2
        columns = max(-(-count // rows), 1)
        width = (_CARDS - (columns - 1) * _GAP) / columns
        height = (_BELOW - _GAP - _TOP - (rows - 1) * _GAP) / rows
        self._cards = [
            Rect(_MARGIN + column * (width + _GAP), _TOP + row * (height + _GAP), width, height)
            for row in range(rows)
            for column in range(columns)
        ]
        self._slot = (WIDTH - 2 * _MARGIN - 28) / len(movie.frames)

    # ── what stays ────────────────────────────────────────────────────────────────────────────────────────────

    def still(self) -> str:
        """What all frames share."""
        self._head()
        self._counters()
        self.canvas.panel(self._changes_area, "Came and went in this pass")
        self._timeline()
        return self._taken()

    def tiles(self) -> str:
        """The pictures of all tiles that frames were drawn with, each once, and what stands around them."""
        if self._has_cards:
            self.canvas.parts.append('<g id="cards">')
            for area, value in zip(self._cards, self._movie.values, strict=False):
                self._card(area, value)
            if not self._movie.values:
                self.canvas.text(_MARGIN, _TOP + 30, "No load, store or dot of a tensor was found to follow.", look="m")
            self.canvas.parts.append("</g>")
        for drawn, number in self._tiles.items():
            parts = "".join(f'<path class="f{color} cell" d="{path}"/>' for color, path in drawn.parts())
            marks = f'<path class="held" d="{drawn.marks()}"/>' if drawn.held else ""
            outline = f"M0 0h{drawn.width:.1f}v{drawn.height:.1f}h-{drawn.width:.1f}z"
            edge = f'<path class="{"axis" if drawn.colors else "off"}" d="{outline}"/>'
            self.canvas.parts.append(f'<g id="tile{number}">{parts}{marks}{edge}</g>')
        return self._taken()

    def _taken(self) -> str:
        parts, self.canvas.parts = self.canvas.parts, []
        return "".join(parts)

    def _head(self) -> None:
        capture, canvas = self._capture, self.canvas
        kernel = capture.launch.kernel
        used = canvas.text(_MARGIN, 38, capture.name, size=22, bold=True, room=560)
        place = f"{short_name(kernel.file)}:{kernel.line}" if kernel.file else ""
        canvas.text(_MARGIN + used + 14, 38, place, look="m", size=13, room=240)
        right = f"{capture.target} · Triton {capture.environment.triton_version or 'version not known'}"
        canvas.text(WIDTH - _MARGIN, 38, right, size=13, anchor="end", room=330)
        canvas.text(WIDTH - _MARGIN, 60, _KEY, look="m", size=LEAST, anchor="end")

    def _card(self, area: Rect, value: MainValue) -> None:
        self.canvas.rect(area, "panel", radius=8)
        place = f":{value.place.rpartition(':')[2]}" if value.place else ""
        self.canvas.text(area.left + 12, area.top + 21, value.title, size=13, bold=True, room=area.width - 24 - 60)
        self.canvas.text(area.right - 12, area.top + 21, place, look="m", size=LEAST, anchor="end")

    def _counters(self) -> None:
        room = self.canvas.panel(Rect(_SIDE_LEFT, _TOP, _SIDE, _COUNTERS_HIGH), "Counted after this pass")
        for number, (field, title) in enumerate(COUNTERS):
            top = room.top + 4 + number * _ROW
            self.canvas.text(room.left, top + 12, title, look="m", size=LEAST)
            area = self._spark(number)
            counts = [int(getattr(frame.counts, field)) for frame in self._movie.frames]
            most = max(1, *(counts[at] for at, frame in enumerate(self._movie.frames) if number or not frame.families))
            step = area.width / len(counts)
            points = "".join(
                f"L{area.left + at * step:.1f} {area.bottom - min(count / most, 1) * area.height:.1f}h{step:.1f}"
                for at, count in enumerate(counts)
            )
            path = f"M{area.left:.1f} {area.bottom:.1f}{points}V{area.bottom:.1f}z"
            self.canvas.path(path, "curve")

    def _spark(self, number: int) -> Rect:
        """The room of a counter's curve."""
        left = _SIDE_LEFT + 150
        return Rect(left, _TOP + 34 + 4 + number * _ROW + 2, _SIDE - 150 - 14, _ROW - 12)

    @property
    def _changes_area(self) -> Rect:
        top = _TOP + _COUNTERS_HIGH + _GAP
        return Rect(_SIDE_LEFT, top, _SIDE, _BELOW - _GAP - top)

    def _timeline(self) -> None:
        frames, canvas = self._movie.frames, self.canvas
        area = Rect(_MARGIN, _BELOW, WIDTH - 2 * _MARGIN, _END - _BELOW)
        canvas.panel(area, "Passes that changed it", _BARS)
        # What an earlier pass made of the first frame is not shown.
        made, gone = [0, *(frame.made for frame in frames[1:])], [0, *(frame.removed for frame in frames[1:])]
        # In the dialects of LLVM there are so many that nothing else would be seen.
        most = max(
            1, *(count for frame, *both in zip(frames, made, gone, strict=True) if not frame.net for count in both)
        )
        for at, (up, down) in enumerate(zip(made, gone, strict=True)):
            left, width = self._slot_left(at) + 2, self._slot - 4
            high, low = (min(count / most, 1) ** 0.5 * 28 for count in (up, down))
            if up:
                canvas.rect(Rect(left, _BASE - high, width, high), "made")
            if down:
                canvas.rect(Rect(left, _BASE, width, low), "gone")
        canvas.path(f"M{area.left + 14:.1f} {_BASE:.1f}h{area.width - 28:.1f}", "axis")
        stages = [frame.stage for frame in frames]
        for at, stage in enumerate(stages):
            if at and stages[at - 1] == stage:
                continue
            count = next((end for end in range(at, len(stages)) if stages[end] != stage), len(stages)) - at
            left = self._slot_left(at)
            canvas.path(f"M{left:.1f} {area.top + 38:.1f}V{area.bottom - 8:.1f}", "line")
            canvas.text(left + 4, area.bottom - 8, stage, look="m", size=LEAST, room=count * self._slot - 6)

    def _slot_left(self, at: int) -> float:
        return _MARGIN + 14 + at * self._slot

    # ── what a frame shows ────────────────────────────────────────────────────────────────────────────────────

    def frame(self, at: int) -> str:
        """What one frame shows of its own."""
        frame = self._movie.frames[at]
        self._title(at, frame)
        if frame.families:
            self._instructions(at, frame)
        else:
            self._has_cards = True
            self.canvas.parts.append('<use href="#cards"/>')
            for number, (area, held) in enumerate(zip(self._cards, frame.held, strict=False)):
                self._held(area, held, self._last_tile(at, number), is_first=not at)
        self._values(at)
        self._came_and_went(at, frame)
        left = self._slot_left(at)
        self.canvas.rect(Rect(left, _BASE - 30, self._slot, 60), "now", radius=3)
        return self._taken()

    def _title(self, at: int, frame: Frame) -> None:
        canvas, y = self.canvas, 92.0
        number = f"{at}/{len(self._movie.frames) - 1}"
        x = _MARGIN + canvas.text(_MARGIN, y, number, look="m", size=16) + 12
        if not at:
            text = f"after {frame.passes[-1]}" if frame.passes else "before the first pass"
            canvas.text(x, y, text, size=26, bold=True, room=WIDTH - _MARGIN - x)
            return
        x += canvas.text(x, y, f"{frame.stage}:", look="m", size=16) + 8
        occurrence = frame.passes[-1].rpartition("#")[2]
        name = frame.name + (f"#{occurrence}" if occurrence != "1" else "")
        x += canvas.text(x, y, name, look="a", size=26, bold=True, room=620) + 16
        if len(frame.passes) > 1:
            canvas.text(x, y, f"and {len(frame.passes) - 1} before it, whose IR was not kept", look="m", size=12,
                        room=WIDTH - _MARGIN - x)  # fmt: skip

    def _instructions(self, at: int, frame: Frame) -> None:
        """The instructions of one thread by family, where no tile is left."""
        title, note = "Instructions in the code of one thread", "tiles are registers and addresses here"
        room = self.canvas.panel(Rect(_MARGIN, _TOP, _CARDS, _BELOW - _GAP - _TOP), title, note)
        before = dict(self._movie.frames[at - 1].families) if at else {}
        rows = [(name, dict(frame.families).get(name, 0)) for name in dict.fromkeys([*dict(frame.families), *before])]
        most = max(count for one in self._movie.frames for _, count in one.families)
        step = min((room.height - 10) / len(rows), _FAMILY)
        left, wide = room.left + 150, room.width - 150 - 130
        for number, (name, count) in enumerate(rows):
            y = room.top + 8 + number * step
            self.canvas.text(left - 10, y + step / 2 + 4, name, size=12, anchor="end")
            bar = Rect(left, y + 3, count / most * wide, step - 6)
            self.canvas.rect(bar, "bar", radius=2)
            used = self.canvas.text(bar.right + 8, y + step / 2 + 4, f"{count:,}", size=12)
            if before and count != before.get(name, 0):
                text = _signed(count - before.get(name, 0))
                self.canvas.text(bar.right + 16 + used, y + step / 2 + 4, text, look="a", size=12)

    def _last_tile(self, at: int, number: int) -> Tile | None:
        """The shape that a value had last, for where it is gone."""
        seen = (tile for frame in reversed(self._movie.frames[:at]) for tile in frame.held[number].tiles)
        found = next(seen, None)
        return found and Tile(found.shape, found.element)

    def _held(self, area: Rect, held: Held, last: Tile | None, *, is_first: bool) -> None:
        canvas, left, room = self.canvas, area.left + 12, area.width - 24
        if held.is_new and not is_first:
            canvas.rect(area, "fresh", radius=8)
        tile = held.tiles[0] if held.tiles else last
        if tile is None:
            canvas.text(left, area.top + 44, state_text(held), look="m", size=12, room=room)
            return
        drawn = draw_tile(tile, self._answers, self._capture.target)
        if held.tiles:
            canvas.text(left, area.top + 40, title_of_tile(tile), size=LEAST + 1, room=room)
            canvas.text(left, area.bottom - 28, drawn.caption, size=LEAST, room=room)
        number = self._tiles.setdefault(drawn, len(self._tiles))
        x = left + 34 + (room - 34 - drawn.width) / 2
        y = area.top + 66 + (area.height - 66 - 50 - drawn.height) / 2
        canvas.parts.append(f'<use href="#tile{number}" x="{x:.1f}" y="{y:.1f}"/>')
        canvas.text(x + drawn.width / 2, y - 5, drawn.title, look="m", size=LEAST, anchor="middle")
        if drawn.whole == (drawn.rows, drawn.columns):
            canvas.text(x - 6, y + drawn.height / 2 + 4, str(drawn.rows), look="m", size=LEAST, anchor="end")
        look = "warn" if held.state == "unclear" else "m"
        canvas.text(left, area.bottom - 11, state_text(held), look=look, size=LEAST, room=room)

    def _values(self, at: int) -> None:
        frames = self._movie.frames
        for number, (field, _) in enumerate(COUNTERS):
            area = self._spark(number)
            count = int(getattr(frames[at].counts, field))
            before = int(getattr(frames[at - 1].counts, field)) if at else count
            left, y = _SIDE_LEFT + 14, area.top + 27
            used = self.canvas.text(left, y, f"{count}", size=16)
            if count != before:
                text = _signed(count - before)
                self.canvas.text(left + used + 8, y, text, look="a", size=12, room=area.left - left - used - 12)
            step = area.width / len(frames)
            self.canvas.rect(Rect(area.left + at * step, area.top - 2, max(step, 2), area.height + 4), "now")

    def _came_and_went(self, at: int, frame: Frame) -> None:
        area = self._changes_area
        y, left, room = area.top + 44, area.left + 14, area.width - 28
        if not at:
            text = "what earlier passes left" if frame.passes else "what the front end wrote"
            self.canvas.text(left, y, text, look="m", size=LEAST)
            return
        rows = _rows_of(frame)
        if not rows:
            self.canvas.text(left, y, "none: it changed operations in place", look="m", size=LEAST, room=room)
            return
        bottom = area.bottom
        if not all(one.is_certain for one in frame.changes):
            bottom -= _LINE
            text = "~ it is not known which of several"
            self.canvas.text(left, area.bottom - 10, text, look="m", size=LEAST, room=room)
        most = int((bottom - y - 6) // _LINE) + 1
        for number, (made, removed, name, place) in enumerate(rows if len(rows) <= most else rows[: most - 1]):
            line = y + number * _LINE
            self.canvas.text(left + 38, line, made, look="made", size=LEAST, anchor="end")
            self.canvas.text(left + 76, line, removed, look="gone", size=LEAST, anchor="end")
            used = self.canvas.text(area.right - 14, line, place, look="m", size=LEAST, anchor="end", room=64)
            self.canvas.text(left + 86, line, name, size=LEAST, room=room - 86 - used - 8)
        if len(rows) > most:
            text = f"and {len(rows) - most + 1} more kinds or lines"
            self.canvas.text(left + 86, y + (most - 1) * _LINE, text, look="m", size=LEAST)


def _rows_of(frame: Frame) -> list[tuple[str, str, str, str]]:
    """(made, removed, operation, line of Python) as texts."""

    def row(one: Change, place: str) -> tuple[str, str, str, str]:
        about = "" if one.is_certain else "~"
        made, removed = (
            f"{about}{sign}{count}" if count else "" for sign, count in (("+", one.made), ("−", one.removed))
        )
        return made, removed, one.operation, place

    lines = (f":{one.place.rpartition(':')[2]}" if one.place else "" for one in frame.changes)
    return [
        *(row(one, "net") for one in frame.net_changes),
        *(row(one, line) for one, line in zip(frame.changes, lines, strict=True)),
    ]


def _signed(change: int) -> str:
    return f"+{change}" if change > 0 else f"−{-change}"


def state_text(held: Held) -> str:
    """What is known of a value in a frame, as a sentence without its full stop."""
    names = ", ".join(held.operations[:2])
    if held.state == "not yet":
        return "not followed back to here"
    if held.state == "gone":
        return "none here is known to be it"
    more = f"; {len(held.tiles)} types, the first is drawn" if len(held.tiles) > 1 else ""
    if held.state == "several":
        return f"{len(held.lines)} operations: {names}{more}"
    if held.state == "unclear":
        return f"unclear which of {len(held.lines)}: {names}{more}"
    return names if held.tiles else f"{names}: it has no shape"

"""Tiles as pictures: who holds which part of a tensor or of a piece of memory, and what is said of one in a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from irscope.analysis.movie.model import Held, Movie, Tile
from irscope.errors import DAMAGE, UsageError
from irscope.ir.mlir.attributes import read_encoding
from irscope.ir.mlir.types import element_bits
from irscope.layout.computed import computed_map
from irscope.layout.maps import MemoryMap, Preimage, ThreadMap, span
from irscope.layout.typed import parse_typed
from irscope.model.capture import Target
from irscope.model.layout import LayoutAnswer, LayoutMap, LayoutRefusal, LayoutRow
from irscope.render.layout.figure import sizes_of

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
    whole: tuple[int, int]
    colors: tuple[str, ...]
    """Cells of one size in rows, a digit each: what is held together has one colour. Empty without a layout."""
    held: tuple[tuple[int, int, int], ...]
    """(row, column, elements to the right) of what the first thread holds."""
    caption: str

    def parts(self) -> Iterator[tuple[int, str]]:
        high = self.height / max(len(self.colors), 1)
        paths: dict[int, list[str]] = {}
        for row, colors in enumerate(self.colors):
            wide = self.width / len(colors)
            for column, color in enumerate(colors):
                paths.setdefault(int(color), []).append(_box(column * wide, row * high, wide, high))
        for color, boxes in sorted(paths.items()):
            yield color, "".join(boxes)

    def marks(self) -> str:
        across, down = self.width / self.columns, self.height / self.rows
        return "".join(_box(column * across, row * down, count * across, down) for row, column, count in self.held)

    @property
    def title(self) -> str:
        """What stands above it: its columns, and how much of it is shown."""
        if self.whole == (self.rows, self.columns):
            return str(self.columns)
        return f"the first {self.rows}×{self.columns} of {self.whole[0]}×{self.whole[1]}"


def tile_svg(drawn: Drawn) -> str:
    parts = "".join(f'<path class="f{color} cell" d="{path}"/>' for color, path in drawn.parts())
    marks = f'<path class="held" d="{drawn.marks()}"/>' if drawn.held else ""
    outline = f"M0 0h{drawn.width:.1f}v{drawn.height:.1f}h-{drawn.width:.1f}z"
    return f'{parts}{marks}<path class="{"axis" if drawn.colors else "off"}" d="{outline}"/>'


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
    layout, word = answer.layout, target.warp
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
    return _computed(tile.encoding, tile.covered) or found or LayoutRefusal("unasked", "only the compiler has this map")


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
    together = f", {run} {'contiguous' if dimension == last else f'along dim {dimension}'}" if run > 1 else ""
    some = f"{threads.warps} {word}{'s' * (threads.warps > 1)}"
    if (copies := threads.replication.warps) > 1:
        # Of those that hold one element, the first one's colour is shown.
        some, together = f"{some}, {copies} copies", ""
    caption = f"{some} · {threads.registers} per thread{together}"

    def warp_of(place: int) -> int:
        return (place >> shift) % threads.warps

    drawn = _colored(threads.first_owners, rows, columns, (threads.warps - 1) << shift, warp_of, caption)
    return _marked(drawn, span(threads.layout.flat_vectors("register")[:_MOST_REGISTER_BITS]), columns)


def _colored(places: Preimage, rows: int, columns: int, decides: int, key: Callable[[int], int], caption: str) -> Drawn:
    """A picture whose neighbouring elements with one key are one part; `decides`: the bits of a place that it is of."""
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


def state_text(held: Held) -> str:
    """What is known of a value in a frame, as a sentence without its full stop."""
    names = ", ".join(held.operations[:2])
    if held.state == "not yet":
        return "not traced back to this pass"
    if held.state == "gone":
        return "no value of this pass is known to match"
    more = f"; {len(held.tiles)} types, the first is drawn" if len(held.tiles) > 1 else ""
    if held.state == "several":
        return f"{len(held.lines)} operations: {names}{more}"
    if held.state == "unclear":
        return f"unclear which of {len(held.lines)}: {names}{more}"
    return names if held.tiles else f"{names}: it has no shape"

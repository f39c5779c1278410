"""A movie of 1280×720: one SVG whose frames CSS shows in turn, single frames, an animated GIF, or JSON."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from io import BytesIO
from typing import Any

from irscope.analysis.movie.model import COUNTERS, Held, MainValue, Movie, MovieChange, MovieFrame, Tile
from irscope.errors import MissingTool, UsageError, installing
from irscope.model.capture import Capture
from irscope.model.plain import picked
from irscope.render.canvas import LEAST, WIDTH, Canvas, Rect, render_png
from irscope.render.movie.tiles import Answers, Drawn, draw_tile, state_text, tile_svg, title_of_tile
from irscope.render.poster.poster import draw_head


def movie_json(capture: Capture, movie: Movie) -> dict[str, Any]:
    """The numbers of a movie: the fields of `irscope.analysis.movie.model`."""
    return picked(
        capture,
        "id kernel=name target",
        **picked(movie, "chosen_after not_kept"),
        values=[asdict(value) | {"title": value.title} for value in movie.values],
        frames=[asdict(one) | {"net": dict(one.net), "families": dict(one.families)} for one in movie.frames],
    )


_MARGIN, _GAP = 24.0, 12.0
_TOP, _BELOW, _END = 122.0, 586.0, 704.0
_CARDS = 900.0
"""The width of the six tiles."""
_MOST_ACROSS = 3
_SIDE_LEFT = _MARGIN + _CARDS + _GAP
_SIDE = WIDTH - _MARGIN - _SIDE_LEFT
_COUNTERS_HIGH = 244.0
_BASE = _BELOW + 68
_ROW = 40.0
_FAMILY = 34.0
"""Pixels of a family of instructions, at most."""
_LINE = 17.0
_BARS = "operations added above the line, removed below, on a square-root scale; cut where LLVM's dialects begin"
_KEY = (
    "colour: a warp, or banks of shared memory · marked: the first thread's elements · blue frame: changed by this pass"
)


class _Scene:
    def __init__(self, capture: Capture, movie: Movie, theme: str | None, answers: Answers) -> None:
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
        draw_head(self.canvas, self._capture)
        self.canvas.text(WIDTH - _MARGIN, 60, _KEY, look="m", size=LEAST, anchor="end")
        self._counters()
        self.canvas.panel(self._changes_area, "Operations added and removed")
        self._timeline()
        return self._taken()

    def tiles(self) -> str:
        if self._has_cards:
            self.canvas.parts.append('<g id="cards">')
            for area, value in zip(self._cards, self._movie.values, strict=False):
                self._card(area, value)
            if not self._movie.values:
                self.canvas.text(_MARGIN, _TOP + 30, "No load, store or dot of a tensor was found to follow.", look="m")
            self.canvas.parts.append("</g>")
        for drawn, number in self._tiles.items():
            self.canvas.parts.append(f'<g id="tile{number}">{tile_svg(drawn)}</g>')
        return self._taken()

    def _taken(self) -> str:
        parts, self.canvas.parts = self.canvas.parts, []
        return "".join(parts)

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
        left = _SIDE_LEFT + 150
        return Rect(left, _TOP + 34 + 4 + number * _ROW + 2, _SIDE - 150 - 14, _ROW - 12)

    @property
    def _changes_area(self) -> Rect:
        top = _TOP + _COUNTERS_HIGH + _GAP
        return Rect(_SIDE_LEFT, top, _SIDE, _BELOW - _GAP - top)

    def _timeline(self) -> None:
        frames, canvas = self._movie.frames, self.canvas
        area = Rect(_MARGIN, _BELOW, WIDTH - 2 * _MARGIN, _END - _BELOW)
        canvas.panel(area, "Passes that changed the IR", _BARS)
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

    def _title(self, at: int, frame: MovieFrame) -> None:
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

    def _instructions(self, at: int, frame: MovieFrame) -> None:
        title, note = "Instructions in the code of one thread", "tiles are registers and addresses at this stage"
        room = self.canvas.panel(Rect(_MARGIN, _TOP, _CARDS, _BELOW - _GAP - _TOP), title, note)
        before = dict(self._movie.frames[at - 1].families) if at else {}
        rows = [(name, dict(frame.families).get(name, 0)) for name in dict.fromkeys([*dict(frame.families), *before])]
        step = min((room.height - 10) / len(rows), _FAMILY)
        changes = {name: count - before.get(name, 0) for name, count in rows} if before else {}
        bars = [
            (name, count, f"{count:,}", _signed(changes[name]) if changes.get(name) else "") for name, count in rows
        ]
        self.canvas.bars(Rect(room.left, room.top + 8, room.width, room.height), bars, 150, step, size=12)

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

    def _came_and_went(self, at: int, frame: MovieFrame) -> None:
        area = self._changes_area
        y, left, room = area.top + 44, area.left + 14, area.width - 28
        if not at:
            text = "the movie starts here" if frame.passes else "the IR of the front end"
            self.canvas.text(left, y, text, look="m", size=LEAST)
            return
        rows = _rows_of(frame)
        if not rows:
            self.canvas.text(left, y, "none: it changed operations in place", look="m", size=LEAST, room=room)
            return
        bottom = area.bottom
        if not all(one.is_certain for one in frame.changes):
            bottom -= _LINE
            text = "~ which of several is unknown"
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


def _rows_of(frame: MovieFrame) -> list[tuple[str, str, str, str]]:
    def row(one: MovieChange, place: str) -> tuple[str, str, str, str]:
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


_COLORS = 96
"""Of a picture that has some 30 and the shades at the edges of letters."""


def render_gif(frames: Iterable[tuple[str, float]]) -> bytes:
    """Pictures, each for its seconds, as a GIF that loops; raises MissingTool without Pillow, or without resvg-py."""
    try:
        image: Any = importlib.import_module("PIL.Image")
    except ImportError as error:
        raise MissingTool(f"GIF needs the package Pillow: {installing('gif')}. An .svg needs nothing.") from error
    pictures: list[Any] = []
    milliseconds: list[int] = []
    for svg, seconds in frames:
        pictures.append(image.open(BytesIO(render_png(svg, zoom=1.0))).convert("RGB"))
        # Units of GIF: hundredths of a second.
        milliseconds.append(round(seconds * 100) * 10)
    # One table of colours for all, so that what stays is the same in each and is stored once.
    palette = _beside(image, pictures).quantize(_COLORS)
    drawn = [one.quantize(palette=palette, dither=image.Dither.NONE) for one in pictures]
    data = BytesIO()
    drawn[0].save(data, "GIF", save_all=True, append_images=drawn[1:], duration=milliseconds, loop=0, optimize=True)
    return data.getvalue()


def _beside(image: Any, pictures: list[Any]) -> Any:
    wide, high = (max(size // 2, 1) for size in pictures[0].size)
    whole = image.new("RGB", (wide, high * len(pictures)))
    for number, one in enumerate(pictures):
        whole.paste(one.resize((wide, high), image.Resampling.NEAREST), (0, number * high))
    return whole


_MOST_SECONDS = 60.0
"""Of one frame."""
_FIRST_HOLD, _LAST_HOLD = 2, 3
"""Frames that the first and the last are worth."""


def movie_svg(
    capture: Capture, movie: Movie, theme: str | None = None, seconds: float = 1.2, answers: Answers | None = None
) -> str:
    """A movie as an animated SVG of 1280×720 pixels that loops; without animations its first frame is shown.

    Who asked for less motion sees the first frame too. Maps that `answers` lack are computed from the texts of layouts,
    as far as these tell. Raises UsageError for a theme or a time that is none.
    """
    scene = _scene(capture, movie, theme, answers)
    still = scene.still()
    holds = _holds(movie, seconds)
    total, begin = sum(holds), 0
    frames: list[str] = []
    for at, hold in enumerate(holds):
        drawn = scene.frame(at)
        first = " first" if at == 0 else ""
        frames.append(f'<g class="shot h{hold}{first}" style="animation-delay:{begin * seconds:g}s">{drawn}</g>')
        begin += hold
    rules = "".join(
        f"@keyframes h{hold}{{0%{{visibility:visible}}{100 * hold / total:.4f}%{{visibility:hidden}}"
        f"100%{{visibility:hidden}}}}.h{hold}{{animation-name:h{hold}}}"
        for hold in sorted(set(holds))
    )
    style = (
        f".shot{{visibility:hidden;animation-duration:{total * seconds:g}s;animation-timing-function:step-end;"
        f"animation-iteration-count:infinite}}.first{{visibility:visible}}{rules}"
        "@media(prefers-reduced-motion:reduce){.shot{animation:none}}"
    )
    return _whole(scene, capture, still + "".join(frames), style)


def timed_frames(
    capture: Capture, movie: Movie, theme: str | None = None, seconds: float = 1.2, answers: Answers | None = None
) -> Iterator[tuple[str, float]]:
    """Each frame of a movie as an SVG that does not move, and for how many seconds; arguments as `movie_svg`."""
    for at, hold in enumerate(_holds(movie, seconds)):
        yield frame_svg(capture, movie, at, theme, answers), hold * seconds


def _holds(movie: Movie, seconds: float) -> list[int]:
    """How many times the time of a frame each is shown; raises UsageError for a time that is none."""
    if not 0.1 <= seconds <= _MOST_SECONDS:
        raise UsageError(f"{seconds!r} seconds a pass: at least 0.1, at most {_MOST_SECONDS:g}.")
    holds = [1] * len(movie.frames)
    if holds:
        holds[0] += _FIRST_HOLD - 1
        holds[-1] += _LAST_HOLD - 1
    return holds


def frame_svg(capture: Capture, movie: Movie, at: int, theme: str | None = None, answers: Answers | None = None) -> str:
    """One frame of a movie as an SVG that does not move; raises UsageError if there is no such frame."""
    if not 0 <= at < len(movie.frames):
        raise UsageError(
            f"there is no frame {at}: the movie of {capture.name} has frames 0 to {len(movie.frames) - 1}."
        )
    scene = _scene(capture, movie, theme, answers)
    return _whole(scene, capture, scene.still() + scene.frame(at), "")


def _scene(capture: Capture, movie: Movie, theme: str | None, answers: Answers | None) -> _Scene:
    if not movie.frames:
        raise UsageError(f"{capture.name} holds no IR of a pass: there is nothing to show.")
    maps = {(row.encoding, row.shape): row.answer for row in capture.layouts}
    return _Scene(capture, movie, theme, {**maps, **(answers or {})})


def _whole(scene: _Scene, capture: Capture, drawn: str, style: str) -> str:
    scene.canvas.parts = [f"<defs>{scene.tiles()}</defs>", drawn]
    return scene.canvas.svg(f"{capture.name} on {capture.target}, pass by pass", style)

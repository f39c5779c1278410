"""A movie as a GIF: every frame for its time, in colours that are those of the picture; or what is missing."""

from __future__ import annotations

import importlib
import re
import sys
from io import BytesIO

import pytest

from irscope.analysis.movie.make import movie_of, of_stages
from irscope.errors import MissingTool, installing
from irscope.render.canvas import render_png, sized
from irscope.render.movie.forms import render_gif, timed_frames
from tests.analysis.movie.staged import staged


def test_without_its_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingTool, match=re.escape(installing("gif"))):
        render_gif([("<svg/>", 1.0)])


def test_each_frame_is_there_for_its_time() -> None:
    pytest.importorskip("PIL", reason="a GIF needs Pillow")
    pytest.importorskip("resvg_py", reason="a GIF needs resvg-py")
    image = importlib.import_module("PIL.Image")
    chops = importlib.import_module("PIL.ImageChops")
    capture = staged("softmax.cuda90")
    movie = of_stages(movie_of(capture), ["ttgir"])
    frames = [(sized(svg, 640), seconds) for svg, seconds in timed_frames(capture, movie, seconds=0.5)]
    assert [seconds for _, seconds in frames] == [1.0, *[0.5] * (len(movie.frames) - 2), 1.5]
    data = render_gif(frames)
    found = image.open(BytesIO(data))
    assert (found.size, found.n_frames, found.info["loop"]) == ((640, 360), len(movie.frames), 0)
    assert len(data) < 40_000 * len(frames)
    for number, (svg, seconds) in enumerate(frames):
        found.seek(number)
        assert found.info["duration"] == seconds * 1000
        wanted = image.open(BytesIO(render_png(svg, zoom=1.0))).convert("RGB")
        # Less than one in twenty of 255 at any place, but for the edges of letters.
        different = chops.difference(found.convert("RGB"), wanted).convert("L").point(lambda value: value > 24 and 255)
        assert sum(different.histogram()[255:]) < 640 * 360 / 100, number

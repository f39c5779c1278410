"""`irscope draw movie` as a user types it, of a stored capture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from irscope.record.layouts import questions
from irscope.store.file import save
from tests.analysis.movie.staged import staged
from tests.cli.product import Run


@pytest.fixture
def matmul(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A capture on a machine where no compiler answers: maps are computed."""
    monkeypatch.setattr(questions, "answered_rows", lambda rows, *_: rows)
    return save(staged("matmul.cuda90"), tmp_path / "matmul.irscope")


def test_a_file_a_stage_and_a_frame(irscope: Run, matmul: Path, tmp_path: Path) -> None:
    whole, part, one = (tmp_path / f"{name}.svg" for name in ("whole", "part", "one"))
    assert irscope("draw", "movie", matmul, "-o", whole)[0] == 0
    assert irscope("draw", "movie", matmul, "-o", part, "--stage", "ttgir", "--theme", "dark", "--width", "640")[0] == 0
    assert irscope("draw", "movie", matmul, "-o", one, "--frame", "3")[0] == 0
    frames = [path.read_text().count('class="shot ') for path in (whole, part, one)]
    code, out, _ = irscope("draw", "movie", matmul, "--json")
    (data,) = json.loads(out)
    assert code == 0
    stages = [frame["stage"] for frame in data["frames"][1:]]
    assert frames == [len(data["frames"]), stages.count("ttgir") + 2, 0]
    assert data["frames"][0]["passes"][-1].startswith("ttgir:")
    assert ElementTree.parse(part).getroot().get("width") == "640"
    assert "#101216" in part.read_text()


def test_a_page_opens_at_it(irscope: Run, matmul: Path, tmp_path: Path) -> None:
    assert irscope("draw", "movie", matmul, "-o", tmp_path / "x.html")[0] == 0
    assert 'data-opened="tab=movie"' in (tmp_path / "x.html").read_text()


def test_what_is_no_movie_is_refused(irscope: Run, matmul: Path, tmp_path: Path) -> None:
    for words, said in (
        (("-o", tmp_path / "x.pdf"), "movie is drawn as svg, gif, png, html"),
        (("-o", tmp_path / "x.gif", "--frame", "2"), "a still picture: an .svg or a .png"),
        (("-f", "gif"), "a GIF is written to a file: -o movie.gif"),
        (("-o", tmp_path / "x.png"), "a PNG is one frame: give --frame N"),
        (("-o", tmp_path / "x.html", "--frame", "2"), "a still picture"),
        (("-f", "svgg"), "not as 'svgg'. Did you mean 'svg'?"),
        (("--stage", "ptx"), "no pass changed the IR in stage 'ptx': there are ttir, ttgir"),
        (("--frame", "400"), "has frames 0 to"),
        (("--theme", "pink"), "'pink' is not a theme"),
    ):
        code, out, told = irscope("draw", "movie", matmul, *words)
        assert code in (1, 2), words
        assert said in told, (words, told)
        assert out == ""
    assert irscope("draw", "movie", matmul, "--seconds", "0")[0] == 2


def test_without_passes_there_is_none(irscope: Run, tmp_path: Path) -> None:
    bare = save(replace(staged("matmul.cuda90"), snapshots=()), tmp_path / "bare.irscope")
    code, _, told = irscope("draw", "movie", bare)
    assert code == 1
    assert "has no passes of MLIR" in told

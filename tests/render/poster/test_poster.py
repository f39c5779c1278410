"""A poster: nothing on it meets, all of it can be read, and its figures are those that the commands print."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from irscope.__main__ import run
from irscope.ir.locations.model import place_of
from irscope.ir.locations.stages import capture_locations
from irscope.layout.described import DescribedLayout
from irscope.model.capture import Capture, Failure, Kernel, PassSnapshot, Resources
from irscope.render.canvas import LEAST, THEMES, Canvas, Rect, luminance, sized, style_of, theme_named
from irscope.render.poster.panels import draw_source
from irscope.render.poster.poster import poster_svg
from irscope.render.text.failure import failed_line
from irscope.store.file import load, save
from tests.analysis.in_flight.launched import matmul
from tests.analysis.roofline.launched import attention
from tests.render.poster.texts import texts_of, wrong_boxes

LAYOUTS = Path(__file__).parents[2] / "data" / "layouts"


def amd() -> Capture:
    return matmul("matmul-hip-gfx942", 1024)


def transpose() -> Capture:
    return load(LAYOUTS / "matrix_transpose-cuda-90.irscope")


def spilling() -> Capture:
    capture = matmul("matmul-cuda-80", 1024)
    return replace(capture, resources=replace(capture.resources, registers=255, spill_store_bytes=640))


CASES = {"attention": attention, "amd": amd, "transpose": transpose, "spilling": spilling}


@pytest.fixture(scope="module")
def drawn() -> dict[str, tuple[Capture, str]]:
    captures = {name: make() for name, make in CASES.items()}
    return {name: (capture, poster_svg(capture)) for name, capture in captures.items()}


@pytest.mark.parametrize("name", CASES)
def test_no_two_texts_meet_and_all_can_be_read(drawn: dict[str, tuple[Capture, str]], name: str) -> None:
    texts = texts_of(drawn[name][1])
    assert len(texts) > 40
    assert wrong_boxes(texts) == []
    assert min(one.size for one in texts) >= LEAST


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    capsys.readouterr()
    run([str(word) for word in words])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", CASES)
def test_its_figures_are_those_of_the_commands(
    drawn: dict[str, tuple[Capture, str]], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, svg = drawn[name]
    lines = [one.text for one in texts_of(svg)]
    text = "\n".join(lines)
    file = tmp_path / "x.irscope"
    save(capture, file)
    (shown,) = printed(capsys, "show", file, "--json")
    resources, occupancy = shown["resources"], shown["occupancy"]
    assert f"registers: {resources['registers']}" in text
    spilled = (resources["spill_store_bytes"] or 0) + (resources["spill_load_bytes"] or 0)
    assert (f"{spilled} bytes spilled" in text) == bool(spilled)
    warps = "waves" if name == "amd" else "warps"
    assert f"{occupancy['warps_per_sm']} of {occupancy['max_warps']} {warps} per {occupancy['unit']}" in text
    assert name != "amd" or "warp" not in text.replace("num_warps", "")
    allowed = sorted(blocks for _, blocks in occupancy["limits"])[:4]
    assert [int(line.split()[0]) for line in lines if re.fullmatch(r"\d+ CTAs?", line)] == allowed
    if resources["shared_bytes"]:
        assert f"shared: {resources['shared_bytes']:,} of" in text
    costs = printed(capsys, "layout", file, "--costs", "--json")
    sizes = [one["figures"]["bytes"] for one in costs if one["kind"] == "conversion"]
    on_poster = [int(found[1].replace(",", "")) for found in re.finditer(r"^([\d,]+) bytes (?:across|not)", text, re.M)]
    assert on_poster == sizes[: len(on_poster)]
    assert bool(on_poster) == bool(sizes)
    found = printed(capsys, "why", file, "--tries", "0", "--json")
    codes = [one["code"] for one in found[0]["findings"]]
    assert re.findall(r"^IRS\d{3}", text, re.M) == codes[:3]
    (row,) = printed(capsys, "draw", "poster", file, "--json")
    if row["registers"] is not None:
        live = row["registers"]["live"]
        assert f"peak {max(live)} at instruction {live.index(max(live)) + 1} of {len(live)}" in text


def test_its_turns_are_those_of_the_loop(drawn: dict[str, tuple[Capture, str]]) -> None:
    lines = [one.text for one in texts_of(drawn["amd"][1])]
    (note,) = [line for line in lines if line.startswith("matmul.py:")][1:]
    turns = int(re.findall(r"(\d+) iterations", note)[0])
    # The first turns, and the last.
    shown = [int(line.removeprefix("iteration ")) for line in lines if line.startswith("iteration ")]
    assert shown[0] == 0
    assert shown[-1] == turns - 1
    assert all(after > before for before, after in pairwise(shown))
    assert {"prologue", "steady state", "epilogue"} <= {*lines}


def test_a_tile_has_as_many_warps_as_its_layout(drawn: dict[str, tuple[Capture, str]]) -> None:
    capture, svg = drawn["amd"]
    result = max(
        (DescribedLayout(row, capture.target) for row in capture.layouts if "dot" in str(row.operations)),
        key=lambda one: one.threads.size if one.threads is not None and one.encoding.kind == "amd_mfma" else 0,
    )
    assert result.threads is not None
    assert any(one.text.startswith(f"{result.threads.warps} waves · ") for one in texts_of(svg))


@pytest.mark.parametrize("name", THEMES)
def test_every_colour_of_text_stands_out(name: str) -> None:
    theme = theme_named(name)

    def light(color: str) -> float:
        return luminance((int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)))

    for ground in (theme.page, theme.panel):
        for ink in (theme.text, theme.muted, theme.bad, theme.warn):
            low, high = sorted((light(ground), light(ink)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ground, ink)


def test_what_is_not_known_is_said() -> None:
    capture = transpose()
    bare = replace(
        capture,
        artifacts=tuple(one for one in capture.artifacts if one.stage == "ptx"),
        layouts=(),
        resources=Resources(),
        launch=replace(capture.launch, grid=None, record=None),
    )
    svg = poster_svg(bare)
    lines = " ".join(one.text for one in texts_of(svg))
    assert wrong_boxes(texts_of(svg)) == []
    for said in (
        "not launched",
        "The occupancy is not known",
        "holds no layouts",
        "holds no TTGIR",
        "no machine code",
    ):
        assert said in lines


def test_where_there_is_no_room_no_python_is_drawn() -> None:
    capture = transpose()
    places = {f"{capture.launch.kernel.file}:{line}" for line in range(100)}
    for height, is_drawn in ((-40, False), (60, False), (120, True)):
        canvas = Canvas("light")
        draw_source(canvas, Rect(0, 0, 800, height), capture, places)
        assert bool(canvas.parts) == is_drawn


def test_a_name_that_is_markup_is_text() -> None:
    capture = transpose()
    name = "<script>alert('\x00\x1b')</script>" * 9
    hostile = replace(capture, launch=replace(capture.launch, kernel=Kernel(name, "<&>.py", 1, name)))
    root = ElementTree.fromstring(poster_svg(hostile, "dark"))
    assert not [one for one in root.iter() if one.tag.endswith("script")]
    assert wrong_boxes(texts_of(poster_svg(hostile))) == []


def test_a_theme_takes_the_place_of_the_readers() -> None:
    light, dark = style_of(theme_named("light")), style_of(theme_named("dark"))
    assert light != dark
    assert style_of(None) == f"{light}@media(prefers-color-scheme:dark){{{dark}}}"
    assert 'width="12" height="6"' in sized('<svg width="4" height="2">', 12)


def test_the_command_writes_what_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.irscope"
    save(amd(), file)
    folder = tmp_path / "posters"
    assert run(["draw", "poster", str(file), "-o", str(folder), "--theme", "dark", "--width", "640"]) == 0
    (svg,) = folder.glob("*.svg")
    assert 'width="640" height="360"' in svg.read_text("utf-8")
    assert theme_named("dark").panel in svg.read_text("utf-8")
    assert run(["layout", str(file), "-l", "#mma", "-l", "#blocked", "-o", str(folder), "--theme", "light"]) == 0
    assert {"mma-128x256.svg", "blocked-128x64.svg"} < {one.name for one in folder.iterdir()}
    assert "prefers-color-scheme" not in (folder / "mma-128x256.svg").read_text("utf-8")
    for wrong, said in (
        (["--theme", "blue"], "'blue' is not a theme"),
        (["-o", str(tmp_path / "x.pdf")], "poster is drawn as svg, png"),
        (["--format", "gif"], "not as 'gif'"),
    ):
        capsys.readouterr()
        assert run(["draw", "poster", str(file), *wrong]) == 2
        assert said in capsys.readouterr().err


def test_a_failed_compile_shows_its_message_once_and_the_ir_that_the_pass_read() -> None:
    capture = matmul("matmul-hip-gfx942", 1024)
    passes = (
        PassSnapshot(0, "ttgir", "before", 1, text=capture.text("ttgir")),
        PassSnapshot(1, "ttgir", "failing", 1),
    )
    failed = capture.with_(
        artifacts=tuple(one for one in capture.artifacts if one.stage in ("source", "ttir")),
        snapshots=passes,
        failure=Failure("pass", "inconvertible", "ttgir", passes[-1].label),
    )
    text = poster_svg(failed)
    kernel = capture.launch.kernel
    lines = enumerate(kernel.source.splitlines(), kernel.first_line or kernel.line)
    line = next(number for number, one in lines if one.strip() == "matmul_tile(")
    said = f"{kernel.file}:{line}:9: error: inconvertible"
    of_dot = poster_svg(failed.with_(failure=Failure("pass", "inconvertible", "ttgir", passes[-1].label, said)))
    assert f">matmul.py:{line}<" in of_dot
    assert "tt.return" not in of_dot
    assert f">matmul.py:{line}<" not in text
    assert text.count("inconvertible") == 1
    assert "IR before the failed pass" in text
    assert "tt.return" in text
    assert "Limits and occupancy" not in text


def test_a_kernel_that_the_front_end_rejects_is_its_python_with_the_line_marked() -> None:
    capture = transpose()
    kernel = capture.launch.kernel
    message = f'ValueError: no such shape\n  File "{kernel.file}", line {kernel.line + 1}, in transpose'
    failed = capture.with_(artifacts=(), snapshots=(), layouts=(), failure=Failure("compile", message))
    svg = poster_svg(failed)
    assert f">{kernel.file.rpartition('/')[2]}:{kernel.line + 1}<" in svg
    for card in ("Instructions", "Live registers", "Layout conversions", "Worst findings"):
        assert card not in svg
    source = kernel.source.splitlines()[kernel.line + 1 - (kernel.first_line or kernel.line)]
    shown = [one.text.strip("\u00a0 ") for one in texts_of(svg)]
    assert source.strip().replace(" ", "\u00a0") in shown or source.strip() in shown


def test_a_failed_assertion_shows_the_line_of_the_operation_that_its_function_names() -> None:
    """The location of the pipeline's error is the `def`; an operation that occurs on several lines has none."""
    capture = matmul("matmul-hip-gfx942", 1024)
    passes = (PassSnapshot(0, "ttgir", "before", 1, text=capture.text("ttgir")), PassSnapshot(1, "ttgir", "failing", 1))
    kernel, ttgir = capture.launch.kernel, capture.text("ttgir")
    at = next(number for number, row in enumerate(ttgir.splitlines(), 1) if "tt.dot" in row)
    dot = place_of(capture_locations(capture, ttgir, "mlir").chain_at(at))[0][1]

    def place(signature: str) -> int | None:
        said = (
            f"python: /lib/X.cpp:7: {signature}: Assertion `isValid()' failed.\n"
            f"{kernel.file}:{kernel.line}:1: error: Failures have been detected while processing an MLIR pass pipeline"
        )
        failed = capture.with_(
            artifacts=tuple(one for one in capture.artifacts if one.stage in ("source", "ttir")),
            snapshots=passes,
            failure=Failure("pass", "Assertion `isValid()' failed", "ttgir", passes[-1].label, said),
        )
        text = poster_svg(failed)
        assert "The largest tile" not in text
        found = failed_line(failed)
        marked = [one for one in texts_of(text) if one.look == "bad" and "tt.dot" in one.text]
        assert found is None or (f">matmul.py:{found[1]}<" in text and marked)
        return found and found[1]

    assert place("LogicalResult lower(mlir::triton::DotOp, mlir::RewriterBase &)") == dot
    assert place("LogicalResult lower(mlir::arith::ConstantOp)") is None
    assert place("LogicalResult lower(ModuleOp, Operation *, DotOpHelper)") is None


def test_ptx_that_ptxas_rejects_is_shown_with_the_line_of_python() -> None:
    capture = matmul("matmul-cuda-80", 1024)
    rows = capture.text("ptx").splitlines()
    at = next(number for number, row in enumerate(rows, 1) if "mma.sync" in row)
    (frame, *_) = capture_locations(capture, capture.text("ptx"), "ptx").chain_at(at)
    failed = capture.with_(
        artifacts=tuple(one for one in capture.artifacts if one.stage not in ("cubin", "sass")),
        failure=Failure("assembler", f"ptxas matmul.ptx, line {at}; error : not an instruction", "cubin"),
    )
    text = poster_svg(failed)
    assert "PTX that ptxas rejects" in text
    assert "mma.sync" in text
    assert f">{Path(frame.file).name}:{frame.line}<" in text
    assert "No findings" not in text

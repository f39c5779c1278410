"""`irscope layout`: choosing, formats and messages, on captures that need no Triton."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import irscope.cli.layout
from irscope.__main__ import run

FLASH = str(Path(__file__).parents[1] / "data" / "layouts" / "flash_attention-cuda-90.irscope")
assert irscope.cli.layout  # registers the command


def test_the_table_lists_every_layout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", FLASH]) == 0
    text = capsys.readouterr().out
    assert "slice 1 of #mma" in text
    assert "128-byte nvmma shared" in text
    assert len(text.splitlines()) == 15


def test_one_of_them_as_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "mma.svg"
    assert run(["layout", FLASH, "--layout", "#mma", "--layout", "#shared", "-o", str(file)]) == 0
    titles = [node.text for node in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]
    assert any((title or "").startswith("#mma · mma v3 · 128×128") for title in titles)
    assert any((title or "").startswith("#shared · ") for title in titles)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (["--value", "%q_60"], {"#blocked"}),
        (
            ["--op", "tt.dot"],
            {"#mma", "#mma1", "#ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>", "#shared", "#shared1"},
        ),
        (["--layout", "#mma@1x128"], {"#mma"}),
        (["--layout", "nvmma_shared"], {"#shared"}),
    ],
)
def test_choices(choice: list[str], names: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", FLASH, *choice, "--json"]) == 0
    assert {row["alias"] for row in json.loads(capsys.readouterr().out)} == names


def test_json_holds_the_map(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", FLASH, "--layout", "#mma", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert len(row["map"]) == 128 * 128
    assert row["threads"]["warps"] == 8


def test_costs_and_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", FLASH, "--costs"]) == 0
    assert "wants #blocked" in capsys.readouterr().out
    assert run(["layout", FLASH, "--costs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["kind"] == "conversion"
    assert run(["layout", FLASH, "-l", "#mma1@128x64", "--compare", "#blocked@128x64"]) == 0
    assert "of the elements have another thread in #blocked" in capsys.readouterr().out


def test_the_page(tmp_path: Path) -> None:
    file = tmp_path / "layouts.html"
    assert run(["layout", FLASH, "-o", str(file)]) == 0
    assert 'data-opened="tab=layouts&amp;layout=1"' in file.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([FLASH, "--layout", "#blokced"], "no layout is named '#blokced'. Did you mean '#blocked'"),
        ([FLASH, "--value", "axx"], "no value 'axx' has a layout"),
        ([FLASH, "--op", "tt.lood"], "no operation 'tt.lood'"),
        ([FLASH, "--line", "1"], "no layout is used on line 1"),
        ([FLASH, "--layout", "#mma", "--color-by", "bank"], "colour it by warp, lane, register or vector"),
        ([FLASH, "--layout", "#mma", "--format", "gif"], "write terminal, svg, png, html, json"),
        ([FLASH, "-l", "#mma@128x128", "--compare", "#blocked@128x1"], "can't be compared"),
        ([FLASH, "--shape", "64x64"], "--shape goes with a layout that is given as text"),
        (["#ttg.blocked<{}>", "-l", "#a", "--compare", "#b"], "--compare '#B' compares"),
        (["#ttg.blocked<{}>", "#ttg.linear<{}>", "--shape", "64"], "'#ttg.linear<{}>' is one argument too many"),
        ([FLASH, "--compare", "#mma"], "--compare '#B' compares"),
        (["#ttg.blocked<{order = [0]}>", "--shape", "64"], "sizePerThread, threadsPerWarp, warpsPerCTA are missing"),
        (["#ttg.blocked<{}>"], "needs a shape: --shape 128x64"),
        (["#ttg.blocked<{}>", "--shape", "64xtwo"], "is not a shape"),
        (["#ttg.blocked<{}>", "--shape", "²x4"], "is not a shape"),
    ],
)
def test_messages(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.triton
def test_a_layout_given_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
    assert run(["layout", text, "--shape", "128x64xf16", "--num-warps", "4", "--target", "cuda:90"]) == 0
    assert "w3 t31" in capsys.readouterr().out


BLOCKED = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"
WIDE = BLOCKED.replace("[8, 4]", "[8, 8]")
SWIZZLED = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
PADDED = "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>"
MMA = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"
MFMA = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = false}>"


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            [BLOCKED, MMA],
            "to #B: moves across warps: other threads fill 87.5 % of the registers",
        ),
        ([BLOCKED, BLOCKED], "moves nothing: no exchange"),
        ([BLOCKED, SWIZZLED], "2-way bank conflicts (as the compiler counts)"),
        ([PADDED, BLOCKED], "2-way bank conflicts (irscope's model; the compiler was not queried)"),
        ([PADDED, SWIZZLED], "of the elements have another address (9200 and 8192 bytes)"),
        ([MFMA, WIDE], "moves across"),
    ],
)
def test_two_typed_layouts(texts: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", "--shape", "64x64", texts[0], "--compare", texts[1]]) == 0
    shown = capsys.readouterr().out
    assert "#A · " in shown
    assert "#B · " in shown
    assert said in shown


@pytest.mark.triton
def test_both_may_follow_compare(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", "--shape", "64x64", BLOCKED, "--compare", SWIZZLED, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["comparison"]["with"] for row in rows] == ["#B", "#A"]
    assert "2-way bank conflicts (as the compiler counts)" in rows[0]["comparison"]["summary"]


@pytest.mark.newest
@pytest.mark.triton
def test_the_pictures_of_two_typed_layouts(tmp_path: Path) -> None:
    for name in ("pair.svg", "pair.html"):
        assert run(["layout", BLOCKED, "--compare", SWIZZLED, "--shape", "64x64", "-o", str(tmp_path / name)]) == 0
    text = (tmp_path / "pair.svg").read_text("utf-8")
    assert "#A · blocked" in text
    assert "#B · swizzled shared" in text
    assert "2-way bank conflicts" in text
    assert 'data-opened="tab=layouts&amp;layout=1&amp;versus=2"' in (tmp_path / "pair.html").read_text("utf-8")


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    ("arguments", "lanes", "target"),
    [
        ([WIDE, "--target", "cuda:90"], 64, "cuda:90"),
        ([WIDE, "--target", "cuda:90", "--option", "threads_per_warp=64"], 64, "cuda:90"),
        ([WIDE], 64, "hip:gfx942"),
        ([MFMA], 64, "hip:gfx942"),
        ([MMA], 32, "cuda:80"),
    ],
)
def test_another_warp_size(arguments: list[str], lanes: int, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", *arguments, "--shape", "64x64", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["threads"]["lanes"], row["target"]) == (lanes, target)


@pytest.mark.triton
@pytest.mark.parametrize(("arguments", "is_said"), [(["--target", "cuda:90"], True), ([], False)])
def test_a_warp_size_that_is_not_the_targets_is_said(
    arguments: list[str], is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["layout", WIDE, *arguments, "--shape", "64x64"]) == 0
    assert ("for 64 threads per warp; cuda:90 has 32" in capsys.readouterr().out) == is_said


@pytest.mark.triton
def test_padding_is_printed_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", PADDED, "--shape", "64x64"]) == 0
    shown = capsys.readouterr().out
    for part in ("[64:+8], order = [1, 0]", "9200 bytes, 1008 of them padding", "pad 16 B", "as it lies in memory"):
        assert part in shown


@pytest.mark.parametrize("end", [20, 40, 60, 80, len(BLOCKED) - 1])
def test_a_text_that_is_cut_off_is_an_error(end: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["layout", BLOCKED[:end], "--shape", "64x64"]) in (1, 2)
    said = capsys.readouterr()
    assert said.out == ""
    assert BLOCKED[:end].strip() in said.err
    assert "is missing at its end" in said.err
    assert said.err.count("\n") == 1

"""`irscope draw`, as a user runs it: graphs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from irscope.cli.commands import main_group
from irscope.errors import MissingTool, UsageError
from irscope.model.capture import Artifact, Failure, PassSnapshot
from irscope.render.dot.graph import PAPER, has_dot
from irscope.store.file import load, save
from tests.analysis.flow.test_dataflow import SCHEDULED
from tests.analysis.flow.test_partitions_turns import WARPS
from tests.analysis.recorded import stored

needs_dot = pytest.mark.skipif(not has_dot(), reason="Graphviz is not installed: apt install graphviz")


@pytest.fixture
def product(tmp_path: Path) -> str:
    path = tmp_path / "product.irscope"
    snapshots = (
        PassSnapshot(0, "ttgir", "schedule_loops", 1, changed=True, text=SCHEDULED, duration_us=10),
        PassSnapshot(1, "ttgir", "pipeline", 1, changed=False, duration_us=10),
    )
    save(stored("product", "cuda:90").with_(snapshots=snapshots), path)
    return str(path)


def run(subject: str, *arguments: str, kind: str = "dataflow") -> Result:
    return CliRunner().invoke(main_group(), ["draw", kind, subject, *arguments])


def test_without_a_file_the_source_is_printed(product: str) -> None:
    result = run(product)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("digraph dataflow")
    assert "warp_group_dot" in result.stdout


@needs_dot
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "gv"])
def test_every_format(product: str, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    result = run(product, "-o", str(path))
    assert result.exit_code == 0, result.output
    assert path.stat().st_size > 1000


def test_where_dot_is_missing_the_source_is_written(
    product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    result = run(product, "-o", str(tmp_path / "out.svg"))
    assert result.exit_code == 1
    assert isinstance(result.exception, MissingTool)
    assert "apt install graphviz" in str(result.exception)
    assert (tmp_path / "out.gv").read_text().startswith("digraph")
    assert not (tmp_path / "out.svg").exists()


def test_other_pictures(product: str) -> None:
    assert run(product, kind="passes").stdout.startswith("digraph passes")
    loop = run(product, kind="loop").stdout
    assert loop.startswith("<svg")
    assert "The loop, iteration by iteration" in loop
    assert "ttg.convert_layout" in run(product, "--after", "schedule_loops", "--fold", "0").stdout


def test_the_page_opens_at_the_graph(product: str, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    for kind, view in (
        ("dataflow", "tab=graph"),
        ("loop", "tab=poster"),
        ("passes", "tab=graph&amp;of=passes"),
    ):
        assert run(product, "-o", str(path), kind=kind).exit_code == 0
        assert f'data-opened="{view}"' in path.read_text("utf-8")
    refused = run(product, "--around", "%acc", "-o", str(path))
    assert "--around does not go with a page" in str(refused.exception)


def test_parts_are_chosen(product: str) -> None:
    whole = json.loads(run(product, "--json").stdout)[0]
    part = json.loads(run(product, "--json", "--lines", "42").stdout)[0]
    assert 0 < len(part["nodes"]) < len(whole["nodes"])
    value = next(node["values"][0] for node in whole["nodes"] if node["role"] == "dot")
    near = json.loads(run(product, "--json", "--around", value, "--depth", "1").stdout)[0]
    assert any(value in node["values"] for node in near["nodes"])
    assert len(near["nodes"]) < len(whole["nodes"])
    assert {"from", "to", "value", "type", "carried"} == set(whole["edges"][0])


def test_assembly_gives_its_control_flow(product: str) -> None:
    source = run(product, "--stage", "ptx", kind="control-flow").stdout
    assert source.startswith("digraph blocks")
    for shown in ("wgmma", "cp.async.128", "next iteration", "loop"):
        assert shown in source, shown
    assert re.search(r"lines? [\d–, ]*\b42\b", source)
    assert run(product, kind="control-flow").stdout.startswith("digraph blocks")
    (data,) = json.loads(run(product, "--stage", "ptx", "--json", kind="control-flow").stdout)
    (function,) = data["functions"]
    assert function["function"] == "product"
    (loop,) = function["loops"]
    blocks = {block["id"]: block for block in function["blocks"]}
    assert any("wgmma" in blocks[number]["parts"] for number in loop["blocks"])
    assert {"from", "to", "kind", "condition", "back"} == set(function["jumps"][0])


def test_parts_of_assembly_are_chosen(product: str) -> None:
    (whole,) = json.loads(run(product, "--stage", "ptx", "--json", kind="control-flow").stdout)
    part = json.loads(
        run(product, "--stage", "ptx", "--json", "--around", "$L__BB0_2", "--depth", "0", kind="control-flow").stdout
    )[0]
    assert [block["labels"] for block in part["functions"][0]["blocks"]] == [["$L__BB0_2"]]
    assert len(whole["functions"][0]["blocks"]) > 1
    register = next(
        word for word in re.findall(r"%r\d+", stored("product", "cuda:90").ptx.partition("wgmma.mma_async")[2])
    )
    assert "wgmma.mma_async" in run(product, "--stage", "ptx", "--around", register, kind="control-flow").stdout
    folded = run(product, "--stage", "ptx", "--max-nodes", "2", kind="control-flow")
    assert "basic blocks in" in folded.stderr


@pytest.mark.parametrize(
    ("kind", "arguments", "says"),
    [
        ("control-flow", ["--stage", "ttgir"], "MLIR has regions"),
        ("dataflow", ["--stage", "ptx"], "assembly have control-flow"),
        ("control-flow", ["--stage", "ptx", "--around", "$L__BB9_9"], "no block has that label"),
        ("control-flow", ["--stage", "ptx", "--lines", "1"], "irscope source shows"),
        ("passes", ["--stage", "ttgir"], "--stage does not go with draw passes"),
        ("loop", ["--stage", "ttgir"], "--stage does not go with draw loop"),
        ("dataflow", ["--frame", "1"], "--frame does not go with draw dataflow"),
        ("dataflow", ["--stage", "ttgir", "--after", "pipeline"], "do not go together"),
        ("dataflow", ["--stage", "ttgir,ttir"], "drawn of one stage"),
        ("dataflow", ["--around", "nothing"], "no operation makes that value"),
        ("dataflow", ["-o", "picture.jpeg"], "drawn as svg"),
        ("dataflow", ["--lines", "1"], "irscope source shows"),
        ("warps", [], "has no partitions of warps"),
        ("warps", ["--stage", "ttgir"], "does not go with draw warps"),
        ("dataflow", ["--theme", "drak"], "--theme 'drak' is not a theme. Did you mean 'dark'?"),
        ("dataflow", ["--width", "1280"], "--width is of a picture"),
        ("dataflwo", [], "Did you mean 'dataflow'?"),
    ],
)
def test_what_is_off_is_said(product: str, kind: str, arguments: list[str], says: str) -> None:
    result = run(product, *arguments, kind=kind)
    assert result.exit_code != 0
    assert says in str(result.exception)


@needs_dot
def test_theme_and_width(product: str, tmp_path: Path) -> None:
    light, dark, wide = (tmp_path / f"{name}.svg" for name in ("light", "dark", "wide"))
    for path, options in ((light, ()), (dark, ("--theme", "dark")), (wide, ("--width", "1600"))):
        assert run(product, "-o", str(path), *options).exit_code == 0

    def texts(path: Path) -> list[str]:
        return re.findall(r"<text [^>]*>([^<]*)</text>", path.read_text())

    assert texts(light) == texts(dark) == texts(wide)
    assert "#ffffff" not in dark.read_text()
    assert PAPER in light.read_text()
    assert 'width="1600"' in wide.read_text()
    png = tmp_path / "wide.png"
    assert run(product, "-o", str(png), "--width", "700").exit_code == 0
    # The width stands in the header of a PNG.
    assert int.from_bytes(png.read_bytes()[16:20], "big") == 700
    assert 'bgcolor="#101216"' in run(product, "--theme", "dark").stdout


def test_of_several_those_that_cannot_be_drawn_are_named(product: str, tmp_path: Path) -> None:
    folder, failed = tmp_path / "captures", stored("product", "cuda:90").with_(artifacts=(), snapshots=())
    failed = failed.with_(status="failed", failure=Failure("compile", "ValueError: incompatible dimensions"))
    save(load(Path(product)), folder / "a.irscope")
    save(failed, folder / "b.irscope")
    result = run(str(folder), "-o", f"{tmp_path}/drawn", kind="loop")
    assert [one.name for one in (tmp_path / "drawn").iterdir()] == ["product.svg"]
    assert "product-2.svg is not written: product (cuda:90) has no loop to draw: it holds no TTGIR." in result.stderr
    alone = run(str(folder / "b.irscope"), kind="dataflow")
    assert "The compile failed in the front end: irscope draw poster shows where." in str(alone.exception)


@pytest.fixture
def specialized(tmp_path: Path) -> str:
    path = tmp_path / "specialized.irscope"
    ttgir = Artifact("ttgir", (WARPS / "ws_matmul.ttgir").read_text())
    save(stored("product", "cuda:90").with_(artifacts=(ttgir,)), path)
    return str(path)


def test_partitions_need_no_graphviz(specialized: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    path = tmp_path / "warps.svg"
    assert run(specialized, "-o", str(path), "--theme", "dark", "--width", "1920", kind="warps").exit_code == 0
    svg = path.read_text()
    assert 'width="1920" height="1080"' in svg
    assert ".page{fill:#101216}" in svg
    assert run(specialized, kind="warps").stdout.startswith("<svg")
    assert run(specialized, "-o", f"{tmp_path}/all", kind="warps").exit_code == 0
    assert [one.name for one in (tmp_path / "all").iterdir()] == ["product.svg"]
    (data,) = json.loads(run(specialized, "--json", kind="warps").stdout)
    assert [one["name"] for one in data["warp_specialization"][0]["partitions"]] == [
        "default",
        "partition0",
        "partition1",
    ]
    refused = run(specialized, "-o", str(tmp_path / "warps.pdf"), kind="warps")
    assert "drawn as svg, png, html" in str(refused.exception)
    page = tmp_path / "x.html"
    assert run(specialized, "-o", str(page), kind="warps").exit_code == 0
    assert 'data-opened="tab=graph&amp;of=warps"' in page.read_text("utf-8")


def test_a_kernel_without_a_loop_is_refused(tmp_path: Path) -> None:
    save(stored("twice", "cuda:90"), tmp_path / "twice.irscope")
    refused = run(str(tmp_path / "twice.irscope"), kind="loop")
    assert isinstance(refused.exception, UsageError)
    assert "has no loop to draw" in str(refused.exception)

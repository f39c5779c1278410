"""Traces of TORCH_TRACE as captures, against the compiles of the same run, and artifacts in them, shown by tlparse."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sysconfig
import tarfile
from pathlib import Path

import pytest

from irscope.api.importing import imported
from irscope.api.torch_trace import add_to_traces
from irscope.errors import ParseError
from irscope.ir.logs.launch_text import launch_of_module
from irscope.ir.logs.torch_trace import graphs_of_trace
from irscope.model.capture import Capture
from irscope.store.file import from_bytes, to_bytes
from tests.ir.logs.test_inductor import ADD, DATA, GELU, LINES, codes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inductor")
    with tarfile.open(DATA) as archive:
        archive.extractall(path, filter="data")
    return path


def read(*paths: Path) -> dict[str, Capture]:
    captures, left_out = imported(paths)
    assert not left_out
    assert len({capture.name for capture in captures}) == len(captures)
    return {capture.name: capture for capture in captures}


def test_a_trace_has_the_launches_of_the_compiles(folder: Path) -> None:
    """What the code states is what the TTIR of the same run was compiled for."""
    traced, compiled = read(folder / "trace"), read(folder / "cache")
    assert {name: codes(capture) for name, capture in traced.items()} == LINES
    for name, capture in traced.items():
        launch, known = capture.launch, launch_of_module(compiled[name].text("ttir"))
        assert tuple(row for row in launch.signature if row[1] != "constexpr") == known.signature
        given = {path: text for path, text in launch.attributes if dict(launch.signature)[path] != "constexpr"}
        assert {path: text for path, text in known.attributes if "divisibility" in text} == given
        assert capture.target == compiled[name].target
        assert capture.compile_us
        assert from_bytes(to_bytes(capture)) == capture
        assert launch.record is not None
        assert [row.path for row in launch.record.arguments] == [name for name, _ in known.signature]


def test_a_configuration_gives_constants_options_and_grid(folder: Path, tmp_path: Path) -> None:
    """Written as torch writes that of a kernel with one configuration: the one that the cache was compiled with."""
    compiled = read(folder / "cache")[GELU]
    (tile,) = set(map(int, re.findall(r"tensor<(\d+)xf32>", compiled.text("ttir"))))
    options = {name: compiled.launch.option(name) for name in ("num_warps", "num_stages")}
    rows = [["XBLOCK", tile], *map(list, options.items())]
    (path,) = (folder / "trace").iterdir()
    text, count = re.subn(rf'("{GELU}": \{{)', rf'\1"only_config": {json.dumps(rows)}, ', path.read_text())
    assert count == 1
    (tmp_path / "x.log").write_text(text)
    launch = read(tmp_path / "x.log")[GELU].launch
    assert launch.constants == (("XBLOCK", str(tile)),)
    assert dict(launch.options) == options
    assert launch.record is not None
    (tensor, *_) = launch.record.arguments
    size = launch.record.arguments[-1].value
    # The generated code masks nothing away where the tile divides the size.
    assert isinstance(size, int)
    assert math.prod(tensor.shape) == size
    assert launch.grid == (-(-size // tile), 1, 1)


def test_a_trace_and_a_cache_are_joined(folder: Path) -> None:
    joined = read(folder / "trace", folder / "cache")
    assert {name: codes(capture) for name, capture in joined.items()} == LINES
    assert all(capture.stages == ("source", "ttir", "ttgir") for capture in joined.values())


def test_a_trace_that_is_cut_gives_what_it_holds(folder: Path, tmp_path: Path) -> None:
    (path,) = (folder / "trace").iterdir()
    text = path.read_text()
    for part in range(1, 20):
        for graph in graphs_of_trace(text[: len(text) * part // 20]):
            assert graph.code
    backward = text.index("AOT ID: ['0_backward']")
    (tmp_path / "half.log").write_text(text[: backward + 20])
    assert set(read(tmp_path / "half.log")) == {GELU, ADD}
    (tmp_path / "none.log").write_text(text[:500])
    with pytest.raises(ParseError, match=r"none.log is of torch, with no Triton kernel"):
        imported([tmp_path / "none.log"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ParseError, match="TORCH_TRACE"):
        imported([tmp_path / "empty"])


def test_findings_are_artifacts_of_the_trace(folder: Path, tmp_path: Path) -> None:
    """With the ids that Dynamo gives a frame: tlparse shows an artifact where the kernel's code is."""
    path = tmp_path / "dedicated_log_torch_trace_user_.log"
    (given,) = (folder / "trace").iterdir()
    framed = re.sub(
        r'(?m)^(\w\d{4} .*\] \{.*)(, "has_payload")',
        r'\1, "frame_id": 2, "frame_compile_id": 1, "attempt": 0\2',
        given.read_text(),
    )
    path.write_text(framed)
    captures = list(read(folder / "cache").values())
    page = add_to_traces([path], captures)
    assert page is not None
    assert page == tmp_path / "irscope-report.html"
    text = path.read_text()
    assert text.startswith(framed)
    added = text[len(framed) :]
    for capture in captures:
        assert f'"name": "irscope_{capture.name}"' in added
        assert f"irscope why {capture.id[:8]}" in added
    assert added.count('"frame_id": 2') == len(captures)
    # It is the same trace for irscope.
    assert set(read(tmp_path)) == set(LINES)
    tlparse = shutil.which("tlparse", path=sysconfig.get_path("scripts")) or shutil.which("tlparse")
    if tlparse is None:
        pytest.skip("tlparse, which shows the trace, is not installed")
    out = tmp_path / "out"
    done = subprocess.run(
        [tlparse, path, "-o", out, "--no-browser", "--strict"], capture_output=True, text=True, check=True
    )
    assert "fail" not in done.stderr
    shown = {re.sub(r"_\d+$", "", one.stem) for one in (out / "-_2_1_0").glob("irscope_*.txt")}
    assert shown == {f"irscope_{capture.name}" for capture in captures}
    assert page.as_uri() in (out / "index.html").read_text()
    assert set(read(out)) == set(LINES)

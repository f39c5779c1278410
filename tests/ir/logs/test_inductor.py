"""What TorchInductor leaves on disk, as captures with their graphs."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from irscope.__main__ import run
from irscope.ir.logs.inductor import find_inductor_files, read_graph_lines, read_inductor, read_output_code
from irscope.model.capture import Capture
from irscope.store.file import from_bytes, to_bytes

DATA = Path(__file__).parents[2] / "data" / "inductor" / "mlp.tar.xz"
GELU, ADD = "triton_poi_fused_gelu_0", "triton_poi_fused_add_addmm_1"
SUM, GELU_BACKWARD = "triton_per_fused_sum_0", "triton_per_fused_gelu_gelu_backward_sum_1"
LINES = {
    GELU: ["hidden = functional.gelu(self.up(x))"],
    ADD: ["return self.down(hidden) + x"],
    SUM: ["return self.down(hidden) + x"],
    GELU_BACKWARD: ["hidden = functional.gelu(self.up(x))"],
}
"""The line of the model that each kernel is of: the backward ones are the gradients of the biases."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(DATA) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def read(*folders: Path) -> dict[str, Capture]:
    skipped: list[str] = []
    made = tuple(read_inductor([find_inductor_files(one) for one in folders], skipped.append))
    assert not skipped
    assert len({capture.name for capture in made}) == len(made)
    return {capture.name: capture for capture in made}


def codes(capture: Capture) -> Sequence[str]:
    return [node.code for origin in capture.graphs for node in origin.lines]


def test_a_cache_and_a_debug_folder_are_joined(folder: Path) -> None:
    captures = read(folder / "debug", folder / "cache")
    assert {name: codes(capture) for name, capture in captures.items()} == LINES
    for name, capture in captures.items():
        (origin,) = capture.graphs
        assert origin.title == ("graph 0 forward" if name in (GELU, ADD) else "graph 0 backward")
        assert (origin.kernels, origin.launches) == (2, 1)
        assert capture.stages == ("source", "ttir", "ttgir")
        # Of what TorchInductor computes, Triton's IR has the operation.
        assert ("erf" in capture.text("ttir")) == (name in (GELU, GELU_BACKWARD))
        (source,) = capture.sources
        assert source.text.splitlines()[capture.launch.kernel.line - 1].startswith(f"def {name}(")
        assert from_bytes(to_bytes(capture)) == capture
    assert [call.callee for call in captures[GELU].graphs[0].others] == ["extern_kernels.addmm", "extern_kernels.mm"]


def test_a_cache_alone_has_no_lines_of_python(folder: Path) -> None:
    captures = read(folder / "cache")
    assert set(captures) == set(LINES)
    assert all(capture.graphs and not codes(capture) for capture in captures.values())
    assert captures[GELU].graphs[0].nodes[2].operator == "aten.erf.default"


def test_a_debug_folder_alone_has_the_code(folder: Path) -> None:
    captures = read(folder / "debug")
    assert {name: codes(capture) for name, capture in captures.items()} == LINES
    for name, capture in captures.items():
        assert capture.stages == ()
        assert f"def {name}(" in capture.launch.kernel.source
        assert "give both folders" in capture.notes[0]
        assert from_bytes(to_bytes(capture)) == capture


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", str(folder), "--kernel", GELU]) == 0
    printed = capsys.readouterr().out
    assert "graph 0 forward: 2 Triton kernels; no Triton kernels: extern_kernels.addmm (cuBLAS)" in printed
    assert "compiled_models.py:19  hidden = functional.gelu(self.up(x))" in printed
    assert run(["ls", "--json"]) == 0
    assert [row["graphs"] for row in json.loads(capsys.readouterr().out)] == [["0 forward"]]
    assert run(["show", "last", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert [node["code"] for node in row["graphs"][0]["nodes"]] == LINES[GELU] * 5


def test_the_rows_of_a_graph_stand_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", str(folder)]) == 0
    capsys.readouterr()
    assert run(["ls", "--json"]) == 0
    graphs = [row["graphs"][0] for row in json.loads(capsys.readouterr().out)]
    assert sorted(graphs) == ["0 backward"] * 2 + ["0 forward"] * 2
    assert graphs[0] == graphs[1] != graphs[2] == graphs[3]
    assert run(["ls"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[-1] == "graph"


def test_links_out_of_the_folder_are_not_followed(folder: Path) -> None:
    secret = folder / "secret.py"
    secret.write_text("# AOT ID: ['9_forward']\n", "utf-8")
    code = next((folder / "debug").rglob("output_code.py"))
    code.unlink()
    code.symlink_to(secret)
    skipped: list[str] = []
    made = tuple(read_inductor([find_inductor_files(folder / "debug")], skipped.append))
    assert len(made) == 2
    assert "leads out of" in skipped[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no pipes in the file system")
def test_a_pipe_is_no_code(folder: Path) -> None:
    code = next((folder / "debug").rglob("output_code.py"))
    code.unlink()
    os.mkfifo(code)
    skipped: list[str] = []
    assert len(tuple(read_inductor([find_inductor_files(folder / "debug")], skipped.append))) == 2
    assert "not a regular file" in skipped[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# AOT ID: ['0_sideways']",
        "# AOT ID: ['0_forward']\nx = async_compile.triton('x', '''",
        "# AOT ID: ['0_forward']\n# Topologically Sorted Source Nodes: [",
        "# AOT ID: ['0_forward']\n# Graph fragment:\n#   %a :",
    ],
)
def test_code_that_is_cut_off(text: str) -> None:
    for kernel in read_output_code(text):
        assert kernel.origin.nodes == ()


def test_each_cut_of_real_code_is_read(folder: Path) -> None:
    text = next((folder / "debug").rglob("*backward*/output_code.py")).read_text("utf-8")
    whole = read_output_code(text)
    assert [kernel.name for kernel in whole] == [SUM, GELU_BACKWARD]
    for end in range(0, len(text), 997):
        assert len(read_output_code(text[:end])) <= len(whole)
    # Many times the same takes no more than linear time: this is 12 MB.
    assert len(read_output_code(text * 1000)) == len(whole)


def test_lines_of_a_graph() -> None:
    text = """
        # File: /home/user/a, b.py:3 in forward, code: y = x + 1, code: no
        add: "f32[2]" = torch.ops.aten.add.Tensor(x, 1);  x = None
        getitem = unbind[0]

        # No stacktrace found for following nodes
        mul: "f32[2]" = torch.ops.aten.mul.Tensor(add, 2)
    """
    lines = read_graph_lines(text)
    assert set(lines) == {"add", "getitem"}
    assert (lines["add"].file, lines["add"].line, lines["add"].function) == ("/home/user/a, b.py", 3, "forward")
    assert lines["add"].code == "y = x + 1, code: no"

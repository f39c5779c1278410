"""Each command as a user types it: data on stdout, talk on stderr, exit codes, and wrong input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from irscope.model.capture import Capture
from tests.cli.product import KERNELS, ROOT, Run

AXPY = (
    f"{ROOT / 'tests' / 'record' / 'kernels' / 'no_torch.py'}::axpy",
    "--signature",
    "*fp32:16, *fp32:16, i32:16, fp32",
    "--constexpr",
    "BLOCK=256",
)

STORED = ROOT / "tests" / "data" / "layouts" / "matmul-cuda-80.irscope"
TWO_KERNELS = """
import triton
import triton.language as tl

class Buffer:
    dtype = "fp32"
    def data_ptr(self):
        return 4096

@triton.jit
def ones(x):
    tl.store(x + tl.arange(0, 128), 1.0)

@triton.jit
def twos(x):
    tl.store(x + tl.arange(0, 128), 2.0)

ones[(1,)](Buffer())
twos[(1,)](Buffer())
"""

pytestmark = pytest.mark.triton


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@pytest.fixture
def irscope(irscope: Run, product: Capture) -> Callable[..., Answer]:
    """A command in this process; `last` is the small matmul."""
    return lambda *arguments: Answer(*irscope(*arguments))


@pytest.fixture
def matmul(recorded: tuple[Path, Path]) -> Path:
    """A file with a capture of a small matmul."""
    return recorded[0]


@pytest.mark.newest
def test_a_stage_goes_to_stdout_and_nothing_else(irscope: Callable[..., Answer]) -> None:
    answer = irscope("dump", *AXPY, "--stage", "ttgir")
    assert answer.code == 0
    assert answer.out.startswith("#blocked = #ttg.blocked<")
    assert "loc(" not in answer.out
    assert answer.err == ""
    assert "loc(" in irscope("show", "last", "--stage", "ttgir", "--loc").out


@pytest.mark.newest
def test_color_only_where_it_is_wanted(irscope: Callable[..., Answer], matmul: Path) -> None:
    assert "\x1b[" not in irscope("show", matmul, "--stage", "ptx").out
    colored = irscope("show", matmul, "--stage", "ptx", "--color").out
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == irscope("show", matmul, "--stage", "ptx").out


@pytest.mark.newest
def test_several_stages_have_headings(irscope: Callable[..., Answer], matmul: Path) -> None:
    out = irscope("show", matmul, "--stage", "ttir,ptx").out
    assert re.findall(r"^// tile_product · cuda:90 · (\w+)$", out, re.MULTILINE) == ["ttir", "ptx"]


@pytest.mark.newest
def test_lines_keep_what_comes_from_them(irscope: Callable[..., Answer], matmul: Path) -> None:
    source = KERNELS.read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "tl.dot(" in text)
    out = irscope("show", matmul, "--stage", "ttgir", "--lines", line).out
    assert "warp_group_dot" in out
    assert "tt.store" not in out
    sass = irscope("show", matmul, "--stage", "sass", "--lines", f"{line}-{line}").out
    assert "HGMMA" in sass
    assert "STG" not in sass


@pytest.mark.newest
def test_a_binary_prints_its_sections_and_writes_its_bytes(
    irscope: Callable[..., Answer], matmul: Path, tmp_path: Path
) -> None:
    out = irscope("show", matmul, "--stage", "cubin").out
    assert ".text.tile_product" in out
    assert "registers: " in out
    assert "occupancy: " in out
    answer = irscope("show", matmul, "--stage", "cubin", "-o", tmp_path / "k.cubin")
    assert answer.code == 0
    assert (tmp_path / "k.cubin").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.newest
def test_a_folder_holds_every_stage(irscope: Callable[..., Answer], matmul: Path, tmp_path: Path) -> None:
    assert irscope("show", matmul, "-o", tmp_path / "out").code == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == sorted(
        f"tile_product.{stage}" for stage in ("source", "ttir", "ttgir", "llir", "ptx", "cubin", "sass", "json")
    )
    assert json.loads((tmp_path / "out" / "tile_product.json").read_text())["target"] == "cuda:90"


@pytest.mark.newest
def test_passes_table_and_json(irscope: Callable[..., Answer], matmul: Path) -> None:
    answer = irscope("passes", matmul, "--json")
    (capture,) = json.loads(answer.out)
    rows = {row["plan_name"]: row for row in capture["passes"]}
    assert rows["ttgir:accelerate_matmul#1"]["changed"] is True
    assert rows["ttgir:accelerate_matmul#1"]["argument"] == "tritongpu-accelerate-matmul"
    assert rows["ttgir:coalesce#1"]["convert_layouts_change"] > 0
    assert "llir:llvm-opt#1" in rows
    assert "cubin:ptxas-opt#1" in rows
    table = irscope("passes", matmul, "--changed", "--stage", "ttgir").out
    assert "tritongpu-coalesce" in table
    assert "tritongpu-F32DotTC" not in table
    assert "ttir" not in table.split("\n")[1]
    matched = irscope("passes", matmul, "--match", "layout-conv").out
    assert matched.count("remove_layout_conversions") >= 3
    assert "coalesce" not in matched


def test_the_pipeline_of_a_target(irscope: Callable[..., Answer]) -> None:
    out = irscope("passes", "--target", "hip:gfx942").out
    assert "tritonamdgpu-pipeline" in out or "tritonamdgpu-stream-pipeline" in out


@pytest.mark.newest
def test_the_ir_around_a_pass(irscope: Callable[..., Answer], matmul: Path) -> None:
    before = irscope("dump", matmul, "--before", "accelerate_matmul").out
    after = irscope("dump", matmul, "--after", "tritongpu-accelerate-matmul").out
    assert "#ttg.nvidia_mma" not in before
    assert "#ttg.nvidia_mma" in after
    assert irscope("dump", matmul, "--after", "ttgir:canonicalizer#2").code == 0


@pytest.mark.newest
def test_each_changed_pass_becomes_a_file(irscope: Callable[..., Answer], matmul: Path, tmp_path: Path) -> None:
    assert irscope("dump", matmul, "--each", tmp_path / "a").code == 0
    assert irscope("dump", matmul, "--disable-pass", "pipeline", "--each", tmp_path / "b").code == 0
    names_a = {path.name for path in (tmp_path / "a").iterdir()}
    names_b = {path.name for path in (tmp_path / "b").iterdir()}
    pipeline = next(name for name in names_a if "pipeline" in name)
    assert pipeline not in names_b
    earlier = {name for name in names_a if name.startswith("ttir") or (name.startswith("ttgir") and name < pipeline)}
    assert earlier <= names_b
    for name in earlier:
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text(), name


@pytest.mark.newest
def test_diff_of_the_last_launch_without_a_pass(irscope: Callable[..., Answer], matmul: Path) -> None:
    answer = irscope("diff", "--disable-pass", "pipeline")
    assert answer.code == 0, answer.err
    assert re.search(r"^  plan +every pass → -pipeline$", answer.out, re.MULTILINE)
    assert re.search(r"^cp\.async\.128 +\d+ +→ +– ", answer.out, re.MULTILINE)
    assert "diff of ttgir" in answer.out
    assert irscope("diff", matmul, matmul, "--exit-code").code == 0
    answer = irscope("diff", "last", "--disable-pass", "pipeline", "--exit-code", "--stat")
    assert answer.code == 1
    row = re.search(r"^ttgir:pipeline#1 +(\S+) +→ +off$", answer.out, re.MULTILINE)
    assert row is not None
    assert float(row[1]) > 0
    assert re.search(r"^all \d+ +[\d.]+ +→ +[\d.]+$", answer.out, re.MULTILINE)


@pytest.mark.newest
def test_diff_before_and_after_a_pass(irscope: Callable[..., Answer], matmul: Path) -> None:
    out = irscope("diff", matmul, "--pass", "accelerate_matmul").out
    assert "nvidia_mma" in out
    assert "tt.dot" in out
    assert "no difference" in irscope("diff", matmul, "--pass", "f32_dot_tc").out.lower()
    assert irscope("diff", matmul, "--between", "coalesce", "pipeline").code == 0


@pytest.mark.newest
def test_diff_json_html_and_variants(irscope: Callable[..., Answer], matmul: Path, tmp_path: Path) -> None:
    (comparison,) = json.loads(irscope("diff", matmul, "--vs", "num_warps=8", "--json").out)
    assert {"name": "num_warps", "left": 4, "right": 8} in comparison["differences"]
    answer = irscope("diff", matmul, STORED, "-o", tmp_path / "d.html")
    assert answer.code == 0, answer.err
    page = (tmp_path / "d.html").read_text()
    assert 'data-opened="tab=compare&amp;a=1&amp;b=2"' in page
    assert irscope("diff", matmul, "--pass", "coalesce", "-o", tmp_path / "p.html").code == 0
    assert re.search(r'data-opened="tab=passes&amp;pass=\d+"', (tmp_path / "p.html").read_text())
    refused = irscope("diff", matmul, "--between", "coalesce", "pipeline", "-o", tmp_path / "b.html")
    assert refused.code == 2
    assert "--between writes no page" in refused.err
    answer = irscope("diff", *AXPY, "--target", "hip:gfx942", "--vs", "BLOCK=32", "--stat")
    assert answer.code == 0, answer.err
    assert re.search(r"^  constant BLOCK +256 → 32$", answer.out, re.MULTILINE)


@pytest.mark.newest
def test_folders_and_ir_files_are_compared(irscope: Callable[..., Answer], matmul: Path, tmp_path: Path) -> None:
    irscope("show", matmul, "-o", tmp_path / "out")
    assert irscope("diff", tmp_path / "out", tmp_path / "out", "--exit-code").code == 0
    answer = irscope(
        "diff", tmp_path / "out" / "tile_product.ttir", tmp_path / "out" / "tile_product.ttir", "--exit-code"
    )
    assert answer.code == 0, answer.err


@pytest.mark.newest
def test_a_disabled_pass_that_the_compile_needs_is_a_result(irscope: Callable[..., Answer], matmul: Path) -> None:
    answer = irscope("dump", matmul, "--disable-pass", "to_llvmir", "--stage", "ttgir")
    assert answer.code == 1
    assert answer.out.startswith("#")
    assert "failed in" in answer.err
    listed = irscope("passes", "last")
    assert "OFF" in listed.out
    assert listed.code == 1


@pytest.mark.newest
def test_an_edited_snapshot_compiles_on(irscope: Callable[..., Answer], matmul: Path, tmp_path: Path) -> None:
    text = irscope("dump", matmul, "--after", "coalesce", "--loc").out
    edited = tmp_path / "edited.mlir"
    edited.write_text(text)
    whole = irscope("show", matmul, "--stage", "ptx").out
    edited.write_text(f"// Edited.\n{text}")
    kept = irscope("edit", matmul, "--at", "coalesce", "--edited", edited, "--name", "resumed")
    assert kept.code == 0, kept.err
    resumed = irscope("show", "resumed", "--stage", "ptx")
    assert re.sub(r"%\w+", "%r", resumed.out) == re.sub(r"%\w+", "%r", whole)
    assert "num-stages" in text or "tt.dot" in text


@pytest.mark.newest
def test_ls_and_show_find_what_was_recorded(irscope: Callable[..., Answer], matmul: Path) -> None:
    rows = json.loads(irscope("ls", "--json").out)
    assert any(row["kernel"] == "tile_product" and row["target"] == "cuda:90" for row in rows)
    assert "tile_product" in irscope("show", rows[0]["id"][:8]).out + irscope("ls").out


def test_doctor_says_what_is_there(irscope: Callable[..., Answer]) -> None:
    findings = {finding["component"]: finding for finding in json.loads(irscope("doctor", "--json").out)}
    assert findings["Triton"]["state"] == "ok"
    assert findings["nvdisasm"]["state"] == "ok"
    assert "cuda:90" in findings["targets"]["detail"]


@pytest.mark.newest
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("dump", "nothing.py"), 1, "'nothing.py' does not exist"),
        (("dump", *AXPY, "--target", "cuda:banana"), 1, "'cuda:banana' is not a target"),
        (("dump", "last", "--stage", "ttgri"), 2, "Did you mean 'ttgir'"),
        (("dump", "last", "--disable-pass", "colesce"), 1, "Did you mean 'coalesce'"),
        (("dump", *AXPY, "--disable-pass", "a b"), 1, "'a b' is not a pass"),
        (("dump", *AXPY, "--constexpr", "BLOCK"), 2, "write NAME=VALUE"),
        (("dump", *AXPY, "--option", "num_wraps=4"), 2, "no compile option 'num_wraps'. Did you mean 'num_warps'"),
        (("dump", *AXPY, "--lines", "9-3", "--stage", "ttir"), 2, "runs backwards"),
        (("dump", "last", "--after", "colesce"), 1, "Did you mean 'coalesce'"),
        (("dump", *AXPY, "--num-warps", "3"), 1, "power of 2"),
        (("show", "ffff"), 1, "neither a file nor a stored capture's id"),
        (("dump", "--stge"), 2, "No such option"),
        (("diff", "last", "--vs", "num_warps"), 2, "write KEY=VALUE"),
        (("diff", "last", "--ignore", "colors"), 2, "write locations, names, attributes"),
        (("passes", "last", "--stage", "cuda"), 2, "--stage 'cuda': there is no such stage"),
    ],
)
def test_wrong_input_gets_a_message_and_no_traceback(
    irscope: Callable[..., Answer], matmul: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    answer = irscope(*arguments)
    assert answer.code == code, answer.err
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert "internal error" not in answer.err


@pytest.mark.newest
def test_debug_shows_the_traceback() -> None:
    command = [sys.executable, "-m", "irscope", "show", "ffff", "--debug"]
    assert b"Traceback" in subprocess.run(command, capture_output=True, check=False).stderr


@pytest.mark.newest
def test_a_closed_pipe_is_no_error(matmul: Path) -> None:
    command = f"{sys.executable} -m irscope show {matmul} --stage llir | head -n 1"
    answer = subprocess.run(
        command, shell=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert answer.stderr == ""


@pytest.mark.newest
def test_show_imports_neither_triton_nor_torch(matmul: Path) -> None:
    """Nor, for the page of a capture, the readers of IR and of machine code: they take as long as all the rest."""
    code = f"import sys, irscope.__main__ as m; m.run(['show', {str(matmul)!r}]); "
    code += "readers = {'irscope.ir.mlir.model', 'irscope.ir.registers', 'irscope.analysis.flow.partitions'}; "
    code += f"assert not readers & set(sys.modules); m.run(['show', {str(matmul)!r}, '--stage', 'ttgir']); "
    code += "assert not {'triton', 'torch', 'numpy'} & set(sys.modules)"
    subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


@pytest.mark.newest
def test_another_kernel(irscope: Callable[..., Answer], tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(TWO_KERNELS)
    answer = irscope("diff", f"{script}::ones", "--vs", "kernel=twos", "--stat", "--target", "hip:gfx942")
    assert answer.code == 0, answer.err
    assert re.search(r"^  kernel +ones → twos$", answer.out, re.MULTILINE)


@pytest.mark.newest
def test_a_kernel_that_was_not_launched(irscope: Callable[..., Answer], tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(TWO_KERNELS)
    answer = irscope("dump", f"{script}::one")
    assert answer.code == 1
    assert answer.err.endswith("holds no kernel 'one'. Did you mean 'ones'? Its kernels are ones, twos.\n")


@pytest.mark.newest
def test_lines_are_of_a_text(irscope: Callable[..., Answer], matmul: Path) -> None:
    answer = irscope("show", matmul, "--lines", "3")
    assert (answer.code, answer.out) == (2, "")
    assert "give --stage, --after or --before" in answer.err
    answer = irscope("show", matmul, "--stage", "ptx", "--lines", "9999")
    assert answer.code == 0
    assert "no line of this text comes from --lines 9999" in answer.err


@pytest.mark.newest
def test_what_was_left_out_is_made_when_it_is_looked_at(irscope: Callable[..., Answer]) -> None:
    irscope("dump", *AXPY, "--stage", "ttir")
    assert "LDG.E" in irscope("show", "last", "--stage", "sass").out


@pytest.mark.newest
def test_a_terminal_gets_the_summary_of_several_kernels(
    irscope: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of their texts, with the command that prints one; a pipe gets the texts, and one kernel is printed."""
    script = tmp_path / "two.py"
    script.write_text(TWO_KERNELS)
    piped = irscope("dump", script, "--stage", "ttgir")
    assert piped.out.count("tt.func") == 2
    monkeypatch.setattr("irscope.cli.show.is_terminal", lambda: True)
    answer = irscope("dump", script, "--stage", "ttgir")
    assert answer.code == 0
    assert "tt.func" not in answer.out
    assert all(name in answer.out for name in ("ones", "twos"))
    one = re.search(r"2 captures: (irscope show \w+ --stage ttgir) prints one", answer.err)
    assert one is not None, answer.err
    assert irscope(*one[1].split()[1:]).out.count("tt.func") == 1
    assert irscope("dump", f"{script}::ones", "--stage", "ttgir").out.count("tt.func") == 1


@pytest.mark.newest
def test_a_collection_takes_what_a_command_launches(irscope: Callable[..., Answer], tmp_path: Path) -> None:
    script, folder = tmp_path / "two.py", tmp_path / "kernels"
    script.write_text(TWO_KERNELS)
    answer = irscope("record", "-o", folder, "--json", "--", sys.executable, script)
    assert answer.code == 0, answer.err
    assert {row["kernel"]: row["added"] for row in json.loads(answer.out)} == {"ones": "new", "twos": "new"}
    assert json.loads(irscope("record", script, script, "--json").out)[2]["kernel"] == "ones"

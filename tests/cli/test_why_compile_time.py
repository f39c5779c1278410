"""`irscope why --compile-time`: four planted slow compiles, the line, the factor and the fix of each."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from irscope import record
from irscope.analysis.passes.times import own_times, time_tree
from irscope.api import compile_time
from irscope.model.evidence import CompileTimes
from irscope.record.triton.versions import triton_version
from irscope.record.variants.compiles import Compiles
from irscope.render.text.growth import render_growth
from tests.cli.product import ROOT, Run

pytestmark = pytest.mark.triton
KERNELS = ROOT / "tests" / "record" / "kernels" / "slow_compiles.py"
PLANTED = {
    "unrolled": ("unrolled", 24, "unrolled"),
    "huge_tile": ("tile", 8192 / 128, "tile"),
    "fallback_dot": ("dot", 32**3 / 128, "dot"),
    "deep": ("inlined", 16, "inlined"),
}
"""Kernel → what multiplies its operations, by how much, and the comment on the line that is to blame."""


def test_lines_factors_and_fixes(irscope: Run) -> None:
    pytest.importorskip("torch", reason="the script of the kernels imports torch")
    code, out, err = irscope("why", KERNELS, "--target", "cuda:90", "--compile-time", "--all", "--tries", "0", "--json")
    assert code == 0, err
    answer = json.loads(out)
    lines = KERNELS.read_text().splitlines()
    for found in answer["compiles"]:
        kind, times, mark = PLANTED[found["kernel"]]
        # In a kernel of a huge tile every line is multiplied: the worst is first.
        worst = found["lines"][0]
        assert (worst["cause"], worst["factors"][0]["times"]) == (kind, times)
        assert lines[worst["line"] - 1].endswith(f"# {mark}")
        assert worst["operations"] > (50 if triton_version() >= "3.9" else 40) * worst["written"]
        assert worst["fix"]["after"] is None
        assert found["processor_us"] > 0
    assert {row["kernel"] for row in answer["needed"]} == PLANTED.keys()
    # Compiled on request, both sides in the same way: options from the IR, a loop from the Python text.
    for kernel, text in (("huge_tile", "num_warps=16"), ("unrolled", "tl.range")):
        code, out, err = irscope("why", f"last::{kernel}", "--compile-time", "--json")
        assert code == 0, err
        row = json.loads(out)["compiles"][0]["lines"][0]
        assert text in row["fix"]["text"]
        assert not row["fix"]["failure"]
        assert row["fix"]["after"]["operations"] < row["fix"]["before"]["operations"] / 3
        assert row["fix"]["after"]["processor_us"] > 0
    told = irscope("why", "last", "--compile-time", "--tries", "0")[1]
    assert "4 compiles:" in told
    assert "×256  a dot of 32×32×32 without matrix instructions" in told


def test_a_short_compile_has_no_line_to_blame(irscope: Run, tmp_path: Path) -> None:
    script = tmp_path / "copies.py"
    script.write_text(
        "import triton, triton.language as tl\n@triton.jit\ndef copies(x_ptr, n, B: tl.constexpr):\n"
        "    i = tl.arange(0, B)\n    y = tl.load(x_ptr + i, mask=i < n)\n"
        "    z = tl.reshape(y, (B,))\n    tl.store(x_ptr + i, z)\n"
    )
    kernel = ("--target", "cuda:90", "--signature", "*fp32:16, i32, 128")
    code, out, err = irscope("why", f"{script}::copies", *kernel, "--compile-time", "--tries", "0", "--json")
    assert code == 0, err
    assert json.loads(out)["compiles"][0]["lines"] == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("llvm:instcombine", "compiled: "),
        ("llir:to_llvmir#1", "compiled: it fails: "),
        ("ptxas", "80 % of the compile by the clock\n"),
    ],
)
def test_a_pass_that_takes_most_of_a_compile_is_left_out(name: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which part does is planted: of a short compile none takes half of the time."""
    axpy = partial(
        record,
        ROOT / "tests" / "record" / "kernels" / "no_torch.py",
        kernel="axpy",
        signature="*fp16, *fp32, i64, fp32, 256",
        target="cuda:80",
    )
    capture = axpy()

    def planted(times: CompileTimes) -> dict[str, int]:
        assert any(one.startswith(name) for one in own_times(times))
        return {name: time_tree(times).whole_ns * 4 // 5}

    monkeypatch.setattr(compile_time, "own_times", planted)
    with Compiles() as compiles:
        found = compile_time.long_compile(capture, compiles)
    assert found.slow is not None
    assert (found.slow.name, round(found.slow.share, 2)) == (name, 0.8)
    text = render_growth(capture, found, width=None, color=False)
    assert told in text
    assert (f"(-d {name})" in text) == (":" in name)
    if name.startswith("llvm:"):
        assert found.slow.after is not None
        assert not found.slow.failure
        assert axpy(plan=found.slow.without).has_compiled


def test_what_it_does_not_go_with(irscope: Run) -> None:
    code, out, err = irscope("why", "last", "--compile-time", "--line", "3")
    assert (code, out) == (2, "")
    assert "why --compile-time takes no such option" in err

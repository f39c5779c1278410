"""`irscope diff` of a launch with what it is already, and with what changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from irscope.cli.diff import pairs_of
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.triton import api as triton_api
from tests.cli.product import KERNELS, SIGNATURE, Run

pytestmark = [pytest.mark.triton, pytest.mark.slow, pytest.mark.newest]


def test_a_variant_that_the_launch_is_already(product: Capture, irscope: Run) -> None:
    versus = [word for one in ("num_warps=4", "num-stages=3", "target=cuda:90") for word in ("--vs", one)]
    code, out, _ = irscope("diff", "last", *versus, "--exit-code")
    assert code == 0
    said = "num_warps is 4 already, num_stages is 3 already, target is cuda:90 already"
    assert out == f"{product.id[:8]} {product.name} {product.target}: {said}: nothing to compare\n"


def test_the_same_interpreter(product: Capture, irscope: Run) -> None:
    code, out, _ = irscope(
        "diff", f"{KERNELS}::tile_product", *SIGNATURE, "--vs", f"triton={sys.executable}", "--exit-code"
    )
    assert code == 0
    assert out.endswith(f"triton is {sys.executable} already: nothing to compare\n")


def test_passes_times_alone_are_no_difference(product: Capture, irscope: Run) -> None:
    _, out, _ = irscope("diff", "last", "--disable-pass", "ttir:symbol_dce")
    assert "every stage is the same" in out
    rows = out.partition("passes, ms")[2].strip().splitlines()[1:]
    assert [row.split()[0] for row in rows if "→" in row] == ["ttir:symbol_dce#1"]
    _, out, _ = irscope("diff", "last", "last")
    assert "passes, ms" not in out


@pytest.mark.parametrize("stage", ["ttir", "ttgir", "llir", "ptx", "sass"])
def test_a_file_that_holds_nothing_is_refused(stage: str, tmp_path: Path, irscope: Run) -> None:
    """Two of them would be identical."""
    (empty := tmp_path / f"kernel.{stage}").write_text("\n")
    code, out, err = irscope("diff", empty, empty)
    assert (code, out) == (2, "")
    assert "is empty" in err


def test_another_ptxas_assembles_again(product: Capture, irscope: Run) -> None:
    tool = triton_api.nvidia_tools()["ptxas"]
    ((left, right),) = pairs_of("last", None, RecordingOptions(), [f"ptxas={tool}"])
    assert left.id == product.id != right.id
    own, other = (dict(one.environment.tools)["ptxas"] for one in (left, right))
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    assert own != other
    assert f"V{other}" in version
    assert left.text("ttgir") == right.text("ttgir")
    assert left.artifact("cubin").data != right.artifact("cubin").data
    for wrong in (("ptxas=nowhere",), (f"ptxas={tool}", "--vs", "num_warps=8")):
        assert irscope("diff", "last", "--vs", *wrong)[0] == 2

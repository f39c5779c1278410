"""Same bits: what only another tile or another number of warps changes, and what sums in another order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.text.verdict import render_bits
from irscope.verify.bits import verify_bits
from tests.machine.recorded import recorded

pytest.importorskip("torch", reason="the kernels are recorded with tensors of torch")
pytestmark = [pytest.mark.triton, pytest.mark.newest]
KERNELS = Path(__file__).with_name("bits_kernels.py")
LINES = KERNELS.read_text("utf-8").splitlines()
STORES_SUMS = "tl.store(c_ptr + rows, tl.sum(total, 1))"
# Place among the launches → the answer, and a part of what is said.
PAIRS = {
    "warps of a sum": (0, 5, "no", "another order"),
    "warps of a product": (1, 6, "yes", "same order"),
    "warps of what may be fused": (2, 7, "not decided", "fused"),
    "warps of what is not fused": (3, 8, "yes", "same order"),
    "atomic operations": (4, 9, "not decided", "atomic"),
    "tiles along k": (10, 11, "yes", "same order"),
    "a sum and no sum": (2, 6, "no", "meaning differs"),
}


@pytest.mark.parametrize("case", PAIRS)
def test_two_configurations(case: str) -> None:
    left, right, answer, said = PAIRS[case]
    captures = recorded(KERNELS, "cuda:90")
    assert len(captures) == 12
    # Where the machine code is the same, nothing else is looked at.
    sides = [replace(captures[at], artifacts=tuple(one for one in captures[at].artifacts if one.stage != "cubin"))
             for at in (left, right)]  # fmt: skip
    verdict = verify_bits(*sides)
    assert verdict.answer == answer, render_bits(verdict)
    assert said in verdict.detail
    if verdict.orders is not None:
        line = int(verdict.place.rpartition(":")[2])
        assert "tl.sum" in LINES[line - 1]
        assert "register" in verdict.orders[0]


def test_the_same_machine_code_gives_the_same_bits() -> None:
    capture = recorded(KERNELS, "cuda:90")[0]
    assert verify_bits(capture, capture).answer == "yes"


def test_a_layout_of_the_compilers_own_gives_the_order_of_a_reduction(tmp_path: Path) -> None:
    script = tmp_path / "rows.py"
    kernels, _, _ = KERNELS.read_text("utf-8").partition("for warps in")
    kernel = kernels.replace("tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], total)", STORES_SUMS)
    launch = "product[(1,)](half, half, floats(64), 64, BLOCK=64, BLOCK_K=32, num_stages=stages)"
    script.write_text(f"{kernel}half = floats(64, 64, dtype=torch.float16)\nfor stages in (1, 3):\n    {launch}\n")
    captures = record_request(request_for(script, targets=("cuda:90",), disassemble=False)).captures
    # The layout of wgmma's result is known from the compiler alone.
    sides = [replace(one, artifacts=tuple(part for part in one.artifacts if part.stage != "cubin")) for one in captures]
    assert verify_bits(*sides).answer == "yes"
    assert verify_bits(*(replace(one, layouts=()) for one in sides)).answer == "not decided"

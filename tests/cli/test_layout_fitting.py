"""What would fit, each tried by compiling: against a recording of that very change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.api.explain import smaller
from irscope.model.capture import Resources
from irscope.render.layout.timeline import attempts_json, attempts_text
from tests.memory.cases import too_large
from tests.recording import record_without_sass

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, size, BLOCK_M: tl.constexpr, TILE: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK_M), tl.arange(0, TILE)
    total = tl.zeros((BLOCK_M, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + columns)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)
"""
LAUNCH = """
class Buffer:
    def __init__(self, dtype):
        self.dtype = dtype

    def data_ptr(self):
        return 4096

x, y = Buffer("fp16"), Buffer("fp32")
product[(1,)](x, x, y, 128, BLOCK_M=128, TILE=128, num_warps=8, num_stages=3)
"""


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.newest
def test_each_attempt_is_what_recording_it_gives(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL + LAUNCH)
    capture = record_without_sass(script, target="cuda:120", virtual=True)
    assert capture.failure is not None
    assert capture.failure.kind == "fit"
    tried = smaller(capture)
    found = attempts_json(tried)
    assert [one["change"] for one in found] == ["num_stages=2", "num_stages=1", "BLOCK_M = 64", "TILE = 64"]
    for one in found:
        name, _, value = one["change"].replace(" ", "").partition("=")
        same = script.with_name("same.py")
        same.write_text((KERNEL + LAUNCH).replace(f"{name}={3 if name == 'num_stages' else 128}", f"{name}={value}"))
        other = record_without_sass(same, target="cuda:120", virtual=True, snapshots="none", layouts=False)
        assert (one["shared_bytes"], one["fits"]) == (other.resources.shared_bytes, other.status == "ok")
    assert "num_stages=1" in attempts_text(tried)


def test_a_problem_is_told() -> None:
    fits = replace(too_large(), failure=None, resources=Resources(shared_bytes=4096))
    text = attempts_text([("num_stages=1", fits), ("BLOCK_M = 8", None)])
    assert text.splitlines()[2].split() == ["num_stages=1", "4096", "fits"]
    assert text.splitlines()[3].split(maxsplit=4)[:3] == ["BLOCK_M", "=", "8"]
    assert text.splitlines()[3].endswith("its Python does not compile with that change")

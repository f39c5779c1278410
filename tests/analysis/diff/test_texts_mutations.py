"""One changed register, immediate or modifier is a difference, but where nobody reads it."""

from __future__ import annotations

import lzma
import random
from pathlib import Path

import pytest

from irscope.model.capture import StageKind
from tests.analysis.mutations import proof_for, survivors, without_live_ranges

DATA = Path(__file__).parents[2] / "data"
CASES: list[tuple[StageKind, str]] = [
    ("sass", "asm/softmax_90.plr.txt.xz"),
    ("sass", "asm/add_120.plr.txt.xz"),
    ("amdgcn", "asm/softmax_gfx1100.amdgcn"),
    ("amdgcn", "asm/matmul_gfx942.amdgcn"),
    ("ptx", "asm/softmax_90.ptx"),
    ("llvm", "diff/softmax.cuda90.4warps.llir.xz"),
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_change_is_called_the_same_only_where_it_is_dead(kind: StageKind, name: str) -> None:
    path = DATA / name
    data = path.read_bytes()
    read = (lzma.decompress(data) if name.endswith(".xz") else data).decode()
    text = without_live_ranges(read) if kind == "sass" else read
    made, _, wrong = survivors(text, kind, 40, random.Random(3), proof_for(text, kind, read))
    assert made == 40
    assert not wrong

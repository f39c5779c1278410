"""CTAs whose loops run differently often are counted together as each is alone."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.timing.accesses import KINDS
from irscope.timing.execution import _kernel_of, _Launch
from irscope.timing.program import Program
from irscope.timing.walk import walk
from tests.timing.test_walk import recorded_loops

pytestmark = [pytest.mark.triton, pytest.mark.newest]


@pytest.mark.parametrize("name", ["ragged", "triangle", "nested", "shares"])
def test_together_as_each_alone(name: str) -> None:
    (capture,) = (one for one in recorded_loops() if one.name == name)
    grid = capture.launch.grid
    assert grid is not None
    program = Program(_kernel_of(capture), lambda item: item.opcode.partition(".")[0] in KINDS)
    launch = _Launch(capture, grid)

    def executed(ctas: list[int]) -> list[float]:
        counts = np.zeros(len(ctas))
        state = launch.state(np.array(ctas), np.zeros(len(ctas), np.int64), 1)
        for walked in walk(program, state, lambda *_: None):
            counts[walked.rows] = walked.instructions
        return counts.tolist()

    ctas = list(range(grid[0]))
    together = executed(ctas)
    assert together == [executed([cta])[0] for cta in ctas]
    assert grid[0] == 1 or len(set(together)) > 3

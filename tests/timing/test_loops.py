"""Loops are followed to their end, and what a loop loads is as random in each iteration."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from irscope.api.timing import predict
from irscope.device.clocks import clock_of
from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.timing.execution import execute
from irscope.timing.walk import Observed

pytestmark = [pytest.mark.triton, pytest.mark.newest]
COLUMNS, ROWS, SETS = 64, 32, 9
"""As the script has them."""


@cache
def recorded() -> tuple[Capture, ...]:
    script = Path(__file__).with_name("loops.py")
    return tuple(record_request(request_for(script, targets=("cuda:90",), layouts=False)).captures)


def test_a_loop_within_two_others_is_counted_whole() -> None:
    (capture,) = (one for one in recorded() if one.name == "nested")
    execution = execute(capture, clock_of(capture.target, None))
    assert not execution.assumed
    counts = {"load": 0.0, "store": 0.0}
    for group in execution.groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            if isinstance(entry, Observed) and entry.payload is not None:
                counts[entry.payload.kind] += weight * entry.payload.is_on * len(group.rows)
    # All warps load the same, and one of them stores.
    assert counts == {"load": execution.warps * COLUMNS * ROWS * SETS, "store": COLUMNS * ROWS}


def test_fewer_warps_find_no_more_of_random_data_in_the_caches() -> None:
    times = [predict(one).seconds for one in recorded() if one.name == "chase"]
    assert len(times) == 3
    assert max(times) < 1.2 * min(times)

"""A roofline of damaged IR: it is counted, in bounds that make sense, or refused in words."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from dataclasses import replace

import pytest

from irscope.analysis.roofline.roofline import roofline_of
from irscope.device.parts import PEAKS
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.render.roofline import roofline_json, roofline_svg, roofline_text
from tests.analysis.roofline.launched import attention


@pytest.fixture(scope="module")
def whole() -> Capture:
    return attention()


def damaged(capture: Capture, seed: int) -> Capture:
    draw = random.Random(seed)
    lines = capture.text("ttgir").split("\n")
    known = list(lines)
    for _ in range(draw.choice((1, 2, 5, 20))):
        at = draw.randrange(len(lines))
        change = draw.randrange(6)
        if change == 0:
            del lines[at]
        elif change == 1:
            lines.insert(at, draw.choice(known))
        elif change == 2:
            lines[at] = re.sub(r"\d+", lambda match: draw.choice((match[0], "0", "-1", "99999999", "3")), lines[at])
        elif change == 3:
            lines[at] = lines[at].replace("i32", draw.choice(("f32", "i1", "i64", "!tt.ptr<f16>")))
        elif change == 4:
            lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
        else:
            other = draw.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    text = "\n".join(lines)
    return capture.with_(
        artifacts=tuple(replace(one, data=text) if one.stage == "ttgir" else one for one in capture.artifacts)
    )


@pytest.mark.parametrize("seed", [13, 145, 148, *range(5)])
def test_damaged_ir_is_counted_or_refused(whole: Capture, seed: int) -> None:
    with suppress(IrscopeError):
        found = roofline_of(damaged(whole, seed), PEAKS["h100"])
        roofline_text(found)
        roofline_json(found)
        spans = [found.dram_bytes, found.distinct_bytes, *(one.flops for one in found.units)]
        assert all(0 <= low <= high for low, high in spans)
        roofline_svg(found)

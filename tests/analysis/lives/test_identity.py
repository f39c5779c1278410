"""Which operation is which, against the compiler: it carries a location of their own for each through its passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from irscope.analysis.lives.identity import Compared, trail_of
from irscope.ir.columns import read_body
from irscope.ir.locations.operations import with_operation_locations
from irscope.ir.locations.stages import read_locations
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture
from irscope.record.process.requests import request_from_capture
from irscope.record.process.session import record_request
from tests.analysis.recorded import example
from tests.analysis.trails import sample
from tests.marks import newest_but

RARE = ("cuda:80", "cuda:100")
Tags = Callable[[int], tuple[int, ...]]


def tags_of(tagged: str, plain: str) -> Tags:
    """A line of the plain text -> the lines of the source that the compiler says it comes from, innermost first."""
    body, other = (read_body(text, "mlir", frozenset({"locations"})) for text in (plain, tagged))
    line_of = dict(zip(body.numbers, other.numbers, strict=True))
    locations = read_locations(tagged, "mlir")
    return lambda line: tuple(
        frame.line // 1000 for frame in locations.chain_at(line_of[line]) if frame.file.endswith("ttgir")
    )


def judged(capture: Capture) -> Counter[str]:
    """The pairs of all steps in Triton's dialects: right, wrong, or unknown where the compiler lost the location."""
    request = request_from_capture(capture, snapshots="all", disassemble=False, layouts=False)
    source = capture.text("source")
    tagged = record_request(replace(request, text=with_operation_locations(source), last_stage="ttgir")).captures[0]
    steps = {step.label: step for step in trail_of(tagged).steps}
    found: Counter[str] = Counter()
    for step in trail_of(capture).steps:
        if not step.label.startswith("tt"):
            continue
        other = steps[step.label]
        assert strip_locations(step.right, "mlir") == strip_locations(other.right, "mlir"), step.label
        is_source = step.left == source
        before: Tags = (lambda line: (line,)) if is_source else tags_of(other.left, step.left)
        after = tags_of(other.right, step.right)
        for lot in Compared(step).lots(lambda name: name != "arith.constant"):
            if len(lot.lefts) == 1 == len(lot.rights):
                one, two = before(lot.lefts[0]), after(lot.rights[0])
                is_same = not one or not two or one[0] in two or two[0] in one
                found["unknown" if not one or not two else "right" if is_same else "wrong"] += 1
            elif lot.lefts and lot.rights:
                found["unclear"] += len(lot.rights)
    return found


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize("target", newest_but([], "cuda:90", "hip:gfx942", *RARE, rare=RARE))
def test_pairs_are_the_compilers(target: str) -> None:
    found = judged(sample(target))
    assert found["right"] > 500
    # A loop's end, which the pipeliner makes anew at the place of the old one, and rematerialised ranges.
    assert found["wrong"] * 200 <= found["right"], found
    assert found["unclear"] * 12 <= found["right"], found


@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.slow
def test_pairs_are_the_compilers_in_a_kernel_of_two_loops() -> None:
    capture = example("attention", "cuda:90")
    asked = request_from_capture(capture, snapshots="all", disassemble=False, layouts=False)
    capture = record_request(replace(asked, last_stage="ttgir")).captures[0]
    found = judged(capture)
    assert found["right"] > 2500
    assert found["wrong"] * 200 <= found["right"], found
    assert found["unclear"] * 10 <= found["right"], found

"""What is said to make the compiler know that an argument is a multiple of 16."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.arguments import aligned
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.target import Target


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        # Compiled as a constant, 1000 gives `ld.global.v4.b32` of float16, 1001 `ld.global.b16`.
        (
            {"n": 1000},
            "a multiple of 16 (pad the tensor), or make it tl.constexpr: then it is known that 8 divides 1000",
        ),
        ({"n": 1000, "m": 1000}, "make them tl.constexpr: then it is known that 8 divides 1000"),
        ({"n": 1000, "m": 36}, "make them tl.constexpr: then it is known that 4 divides 1000 and 36"),
        ({"n": 1001}, "or make it tl.constexpr if it is one already"),
        ({"n": 1001, "m": 1000}, "or make them tl.constexpr if they are already"),
        ({"n": None}, "or make it tl.constexpr if it is one already"),
    ],
)
def test_a_constant_tells_of_its_own_power_of_two(sizes: dict[str, int | None], said: str) -> None:
    arguments = tuple(Argument(name, "scalar", "int", value) for name, value in sizes.items() if value is not None)
    launch = Launch(Kernel("row"), tuple((name, "i32") for name in sizes), record=LaunchRecord(arguments))
    suggestion = aligned(Capture(launch=launch, target=Target.parse("cuda:90")), list(sizes))
    assert suggestion.text.endswith(said)
    assert [change.name for change in suggestion.changes] == list(sizes)

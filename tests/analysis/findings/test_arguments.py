"""What is said to make the compiler know that an argument is a multiple of 16."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.analysis.findings.arguments import aligned, divisibility_cause, not_so, unit_stride, unit_stride_cause
from irscope.analysis.findings.model import FixChange
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.target import Target


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        # Compiled as a constant, 1000 gives `ld.global.v4.b32` of float16, 1001 `ld.global.b16`.
        (
            {"n": 1000},
            "a multiple of 16 (pad the tensor), or make it tl.constexpr: then the compiler knows that 8 divides 1000",
        ),
        ({"n": 1000, "m": 1000}, "make them tl.constexpr: then the compiler knows that 8 divides 1000"),
        ({"n": 1000, "m": 36}, "make them tl.constexpr: then the compiler knows that 4 divides 1000 and 36"),
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


def test_only_a_change_of_an_argument_has_to_hold_in_the_launch() -> None:
    record = LaunchRecord((Argument("n", "scalar", "int", 1000),))
    launch = Launch(Kernel("row"), (("n", "i32"),), constants=(("BLOCK", "64"),), record=record)
    capture = Capture(launch=launch, target=Target.parse("cuda:90"))
    assert "16 does not divide" in not_so(capture, (FixChange("divisible", "n", 16),))
    assert not not_so(capture, (FixChange("divisible", "n", 8),))
    assert "it is 8 in this launch, not 4" in not_so(capture, (FixChange("factor", "n", 4, 8),))
    others = (
        FixChange("option", "num_warps", 8), FixChange("constant", "BLOCK", 128), FixChange("stages", "18", 3),
        FixChange("narrow", "31", ".to(tl.float32)", 5),
    )  # fmt: skip
    assert not not_so(capture, others)


def _described(argument: Argument, source: str = "def row(x, n, BLOCK: tl.constexpr):") -> tuple[str, str]:
    """The cause and the fix where Triton specialises on an argument neither as 1 nor as a multiple of 16."""
    launch = Launch(Kernel("row", source=source), (("n", "i32"),), record=LaunchRecord((argument,)))
    one = Capture(launch=launch, target=Target.parse("cuda:90"))
    if argument.value == 1:
        return unit_stride_cause(one, "n").text, unit_stride(one, "n", ()).text
    return divisibility_cause(one, "n").text, aligned(one, ["n"]).text


@pytest.mark.parametrize("value", [1, 64])
def test_what_keeps_triton_from_specialising_is_named(value: int) -> None:
    plain = Argument("n", "scalar", "int", value)
    cause, fix = _described(replace(plain, specializes=False))
    assert "do_not_specialize names it" in cause
    assert "take n out of do_not_specialize" in fix
    # Tried on 3.6.0 and 3.9.0: an annotated int that is 1 stays an argument; 16 is known all the same.
    annotated = "@triton.jit\ndef row(x, n: int, BLOCK: tl.constexpr):\n    pass\n"
    cause, fix = _described(plain, annotated)
    assert ("it is annotated as int" in cause) == ("drop the annotation of n: int" in fix) == (value == 1)
    assert "do_not_specialize" not in cause + fix
    # An annotation of another parameter, or in the body, is no cause.
    for other in ("def row(x: int, n):", "def row(x, n):\n    n: int = 3"):
        cause, fix = _described(plain, other)
        assert "annotat" not in cause + fix
    if value != 1:
        cause, fix = _described(replace(plain, specializes_on_alignment=False))
        assert "do_not_specialize_on_alignment names it" in cause
        assert "take n out of do_not_specialize_on_alignment" in fix

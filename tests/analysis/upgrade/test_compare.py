"""What is worse, what is other code and what is the same, of planted changes whose effect is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from irscope.analysis.upgrade.compare import compared, compile_time_change, pairs_of, variants_of, with_measurement
from irscope.analysis.upgrade.model import UpgradeRow
from irscope.device.measurement import Agreement, Measurement
from irscope.model.capture import Capture, Environment, Failure, Kernel, Launch, Resources, Target
from irscope.model.evidence import CompileTimes, TimeSpan
from tests.analysis.upgrade.compilers import TextCompiler
from tests.analysis.upgrade.planted_code import PLANTED, TWINS, PlantedCode, captures


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.name)
def test_a_planted_change_of_the_code(plant: PlantedCode) -> None:
    before, after = plant.planted()
    for row in (compared(before, after), compared(after, before)):
        worse = [change.name for change in row.changes if change.verdict == "worse"]
        assert (row.verdict, worse) == (("worse", [plant.fact]) if plant.fact else ("other", [])), row.changes
        assert all(change.text for change in row.changes)


@pytest.mark.parametrize("plant", TWINS, ids=lambda plant: plant.name)
def test_a_clean_twin_is_the_same(plant: PlantedCode) -> None:
    before, after = plant.planted()
    assert compared(before, after).verdict == "same"
    assert compared(before, before).verdict == "same"


def test_equal_results_on_a_gpu_show_that_arithmetic_and_order_may_change() -> None:
    row = compared(*PLANTED[0].planted())
    shown = with_measurement(row, Measurement("GPU", agreement=Agreement("identical", 0.0, 0.0)))
    assert (row.verdict, shown.verdict) == ("worse", "other")
    differing = with_measurement(row, Measurement("GPU", agreement=Agreement("different", 1.0, 1.0)))
    assert differing.verdict == "worse"
    assert differing.changes[0].name == "result"


def version(capture: Capture, triton: str) -> Capture:
    return replace(capture, environment=replace(capture.environment, triton_version=triton))


def failed(capture: Capture, kind: str, triton: str) -> Capture:
    failure = Failure(kind, "no lowering for arith.negf", "ttgir")  # pyright: ignore[reportArgumentType]
    return replace(version(capture, triton), artifacts=capture.artifacts[:1], status="failed", failure=failure)


def test_a_failure_of_the_one_that_was_given_the_ir_of_the_other_is_not_compared() -> None:
    """What 3.6 makes of 3.9's IR says nothing of what it made of its own front end's; what 3.9 makes of 3.6's does."""
    works = captures("softmax", "sass")
    old_fails = compared(failed(works, "pass", "3.6.0"), version(works, "3.9.0"), source_version="3.9.0")
    assert (old_fails.verdict, old_fails.changes) == ("unpaired", ())
    assert "does not compile the IR of Triton 3.9.0" in old_fails.why_not_compared
    own = compared(failed(works, "pass", "3.6.0"), version(works, "3.9.0"))
    assert own.verdict == "better"
    new_fails = compared(version(works, "3.6.0"), failed(works, "pass", "3.9.0"), source_version="3.6.0")
    assert new_fails.verdict == "worse"
    unread = compared(version(works, "3.6.0"), failed(works, "parse", "3.9.0"), source_version="3.6.0")
    assert unread.verdict == "unpaired"
    neither = compared(failed(works, "pass", "3.6.0"), failed(works, "pass", "3.9.0"))
    assert (neither.verdict, neither.why_not_compared) == (
        "unpaired",
        "neither compiles it: no lowering for arith.negf",
    )


def test_registers_that_hold_what_was_spilled_are_not_worse() -> None:
    capture = captures("attention", "sass")
    spilling = replace(capture, resources=Resources(registers=128, spill_store_bytes=10_618, spill_load_bytes=10_618))
    holding = replace(capture, resources=Resources(registers=255, spill_store_bytes=716, spill_load_bytes=716))
    assert compared(spilling, holding).verdict == "better"
    back = compared(holding, spilling)
    assert back.verdict == "worse"
    assert [change.name for change in back.changes if change.verdict == "worse"] == ["spilled_bytes"]
    more = replace(capture, resources=Resources(registers=255, spill_store_bytes=10_618, spill_load_bytes=10_618))
    assert compared(spilling, more).verdict == "worse"


def launched(version: str, name: str = "k", target: str = "90", **launch: Any) -> Capture:
    made = Launch(Kernel(name, "k.py", 3), (("x", "*fp32"), ("BLOCK", "constexpr")), (("BLOCK", "64"),))
    return Capture(replace(made, **launch), Target("cuda", target, 32), environment=Environment(triton_version=version))


def test_the_same_kernel_types_and_constants_are_a_pair() -> None:
    small, large = ((("BLOCK", "64"),), (("BLOCK", "128"),))
    ours = [launched("1", constants=small), launched("1", constants=large), launched("1", "gone")]
    theirs = [launched("2", constants=large), launched("2", "new"), launched("2", constants=small)]
    assert pairs_of(ours, theirs) == [(ours[0], theirs[2]), (ours[1], theirs[0]), (ours[2], None), (None, theirs[1])]


def test_attributes_and_defaults_may_differ_but_the_alike_come_first() -> None:
    aligned, plain = (("x", "tt.divisibility=16"),), ()
    ours = [launched("1", attributes=plain), launched("1", attributes=aligned)]
    theirs = [launched("2", attributes=aligned), launched("2", attributes=(("x", "tt.pointer_range=32"),))]
    assert pairs_of(ours, theirs) == [(ours[0], theirs[1]), (ours[1], theirs[0])]


def test_other_targets_kernels_and_options_that_were_set_are_no_pair_before_others() -> None:
    ours = [launched("1", set_options=(("num_warps", 8),)), launched("1", target="80")]
    theirs = [launched("2", set_options=(("num_warps", 4),)), launched("2", set_options=(("num_warps", 8),))]
    assert pairs_of(ours, theirs) == [(ours[0], theirs[1]), (ours[1], None), (None, theirs[0])]


def test_variants_are_told_apart_by_what_differs_alone() -> None:
    rows = [
        launched("1", constants=(("BLOCK", "64"),)),
        launched("1", constants=(("BLOCK", "128"),)),
        launched("1", "one"),
    ]
    assert variants_of(rows) == ["BLOCK=64", "BLOCK=128", ""]


@dataclass
class _Clocked:
    """Compiles whatever it is given in these microseconds of processor time, with one pass in it."""

    times_us: tuple[int, ...]
    pass_ns: int
    version: str = "1.0"

    def compile(self, captures: Sequence[Capture]) -> Iterator[tuple[int, Capture]]:
        yield from enumerate(map(took, captures, self.times_us))

    def timed(self, capture: Capture) -> CompileTimes:
        spans = TimeSpan("k", "compile", 0, 9_000_000, 0), TimeSpan("ttgir", "stage", 0, 9_000_000, 1)
        return CompileTimes((*spans, TimeSpan("pipeline#1", "pass", 0, self.pass_ns, 2)))

    def graft(self, grafts: object) -> Iterator[tuple[int, None]]:
        raise NotImplementedError

    def disassemble(self, capture: Capture) -> Capture:
        return capture


def took(capture: Capture, processor_us: int) -> Capture:
    return replace(
        capture, artifacts=(*capture.artifacts[:-1], replace(capture.artifacts[-1], processor_us=processor_us))
    )


def test_a_compile_that_got_slower_is_measured_again() -> None:
    whole = TextCompiler("1.0").whole()
    quick, slow = (
        UpgradeRow(took(whole, 50_000), took(whole, 52_000)),
        UpgradeRow(took(whole, 50_000), took(whole, 90_000)),
    )
    old = _Clocked((50_000, 70_000, 60_000), 1_000_000)
    change = compile_time_change([quick, slow], old, _Clocked((90_000, 80_000, 95_000), 8_000_000))
    assert change is not None
    assert (change.verdict, change.ratio, change.before_ms) == ("slower", 1.6, (50.0, 60.0, 70.0))
    assert (change.part, change.part_ms) == ("ttgir:pipeline#1", (1.0, 8.0))
    # The first compile was disturbed: another spread, another answer.
    again = compile_time_change([slow], old, _Clocked((65_000, 55_000, 90_000), 1_000_000))
    assert again is not None
    assert again.verdict == "same"
    assert compile_time_change([quick], old, old) is None

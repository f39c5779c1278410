"""What is a fix: changes of one kind together, and only what computes the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from irscope.analysis.findings.fixes import tried
from irscope.analysis.findings.model import Finding, FixChange, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.analysis.findings.tries import Budget
from irscope.machine.control import ElementBudget, Step
from irscope.machine.launch import RunLimits
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Resources
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.model.trial import Trial
from irscope.target import Target

TEXT = """module {
  tt.func public @k(%x: !tt.ptr<i32>, %n: i32, %m: i32) {
    %v = tt.load %x : !tt.ptr<i32>
    %w = arith.addi %v, %v : i32
    tt.store %x, %w : !tt.ptr<i32>
    tt.return
  }
}
"""
WARPS = (FixChange("option", "num_warps", 8),)
SIZE = FixChange("divisible", "n", 16)


def capture(text: str = TEXT, spilled: int = 64) -> Capture:
    arguments = (
        Argument("x", "tensor", "int32", shape=(4,), strides=(1,), storage_offset=0, storage_bytes=16),
        Argument("n", "scalar", "int", 7),
        Argument("m", "scalar", "int", 9),
    )
    record = LaunchRecord(arguments=arguments)
    launch = Launch(
        Kernel("k"),
        options=(("num_warps", 4),),
        grid=(1, 1, 1),
        record=record,
        signature=(("x", "*i32"), ("n", "i32"), ("m", "i32")),
    )
    return Capture(
        launch=launch,
        target=Target.parse("cuda:90"),
        artifacts=(Artifact("source", text), Artifact("ttgir", text)),
        resources=Resources(registers=32, spill_store_bytes=spilled),
        status="ok",
    )


def finding(code: str, *changes: FixChange) -> Finding:
    return Finding(code, "", 0, (), (), (), "", "", 0, (), tuple(Suggestion("", (one,)) for one in changes))


@pytest.mark.parametrize(("operation", "is_fix"), [("addi", True), ("muli", False)])
def test_what_computes_something_else_is_no_fix(operation: str, is_fix: bool) -> None:
    def compiled(_: Capture, trials: Sequence[Trial]) -> Iterator[tuple[int, Capture]]:
        yield from ((index, capture(TEXT.replace("addi", operation), 0)) for index, _ in enumerate(trials))

    ((answer,), _) = tried(Studied(capture()), [finding("IRS501", *WARPS)], compiled, Budget())
    (one,) = answer.suggestions
    assert one.proof is not None
    assert one.proof.is_better == is_fix
    assert ("same result" in one.proof.effects) == is_fix
    assert is_fix or "computes something else" in one.proof.failure


@pytest.mark.parametrize(("share", "gain", "left"), [(0.05, 0.01, 0.01), (0.05, 0.2, 0.05), (0.3, 0.01, 0.3)])
def test_a_small_finding_costs_no_more_than_its_fix_gains(share: float, gain: float, left: float) -> None:
    def compiled(_: Capture, trials: Sequence[Trial]) -> Iterator[tuple[int, Capture]]:
        yield from ((index, capture(TEXT, 0)) for index, _ in enumerate(trials))

    priced = replace(finding("IRS501", *WARPS), seconds=share, share=share)
    ((answer,), _) = tried(Studied(capture()), [priced], compiled, Budget(), None, lambda _: 1.0 - gain, 1.0)
    assert answer.share == pytest.approx(left)


@pytest.mark.parametrize(
    ("change", "gain", "is_fix"),
    [(WARPS[0], 0.2, True), (WARPS[0], 0.07, False), (SIZE, 0.07, True), (SIZE, 0.01, False)],
)
def test_other_options_have_to_gain_more_than_the_model_may_err(change: FixChange, gain: float, is_fix: bool) -> None:
    def compiled(_: Capture, trials: Sequence[Trial]) -> Iterator[tuple[int, Capture]]:
        yield from ((index, capture(TEXT, 0)) for index, _ in enumerate(trials))

    found = [finding("IRS501", change)]
    ((answer,), _) = tried(Studied(capture()), found, compiled, Budget(), None, lambda _: 1.0 - gain, 1.0)
    (one,) = answer.suggestions
    assert one.proof is not None
    assert one.proof.is_better == is_fix
    assert (f"predicted {1 - gain:.2f} times the time" in one.proof.effects) != is_fix


def test_what_has_no_time_to_compare_is_no_fix() -> None:
    def compiled(_: Capture, trials: Sequence[Trial]) -> Iterator[tuple[int, Capture]]:
        yield from ((index, capture(TEXT, 0)) for index, _ in enumerate(trials))

    found = [finding("IRS501", *WARPS)]
    ((answer,), _) = tried(Studied(capture()), found, compiled, Budget(), None, lambda _: None, 1.0)
    assert answer.best_fix is None
    assert [one.proof and "cannot be compared" in one.proof.failure for one in answer.suggestions] == [True]


def test_of_other_data_nothing_is_compared() -> None:
    def compiled(_: Capture, trials: Sequence[Trial]) -> Iterator[tuple[int, Capture]]:
        yield from ((index, capture(one.text, 0)) for index, one in enumerate(trials))

    ((answer,), _) = tried(Studied(capture()), [finding("IRS501", FixChange("divisible", "n", 16))], compiled, Budget())
    (one,) = answer.suggestions
    assert one.proof is not None
    assert one.proof.is_better
    assert "result not compared" in one.proof.effects


LOOP = """module {
  tt.func public @k(%x: !tt.ptr<i32>, %n: i32, %m: i32) {
    %first = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %end = arith.constant END : i32
    scf.for %i = %first to %end step %one : i32 {
      %v = tt.load %x : !tt.ptr<i32>
      %w = arith.addi %v, %v : i32
      tt.store %x, %w : !tt.ptr<i32>
    }
    tt.return
  }
}
"""


@pytest.mark.parametrize(
    ("iterations", "programs", "effect"),
    [
        (10, 9, "same result"),
        (100, 9, "same result (1 of 9 programs compared)"),
        (1 << 24, 9, "result not compared: more work than irscope does for it ('irscope verify --vs' compares)"),
        (1 << 24, 1, "result not compared: more work than irscope does for it ('irscope verify --vs' compares)"),
    ],
)
def test_no_more_is_executed_than_a_limit_of_work(
    iterations: int, programs: int, effect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the launch: each run ends where it has done the work of the limit, and two fixes need no more runs."""
    spent: list[int] = []
    spend = ElementBudget.spend

    def counted(self: ElementBudget, steps: Sequence[Step], programs: int) -> None:
        spent.append(len(steps))
        spend(self, steps, programs)

    monkeypatch.setattr(ElementBudget, "spend", counted)
    monkeypatch.setattr("irscope.analysis.findings.fixes.SMALL_WORK", RunLimits(elements=1 << 20))
    # Programs that may meet go one after another: each does the whole loop.
    monkeypatch.setattr("irscope.machine.launch._ELEMENTS_AT_ONCE", 1)
    text = LOOP.replace("END", str(iterations))

    def launched(spilled: int) -> Capture:
        made = capture(text, spilled)
        return replace(made, launch=replace(made.launch, grid=(programs, 1, 1)))

    def compiled(_: Capture, trials: Sequence[Trial]) -> Iterator[tuple[int, Capture]]:
        yield from ((index, launched(0)) for index, _ in enumerate(trials))

    found = [finding("IRS501", *WARPS), finding("IRS502", FixChange("option", "num_warps", 2))]
    answers, _ = tried(Studied(launched(64)), found, compiled, Budget())
    for answer in answers:
        (one,) = answer.suggestions
        assert one.proof is not None
        assert one.proof.is_better
        assert one.proof.effects[-1] == effect
    assert sum(spent) <= 4 * 1024


def test_the_changes_of_one_kind_are_compiled_together_first() -> None:
    asked: list[Trial] = []

    def compiled(_: Capture, trials: Sequence[Trial]) -> Iterator[tuple[int, Capture]]:
        asked.extend(trials)
        yield from ((index, capture(one.text)) for index, one in enumerate(trials))

    narrow = [finding("IRS101", FixChange("divisible", name, 16)) for name in ("n", "m")]
    found, _ = tried(Studied(capture()), [replace(one, line=3) for one in narrow], compiled, Budget())
    assert [one.suggestions[0].changes for one in found] == [
        (FixChange("divisible", "n", 16), FixChange("divisible", "m", 16))
    ] * 2
    assert asked[0].text.count("tt.divisibility = 16") == 2

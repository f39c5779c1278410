"""What the command line says of failed captures, and with which exit code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.cli.captures import check_plan, tell_failures, tell_incomplete
from irscope.cli.show import summary
from irscope.errors import PlanError
from irscope.model.capture import Artifact, Autotuning, Capture, Failure, Kernel, Launch, PassSnapshot, Target
from irscope.plan import PassPlan
from irscope.render.text.failure import failure_text
from irscope.store.shelf import StoredCaptures

UNFIT = Failure("fit", "shared memory: 2 bytes per CTA needed, 1 available on cuda:90: limit exceeded by 1", "cubin")
BROKEN = Failure(
    "pass", "k.py:3:4: error: no\nPassManager::run failed", "ttgir", "ttgir:coalesce#1", "k.py:3:4: error: no"
)


def capture(failure: Failure | None = None, config: int | None = None, kernel: str = "k") -> Capture:
    tuning = None if config is None else Autotuning(config, 2, f"BLOCK: {config}")
    return Capture(
        Launch(Kernel(kernel), autotuning=tuning),
        Target("cuda", "90", 32),
        snapshots=(PassSnapshot(0, "ttir", "inliner", 1), PassSnapshot(1, "ttgir", "coalesce", 1)),
        status="failed" if failure else "ok",
        failure=failure,
    )


def test_a_configuration_that_does_not_fit_fails_nothing_where_another_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert tell_failures(StoredCaptures.of([capture(UNFIT, 0), capture(None, 1)])) == 0
    assert "k (cuda:90) failed to fit: shared memory" in capsys.readouterr().err
    assert tell_failures(StoredCaptures.of([capture(UNFIT, 0), capture(UNFIT, 1)])) == 1
    assert tell_failures(StoredCaptures.of([capture(BROKEN, 0), capture(None, 1)])) == 1
    assert tell_failures(StoredCaptures.of([capture(UNFIT), capture(None)])) == 1
    assert tell_failures(StoredCaptures.of([capture(UNFIT, 0), capture(None, 1, "other")])) == 1
    assert tell_failures(StoredCaptures.of([capture(), capture(None, 1)])) == 0


def test_what_was_said_is_said_once() -> None:
    assert failure_text(capture(BROKEN)).splitlines() == [
        "k (cuda:90) failed in ttgir:coalesce#1: k.py:3:4: error: no",
        "PassManager::run failed",
    ]


def test_a_rule_that_was_not_reached_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    plan = PassPlan.parse("-ttgir:accelerate_matmul -inliner")
    check_plan(plan, [capture(BROKEN)])
    assert "no pass 'ttgir:accelerate_matmul' was reached before the compile failed" in capsys.readouterr().err
    for whole in (capture(), capture(UNFIT)):
        with pytest.raises(PlanError, match=r"no pass is named 'ttgir:accelerate_matmul'"):
            check_plan(plan, [capture(BROKEN), whole])


def test_the_table_tells_what_does_not_fit_from_what_failed() -> None:
    text = summary(StoredCaptures.of([capture(UNFIT), capture(BROKEN), capture()]), color=False)
    assert text.count("DOES NOT FIT") == 1
    assert text.count("FAILED") == 1


def test_operations_that_no_table_has_are_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    head = "module {\n  tt.func public @k(%p: !tt.ptr<f32>) {\n    %0 = tt.load %p : !tt.ptr<f32>\n"
    text = f"{head}    BODY\n    tt.return\n  }}\n}}\n"
    odd = "%1 = next.fold %0, %0 : f32\n    %2 = next.fold %1, %0 : f32\n    tt.store %p from %2 : !tt.ptr<f32>"
    for body, expected in (
        ("tt.store %p, %0 : !tt.ptr<f32>", ""),
        (odd, "k (cuda:90): 3 operations of unknown form, whose effects are left out: next.fold ×2, tt.store ×1\n"),
    ):
        with_text = replace(capture(), artifacts=(Artifact("ttgir", text.replace("BODY", body)),))
        assert tell_incomplete(StoredCaptures.of([with_text])) == 0
        assert capsys.readouterr().err == expected

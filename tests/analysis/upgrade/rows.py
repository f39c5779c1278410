"""Rows of an upgrade between compilers of texts, one of each kind."""

from __future__ import annotations

from dataclasses import replace

from irscope.analysis.diff.texts import diff_texts
from irscope.analysis.findings.model import Finding
from irscope.analysis.regressions import changed_facts, facts_of
from irscope.analysis.upgrade.blame import blame_of
from irscope.analysis.upgrade.compare import with_measurement
from irscope.analysis.upgrade.model import Blame, CompileTimeChange, Guilty, Upgrade, UpgradeRow
from irscope.device.measurement import Agreement, Measurement, Ratio, Timing
from irscope.model.capture import Capture
from irscope.model.trial import Side
from tests.analysis.upgrade.compilers import TextCompiler, answered

__all__ = ["a_timed_upgrade", "an_upgrade"]

_FINDING = Finding("IRS501", "", 3, (), (), (), "it spills 64 bytes", "64 bytes", 64, ())


def named(capture: Capture, name: str) -> Capture:
    return replace(capture, launch=replace(capture.launch, kernel=replace(capture.launch.kernel, name=name)))


def row(name: str, before: TextCompiler, after: TextCompiler, variant: str = "") -> UpgradeRow:
    ours, theirs = named(before.whole(), name), named(after.whole(), name)
    changes = changed_facts(facts_of(ours), facts_of(theirs))
    compilers: dict[Side, TextCompiler] = {"before": before, "after": after}
    found, _ = answered(blame_of(ours, theirs, changes), compilers)
    assert found is None or isinstance(found, Blame)
    return UpgradeRow(ours, theirs, variant, changes, found)


def an_upgrade() -> Upgrade:
    """Something worse with everything that can be said of it, something better, a failure, nothing, half a pair."""
    old = TextCompiler("1.0")
    worse = row("slow", old, TextCompiler("2.0", {"ttgir": 60}), "BLOCK=64")
    assert worse.blame is not None
    diff = diff_texts("%0 = arith.addi %a, %b : i32\n", "%0 = arith.subi %a, %b : i32\n", "mlir")
    guilty = Guilty("ttgir:coalesce#1", ("ran", "skipped"), ("", "x=1"), True, diff, "without it both are the same")
    blame = replace(
        worse.blame,
        guilty=guilty,
        doubts=("Triton 2.0 does not reproduce the result of a complete compile from its own ttir,",),
    )
    return Upgrade(
        ("1.0", "2.0"),
        (
            row("same", old, TextCompiler("2.0")),
            row("fast", TextCompiler("1.0", {"ptx": 60}), TextCompiler("2.0")),
            row("broken", old, TextCompiler("2.0", fails="llir")),
            replace(worse, blame=blame, findings=(_FINDING,)),
            UpgradeRow(named(old.whole(), "gone"), None),
            row("little", old, TextCompiler("2.0", {"ptx": 2})),
        ),
        ("1.0",),
        12,
        compile_time=CompileTimeChange("slow", "cuda:90", (210.0, 220.0), (300.0, 320.0), "ttgir:pipe#1", (1.0, 90.0)),
    )


def a_timed_upgrade() -> Upgrade:
    """The same, with launches: one slower with another result, one within the noise, one faster, one not made."""
    timed = an_upgrade()
    slower = measurement(
        1.25, Agreement("different", 0.5, 2.0, "out", 12, "12 elements beyond the noise", 0.1, 5.0, 1.5)
    )
    measures = {
        "little": slower,
        "slow": replace(measurement(1.004, Agreement("identical", 0.0, 0.0)), ratio=Ratio(1.004, 0.99, 1.02)),
        "fast": replace(measurement(0.5, None), why_not_compared="idx holds other integers"),
        "same": Measurement("Fake GPU", agreement=Agreement("fault", detail="an illegal memory access")),
    }
    rows = (
        with_measurement(one, measures[one.capture.name])
        if one.capture.name in measures
        else replace(one, why_not_measured="it does not compile with both")
        for one in timed.rows
    )
    return replace(timed, rows=tuple(rows), device="Fake GPU")


def measurement(ratio: float, agreement: Agreement | None) -> Measurement:
    before, after = (Timing(100 * one, 99 * one, 102 * one, 100) for one in (1.0, ratio))
    return Measurement("Fake GPU", before, after, Ratio(ratio, ratio - 0.01, ratio + 0.01), agreement)

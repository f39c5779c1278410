"""The decisions about an operation, found by its location, and about a line of Python."""

from __future__ import annotations

from irscope.analysis.passes.decisions import decisions_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.logs.decisions import ThreadWidth
from irscope.model.capture import Artifact, Capture, Kernel, Launch
from irscope.model.evidence import CompilerLog
from irscope.target import Target
from tests.record.reasons import DATA, line_of, stored_logs

FILE = "kernels/reasons.py"
HELPER, WIDE, NARROW = (line_of(text) for text in ("return tl.load", "helped_wide =", "helped_narrow ="))
TTGIR = f"""module {{
  %a = tt.load %p : tensor<8xf16> loc(callsite("{FILE}":{HELPER}:12 at "{FILE}":{WIDE}:19))
  %b = tt.load %q : tensor<8xf16> loc(callsite("x"("{FILE}":{HELPER}:12) at "{FILE}":{NARROW}:21))
  %c = arith.constant 0 : i32
}}
"""


def capture(log: CompilerLog | None) -> Capture:
    artifacts = (Artifact("ttgir", TTGIR),)
    return Capture(Launch(Kernel("helped", FILE)), Target.parse("cuda:90"), artifacts=artifacts, log=log)


def test_an_operation_has_its_own_and_not_those_of_another_call() -> None:
    (path,) = DATA.glob("3.9.0.cuda90.xz")
    one = capture(CompilerLog(tuple(stored_logs(path)["helped"])))
    decisions, locations = decisions_of(one), read_locations(one.text("ttgir"), "mlir")
    wide = decisions.about(locations.chain_at(2))
    assert [decision.kind for decision in wide] == ["thread-width"]
    narrow = decisions.about(locations.chain_at(3))
    assert [decision.kind for decision in narrow] == ["thread-width", "vector-width"]
    widths = [decision.at_once for decision in (wide[0], narrow[0]) if isinstance(decision, ThreadWidth)]
    assert widths == [8, 1]
    assert decisions.about(locations.chain_at(4)) == ()
    # On its line of Python stand the callers too.
    assert set(decisions.on(FILE, WIDE)) == set(wide)
    assert set(decisions.on(FILE, HELPER)) == {*wide, *narrow}
    assert decisions.on("other.py", HELPER) == ()


def test_without_a_log_there_are_none() -> None:
    assert decisions_of(capture(None)).all == ()

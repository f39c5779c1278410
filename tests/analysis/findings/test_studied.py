"""What findings read of a capture: the traffic of its global memory, and the compiler's decisions."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.studied import GlobalTraffic, decisions_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.logs.decisions import ThreadWidth
from irscope.ir.mlir.uses import read_uses
from irscope.model.capture import Artifact, Capture, Kernel, Launch
from irscope.model.evidence import CompilerLog
from irscope.target import Target
from tests.record.reasons import DATA, line_of, stored_logs

_TYPES = "tensor<64x64x!tt.ptr<f16>, #blocked>"
KERNEL = f"""#blocked = #ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1]}}>
module {{
  tt.func public @kernel(%a: {_TYPES}, %n: i32, %c0: i32, %c1: i32) {{
    scf.for %i = %c0 to %n step %c1  : i32 {{
      %x = tt.load %a : {_TYPES}
      scf.yield
    }}
    %y = tt.load %a : {_TYPES}
    tt.store %a, %y : {_TYPES}
    tt.return
  }}
}}
"""
TILE = 64 * 64 * 2


def test_each_loop_counts_16_times() -> None:
    traffic = GlobalTraffic(read_uses(KERNEL))
    assert [traffic.bytes_at(line) for line in range(1, 12)] == [0, 0, 0, 0, TILE, 0, 0, TILE, TILE, 0, 0]
    assert traffic.share(TILE, 0) == pytest.approx(1 / 18)
    assert traffic.share(TILE, 1) == pytest.approx(16 / 18)
    assert traffic.told(8) == f"global accesses move tiles of {2 * TILE} bytes outside of loops"
    assert traffic.told(5) == f"global accesses move tiles of {TILE} bytes in an iteration"


def test_an_iteration_asks_for_what_its_own_loop_has() -> None:
    """Not for what the loop beside it has, nor once for what an inner loop has."""
    loop = KERNEL[KERNEL.index("    scf.for") : KERNEL.index("    %y")]
    twice = loop.replace("      scf.yield", f"      tt.store %a, %x : {_TYPES}\n      scf.yield")
    inner = twice.replace("      scf.yield", loop + "      scf.yield")
    traffic = GlobalTraffic(read_uses(KERNEL.replace(loop, loop + twice + inner)))
    told = [traffic.told(line) for line in (5, 9, 14, 15, 17)]
    assert told[:2] == [f"global accesses move tiles of {size * TILE} bytes in an iteration" for size in (1, 2)]
    assert told[2] == told[3] == f"{told[1]}, besides those of its inner loops"
    assert told[4] == told[0]


def test_a_kernel_that_asks_for_nothing_hides_nothing() -> None:
    assert GlobalTraffic(read_uses("module {\n}\n")).share(1, 0) == 1.0


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


def test_without_a_log_there_are_none() -> None:
    assert decisions_of(capture(None)).all == ()

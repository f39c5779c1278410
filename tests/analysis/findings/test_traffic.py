"""What is seen beside a kernel's traffic: a loop counts 16 times, and a vector beside a tile is nothing."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.traffic import Traffic
from irscope.ir.mlir.uses import read_uses

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
    traffic = Traffic(read_uses(KERNEL))
    assert [traffic.bytes_at(line) for line in range(1, 12)] == [0, 0, 0, 0, TILE, 0, 0, TILE, TILE, 0, 0]
    assert traffic.share(TILE, 0) == pytest.approx(1 / 18)
    assert traffic.share(TILE, 1) == pytest.approx(16 / 18)
    assert traffic.told(8) == f"global memory is asked for tiles of {2 * TILE} bytes outside of loops"
    assert traffic.told(5) == f"global memory is asked for tiles of {TILE} bytes in an iteration"


def test_an_iteration_asks_for_what_its_own_loop_has() -> None:
    """Not for what the loop beside it has, nor once for what an inner loop has."""
    loop = KERNEL[KERNEL.index("    scf.for") : KERNEL.index("    %y")]
    twice = loop.replace("      scf.yield", f"      tt.store %a, %x : {_TYPES}\n      scf.yield")
    inner = twice.replace("      scf.yield", loop + "      scf.yield")
    traffic = Traffic(read_uses(KERNEL.replace(loop, loop + twice + inner)))
    told = [traffic.told(line) for line in (5, 9, 14, 15, 17)]
    assert told[:2] == [f"global memory is asked for tiles of {size * TILE} bytes in an iteration" for size in (1, 2)]
    assert told[2] == told[3] == f"{told[1]}, besides those of its inner loops"
    assert told[4] == told[0]


def test_a_kernel_that_asks_for_nothing_hides_nothing() -> None:
    assert Traffic(read_uses("module {\n}\n")).share(1, 0) == 1.0

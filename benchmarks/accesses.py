"""How long global accesses take to evaluate and count: python benchmarks/accesses.py.

First a tile of 128×256 over three programs; then `--costs` of the flash attention of examples/, beside its compile.
Both need Triton and torch to record with, and no GPU. Processor time, of the first run and the best of five.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

import irscope  # noqa: E402
from irscope.ir.mlir.reader import parse_mlir  # noqa: E402
from irscope.memory.costs import costs_of  # noqa: E402

TILE = """
import torch
import triton
import triton.language as tl


@triton.jit
def tile(x, out, m, n, stride_x, stride_out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (r < m) & (c < n)
    tl.store(out + r * stride_out + c, tl.load(x + r * stride_x + c, mask=mask), mask=mask)


x, out = (torch.empty(300, 200, device="cuda") for _ in range(2))
tile[(3, 1)](x, out, 300, 200, 200, 200, ROWS=128, COLUMNS=256)
"""


def best(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of processor time: of the first run, and of the best of five."""
    times: list[float] = []
    for _ in range(5):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return times[0], min(times)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "tile.py"
        script.write_text(TILE, "utf-8")
        tile = irscope.record(str(script), target="cuda:90")
    first, again = best(lambda: costs_of(tile))
    print(f"a tile of 128×256, {(tile.launch.grid or (0,))[0]} programs: {first:.3f} s, again {again:.3f} s")
    for capture in irscope.record_all(str(HERE.parent / "examples" / "flash_attention.py"), target="cuda:90"):
        parse_mlir.cache_clear()
        first, again = best(lambda: costs_of(capture))  # noqa: B023
        compiled = (capture.compile_us or 0) / 1e6
        rows = sum(cost.access is not None for cost in costs_of(capture))
        print(
            f"{capture.name} {capture.launch.grid}: compiled in {compiled:.2f} s; {rows} accesses: "
            f"{first:.3f} s, {first / compiled:.0%} of that; again {again:.3f} s, {again / compiled:.0%}"
        )


if __name__ == "__main__":
    main()

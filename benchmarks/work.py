"""What a profiled launch computed and moved, by the hardware's counters, beside what `irscope roofline` says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from irscope.analysis.counters.operations import MatchedInstruction
from irscope.analysis.roofline import roofline_of
from irscope.memory.addresses.footprint import SECTOR_BYTES
from irscope.model.capture import Capture

_EACH = {
    "FADD": 1,
    "FMUL": 1,
    "FMNMX": 1,
    "FFMA": 2,
    "DADD": 1,
    "DMUL": 1,
    "DFMA": 2,
    "HMUL2": 2,
    "HFMA2": 4,
    "HADD2": 2,
}
"""Operations of one thread's instruction on floating-point numbers."""
_WARPS_OF_A_GROUP = 4

# HGMMA.64x128x16.F32.BF16   QGMMA.64x64x32.F32.E4M3.E4M3
_GROUP_PRODUCT = re.compile(r"(?:HGMMA|QGMMA|IGMMA)\.(\d+)x(\d+)x(\d+)\.")
# HMMA.16816.F32   HMMA.1688.F32.TF32   DMMA.8x8x4
_WARP_PRODUCT = re.compile(r"(?:HMMA|IMMA|QMMA|DMMA)\.(?:(\d+)x(\d+)x(\d+)|168(\d+))\b")
# HADD2.F32 R4, -RZ, R4.H0_H0 only widens a number.
_WIDENING = re.compile(r"HADD2\.(?:F32|BF16_V2)? .*-RZ")


def counted_work(instructions: Sequence[MatchedInstruction]) -> dict[str, int]:
    """FLOP of a launch by unit, from how often each instruction was executed: matrix, vector and special."""
    found = Counter[str]()
    for one in instructions:
        if product := _product_flops(one.text):
            found["matrix"] += product * (one.counters.executed or 0)
        elif one.opcode == "MUFU":
            found["special"] += one.counters.threads or 0
        elif one.opcode in _EACH and not _WIDENING.search(one.text):
            found["vector"] += _EACH[one.opcode] * (one.counters.threads or 0)
    return dict(found)


def _product_flops(text: str) -> int:
    """FLOP of one warp's instruction of a matrix unit; 0 of any other."""
    if match := _GROUP_PRODUCT.search(text):
        m, n, k = map(int, match.groups())
        return 2 * m * n * k // _WARPS_OF_A_GROUP
    if match := _WARP_PRODUCT.search(text):
        m, n, k = map(int, match.groups()[:3]) if match[1] else (16, 8, int(match[4]))
        return 2 * m * n * k
    return 0


def predicted_work(capture: Capture) -> dict[str, Any]:
    """FLOP by unit, copies included, and bytes of DRAM read and written: (least, most) of each."""
    roofline = roofline_of(capture, None)
    flops = dict[str, tuple[float, float]]()
    for one in roofline.units:
        low, high = flops.get(one.unit.kind, (0, 0))
        flops[one.unit.kind] = (low + one.executed_flops[0], high + one.executed_flops[1])
    moved = {
        way: tuple(
            SECTOR_BYTES * sum(one.sectors[side] for one in roofline.touched if one.is_read is reads) for side in (0, 1)
        )
        for way, reads in (("read", True), ("written", False))
    }
    return {"flops": flops, "bytes": moved}

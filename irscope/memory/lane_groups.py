"""Which lanes' accesses of shared memory are served together, and over how many banks, by instruction.

A part of a warp is served at once: as many lanes as fill the banks, consecutive ones but for AMD's widest reads.
Sources: "CUDA C++ Best Practices Guide", section "Shared Memory and Memory Banks"; ROCm composable_kernel, docs of
ck_tile, "Understanding AMD GPU LDS and Bank Conflicts" (groups of `ds_read_b128` and `ds_write_b128`); HipKittens,
analysis/paper_experiments/phases, which measured a gfx950: 64 banks and groups of 16 lanes for `ds_read_b128`, 64 banks
for `ds_read_b64`, 32 for `ds_write_b64`. That NVIDIA's loads of 8 and 16 bytes are served in half as many parts if
lanes side by side load the same was seen in an H200's counters, for every bit of the lane (`benchmarks/sharing.py`).
"""

from __future__ import annotations

from irscope.layout.memory_map import BANK_BYTES, BankModel
from irscope.target import Target

_EIGHTS = ((0, 20), (4, 16), (8, 28), (12, 24))
"""First lanes of the two runs of four that one `ds_read_b128` serves together, and again 32 lanes higher."""
_SIXTEENS = ((0, 12, 20, 24), (4, 8, 16, 28))
"""The same with 64 banks."""


def lane_groups(
    target: Target, bits_a_lane: int, lanes: int, *, store: bool, alike: bool = False
) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """(banks, the groups of lanes that are served together) of an access of `bits_a_lane` by `lanes` lanes.

    `alike`: every lane loads what lane ^ 1 loads, or every lane what lane ^ 2 loads.
    """
    banks = BankModel.of(target).banks
    wide = target.backend == "hip" and lanes == 64 and bits_a_lane == 128
    if target.backend == "hip" and target.arch.startswith("gfx950") and store:
        banks = 32
    if wide and not store:
        runs = _SIXTEENS if banks == 64 else _EIGHTS
        halves = [tuple(half + first + lane for first in run for lane in range(4)) for half in (0, 32) for run in runs]
        return banks, tuple(halves)
    together = max(banks * BANK_BYTES // max(bits_a_lane // 8, BANK_BYTES), 1)
    if alike and not store and target.backend == "cuda" and bits_a_lane > 8 * BANK_BYTES:
        together *= 2
    return banks, tuple(tuple(range(at, min(at + together, lanes))) for at in range(0, lanes, together))

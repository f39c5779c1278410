"""The counts of a capture: resources, occupancy, operations per stage, and the instructions that matter."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from irscope.device.occupancy import occupancy_of
from irscope.model.capture import Artifact, Capture, stage_named

# The families a reader looks for first: what feeds the tensor cores, moves data, and waits.
KEY_FAMILIES = (
    "wgmma", "mma", "tcgen05", "mfma", "wmma", "ldmatrix", "stmatrix", "tma", "cp.async", "ld.global", "st.global",
    "ld.shared", "st.shared", "ld.local", "st.local", "atomic", "shuffle", "barrier", "special",
)  # fmt: skip


def resource_rows(capture: Capture) -> dict[str, int | float]:
    """The known resources by name, `occupancy_percent` with them."""
    rows: dict[str, int | float] = {name: n for name, n in asdict(capture.resources).items() if n is not None}
    if (found := occupancy_of(capture)) is not None:
        rows["occupancy_percent"] = 100 * found.fraction
    return rows


def stage_operations(artifact: Artifact) -> Counter[str]:
    """How many operations (instructions) of each kind a stage's text holds; empty for a binary."""
    if isinstance(artifact.data, bytes):
        return Counter()
    from irscope.ir.columns import operation_counts

    return operation_counts(artifact.data, stage_named(artifact.stage).kind)


def instruction_families(capture: Capture) -> dict[str, int]:
    """The instructions that matter in the lowest assembly of a capture (SASS, AMDGCN, else PTX), by family.

    A family with a width ends in it: `ld.global.128` moves 128 bits per thread.
    """
    # Readers of IR: what asks for resources alone needs none.
    from irscope.ir.asm.control_flow import read_instructions

    for stage in ("sass", "amdgcn", "ptx"):
        if stage in capture.stages:
            found = read_instructions(capture.text(stage), stage_named(stage).kind)
            families = Counter(item.family or "" for item in found)
            key = [name for name in families if name.startswith(KEY_FAMILIES)]
            return {name: families[name] for name in sorted(key, key=lambda name: (family_rank(name), name))}
    return {}


def family_rank(name: str) -> int:
    """The place of a family among `KEY_FAMILIES`; all others come after them."""
    return next((rank for rank, family in enumerate(KEY_FAMILIES) if name.startswith(family)), len(KEY_FAMILIES))

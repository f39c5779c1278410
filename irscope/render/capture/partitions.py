"""Warp specialisation as text and as JSON: who runs what, which buffers lie between, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from irscope.analysis.flow.partitions import Partition, WarpRing, WarpRingUse, WarpSpecialization

__all__ = [
    "BARRIERS",
    "BUFFERS",
    "PARTITIONS",
    "barrier_rows",
    "buffer_rows",
    "partition_rows",
    "partitions_json",
    "waits_in_vain",
]

PARTITIONS = ("partition", "warps", "registers", "ttgir", "operations")
BUFFERS = ("buffer", "ttgir", "slots", "of", "written by", "read by")
BARRIERS = ("barrier", "ttgir", "slots", "arrivals", "arrived at by", "waited for by", "phase")
_OUTSIDE = "before or after"


def partition_rows(found: Sequence[WarpSpecialization]) -> Iterator[tuple[object, ...]]:
    """Rows of `PARTITIONS`."""
    for one in found:
        for partition in one.partitions:
            operations = ", ".join(f"{name} ×{count}" for name, count in partition.operations)
            registers = "–" if partition.registers is None else partition.registers
            yield partition.name, _warps(partition), registers, partition.line, operations


def _warps(partition: Partition) -> str:
    """`4`, or `4 (4–7)` where the text says which."""
    if partition.warps is None:
        return "?"
    first = partition.first_warp
    return f"{partition.warps}" + ("" if first is None else f" ({first}–{first + partition.warps - 1})")


def buffer_rows(found: Sequence[WarpSpecialization]) -> Iterator[tuple[object, ...]]:
    """Rows of `BUFFERS`."""
    for ring in (ring for one in found for ring in one.buffers):
        yield ring.value, ring.line, ring.slots, ring.what, _users(ring.by("writes")), _users(ring.by("reads"))


def barrier_rows(found: Sequence[WarpSpecialization]) -> Iterator[tuple[object, ...]]:
    """Rows of `BARRIERS`."""
    for ring in (ring for one in found for ring in one.barriers):
        waits = ring.by("waits")
        phases = ", ".join(dict.fromkeys(use.phase for use in waits))
        yield ring.value, ring.line, ring.slots, ring.what, _users(ring.by("arrives")), _users(waits), phases


def _users(uses: Sequence[WarpRingUse]) -> str:
    """`partition0: ttng.tc_gen5_mma (line 111); …`."""
    lines: dict[tuple[str, str], list[int]] = {}
    for use in uses:
        lines.setdefault((use.partition or _OUTSIDE, use.operation), []).append(use.line)
    return "; ".join(
        f"{partition}: {operation} ({', '.join(map(str, where))})" for (partition, operation), where in lines.items()
    )


def waits_in_vain(found: Sequence[WarpSpecialization]) -> list[str]:
    """A sentence for each barrier that is waited for and that nothing arrives at."""
    rings: list[WarpRing] = [
        ring for one in found if one.is_traced for ring in one.barriers if ring.by("waits") and not ring.by("arrives")
    ]
    return [f"{ring.value} (line {ring.line}) is waited for, and nothing in this text arrives at it." for ring in rings]


def partitions_json(found: Sequence[WarpSpecialization]) -> list[dict[str, Any]]:
    """As docs/json.md describes it."""
    return [asdict(one) | {"partitions": [_partition_json(part) for part in one.partitions]} for one in found]


def _partition_json(partition: Partition) -> dict[str, Any]:
    return asdict(partition) | {"operations": dict(partition.operations)}

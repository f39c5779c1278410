"""What a picture of partitions says of them and of their operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.analysis.flow.partitions import Partition, WarpRing, WarpRingUse
from irscope.analysis.flow.warp_turns import WarpEvent
from irscope.ir.tables.operations import opcode_of

__all__ = ["counted", "label_of", "told", "warps_text"]

_NAMES = {
    "async_tma_copy_global_to_local": "TMA load",
    "async_tma_gather": "TMA gather",
    "async_tma_copy_local_to_global": "TMA store",
    "tc_gen5_mma": "MMA",
    "tc_gen5_mma_scaled": "MMA, scaled",
    "tc_gen5_commit": "commit",
    "tmem_load": "load tmem",
    "tmem_store": "store tmem",
    "tmem_copy": "copy to tmem",
    "local_load": "load shared",
    "local_store": "store shared",
    "warp_group_dot": "wgmma",
    "arrive_barrier": "arrive",
    "wait_barrier": "wait",
    "barrier_expect": "expect",
}


def told(event: WarpEvent, rings: Mapping[int, WarpRing]) -> str:
    """`line 105: ttng.wait_barrier waits %acc_14 (slot 0; phase flips; at first 0)`; `rings` by the line of each."""
    return f"line {event.line}: {event.operation} " + ", ".join(
        " ".join(filter(None, (use.action, rings[line].value, _details(use)))) for line, use in event.touched
    )


def warps_text(one: Partition) -> str:
    """`4 warps (0–3)`, or without the numbers where the text does not say them."""
    if one.warps is None:
        return "number of warps not known"
    first = one.first_warp
    return counted(one.warps, "warp") + ("" if first is None else f" ({first}–{first + one.warps - 1})")


def counted(count: int, what: str) -> str:
    """`1 warp`, `2 warps`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def label_of(event: WarpEvent) -> str:
    """What an operation does, in a few letters: `wait phase 0,1…`, `expect 32,768 B`, `TMA load`."""
    name = _NAMES.get(opcode_of(event.operation)) or event.operation.rpartition(".")[2].replace("_", " ")
    uses: Sequence[WarpRingUse] = [use for _, use in event.touched]
    expected = next((use.bytes for use in uses if use.bytes is not None), None)
    if expected is not None:
        return f"{name} {expected:,} B"
    waits = event.waits
    return name if waits is None or not waits.phase else f"{name} phase {_phase(waits)}"


def _phase(use: WarpRingUse) -> str:
    """`0,1…` where it flips from 0."""
    if use.phase != "flips":
        return use.phase
    return "flips" if use.first_phase is None else f"{use.first_phase},{1 - use.first_phase}…"


def _details(use: WarpRingUse) -> str:
    says_first = use.first_phase is not None and use.phase != str(use.first_phase)
    parts = [
        f"slot {use.slot}" if use.slot is not None else "",
        f"phase {use.phase}" if use.phase else "",
        f"at first {use.first_phase}" if says_first else "",
        f"{use.bytes} bytes" if use.bytes is not None else "",
    ]
    known = "; ".join(filter(None, parts))
    return f"({known})" if known else ""

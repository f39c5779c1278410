"""Which operations of the TTGIR are steps, and of which kind."""

from __future__ import annotations

from irscope.analysis.in_flight.model import StepKind
from irscope.ir.mlir.model import Operation
from irscope.memory.machine import ACCESSES

__all__ = ["DOTS", "kind_of_step"]

DOTS = ("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma")
_KINDS: dict[str, StepKind] = {
    "ttg.local_load": "read",
    "ttg.local_store": "write",
    "tt.reduce": "reduce",
    "tt.scan": "reduce",
    "ttg.convert_layout": "convert",
    "ttng.tmem_load": "tensor",
    "ttng.tmem_store": "tensor",
    "ttng.tmem_copy": "tensor",
    "ttg.async_wait": "wait",
    "amdg.async_wait": "wait",
    "ttng.wait_barrier": "wait",
    "ttng.warp_group_dot_wait": "wait",
    "ttng.async_tma_store_wait": "wait",
}
_COPIES = ("ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather", "amdg.async_tdm_copy_global_to_local")


def kind_of_step(operation: Operation) -> StepKind | None:
    """What an operation is as a step; None if it is none."""
    name = operation.name
    if name in _KINDS:
        return _KINDS[name]
    if name.startswith(DOTS):
        return "dot"
    action = ACCESSES.get(name)
    if name in _COPIES or action == "copy":
        return "copy"
    return action

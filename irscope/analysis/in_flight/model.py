"""InFlight: what one program does in a loop, iteration by iteration: steps, and slots of shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irscope.analysis.flow.partitions import WarpPartition
from irscope.ir.mlir.model import Operation
from irscope.memory.machine import ACCESSES

StepKind = Literal["copy", "load", "write", "read", "wait", "dot", "reduce", "convert", "tensor", "store", "atomic"]
"""`copy` begins one into shared memory, `load` one into registers; `tensor` moves to and from tensor memory."""

BEFORE = -1
"""The iteration of what runs before the loop."""
Slot = tuple[int, int]
"""A buffer, and a slot of it."""


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """One execution of an operation that moves data, multiplies, reduces or waits."""

    iteration: int
    """Of the loop, from 0; `BEFORE` it, or the trip count for what comes behind it."""
    kind: StepKind
    operation: str
    value: str
    """Its result, or the buffer that it is about; or an empty string."""
    line: int
    """In the TTGIR, 1-based."""
    place: str
    """`file:line` of the Python source, or an empty string."""
    tile: int | None
    """Which of the tiles that were written to the buffer, from 0: what is copied, read or multiplied."""
    buffer: int | None
    """An index into the rings."""
    slot: int | None
    is_off: bool
    """Whether its mask or predicate lets nothing happen."""
    until: int | None
    """The step that waits for it, or first uses it, as an index; its own if nothing has to wait."""
    partition: str = ""
    """Of specialised warps the partition that does it; empty outside of them, and of other kernels."""
    after: int | None = None
    """Of a wait of specialised warps: the step behind which its barrier was arrived at; None if it passes at first."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A tile in a slot of a ring."""

    slot: int
    tile: int
    written: int
    """The step that begins to write it, as an index."""
    landed: int | None
    """The step that waits until it is there; None if nothing does."""
    read: tuple[int, ...]
    """The steps that read it."""
    free: int | None
    """The step behind which nothing reads it; None if nothing does."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A buffer in shared memory that steps of the loop write; of specialised warps in tensor memory too."""

    value: str
    type: str
    """Of a slot: `128×64×f16`."""
    slots: int
    line: int
    """Of its allocation in the TTGIR, 1-based."""
    place: str
    stays: tuple[Stay, ...]


@dataclass(frozen=True, slots=True)
class InFlight:
    """A loop of one program, or a program without a loop."""

    line: int
    """Of the loop in the TTGIR, 1-based; 0 if there is none."""
    title: str
    """`for %k = 0 to %n step 64`, as the IR has it; empty if there is none."""
    place: str
    iterations: int | None
    """Its trip count; None if that is not known, or if it is followed as if it iterated often."""
    launch_iterations: int | None
    """Its trip count in the first or the last program of the launch; None if that is not known."""
    program: tuple[int, int, int] | None
    """Which program; None if any of them does the same as far as it is known."""
    loops: int
    """How many loops of this kind the kernel has."""
    is_nested: bool
    """Whether it is shown in the first iteration of a loop around it."""
    steps: tuple[ExecutedStep, ...]
    rings: tuple[Ring, ...]
    note: str = ""
    """Why steps are missing; or an empty string."""
    partitions: tuple[WarpPartition, ...] = ()
    """Of specialised warps, whose steps stand in an order in which they can run: `iteration` is that of the
    partition with the loop, and before each of its steps the others run as far as the barriers let them."""

    def flying(self, step: int, kind: StepKind) -> int:
        """How many steps of a kind are begun, and not yet waited for, when a step ends."""
        begun = (one for one in self.steps[: step + 1] if one.kind == kind and not one.is_off)
        return sum(one.until is None or one.until > step for one in begun)


_KINDS: dict[str, StepKind] = {
    "local_load": "read",
    "local_store": "write",
    "reduce": "reduce",
    "scan": "reduce",
    "convert_layout": "convert",
    "tmem_load": "tensor",
    "tmem_store": "tensor",
    "tmem_copy": "tensor",
    "async_wait": "wait",
    "wait_barrier": "wait",
    "warp_group_dot_wait": "wait",
    "async_tma_store_wait": "wait",
    "async_tma_copy_global_to_local": "copy",
    "async_tma_gather": "copy",
    "async_tdm_copy_global_to_local": "copy",
}
"""By opcode, where neither the operation's kind nor its access to global memory decides."""


def kind_of_step(operation: Operation) -> StepKind | None:
    """What an operation is as a step; None if it is none."""
    if operation.kind == "dot":
        return "dot"
    return _KINDS.get(operation.opcode) or ACCESSES.get(operation.opcode)

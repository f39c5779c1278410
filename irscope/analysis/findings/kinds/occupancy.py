"""IRS502: what keeps a multiprocessor from holding more warps of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from irscope.analysis.findings.kinds.loops import DOTS
from irscope.analysis.findings.model import Cause, Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.device.limits import HIP_LIMITS
from irscope.device.occupancy import REGISTERS, SHARED, TENSOR_MEMORY, Occupancy, occupancy, occupancy_of
from irscope.device.parts import part_of
from irscope.model.capture import Capture

__all__ = ["has_few_programs", "occupancy_findings"]

_FEW = 1 / 4
"""Of the warps that there may be, below which memory is waited for."""
_FEW_WITH_DOTS = 8
"""Warps, two for each scheduler: dots keep the matrix units busy with fewer than loads need."""
_MOST_WARPS = 32
_MOST_REGISTERS, _LEAST_REGISTERS = 255, 24


def occupancy_findings(studied: Studied) -> Iterator[Finding]:
    """The finding of a kernel of which few warps fit at once, if registers or memory on the chip limit them."""
    capture = studied.capture
    found = occupancy_of(capture) if capture.failure is None else None
    if found is None or not found.blocks_per_sm or not {REGISTERS, SHARED, TENSOR_MEMORY} & set(found.limited_by):
        return
    has_dots = any(use.name in DOTS for use in studied.uses.operations)
    few = _FEW_WITH_DOTS if has_dots else _FEW * found.max_warps
    if found.warps_per_sm >= few or has_few_programs(capture, found):
        return
    limits = dict(found.limits)
    others = ", ".join(f"{cause} {blocks}" for cause, blocks in limits.items() if cause not in found.limited_by)
    limited = " and ".join(found.limited_by)
    warps = found.warps_per_sm // found.blocks_per_sm
    causes = [
        Cause(
            f"by {limited}, {found.blocks_per_sm} blocks of {warps} warps fit on one {found.unit}; by others: {others}",
            "binary",
            "the limits of the target",
        ),
        *_used(capture, found),
    ]
    yield Finding(
        "IRS502",
        "",
        0,
        (),
        (),
        (),
        f"few warps fit at once: {found.warps_per_sm} of {found.max_warps} on one {found.unit}",
        f"{found.fraction:.0%} occupancy: little runs while a warp waits",
        max(1, found.max_warps - found.warps_per_sm),
        tuple(causes),
        tuple(_suggestions(capture, found)),
    )


def has_few_programs(capture: Capture, found: Occupancy) -> bool:
    """Whether a launch has no more programs than fit at once on the part of the target that is known."""
    grid = capture.launch.grid
    return grid is not None and prod(grid) <= found.blocks_per_sm * part_of(str(capture.target)).multiprocessor_count


def _used(capture: Capture, found: Occupancy) -> Iterator[Cause]:
    resources = capture.resources
    if REGISTERS in found.limited_by:
        more = f" and {resources.accumulator_registers} accumulators" if resources.accumulator_registers else ""
        yield Cause(f"a thread has {resources.registers} registers{more}", "binary", "the assembler's figures")
    if SHARED in found.limited_by:
        yield Cause(f"a block has {resources.shared_bytes} bytes of shared memory", "binary", "the allocator's figures")
    if TENSOR_MEMORY in found.limited_by:
        columns = f"a block has {resources.tensor_memory_columns} columns of tensor memory"
        yield Cause(columns, "binary", "the allocator's figures")


def _suggestions(capture: Capture, found: Occupancy) -> Iterator[Suggestion]:
    launch = capture.launch
    warps, stages = launch.option("num_warps", 4), launch.option("num_stages", 1)
    if SHARED in found.limited_by and isinstance(stages, int) and stages > 1:
        # Most of it is buffers, one for each stage.
        fewer = found.blocks_per_sm * stages // (found.blocks_per_sm + 1)
        yield from (_option("num_stages", count) for count in (fewer, fewer - 1) if count > 0)
    if REGISTERS in found.limited_by and isinstance(warps, int):
        if 2 * warps <= _MOST_WARPS:
            yield _option("num_warps", 2 * warps)
        if capture.target.arch in HIP_LIMITS:
            yield _option("waves_per_eu", found.warps_per_sm // HIP_LIMITS[capture.target.arch].simds + 1)
        elif (registers := _registers_of_more(capture, found, warps)) is not None:
            yield _option("maxnreg", registers)
    yield Suggestion("smaller tiles")


def _registers_of_more(capture: Capture, found: Occupancy, warps: int) -> int | None:
    """The most registers for each thread with which one more block fits; None if no number of them helps."""
    for registers in range(min(capture.resources.registers or 0, _MOST_REGISTERS) // 8 * 8, _LEAST_REGISTERS - 1, -8):
        other = occupancy(replace(capture.resources, registers=registers), capture.target, warps)
        if other is not None and other.blocks_per_sm > found.blocks_per_sm:
            return registers
    return None


def _option(name: str, value: int) -> Suggestion:
    return Suggestion(f"{name}={value}", (Change("option", name, value),))

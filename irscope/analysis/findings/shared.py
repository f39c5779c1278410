"""IRS401, IRS402: conversions of layouts through shared memory, and bank conflicts.

Either is a finding where it moves a good part of the bytes that the kernel requests of global memory
(`GlobalTraffic`): a conversion after a long loop, or of a vector beside a tile, costs nothing that could be seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from irscope.analysis.findings.changed import one_layout
from irscope.analysis.findings.model import Cause, Finding
from irscope.analysis.findings.studied import Studied
from irscope.ir.locations.model import Chain
from irscope.ir.logs.decisions import Rematerialisation
from irscope.ir.mlir.attributes import read_encoding
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.operations import opcode_of
from irscope.memory.access import Cost
from irscope.memory.machine import users_of_shared

if TYPE_CHECKING:
    from irscope.analysis.lives.operations import OperationLife


_CONVERSION = "convert_layout"
_LEAST_SHARE = 0.25
"""The part of the traffic below which nothing is reported."""
_WAVEFRONT_BYTES = 128
_COPIES = ("async_copy_global_to_local", "buffer_load_to_local")
"""The order in which their data arrive, and so their conflicts, differ from run to run."""


def shared_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of each conversion and each access to shared memory."""
    if not any(operation.opcode == _CONVERSION or _is_of_memory(operation) for operation in studied.uses.operations):
        return
    heaviest: dict[object, Finding] = {}
    for cost in studied.costs_on_chip:
        one = None
        if cost.kind == "conversion" and _has_own(studied, cost) and _is_large_conversion(studied, cost):
            lives = studied.kept(_lives) if studied.follows_operations else {}
            one = _conversion(studied, cost, lives.get(cost.line))
        elif cost.kind == "shared" and cost.figures.get("ways", 1) > 1 and opcode_of(cost.operation) not in _COPIES:
            warps = int(studied.capture.launch.option("num_warps", 4) or 4)
            if studied.traffic.share(cost.excess * warps * _WAVEFRONT_BYTES, cost.loops) >= _LEAST_SHARE:
                one = _conflicts(studied, cost)
        # The pipeliner's copies of an operation come from one place.
        if one is not None and _key(one) not in heaviest:
            heaviest[_key(one)] = one
    yield from heaviest.values()


def _is_of_memory(operation: Operation) -> bool:
    return any(kind.form == "memdesc" for kind in operation.layout_types)


def _key(finding: Finding) -> object:
    return finding.code, finding.chain or finding.line, finding.text


def may_go_through_memory(studied: Studied) -> bool:
    """Whether a conversion is a finding if the stores to shared memory at its place in Python are its own.

    False where it is known whose they are.
    """
    has_any = any(operation.opcode == _CONVERSION for operation in studied.uses.operations)
    return has_any and any(
        cost.kind == "conversion" and not _has_own(studied, cost) and _is_large_conversion(studied, cost)
        for cost in studied.costs_on_chip
    )


def _has_own(studied: Studied, cost: Cost) -> bool:
    """Whether the instructions of shared memory at a conversion are its own: by the operation of each, or its place."""
    if cost.by_operation:
        return True
    chain = studied.chain_at(cost.line)
    return bool(chain) and studied.kept(_users_of_shared)[chain] == 1


def _users_of_shared(studied: Studied) -> Counter[Chain]:
    return users_of_shared(studied.uses)


def _is_large_conversion(studied: Studied, cost: Cost) -> bool:
    return (
        studied.machine.count(cost.line, "shared store", "matrix store") > 0
        and studied.traffic.share(cost.figures["bytes"], cost.loops) >= _LEAST_SHARE
        and not _is_result(studied, cost)
    )


def _is_result(studied: Studied, cost: Cost) -> bool:
    """Whether it takes the result of matrix units, once, to a layout for its store."""
    operation = studied.operations[cost.line]
    kinds = operation.layout_types[:1]
    return not operation.loops and any(read_encoding(studied.module.resolve(kind.encoding)).is_matrix for kind in kinds)


def _conversion(studied: Studied, cost: Cost, life: tuple[OperationLife, str] | None) -> Finding:
    size = cost.figures["bytes"]
    stores, loads = (
        studied.machine.count(cost.line, f"shared {verb}", f"matrix {verb}")  # pyright: ignore[reportArgumentType]
        for verb in ("store", "load")
    )
    causes = [
        Cause(
            f"compiled to: {stores} stores to shared memory, {loads} loads",
            "assembly",
            f"{studied.machine.text_stage} of line {cost.line} of ttgir",
        ),
        studied.in_ir(cost.hint, cost.line),
    ]
    if life is not None:
        causes.append(Cause(f"{life[1]} inserted it", "ir", "the IR before and after that pass"))
    said = [one for one in studied.said(cost.line, Rematerialisation) if one.reason and one.operation is not None]
    kept = [one for one in said if one.operation and opcode_of(one.operation.name) == _CONVERSION]
    causes += [studied.logged(one) for one in kept[-1:]]
    often = "in each iteration of its loop" if cost.loops else "once"
    return studied.finding(
        "IRS401",
        cost.line,
        f"goes through shared memory{' in a loop' if cost.loops else ''}: {' → '.join(cost.layouts)}",
        f"{size} bytes through shared memory and barriers, {often}; {studied.traffic.told(cost.line)}",
        cost.excess,
        causes,
        [*one_layout(studied, studied.operations[cost.line])],
    )


def _lives(studied: Studied) -> dict[int, tuple[OperationLife, str]]:
    """Line of the TTGIR → the life of the conversion there, and the pass that made it, if it is one for certain."""
    from irscope.analysis.lives.operations import operation_lives

    found = operation_lives(studied.capture, lambda name: opcode_of(name) == _CONVERSION, until="ttgir")
    steps = found.trail.steps
    at = len(steps) - 1
    return {
        life.line_after(at): (life, steps[life.births[0].step].label)
        for life in found.lives
        if life.is_there(at) and len(life.births) == 1 and life.births[0].step >= 0
    }


def _conflicts(studied: Studied, cost: Cost) -> Finding:
    ways = cost.figures["ways"]
    return studied.finding(
        "IRS402",
        cost.line,
        f"has {ways:.3g}-way bank conflicts in shared memory",
        f"{cost.excess} wavefronts per warp more than needed, per execution",
        cost.excess,
        [
            studied.in_ir(cost.summary, cost.line, "evaluated"),
            studied.in_ir(f"its layouts: {', '.join(cost.layouts)}", cost.line),
        ],
    )

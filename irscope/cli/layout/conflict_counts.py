"""Adds the compiler's own count of bank conflicts to the costs of shared memory accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irscope.layout.described import DescribedLayout
from irscope.layout.rows import query_type, type_of_row
from irscope.memory.costs import Cost
from irscope.model.capture import Target


def with_compilers_count(costs: Sequence[Cost], target: Target, num_warps: int) -> list[Cost]:
    """Costs whose shared memory accesses have the installed compiler's count, as far as it can be asked.

    It counts the accesses per wavefront above one for plain loads and stores, not for ldmatrix and stmatrix. The
    figure is `compiler_ways`. Without Triton the costs are returned as they are.
    """
    pairs = list(dict.fromkeys(cost.pair for cost in costs if cost.pair is not None))
    if not pairs:
        return list(costs)
    from irscope.record.layouts.questions import bank_conflicts

    counts = dict(zip(pairs, bank_conflicts(pairs, target, num_warps), strict=True))
    return [_with_count(cost, counts.get(cost.pair) if cost.pair is not None else None) for cost in costs]


def compilers_ways(first: DescribedLayout, second: DescribedLayout) -> int | None:
    """The compiler's conflicts, plus one, of accesses from one layout to the other; None if it can't be asked."""
    registers = next((item for item in (first, second) if item.threads is not None), None)
    shared = next((item for item in (first, second) if item.memory is not None), None)
    if registers is None or shared is None or registers.threads is None or first.shape != second.shape:
        return None
    from irscope.record.layouts.questions import bank_conflicts

    pair = (type_of_row(registers.row), query_type(shared.row.encoding, shared.shape, registers.row.elements[0]))
    (count,) = bank_conflicts([pair], registers.target, registers.threads.warps)
    return None if count is None else count + 1


def _with_count(cost: Cost, conflicts: int | None) -> Cost:
    if conflicts is None:
        return cost
    ways = conflicts + 1
    said = "as the compiler counts" if ways == cost.figures["ways"] else f"the compiler counts {ways}-way conflicts"
    return replace(cost, summary=f"{cost.summary}; {said}", figures={**cost.figures, "compiler_ways": ways})

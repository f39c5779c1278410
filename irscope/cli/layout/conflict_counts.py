"""Adds the compiler's own count of bank conflicts to the costs of shared memory accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irscope.memory.costs import Cost
from irscope.model.capture import Target


def with_compilers_count(costs: Sequence[Cost], target: Target, num_warps: int) -> list[Cost]:
    """Costs whose shared memory accesses have the installed compiler's count, as far as it can be asked.

    It counts the accesses per wavefront above one for plain loads and stores, not for ldmatrix and stmatrix. The
    figure is `compiler_ways`. Without Triton the costs are returned as they are.
    """
    from irscope.record.layouts.questions import bank_conflicts

    pairs = list(dict.fromkeys(cost.pair for cost in costs if cost.pair is not None))
    counts = dict(zip(pairs, bank_conflicts(pairs, target, num_warps), strict=True)) if pairs else {}
    return [_with_count(cost, counts.get(cost.pair) if cost.pair is not None else None) for cost in costs]


def _with_count(cost: Cost, conflicts: int | None) -> Cost:
    if conflicts is None:
        return cost
    ways = conflicts + 1
    said = "as the compiler counts" if ways == cost.figures["ways"] else f"the compiler counts {ways}-way conflicts"
    return replace(cost, summary=f"{cost.summary}; {said}", figures={**cost.figures, "compiler_ways": ways})

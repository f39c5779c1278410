"""The compiler's own count of bank conflicts, beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irscope.capture import Target
from irscope.layout.costs import Cost
from irscope.record.layouts import LayoutServer


def with_compilers_count(costs: Sequence[Cost], target: Target, num_warps: int) -> list[Cost]:
    """Costs whose shared accesses say what the installed compiler counts for them, where it can be asked.

    It counts the accesses of a wavefront above one for plain loads and stores, not for ldmatrix and its like. The
    figure is `compiler_ways`. Triton is asked in a process of its own; without it the costs come back as they are.
    """
    pairs = list(dict.fromkeys(cost.pair for cost in costs if cost.pair is not None))
    if not pairs:
        return list(costs)
    with LayoutServer(fork=False) as server:
        rows = server.wait(server.ask_conflicts(pairs, target, num_warps))
    counts = {pair: rows[2 * number].get("conflicts") for number, pair in enumerate(pairs)}
    return [_with_count(cost, counts.get(cost.pair) if cost.pair is not None else None) for cost in costs]


def _with_count(cost: Cost, conflicts: int | None) -> Cost:
    if conflicts is None:
        return cost
    ways = conflicts + 1
    said = "as the compiler counts" if ways == cost.figures["ways"] else f"the compiler counts {ways}-way conflicts"
    return replace(cost, summary=f"{cost.summary}; {said}", figures={**cost.figures, "compiler_ways": ways})

"""Which instructions decide the way and the accesses of a kernel: all others are counted, and not executed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

__all__ = ["deciding"]


def deciding(
    reads: Sequence[frozenset[str]],
    writes: Sequence[frozenset[str]],
    predicated: Collection[int],
    asked: Mapping[int, frozenset[str]],
    next_of: Mapping[int, Sequence[int]],
) -> list[bool]:
    """Of each instruction: whether what it gives goes, through others, into what is asked for.

    Args:
        reads: the registers that each instruction reads, and those that it keeps where its predicate does not hold.
        writes: those that it writes.
        predicated: instructions that may leave what they write as it was.
        asked: instruction that branches or accesses memory → the registers that decide this.
        next_of: instruction → those that may follow it, where that is not only the next one.

    A register counts only from where it is written to where it is read (live-variable analysis of the needed ones).
    """
    end = len(reads)
    starts = {0, end, *(at + 1 for at in next_of), *(one for targets in next_of.values() for one in targets)}
    order = sorted(starts)
    blocks = [range(start, stop) for start, stop in pairwise(order)]
    follows = {block.start: next_of.get(block.stop - 1, (block.stop,)) for block in blocks}
    before: dict[int, list[int]] = {start: [] for start in order}
    for start, targets in follows.items():
        for target in targets:
            before[target].append(start)
    live_at: dict[int, frozenset[str]] = {start: frozenset() for start in order}
    is_needed = [at in asked for at in range(end)]
    by_start = {block.start: block for block in blocks}
    waiting = dict.fromkeys(reversed(list(by_start)))
    while waiting:
        start = next(iter(waiting))
        del waiting[start]
        live = set[str]().union(*(live_at[one] for one in follows[start]))
        for at in reversed(by_start[start]):
            if not writes[at].isdisjoint(live):
                is_needed[at] = True
                if at not in predicated:
                    live -= writes[at]
                live |= reads[at]
            if at in asked:
                live |= asked[at]
        if live != live_at[start]:
            live_at[start] = frozenset(live)
            waiting |= dict.fromkeys(before[start])
    return is_needed

"""Keys of lines, and the lines whose keys are rare enough to hold an alignment together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence

from irscope.ir.body.reader import Body

Keys = Sequence[int] | Mapping[int, int]
"""A key for each line."""

LineKey = Callable[[Body, int], int | str]
"""A key of one line of a body."""

WINDOW = 4
"""Lines that the key of a window takes in."""


def keys_with_operands(body: Body, lines: Iterable[int], key: LineKey) -> dict[int, int]:
    """Keys of a line and of the lines that define its operands."""
    definers, uses = body.definers, body.uses
    keys: dict[int, int] = {}
    for line in lines:
        sources = [definers[value] for value in uses[line]]
        keys[line] = hash((key(body, line), *[key(body, source) if source >= 0 else "" for source in sources]))
    return keys


def keys_of_windows(body: Body, runs: list[list[int]], key: LineKey, length: int) -> dict[int, int]:
    """Keys of each line and of those after it in its run, `length` lines in all."""
    keys: dict[int, int] = {}
    for run in runs:
        own = [key(body, line) for line in run]
        for index, line in enumerate(run):
            keys[line] = hash(tuple(own[index : index + length]))
    return keys


def rare_pairs(
    lefts: list[int],
    rights: list[int],
    left_keys: Keys,
    right_keys: Keys,
    *,
    repeats: bool,
    weight: Callable[[int], int] | None = None,
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Places whose keys are unique on both sides: the longest run of them in one order, and those out of order.

    With `repeats`, a key that occurs equally often on both sides counts too, first to first, second to second. Where
    some are out of order, `weight` says how much it would take to call a left line moved.
    """
    places, again = _occurrences(rights, right_keys)
    seen, repeated = _occurrences(lefts, left_keys)
    pairs: list[tuple[int, int]] = []
    for key, place in seen.items():
        if key not in places:
            continue
        ours, theirs = repeated.get(key), again.get(key)
        if ours is None and theirs is None:
            pairs.append((place, places[key]))
        elif repeats and ours is not None and theirs is not None and len(ours) == len(theirs):
            pairs.append((place, places[key]))
            pairs.extend(zip(ours, theirs, strict=True))
    if not pairs:
        return [], []
    if repeated:
        pairs.sort()
    others = [other for _, other in pairs]
    chain = longest_ascending(others)
    if len(chain) == len(pairs):
        return pairs, []
    if weight is not None:
        weights = [weight(lefts[place]) for place, _ in pairs]
        chain = _heaviest_ascending(others, weights) if max(weights) > 1 else chain
    kept = set(chain)
    return [pairs[index] for index in chain], [pair for index, pair in enumerate(pairs) if index not in kept]


def _occurrences(lines: list[int], keys: Keys) -> tuple[dict[int, int], dict[int, list[int]]]:
    """The first place of each key, and the places of its repetitions."""
    first: dict[int, int] = {}
    others: dict[int, list[int]] = {}
    for place, line in enumerate(lines):
        if first.setdefault(keys[line], place) != place:
            others.setdefault(keys[line], []).append(place)
    return first, others


def longest_ascending(numbers: list[int]) -> list[int]:
    """The indices of a longest ascending subsequence."""
    tails: list[int] = []
    tail_indices: list[int] = []
    previous = [-1] * len(numbers)
    for index, number in enumerate(numbers):
        place = bisect_left(tails, number)
        if place:
            previous[index] = tail_indices[place - 1]
        if place == len(tails):
            tails.append(number)
            tail_indices.append(index)
        else:
            tails[place] = number
            tail_indices[place] = index
    chain: list[int] = []
    index = tail_indices[-1] if tail_indices else -1
    while index >= 0:
        chain.append(index)
        index = previous[index]
    return chain[::-1]


def _heaviest_ascending(numbers: list[int], weights: list[int]) -> list[int]:
    """The indices of an ascending subsequence of the greatest weight."""
    ranks = {number: rank for rank, number in enumerate(sorted(set(numbers)), 1)}
    # A Fenwick tree of the heaviest subsequence that ends at or below a rank: (weight, index).
    tree = [(0, -1)] * (len(ranks) + 1)
    previous = [-1] * len(numbers)
    best = (0, -1)
    for index, number in enumerate(numbers):
        rank = ranks[number] - 1
        heaviest = (0, -1)
        while rank > 0:
            heaviest = max(heaviest, tree[rank])
            rank -= rank & -rank
        previous[index] = heaviest[1]
        reached = (heaviest[0] + weights[index], index)
        best = max(best, reached)
        rank = ranks[number]
        while rank < len(tree):
            tree[rank] = max(tree[rank], reached)
            rank += rank & -rank
    chain: list[int] = []
    index = best[1]
    while index >= 0:
        chain.append(index)
        index = previous[index]
    return chain[::-1]

"""Pairs the captures of two compilers: the same kernel, place, target, signature, constants and options."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from irscope.model.capture import Capture
from irscope.model.telling import parts_of, telling_names

__all__ = ["pairs_of", "variants_of"]

Pair = tuple[Capture | None, Capture | None]


def _kernel(one: Capture) -> tuple[Hashable, ...]:
    return (one.name, one.launch.kernel.file, str(one.target))


def _types(one: Capture) -> tuple[Hashable, ...]:
    return (*_kernel(one), one.launch.signature, one.launch.constants)


def _exact(one: Capture) -> tuple[Hashable, ...]:
    return (*_types(one), one.launch.attributes, repr(one.launch.set_options), str(one.plan))


# From the most alike to the least: versions differ in the attributes that they give arguments, and in options.
_KEYS: tuple[Callable[[Capture], Hashable], ...] = (
    _exact,
    lambda one: (*_types(one), repr(one.launch.set_options)),
    lambda one: (*_types(one), one.launch.option("num_warps"), one.launch.option("num_stages")),
    _types,
)


def pairs_of(before: Sequence[Capture], after: Sequence[Capture]) -> list[Pair]:
    """Each capture of `before` with its partner, in their order, then those of `after` that have none.

    Of several that are alike, the first goes with the first.
    """
    partners: dict[int, Capture] = {}
    taken: set[int] = set()
    for key in _KEYS:
        waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
        for index, one in enumerate(after):
            if index not in taken:
                waiting[key(one)].append(index)
        for index, one in enumerate(before):
            if index not in partners and (found := waiting.get(key(one))):
                place = found.pop(0)
                taken.add(place)
                partners[index] = after[place]
    rows: list[Pair] = [(one, partners.get(index)) for index, one in enumerate(before)]
    return [*rows, *((None, one) for index, one in enumerate(after) if index not in taken)]


def variants_of(captures: Sequence[Capture]) -> list[str]:
    """What tells each capture from the others of its kernel: `BLOCK=64 num_warps=8`; empty for the only one."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, one in enumerate(captures):
        groups[one.name].append(index)
    found = [""] * len(captures)
    for members in groups.values():
        rows = [{"target": str(captures[index].target), **parts_of(captures[index].launch)} for index in members]
        names = telling_names(rows)
        for index, row in zip(members, rows, strict=True):
            found[index] = " ".join(f"{name}={row[name]}" for name in names if row.get(name))
    return found

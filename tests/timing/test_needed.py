"""Which instructions decide what is asked for: against every path through random code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from irscope.timing.needed import deciding

_NAMES = ("R0", "R1", "R2", "P0")
_Code = tuple[list[frozenset[str]], list[frozenset[str]], set[int], dict[int, frozenset[str]], dict[int, list[int]]]


@st.composite
def _codes(draw: st.DrawFn) -> _Code:
    """Code without loops, whose branches go forwards."""
    size = draw(st.integers(1, 9))
    some = st.frozensets(st.sampled_from(_NAMES), max_size=2)
    writes = [draw(some) for _ in range(size)]
    predicated = {at for at in range(size) if draw(st.booleans())}
    reads = [draw(some) | (writes[at] if at in predicated else frozenset()) for at in range(size)]
    asked = {at: draw(some) for at in range(size) if draw(st.integers(0, 3)) == 0}
    follows = {
        at: sorted(draw(st.sets(st.integers(at + 1, size), max_size=2)))
        for at in range(size)
        if draw(st.integers(0, 2)) == 0
    }
    return reads, writes, predicated, asked, follows


def _paths(size: int, follows: Mapping[int, Sequence[int]], at: int = 0) -> Iterator[list[int]]:
    targets = [] if at >= size else follows.get(at, [at + 1])
    if not targets:
        yield [at] if at < size else []
    for target in targets:
        for rest in _paths(size, follows, target):
            yield [at, *rest] if at < size else rest


@given(_codes())
def test_what_decides_does_so_on_some_path(code: _Code) -> None:
    reads, writes, predicated, asked, follows = code
    expected = set(asked)
    for start in range(len(reads)):
        # Code that no one comes to is looked at as well.
        for path in _paths(len(reads), follows, start):
            live: set[str] = set()
            for at in reversed(path):
                if writes[at] & live:
                    expected.add(at)
                    live = (live if at in predicated else live - writes[at]) | reads[at]
                live |= asked.get(at, frozenset())
    assert {at for at, is_needed in enumerate(deciding(*code)) if is_needed} == expected


def test_a_counter_decides_in_the_iteration_after() -> None:
    """R0 is counted at the end of a loop and compared at its beginning; R1 is only summed up."""
    reads = [frozenset({"R0"}), frozenset({"R0", "P0"}), frozenset({"R1"}), frozenset({"R0"}), frozenset[str]()]
    writes = [frozenset({"P0"}), frozenset[str](), frozenset({"R1"}), frozenset({"R0"}), frozenset[str]()]
    found = deciding(reads, writes, (), {1: frozenset({"P0"})}, {1: (2, 4), 3: (0,), 4: ()})
    assert found == [True, True, False, True, False]

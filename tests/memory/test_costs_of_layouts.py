"""Costs in the abstract: shared accesses and conversions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.errors import UsageError
from irscope.layout.maps import MemoryMap, Moves, ThreadMap, moved_share, what_moves
from irscope.memory.conflicts import matrix_choices, shared_access
from irscope.model.layout import LinearLayout


def threads_of(
    register: list, lane: list, warp: list | None = None, block: list | None = None, shape=(32, 32)
) -> ThreadMap:
    return ThreadMap.of(
        LinearLayout.of({"register": register, "lane": lane, "warp": warp or [], "block": block or []}, shape)
    )


def across(first: int, count: int) -> list[list[int]]:
    return [[0, first << bit] for bit in range(count)]


def down(first: int, count: int) -> list[list[int]]:
    return [[first << bit, 0] for bit in range(count)]


ROWS = threads_of([*across(1, 3), *down(8, 2)], [*across(8, 2), *down(1, 3)])
COLUMNS = threads_of(down(1, 5), across(1, 5))
PLAIN = MemoryMap.of(LinearLayout.of({"offset": [*across(1, 5), *down(1, 5)], "block": []}, (32, 32)), 32)
SWIZZLED = MemoryMap.of(
    LinearLayout.of({"offset": [*across(1, 5), *[[1 << bit, 1 << bit] for bit in range(5)]], "block": []}, (32, 32)), 32
)


def test_a_column_of_words_meets_one_bank() -> None:
    rows = threads_of(across(1, 5), down(1, 5))
    conflicting = shared_access(rows, PLAIN)
    assert conflicting.bits_per_thread == 128
    assert conflicting.ways == 8  # 16 bytes a lane: 8 lanes a part, all in the same four banks
    one_by_one = threads_of(across(1, 5), down(1, 5))
    assert shared_access(one_by_one, SWIZZLED).ways == 1


def test_matrices_are_counted_by_eight_rows() -> None:
    fragment = threads_of([[0, 1], [8, 0], [0, 8]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], shape=(16, 16))
    narrow = MemoryMap.of(LinearLayout.of({"offset": [*across(1, 4), *down(1, 4)], "block": []}, (16, 16)), 16)
    (choice,) = matrix_choices(fragment, narrow)
    access = shared_access(fragment, narrow, packed=choice)
    assert (access.instructions, access.minimum_wavefronts) == (4, 4)
    assert access.ways == 2  # eight rows of 32 bytes: two meet in a bank


def test_shapes_must_be_one() -> None:
    with pytest.raises(UsageError, match="both must have one shape"):
        shared_access(threads_of([[1, 0]], [[0, 1]], shape=(2, 64)), PLAIN)
    with pytest.raises(UsageError, match="can't be converted"):
        what_moves(ROWS, threads_of([[1, 0]], [[0, 1]], shape=(2, 2)))


@pytest.mark.parametrize(
    ("register", "lane", "warp", "block", "moves"),
    [
        ([[1], [2]], [[4]], [[8]], [[16]], "nothing"),
        ([[2], [1]], [[4]], [[8]], [[16]], "registers"),
        ([[1], [4]], [[2]], [[8]], [[16]], "lanes"),
        ([[1], [2]], [[8]], [[4]], [[16]], "warps"),
        ([[1], [2]], [[4]], [[16]], [[8]], "CTAs"),
        ([[1], [2], [0]], [[4]], [[8]], [[16]], "registers"),
        ([[1], [2]], [[6]], [[8]], [[16]], "registers"),
    ],
)
def test_what_moves(register: list, lane: list, warp: list, block: list, moves: str) -> None:
    source = threads_of([[1], [2]], [[4]], [[8]], [[16]], shape=(32,))
    destination = threads_of(register, lane, warp, block, shape=(32,))
    assert what_moves(source, destination) == moves
    share = moved_share(source, destination)
    assert (share > 0) == (moves not in ("nothing", "registers"))


def test_copies_need_not_move() -> None:
    source = threads_of([[1], [2]], [[0]], [[4]], shape=(8,))
    destination = threads_of([[1]], [[2]], [[4]], shape=(8,))
    assert what_moves(source, destination) == "registers"
    assert what_moves(destination, source) == "lanes"


vectors = st.lists(st.integers(0, 31).map(lambda base: [base]), max_size=3)


@settings(deadline=None)
@given(st.tuples(vectors, vectors, vectors), st.tuples(vectors, vectors, vectors))
def test_the_share_that_moves_is_that_of_counting(one: tuple, other: tuple) -> None:
    source, destination = (threads_of(*bases, shape=(32,)) for bases in (one, other))
    held = {(thread_of(place, source), element) for place, element in enumerate(source.elements)}
    moved = [(thread_of(place, destination), element) not in held for place, element in enumerate(destination.elements)]
    assert moved_share(source, destination) == sum(moved) / len(moved)


@settings(deadline=None)
@given(st.tuples(vectors, vectors, vectors), st.tuples(vectors, vectors, vectors))
def test_the_elements_that_move_are_those_of_counting(one: tuple, other: tuple) -> None:
    # The whole is led to, whatever was drawn.
    first, second = (
        threads_of([*bases[0], [1], [2], [4], [8], [16]], *bases[1:], shape=(32,)) for bases in (one, other)
    )

    def holders(threads: ThreadMap, element: int) -> set[tuple[int, int]]:
        return {thread_of(place, threads) for place, held in enumerate(threads.elements) if held == element}

    moves = Moves(first, second)
    moved = [holders(first, element).isdisjoint(holders(second, element)) for element in range(32)]
    assert [moves[element] for element in range(32)] == moved
    assert moves.share == sum(moved) / len(moved)


def thread_of(place: int, threads: ThreadMap) -> tuple[int, int]:
    register, lane = (len(threads.layout.vectors(name)) for name in ("register", "lane"))
    return place >> register & ((1 << lane) - 1), place >> register + lane

"""LinearLayout: applying, inverting, composing, and its text and JSON forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.errors import ParseError, UsageError
from irscope.layout.linear import LinearLayout, Preimage, eliminate, span

# An mma fragment of 16 × 8: 4 registers, 32 lanes.
MMA = LinearLayout.of(
    {"register": [[0, 1], [8, 0]], "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "warp": [], "block": []}, (16, 8)
)
WITH_COPIES = LinearLayout.of({"register": [[1], [0]], "lane": [[2], [4], [0]]}, (8,))


@st.composite
def layouts(draw: st.DrawFn) -> LinearLayout:
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3))
    vector = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    bases = {name: draw(st.lists(vector, max_size=3)) for name in ("register", "lane")}
    return LinearLayout.of(bases, sizes)


@given(layouts())
def test_json_round_trips(layout: LinearLayout) -> None:
    assert LinearLayout.from_json(layout.to_json()) == layout


@given(layouts())
def test_all_elements_are_what_apply_gives(layout: LinearLayout) -> None:
    registers = layout.in_size("register")
    for place, element in enumerate(layout.all_elements()):
        assert layout.unflatten(element) == layout.apply(register=place % registers, lane=place // registers)


@given(layouts())
def test_the_least_input_of_an_element_is_that_of_counting(layout: LinearLayout) -> None:
    elements, preimage = layout.all_elements(), Preimage(layout)
    least = [elements.index(element) if element in elements else -1 for element in range(len(preimage))]
    assert [preimage[element] for element in range(len(preimage))] == least


def test_a_layout_larger_than_any_memory_is_refused() -> None:
    rows = {"register": [[0]] * 49}
    with pytest.raises(UsageError, match="larger than irscope reads"):
        LinearLayout.of(rows, (1,))


@given(layouts())
def test_rank_and_kernel_add_up(layout: LinearLayout) -> None:
    assert layout.rank + len(layout.kernel()) == layout.in_bits
    elements = layout.all_elements()
    assert {elements[copy] for copy in span(layout.kernel())} == {0}
    assert layout.is_injective == (len(set(elements)) == len(elements))
    assert layout.is_surjective == (len(set(elements)) == 1 << layout.out_bits)


@given(layouts())
def test_inverse_leads_back(layout: LinearLayout) -> None:
    if not layout.is_surjective:
        with pytest.raises(UsageError, match="leaves elements out"):
            layout.invert()
        return
    round_trip = layout.invert().compose(layout)
    for element in range(1 << layout.out_bits):
        assert layout.flatten(round_trip.apply(element=element)) == element


def test_matrix_has_a_column_for_each_bit() -> None:
    matrix = MMA.matrix()
    assert len(matrix) == 7
    assert [row[1] for row in matrix] == [1, 0, 0, 0, 0, 0, 0]  # register bit 1 adds 8 rows
    assert len(matrix[0]) == MMA.in_bits


def test_copies_are_found() -> None:
    assert not WITH_COPIES.is_injective
    assert WITH_COPIES.is_surjective
    assert WITH_COPIES.apply(register=2, lane=4) == (0,)


def test_pivots_span_the_same_space() -> None:
    pivots, kernel = eliminate([3, 5, 6])
    assert len(pivots) == 2
    assert kernel == (0b111,)


def test_text_names_every_input() -> None:
    assert str(MMA).splitlines()[1] == "lane: [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]"
    assert str(MMA).endswith("to dim0 16, dim1 8")


@pytest.mark.parametrize(
    ("bases", "shape", "message"),
    [
        ({"lane": [[1]]}, (3,), "powers of two"),
        ({"lane": [[1, 0]]}, (4,), "has 2 parts"),
        ({"lane": [[4]]}, (4,), "leaves the shape"),
    ],
)
def test_wrong_bases_are_refused(bases: dict, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LinearLayout.of(bases, shape)


def test_wrong_inputs_are_refused() -> None:
    with pytest.raises(UsageError, match="no input 'thread'"):
        MMA.apply(thread=1)
    with pytest.raises(UsageError, match="lane 32 is out of range"):
        MMA.apply(lane=32)
    with pytest.raises(UsageError, match="can't compose"):
        MMA.compose(WITH_COPIES)
    with pytest.raises(ParseError, match="no linear layout"):
        LinearLayout.from_json({"bases": 3})

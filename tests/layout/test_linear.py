"""LinearLayout: applying, inverting, composing, and its text and JSON forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.errors import UsageError
from irscope.layout.linear import Preimage, eliminate, is_surjective, kernel, span
from irscope.model.layout import LinearLayout

# An mma fragment of 16 × 8: 4 registers, 32 lanes.
MMA = LinearLayout.of(
    {"register": [[0, 1], [8, 0]], "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "warp": [], "block": []}, (16, 8)
)


@st.composite
def layouts(draw: st.DrawFn) -> LinearLayout:
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3))
    vector = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    bases = {name: draw(st.lists(vector, max_size=3)) for name in ("register", "lane")}
    return LinearLayout.of(bases, sizes)


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
def test_the_kernel_is_what_leads_to_nothing(layout: LinearLayout) -> None:
    elements = layout.all_elements()
    copies = span(kernel(layout))
    assert sorted(copies) == [place for place, element in enumerate(elements) if element == 0]
    assert is_surjective(layout) == (len(set(elements)) == 1 << layout.out_bits)


@given(layouts())
def test_flat_bases_are_those_of_each_input(layout: LinearLayout) -> None:
    flat = [layout.flatten(vector) for _, vectors in layout.bases for vector in vectors]
    assert list(layout.flat_bases()) == flat
    assert [layout.unflatten(index) for index in flat] == [vector for _, vectors in layout.bases for vector in vectors]


def test_pivots_span_the_same_space() -> None:
    pivots, kernel = eliminate([3, 5, 6])
    assert len(pivots) == 2
    assert kernel == (0b111,)


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

"""Hypothesis strategies of layouts, their rows and the compiler's answers."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from irscope.model.layout import LayoutAnswer, LayoutMap, LayoutRefusal, LayoutRow, LayoutUse, LinearLayout, RefusalCode

words = st.text(max_size=8)
word_lists = st.lists(words, max_size=2).map(tuple)


@st.composite
def linear_layouts(draw: st.DrawFn) -> LinearLayout:
    """Any linear layout of up to three dimensions."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3))
    vector = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    names = draw(st.sampled_from([("register", "lane"), ("offset", "block"), ("row", "column")]))
    return LinearLayout.of({name: draw(st.lists(vector, max_size=3)) for name in names}, sizes)


answers: st.SearchStrategy[LayoutAnswer] = st.builds(
    LayoutMap,
    linear_layouts(),
    st.lists(st.tuples(st.integers(1, 512), st.integers(0, 64)), max_size=2).map(tuple),
    words,
) | st.builds(LayoutRefusal, st.sampled_from(get_args(RefusalCode)), st.text(min_size=1, max_size=20))
rows = st.builds(
    LayoutRow,
    words,
    words,
    st.lists(st.integers(1, 256), max_size=4).map(tuple),
    word_lists,
    st.integers(1, 8),
    st.lists(
        st.builds(
            LayoutUse,
            words,
            st.lists(st.integers(1, 9999), max_size=3).map(tuple),
            word_lists,
            word_lists,
            st.lists(word_lists, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    answers,
)

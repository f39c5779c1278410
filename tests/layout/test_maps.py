"""LinearLayout: applying, inverting, composing, and its text and JSON forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.errors import UsageError
from irscope.layout.maps import BankModel, MemoryMap, Owner, Preimage, ThreadMap, eliminate, is_surjective, kernel, span
from irscope.model.capture import Target
from irscope.model.layout import LinearLayout
from tests.layout.cases import offset_of

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
        ({"lane": [[4]]}, (4,), "is outside the shape"),
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


def powers(count: int, dimension: int, first: int = 1) -> list[list[int]]:
    return [[0, first << bit] if dimension else [first << bit, 0] for bit in range(count)]


# blocked 128 × 128: 8 elements a thread side by side, 4 × 8 … lanes, 4 warps down, then registers again
BLOCKED = LinearLayout.of(
    {
        "register": [*powers(3, 1), *powers(1, 1, 64), *powers(3, 0, 16)],
        "lane": [*powers(3, 1, 8), *powers(2, 0)],
        "warp": powers(2, 0, 4),
        "block": [],
    },
    (128, 128),
)


def owners_of(threads: ThreadMap, *coordinates: int) -> tuple[Owner, ...]:
    return threads.owners_at(threads.layout.flatten(coordinates))


def test_owner_and_element_agree() -> None:
    threads = ThreadMap.of(BLOCKED)
    assert owners_of(threads, 5, 9) == (Owner(0, 1, 9, 1),)
    assert threads.layout.apply(register=1, lane=9, warp=1) == (5, 9)
    for place, element in list(enumerate(threads.elements))[::997]:
        owner = threads.owner(place)
        assert owner in threads.owners_at(element)
        assert threads.layout.unflatten(element) == threads.layout.apply(**owner._asdict())
    assert str(owners_of(threads, 5, 9)[0]) == "w1 t9 r1"


def test_every_element_has_its_copies() -> None:
    layout = LinearLayout.of({"register": [[1], [0]], "lane": [[0], [2]], "warp": [[0]], "block": [[4]]}, (8,))
    threads = ThreadMap.of(layout)
    copies = threads.replication
    assert (copies.registers, copies.lanes, copies.warps, copies.blocks, copies.total) == (2, 2, 2, 1, 8)
    assert copies.wasted == 1 - 1 / 8
    assert str(copies) == "2 registers, 2 lanes, 2 warps"
    assert len(owners_of(threads, 5)) == 8
    assert {owner.block for owner in owners_of(threads, 5)} == {1}
    assert sum(len(threads.owners_at(index)) for index in range(8)) == len(threads.elements)


def test_nothing_held_twice() -> None:
    copies = ThreadMap.of(BLOCKED).replication
    assert copies.total == 1
    assert copies.wasted == 0
    assert str(copies) == "none"


def test_contiguous_runs() -> None:
    threads = ThreadMap.of(BLOCKED)
    assert threads.contiguous() == 8
    assert threads.contiguous(0) == 1


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a layout in registers"):
        ThreadMap.of(LinearLayout.of({"offset": [[1]]}, (2,)))
    with pytest.raises(UsageError, match="needs a layout in shared memory"):
        MemoryMap.of(BLOCKED, 16)


def test_a_map_of_a_large_layout_is_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearLayout, "all_elements", lambda _: pytest.fail("every place of the layout was listed"))
    high = [[1 << bit, 0] for bit in range(7, 20)]
    bases = {name: [*BLOCKED.vectors(name), *(high if name == "register" else [])] for name in BLOCKED.in_dims}
    threads = ThreadMap.of(LinearLayout.of(bases, (1 << 20, 128)))
    assert owners_of(threads, 1 << 19, 0)[0].register == threads.registers // 2


def test_padding_comes_after_every_interval() -> None:
    layout = LinearLayout.of({"offset": [[0, 1], [0, 2], [1, 0], [2, 0]], "block": []}, (4, 4))
    memory = MemoryMap.of(layout, 16, ((4, 2), (8, 1)))
    assert [memory.padded(offset) for offset in range(16)] == [
        0, 1, 2, 3, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 21, 22,
    ]  # fmt: skip
    assert offset_of(memory, 2, 1) == 9
    assert memory.byte(9) == 28
    assert memory.bank(9) == 7
    assert memory.size_bytes == 46
    with pytest.raises(UsageError, match=r"is not \(interval, padding\)"):
        MemoryMap.of(layout, 16, ((0, 2),))


@pytest.mark.parametrize(
    ("target", "banks"), [("cuda:90", 32), ("hip:gfx942", 32), ("hip:gfx950", 64), ("gfx1100", 64)]
)
def test_banks(target: str, banks: int) -> None:
    model = BankModel.of(Target.parse(target))
    assert model.banks == banks
    assert model.source

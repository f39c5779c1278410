"""Two layouts of a tensor: moves and bytes against every element looked up, conflicts against the compiler's count."""

from __future__ import annotations

from itertools import product

import pytest

from irscope.errors import UsageError
from irscope.ir.mlir.attributes import read_encoding
from irscope.layout.computed import computed_map
from irscope.layout.described import DescribedLayout
from irscope.layout.maps import ThreadMap
from irscope.memory.between import Conversion, Relocation, SharedTransfer, between, between_as_json
from irscope.memory.conflicts import first_request
from irscope.model.capture import Target
from irscope.model.layout import LayoutRow
from tests.layout.cases import blocked, sliced, swizzled

REGISTERS = (
    blocked((1, 4), (8, 4), (4, 1), (1, 0)),
    blocked((4, 1), (8, 4), (2, 2), (0, 1)),
    blocked((1, 8), (4, 8), (4, 1), (1, 0)),
    blocked((2, 2), (4, 8), (1, 4), (1, 0)),
    blocked((1, 4), (4, 8), (4, 1), (1, 0)),
    sliced(1, blocked((1, 4, 1), (8, 4, 1), (4, 1, 1), (1, 0, 2))),
)
PADDED = "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [32, 64]}>"
SHARED = (swizzled(1, 1, 1, (1, 0)), swizzled(8, 1, 8, (1, 0)), swizzled(4, 2, 4, (0, 1)), PADDED)
SHAPE = (32, 64)


def described(text: str, shape: tuple[int, ...] = SHAPE, element: str = "f16") -> DescribedLayout:
    found = computed_map(read_encoding(text), shape)
    assert found is not None
    return DescribedLayout(LayoutRow("", text, shape, (element,), answer=found), Target.parse("cuda:90"))


def threads_of(item: DescribedLayout) -> ThreadMap:
    assert item.threads is not None
    return item.threads


@pytest.mark.parametrize(("first", "second"), list(product(REGISTERS, repeat=2)))
def test_what_a_conversion_moves_is_what_every_element_does(first: str, second: str) -> None:
    source, destination = described(first), described(second)
    found = between(source, destination)
    assert isinstance(found, Conversion)
    held: list[set[tuple[int, int]]] = [set() for _ in range(32 * 64)]
    for place, element in enumerate(threads_of(source).elements):
        owner = threads_of(source).owner(place)
        held[element].add((owner.warp, owner.lane))
    places = [
        (threads_of(destination).owner(at), element) for at, element in enumerate(threads_of(destination).elements)
    ]
    moved = [(owner.warp, owner.lane) not in held[element] for owner, element in places]
    other_warp = [owner.warp not in {warp for warp, _ in held[element]} for owner, element in places]
    assert found.moved_share == pytest.approx(sum(moved) / len(moved))
    assert (found.moves == "warps") == any(other_warp)
    assert (found.moves in ("nothing", "registers")) == (not any(moved))
    assert found.bytes == 32 * 64 * 2
    if not any(moved):
        assert found.wavefronts == 0
    assert ("nothing" in str(found)) == (found.moves == "nothing")


@pytest.mark.parametrize(("first", "second"), list(product(SHARED, repeat=2)))
def test_what_lies_elsewhere_is_counted(first: str, second: str) -> None:
    ours, theirs = described(first), described(second)
    found = between(ours, theirs)
    assert isinstance(found, Relocation)
    assert ours.memory is not None
    assert theirs.memory is not None
    places = [
        {element: memory.byte(offset) for offset, element in enumerate(memory.elements)}
        for memory in (ours.memory, theirs.memory)
    ]
    assert found.moved_share == sum(places[0][at] != places[1][at] for at in range(32 * 64)) / (32 * 64)
    assert (found.moved_share == 0) == (first == second)


@pytest.mark.parametrize(("registers", "shared"), list(product(REGISTERS[:5], SHARED)))
def test_the_first_access_touches_all_banks_at_most_so_often(registers: str, shared: str) -> None:
    threads, memory = threads_of(described(registers)), described(shared).memory
    assert memory is not None
    elements = first_request(threads, memory)
    lanes = {owner.lane for element in elements for owner in threads.owners_at(element) if owner.warp == 0}
    assert all(any(owner.warp == 0 for owner in threads.owners_at(element)) for element in elements)
    found = between(described(registers), described(shared))
    assert isinstance(found, SharedTransfer)
    assert len(elements) * 16 == len(lanes) * found.bits_per_thread
    words: dict[int, set[int]] = {}
    for element in elements:
        byte = memory.place(element)[1]
        words.setdefault(byte // 4 % memory.banks, set()).add(byte // 4)
    # Every access of such a map meets the banks alike, as long as no padding shifts it.
    if not memory.padding:
        assert max(map(len, words.values())) == found.ways


@pytest.mark.triton
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_conflicts_are_the_compilers(element: str) -> None:
    pytest.importorskip("triton", reason="the oracle is the installed compiler, and Triton is not installed")
    from irscope.api.layouts import compilers_ways

    for registers, shared in product(REGISTERS[:2], SHARED[:2]):
        pair = described(registers, element=element), described(shared, element=element)
        ways = compilers_ways(*pair)
        found = between(*pair, ways)
        assert isinstance(found, SharedTransfer)
        assert found.ways == ways
        assert "as the compiler counts" in str(found)
        assert between_as_json(*pair, ways)["compiler_ways"] == ways
    assert compilers_ways(described(REGISTERS[0]), described(PADDED)) is None


def test_what_can_not_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="choose two layouts of one shape"):
        between(described(REGISTERS[0]), described(REGISTERS[0], (64, 64)))
    with pytest.raises(UsageError, match="is without a map"):
        between(described(SHARED[0]), DescribedLayout(LayoutRow("", "#a.b", SHAPE), Target.parse("cuda:90")))

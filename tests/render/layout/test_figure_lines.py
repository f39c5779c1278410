"""Padding as it lies in memory: byte for byte what the definition of `padded_shared` says."""

from __future__ import annotations

import pytest

from irscope.layout.maps import MemoryMap
from irscope.render.layout.figure import make_lines_figure
from irscope.render.layout.svg import render_svg
from irscope.render.layout.terminal import layout_table
from tests.memory.test_between import SHARED, described


@pytest.mark.parametrize(
    ("paddings", "order"), [("64:+8", "1, 0"), ("64:+8, 512:+4", "1, 0"), ("128:+2", "0, 1"), ("1024:+32", "1, 0")]
)
@pytest.mark.parametrize("element", ["f16", "f32", "i8"])
def test_every_byte_is_drawn_as_it_is(paddings: str, order: str, element: str) -> None:
    item = described(f"#ttg.padded_shared<[{paddings}] {{order = [{order}], shape = [32, 64]}}>", element=element)
    memory = item.memory
    assert memory is not None
    figure = make_lines_figure(item)
    assert figure is not None
    at = {memory.byte(offset) * 8 // memory.element_bits: memory.elements[offset] for offset in range(memory.offsets)}
    drawn: dict[int, int] = {}
    for run in figure.runs:
        for step in range(run.length):
            place = run.row * figure.columns + run.column + step
            assert place not in drawn
            row, column = (0, 0) if run.empty else map(int, run.label.split(","))
            drawn[place] = -1 if run.empty else row * 64 + column + step
        if run.empty:
            assert run.detail == f"{run.length * memory.element_bits // 8} B"
    assert sorted(drawn) == list(range(len(drawn)))
    for place, element_index in drawn.items():
        assert at.get(place, -1) == element_index
    # A part that repeats, or as much as fits.
    whole = size_of(memory)
    again = len(drawn) % (64 + 8) == 0 or paddings != "64:+8"
    assert len(drawn) >= min(figure.columns * 32, whole) - figure.columns or again


def size_of(memory: MemoryMap) -> int:
    return memory.size_bytes * 8 // memory.element_bits


def test_it_is_hatched_named_and_counted() -> None:
    item = described(SHARED[3])
    figure = make_lines_figure(item)
    assert figure is not None
    assert 'class="way"' in render_svg([figure])
    assert any("padding: 16 bytes after every 128" in fact for fact in figure.facts)
    assert item.parameters.startswith("[64:+8], order = [1, 0]")
    assert "4592 B shared, 496 B padding" in layout_table([item])
    assert make_lines_figure(described(SHARED[0])) is None

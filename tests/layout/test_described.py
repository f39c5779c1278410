"""Layouts as they are listed, and chosen."""

from __future__ import annotations

from irscope.layout.described import DescribedLayout, choose_layouts
from irscope.layout.rows import layout_rows
from irscope.model.capture import Target

_TTGIR = """
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
module {
  tt.func public @k() {
    %0 = arith.constant dense<0.0> : tensor<64x16xf16, #blocked>
    %1 = ttg.convert_layout %0 : tensor<64x16xf16, #blocked> -> tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
    %2 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    tt.return
  }
}
"""  # noqa: E501


def test_each_is_chosen_by_the_name_that_is_listed() -> None:
    layouts = [DescribedLayout(row, Target.parse("cuda:80")) for row in layout_rows(_TTGIR)]
    assert {one.name for one in layouts} == {"#blocked", "dot operand 0 of #mma", "slice 0 of #blocked"}
    for layout in layouts:
        assert choose_layouts(layouts, names=[layout.name]) == [layout]
        assert choose_layouts(layouts, names=[f"{layout.name}@{'x'.join(map(str, layout.shape))}"]) == [layout]

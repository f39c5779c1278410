"""Memory layouts that the compiler prints no view of: against their definitions, written out here.

Sources: the definitions of `padded_shared`, `nvmma_shared` (fp4Padded) and `tensor_memory_encoding` in Triton's
TritonGPUAttrDefs.td and TritonNvidiaGPUAttrDefs.td; "PTX ISA", section "Tensor Memory Addressing".
"""

from __future__ import annotations

import pytest

from irscope.errors import MissingTool, UsageError
from irscope.layout.described import DescribedLayout
from irscope.model.capture import Target
from irscope.record.layouts.questions import ask_layout
from tests.layout.cases import offset_of

triton = pytest.importorskip(
    "triton", reason="the layouts come from the installed compiler, and Triton is not installed"
)
pytestmark = pytest.mark.triton
VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])


def described(text: str, shape: tuple[int, ...], target: str, dtype: str, num_ctas: int = 1) -> DescribedLayout:
    row = ask_layout(text, shape, None, Target.parse(target), dtype, num_ctas=num_ctas)
    return DescribedLayout(row, Target.parse(target))


def test_padding_comes_after_each_interval() -> None:
    text = "#ttg.padded_shared<[64:+8, 512:+4] {order = [1, 0], shape = [64, 64]}>"
    memory = described(text, (64, 64), "hip:gfx950", "f16").memory
    assert memory is not None
    for row in range(64):
        for column in range(64):
            index = row * 64 + column
            assert memory.byte(offset_of(memory, row, column)) == 2 * (index + index // 64 * 8 + index // 512 * 4)


def test_fp4_takes_half_of_each_chunk() -> None:
    text = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>"
    memory = described(text, (128, 64), "cuda:100", "i8").memory
    assert memory is not None
    for row in range(128):
        for column in range(64):
            chunk = column // 8 ^ row % 8
            assert offset_of(memory, row, column) == row * 128 + chunk * 16 + column % 8
    assert memory.size_bytes == 128 * 128


def test_tensor_memory_has_a_lane_a_row() -> None:
    text = "#ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>"
    if VERSION < (3, 7):
        with pytest.raises(MissingTool, match=r"3\.7 and later do"):
            described(text, (128, 128), "cuda:100", "f32")
        return
    item = described(text, (128, 128), "cuda:100", "f32")
    assert item.layout is not None
    for row in (0, 1, 31, 127):
        for column in (0, 5, 64, 127):
            assert item.layout.apply(row=row, column=column) == (row, column)


def test_partitions_are_said_to_be_dropped() -> None:
    inner = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"
    text = f"#ttg.partitioned_shared<{{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = {inner}}}>"
    if VERSION < (3, 8):
        with pytest.raises(UsageError, match="does not take"):
            described(text, (128, 64), "hip:gfx950", "f16")
        return
    found = described(text, (128, 64), "hip:gfx950", "f16").row.map
    assert found is not None
    assert "within a partition" in found.note


@pytest.mark.parametrize("split", [[1, 0], [0, 1]])
def test_several_ctas_hold_a_part_each(split: list[int]) -> None:
    text = f"#ttg.swizzled_shared<{{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], CGALayout = [{split}]}}>"
    if VERSION < (3, 7) and split == [0, 1]:
        with pytest.raises(UsageError, match=r"does not take .* it ends with"):
            described(text, (64, 64), "cuda:90", "f16", 2)
        return
    memory = described(text, (64, 64), "cuda:90", "f16", 2).memory
    assert memory is not None
    assert (memory.blocks, memory.size_bytes) == (2, 4096)
    assert sorted(memory.elements) == list(range(64 * 64))

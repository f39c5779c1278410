"""Where copies of tiles put elements: the swizzles as layouts have them, what lies outside, rows of a gather."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.errors import NotRun
from irscope.ir.mlir.attributes import parse_encoding
from irscope.layout.computed import computed_map
from irscope.machine.ptx_tiles import TensorMap
from irscope.machine.values import Descriptor, narrow_float

_KINDS = {1: 0, 2: 6, 4: 7, 8: 5}


def _map(box: tuple[int, int], shape: tuple[int, int], size: int, swizzle: int) -> TensorMap:
    """Of a tensor at address 4096; sizes are (rows, columns)."""
    return TensorMap({
        ("rank", 0): 1, ("box_dim", 0): box[1], ("box_dim", 1): box[0], ("global_dim", 0): shape[1],
        ("global_dim", 1): shape[0], ("global_stride", 0): shape[1] * size, ("elemtype", 0): _KINDS[size],
        ("swizzle_mode", 0): swizzle, ("global_address", 0): 4096,
    })  # fmt: skip


@pytest.mark.parametrize("size", _KINDS)
@pytest.mark.parametrize("width", [32, 64, 128])
def test_swizzles_are_those_of_layouts(width: int, size: int) -> None:
    rows, columns = 16, width // size
    text = f"vec = {16 // size}, perPhase = {128 // width}, maxPhase = {width // 16}, order = [1, 0]"
    layout = computed_map(parse_encoding(f"#ttg.swizzled_shared<{{{text}}}>"), (rows, columns))
    assert layout is not None
    shared, addresses, inside = _map((rows, columns), (rows, columns), size, width.bit_length() - 5).places(
        2048, [0, 0], is_rows=False
    )
    assert inside.all()
    by_address = dict(zip(((addresses - 4096) // size).tolist(), shared.tolist(), strict=True))
    for offset in range(rows * columns):
        row, column = layout.layout.apply(offset=offset)
        assert by_address[row * columns + column] == 2048 + offset * size


def test_what_lies_outside_is_not_copied() -> None:
    tensor = _map((4, 8), (5, 20), 2, 0)
    shared, addresses, inside = tensor.places(0, [16, 3], is_rows=False)
    rows, columns = np.divmod(np.arange(32), 8)
    assert shared.tolist() == (2 * np.arange(32)).tolist()
    assert inside.tolist() == ((rows < 2) & (columns < 4)).tolist()
    assert addresses[inside].tolist() == [4096 + 2 * (20 * (3 + row) + 16 + own) for row in (0, 1) for own in range(4)]
    assert not tensor.places(0, [-8, 0], is_rows=False)[2].any()


def test_a_gather_names_each_row() -> None:
    shared, addresses, inside = _map((1, 8), (5, 20), 2, 0).places(0, [2, 4, 0, 7, 0], is_rows=True)
    assert shared.tolist() == (2 * np.arange(32)).tolist()
    assert inside.reshape(4, 8).all(axis=1).tolist() == [True, True, False, True]
    assert addresses.reshape(4, 8)[:, 0].tolist() == [4096 + 2 * (20 * row + 2) for row in (4, 0, 7, 0)]


@pytest.mark.parametrize(("width", "columns", "box"), [(128, 256, 64), (64, 32, 32), (0, 512, 256)])
def test_a_descriptor_of_the_host_is_copied_in_boxes(width: int, columns: int, box: int) -> None:
    encoding = parse_encoding(
        f"#ttg.nvmma_shared<{{swizzlingByteWidth = {width}, transposed = false, elementBitWidth = 16}}>"
    )
    numbers = [np.array([one], np.int64) for one in (64, 1000, 1024, 1)]
    half = Descriptor(
        np.array([4096], np.int64), tuple(numbers[:2]), tuple(numbers[2:]), (32, columns), np.dtype(np.float16)
    )
    made = TensorMap.of_host(half, encoding)
    assert (made.box(), made.kind, made.swizzle_bytes) == ([box, 32], "f16", width)
    assert made.bytes() == box * 32 * 2
    assert made.places(0, [0, 1], is_rows=False)[1][0] == 4096 + 2048
    brain = Descriptor(half.base, half.sizes, half.strides, half.block, narrow_float("bfloat16"))
    assert TensorMap.of_host(brain, encoding).kind == "bf16"


def test_what_is_not_computed_is_refused() -> None:
    tensor = _map((4, 8), (5, 20), 2, 0)
    tensor.fields["elemtype", 0] = 11
    with pytest.raises(NotRun, match="elements of kind 11"):
        _ = tensor.kind
    tensor.fields["global_address", 0] = None
    tensor.fields["elemtype", 0] = 6
    with pytest.raises(NotRun, match="global address of a tensor's descriptor is not computed"):
        tensor.places(0, [0, 0], is_rows=False)

"""Oracle: the maps that irscope computes from texts alone, against the installed compiler's, basis by basis."""

from __future__ import annotations

from collections import Counter

import pytest

from irscope.errors import UsageError
from irscope.ir.mlir.attributes import read_encoding
from irscope.layout.computed import computed_map
from irscope.layout.rows import query_type
from irscope.layout.typed import parse_typed
from irscope.model.capture import Target
from irscope.model.layout import LayoutMap, LinearLayout
from tests.layout.cases import CASES, Case, blocked, swizzled

OTHERS = (
    Case("#ttg.padded_shared<[64:+8, 512:+4] {order = [1, 0], shape = [64, 64]}>", (64, 64)),
    Case("#ttg.padded_shared<[128:+4] {order = [0, 1], shape = [32, 64]}>", (32, 64)),
    Case(
        "#ttg.padded_shared<[4:+2] {offset = [[0, 1], [0, 2], [1, 0], [2, 0]], block = []}>",
        (4, 4),
    ),
    Case(swizzled(8, 1, 8, (1, 0))[:-2] + ", CGALayout = [[1, 0]]}>", (64, 64), num_ctas=2),
)
COMPUTED = [case for case in (*CASES, *OTHERS) if computed_map(read_encoding(case.encoding), case.shape) is not None]


@pytest.mark.triton
def test_they_are_the_compilers() -> None:
    from irscope.record.process.annotations import LayoutServer, Module

    triton = pytest.importorskip("triton", reason="the maps are the compiler's, and Triton is not installed")
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    checked = Counter[str]()
    with LayoutServer() as server:
        for case in COMPUTED:
            if case.since > version:
                continue
            module = Module.of(Target.parse(case.target), case.num_warps, case.num_ctas)
            types = [query_type(case.encoding, case.shape, case.element)]
            (answer,) = server.wait(server.ask(module, types=types)).answered_types()
            assert isinstance(answer, LayoutMap), (case.label, answer)
            ours = computed_map(parse_typed(case.encoding, case.shape), case.shape)
            assert ours is not None
            assert bases_of(ours.layout) == bases_of(answer.layout), case.label
            assert ours.padding == answer.padding
            checked[read_encoding(case.encoding).kind] += 1
    assert set(checked) >= {"blocked", "slice", "linear", "swizzled_shared", "shared_linear", "padded_shared"}
    assert checked.total() > 100


def bases_of(layout: LinearLayout) -> dict[str, list[tuple[int, ...]]]:
    # Triton 3.9 drops the registers of blocked that only replicate, earlier versions keep them.
    return {
        name: [vector for vector in vectors if any(vector) or name != "register"]
        for name, vectors in layout.bases
        if vectors
    }


def test_without_the_compiler_a_swizzle_is_its_definition() -> None:
    text = swizzled(8, 2, 4, (1, 0))
    found = computed_map(parse_typed(text, (64, 64)), (64, 64))
    assert found is not None
    for row in range(64):
        for column in range(64):
            # The definition in TritonGPUAttrDefs.td.
            offset = row * 64 + (column // 8 ^ row // 2 % 4) * 8 + column % 8
            assert found.layout.apply(offset=offset) == (row, column)


def test_a_larger_shape_goes_on_in_registers() -> None:
    text = blocked((1, 4), (8, 4), (4, 1), (1, 0))
    found = computed_map(parse_typed(text, (64, 64)), (64, 64))
    assert found is not None
    assert found.layout.vectors("register") == ((0, 1), (0, 2), (0, 16), (0, 32), (32, 0))
    assert "Triton" in found.note


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("#ttg.shared_linear<{offset = [[0, 1], [0, 2]]}, alignment = 16>", (4, 4), "leaves elements out of a 4×4"),
        ("#ttg.linear<{register = [[1]], lane = [[3]], warp = [[4]], block = []}>", (8,), "one power of two"),
        ("#ttg.shared_linear<{offset = [[0, 8]]}, alignment = 16>", (4, 4), "is outside the shape"),
    ],
)
def test_vectors_that_the_compiler_does_not_take(text: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        computed_map(parse_typed(text, shape), shape)

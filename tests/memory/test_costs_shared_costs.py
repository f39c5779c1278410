"""Rows of shared memory: one for each access, conflicts that the compiler counts too, and none that is not there."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from irscope.api.layouts import with_compilers_count
from irscope.memory.access import Cost
from irscope.memory.allocation import allocations_of
from irscope.memory.costs import costs_of
from irscope.model.capture import Capture
from tests.examples.compile_cases import EXAMPLES, tma_case
from tests.memory.kernels import compiled
from tests.recording import record_without_sass, without_torch

pytestmark = pytest.mark.triton


def shared_rows(capture: Capture) -> list[Cost]:
    return [cost for cost in costs_of(capture) if cost.kind == "shared"]


@pytest.mark.parametrize(
    ("kernel", "target", "operations"),
    [
        ("product", "cuda:90", {"ttg.async_copy_global_to_local", "ttng.warp_group_dot"}),
        pytest.param(
            "product", "cuda:100", {"ttg.async_copy_global_to_local", "ttng.tc_gen5_mma"}, marks=pytest.mark.newest
        ),
        ("product", "cuda:80", {"ttg.async_copy_global_to_local", "ttg.local_load"}),
        ("specialised", "cuda:100", {"ttng.async_tma_copy_global_to_local", "ttng.tc_gen5_mma"}),
        pytest.param("sums", "cuda:90", {"tt.reduce", "tt.scan"}, marks=pytest.mark.newest),
        ("sums", "hip:gfx942", {"tt.reduce", "tt.scan"}),
        ("gathered", "cuda:80", {"tt.gather", "tt.histogram", "tt.atomic_rmw"}),
    ],
)
def test_every_access_has_a_row(kernel: str, target: str, operations: set[str]) -> None:
    capture = compiled(kernel, target)
    rows = shared_rows(capture)
    assert operations <= {row.operation for row in rows}
    assert all(row.summary and row.place for row in rows)
    # Whatever owns scratch, conversions and scalars apart, says how much.
    scratch = [one for one in allocations_of(capture)[0].buffers if one.kind == "scratch" and one.what]
    for one in scratch:
        if one.owner in operations:
            assert any(f"{one.size} bytes of scratch" in row.summary for row in rows if row.operation == one.owner)


def test_what_is_not_known_says_so() -> None:
    """The same product, with a load of another name, as a later Triton may have it."""
    capture = compiled("product", "cuda:80")
    text = capture.text("ttgir").replace("ttg.local_load", "ttg.local_load_by_magic")
    assert "by_magic" in text
    artifacts = tuple(replace(one, data=text) if one.stage == "ttgir" else one for one in capture.artifacts)
    rows = shared_rows(replace(capture, artifacts=artifacts))
    assert {row.summary for row in rows if "by_magic" in row.operation} == {"not modelled: its bank conflicts"}
    assert not any("dealloc" in row.operation or "wait" in row.operation for row in rows)


def test_tensor_cores_read_without_conflicts() -> None:
    rows = [row for row in shared_rows(compiled("product", "cuda:90")) if row.operation == "ttng.warp_group_dot"]
    assert [row.figures["bytes"] for row in rows] == [64 * 64 * 2] * len(rows)
    assert rows
    assert {row.figures["ways"] for row in rows} == {1}


def test_a_plain_store_beside_stmatrix_is_one(tmp_path: Path) -> None:
    """matmul_tma stores zeros and products on one line: only the latter's store is an stmatrix; neither conflicts."""
    if find_spec("torch") is None:
        pytest.skip("where there is no torch, the examples' own tests compile it")
    case = tma_case(128, 256, 64, 8, 3, 1)
    capture = record_without_sass(
        without_torch(EXAMPLES / "matmul_tma.py", tmp_path),
        kernel=case.kernel,
        signature=", ".join(case.signature.split()),
        constexprs=case.constants,
        options=case.options,
        target="cuda:90",
    )
    stores = [row for row in shared_rows(capture) if row.operation in ("ttg.local_store", "ttg.local_alloc")]
    assert stores
    assert all(row.excess == 0 and row.figures["ways"] == 1 for row in stores)
    assert all(row.figures["matrices"] == row.layouts[0].startswith("#mma") for row in stores)
    counted = with_compilers_count(stores, capture.target, 8)
    asked = [row for row in counted if "compiler_ways" in row.figures]
    assert asked
    assert all(row.figures["compiler_ways"] == 1 for row in asked)

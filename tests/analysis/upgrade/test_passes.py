"""A sample of the planted changes (`python -m tests.analysis.upgrade` has all), on a small product of tiles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from irscope.cli.upgrade.run import compiled, upgraded
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.variants.grafts import Compiler
from tests.analysis.upgrade.planted import Plant, judged
from tests.cli.product import KERNELS
from tests.recording import record_without_sass

pytestmark = [pytest.mark.triton, pytest.mark.newest]

OPTIONS = RecordingOptions(snapshots="none", disassemble=False, layouts=False)
SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 16"
PLANTS = (
    Plant("-ttgir:accelerate_matmul#1", ("ttgir",), ("ttgir:accelerate_matmul#1",), plan="-accelerate_matmul"),
    Plant("num_warps=2", ("ttgir",), (), options=(("num_warps", 2),)),
    Plant("-ptxas-opt", ("cubin",), ("cubin:ptxas-opt#1",), plan="-ptxas-opt"),
)


@pytest.fixture(scope="module")
def product() -> Capture:
    return record_without_sass(
        KERNELS, kernel="tile_product", target="cuda:90", signature=SIGNATURE, snapshots="none", layouts=False
    )


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    with Compiler(None, OPTIONS, 1) as started:
        yield started


@pytest.fixture(scope="module")
def own(product: Capture, compiler: Compiler) -> Capture:
    return compiled([product], compiler)[0]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_change_is_blamed(product: Capture, compiler: Compiler, own: Capture, plant: Plant) -> None:
    found = judged(product, compiler, plant, own)
    assert found.has_effect
    assert (found.right_stage, found.right_pass) == (True, True), found.told


def test_the_same_compiler_changes_nothing_and_compiles_each_variant_once(
    product: Capture, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    compile_all = Compiler.compile

    def counted(self: Compiler, requests: list[object]) -> object:
        asked.append(len(requests))
        return compile_all(self, requests)  # pyright: ignore

    monkeypatch.setattr(Compiler, "compile", counted)
    found = upgraded([product, product], compiler, compiler)
    assert [one.verdict for one in found.rows] == ["same"]
    assert asked == [1, 1]
    assert found.grafts == 0


def test_a_refused_option_is_a_failure_of_that_side(product: Capture, compiler: Compiler, own: Capture) -> None:
    plan = PassPlan.parse("-ttgir:convert_to_ttgpuir")
    found = judged(product, compiler, Plant("fails", ("ttgir",), ("ttgir:convert_to_ttgpuir#1",), plan=str(plan)), own)
    assert found.row.changes[0].name == "failure"
    assert found.right_pass, found.told

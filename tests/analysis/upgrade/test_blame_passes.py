"""A sample of the planted changes (`python -m tests.analysis.upgrade` has all), on a small product of tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from irscope.analysis.upgrade.compare import blamed, compiled, rows_of, upgraded
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.variants.pool import Compiler, VariantPool
from tests.analysis.upgrade.compilers import with_texts
from tests.analysis.upgrade.planted import Plant, judged
from tests.cli.product import KERNELS
from tests.recording import record_without_sass

pytestmark = [pytest.mark.triton, pytest.mark.newest]

OPTIONS = RecordingOptions(snapshots="none", disassemble=False, layouts=False)
SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 16"
PRODUCT = (
    Plant("-ttgir:accelerate_matmul#1", ("ttgir",), ("ttgir:accelerate_matmul#1",), plan="-accelerate_matmul"),
    Plant("num_warps=2", ("ttgir",), (), options=(("num_warps", 2),)),
    Plant("-ptxas-opt", ("cubin",), ("cubin:ptxas-opt#1",), plan="-ptxas-opt"),
)


NORMS_SIGNATURE = "*fp32:16, *fp32:16, fp32, fp32, 8, 256"
NORMS = (
    Plant("-ttgir:coalesce#1", ("ttgir",), ("ttgir:coalesce#1",), plan="-coalesce"),
    Plant("-llir:membar#1", ("llir",), ("llir:membar#1",), plan="-membar"),
    Plant("-llvm-opt", ("llir", "ptx"), ("llir:llvm-opt#1",), plan="-llvm-opt"),
    Plant("enable_fp_fusion=False", ("ptx", "cubin"), ("LLVM's code generator", "ptxas"),
          options=(("enable_fp_fusion", False),)),
    Plant("ptx_options=-O1", ("cubin",), ("ptxas",), options=(("ptx_options", "-O1"),)),
)  # fmt: skip
ENVIRONMENTS = (
    Plant("DISABLE_LLVM_OPT=1", ("ptx",), ("LLVM's code generator",)),
    Plant("PTXAS_OPTIONS=-O1", ("cubin",), ("ptxas",)),
)
"""Of the compiler after: variables that it reads."""


@pytest.fixture(scope="module")
def norms() -> Capture:
    return record_without_sass(
        KERNELS.parent / "sums.py",
        kernel="scaled_norms",
        target="cuda:90",
        signature=NORMS_SIGNATURE,
        snapshots="none",
        layouts=False,
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


@pytest.mark.parametrize("plant", PRODUCT, ids=lambda plant: plant.name)
def test_a_planted_change_is_blamed(product: Capture, compiler: Compiler, own: Capture, plant: Plant) -> None:
    planted = judged(product, compiler, plant, own)
    assert planted.has_effect
    assert (planted.right_stage, planted.right_pass) == (True, True), planted.told


@pytest.mark.exhaustive
def test_changes_that_no_count_shows_are_blamed(
    norms: Capture, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fusion, LLVM's and ptxas's flags, lost barriers; results that may change are worse, other code alone is not."""
    (own,) = compiled([norms], compiler)
    rows = [judged(norms, compiler, plant, own) for plant in NORMS]
    for plant in ENVIRONMENTS:
        name, _, value = plant.name.partition("=")
        with monkeypatch.context() as variables:
            variables.setenv(name, value)
            with Compiler(None, OPTIONS, 1) as after:
                rows.append(judged(norms, compiler, plant, own, after))
    told = {one.plant.name: (one.row.verdict, one.row.changes[0].name, one.right_stage, one.right_pass) for one in rows}
    assert told == {
        "-ttgir:coalesce#1": ("worse", told["-ttgir:coalesce#1"][1], True, True),
        "-llir:membar#1": ("worse", "order", True, True),
        "-llvm-opt": ("worse", "arithmetic", True, True),
        "enable_fp_fusion=False": ("worse", "arithmetic", True, True),
        "ptx_options=-O1": ("other", told["ptx_options=-O1"][1], True, True),
        "DISABLE_LLVM_OPT=1": ("worse", "arithmetic", True, True),
        "PTXAS_OPTIONS=-O1": ("other", told["PTXAS_OPTIONS=-O1"][1], True, True),
    }, [one.told for one in rows]


def test_a_maximum_that_keeps_nan_in_the_ir_of_one_front_end(norms: Capture, compiler: Compiler) -> None:
    text = norms.text("source")
    assert "arith.maxnumf" in text
    planted = with_texts(norms, source=text.replace("arith.maxnumf", "arith.maximumf"))
    before, after = compiled([norms, planted], compiler)
    ((row,), _) = blamed(rows_of([(before, after)], compiler.disassemble), compiler, compiler)
    assert row.verdict == "worse"
    assert "FMNMX" in row.changes[0].text
    assert row.blame is not None
    assert row.blame.stages == ("source",)


def test_a_capture_without_its_source_ends_no_upgrade(product: Capture, compiler: Compiler) -> None:
    bare = replace(product, artifacts=())
    upgrade = upgraded([bare, product], compiler, compiler)
    assert [row.verdict for row in upgrade.rows] == ["unpaired", "same"]
    assert "holds no source stage" in upgrade.rows[0].why_not_compared


def test_the_same_compiler_changes_nothing_and_compiles_each_variant_once(
    product: Capture, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    compile_all = VariantPool.results

    def counted(self: VariantPool, requests: list[Any]) -> object:
        asked.append(len(requests))
        return compile_all(self, requests)

    monkeypatch.setattr(VariantPool, "results", counted)
    found = upgraded([product, product], compiler, compiler)
    assert [one.verdict for one in found.rows] == ["same"]
    # Where the times of both are too close to tell apart, more compiles follow.
    assert asked[:2] == [1, 1]
    assert found.grafts == 0


def test_a_refused_option_is_a_failure_of_that_side(product: Capture, compiler: Compiler, own: Capture) -> None:
    plan = PassPlan.parse("-ttgir:convert_to_ttgpuir")
    found = judged(product, compiler, Plant("fails", ("ttgir",), ("ttgir:convert_to_ttgpuir#1",), plan=str(plan)), own)
    assert found.row.changes[0].name == "failure"
    assert found.right_pass, found.told

"""Times of a compile's parts, and LLVM's own passes, listed and left out: one small kernel, recorded once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import irscope
from irscope.analysis.passes.bisection import BisectSearch, BisectVerdict
from irscope.analysis.passes.times import time_tree
from irscope.api.passes import AblationRun, AblationSearch, bisected
from irscope.errors import PlanError
from irscope.model.capture import Capture
from irscope.plan import PassPlan, PassRule
from irscope.record.process.requests import request_from_capture
from irscope.record.process.session import compiled
from irscope.record.variants.completing import reporting, with_llvm_passes, with_times
from irscope.record.variants.pool import VariantPool
from irscope.render.timing import times_json, times_svg, times_text
from irscope.render.traces import times_trace
from irscope.store.file import load, save
from tests.perfetto import tracks

KERNELS = Path(__file__).parents[1] / "kernels"

pytestmark = pytest.mark.triton


SIGNATURES = {"axpy": "*fp16, *fp32, i64, fp32, 256", "tile_product": "*fp16:16, *fp16:16, *fp32:16, i32:16, 32"}


def recorded(kernel: str) -> Capture:
    return irscope.record(KERNELS / "no_torch.py", kernel=kernel, signature=SIGNATURES[kernel], target="cuda:80")


@pytest.fixture(scope="module")
def product() -> Capture:
    return recorded("axpy")


def with_names(product: Capture) -> Capture:
    """The same, with the names of LLVM's passes."""
    request = request_from_capture(product, snapshots="none", layouts=False, disassemble=False)
    return compiled(replace(request, lists_llvm=True))


@pytest.fixture(scope="module")
def listed(product: Capture) -> Capture:
    return with_names(product)


@pytest.fixture(scope="module")
def timed(product: Capture) -> Capture:
    return with_times(product)


def test_nearly_all_of_a_compile_is_accounted_for(product: Capture, timed: Capture, tmp_path: Path) -> None:
    assert product.times is None
    assert timed.times is not None
    tree = time_tree(timed.times)
    names = {(node.kind, node.name) for node in tree.root.walk()}
    assert {("stage", "ttgir"), ("pass", "coalesce#1"), ("pass", "llvm-opt"), ("llvm", "sroa#1")} <= names
    assert any(kind == "llvm" and name.startswith("nvptx-isel") for kind, name in names)
    assert any(kind == "tool" and name.startswith("ptxas") for kind, name in names)
    # How much is between the parts depends on the machine's load: only that each part lies within the one around it.
    for node in tree.root.walk():
        assert sum(part.duration_ns for part in node.parts) <= node.duration_ns + 1_000_000
    assert 0.5 < tree.accounted <= 1
    assert load(save(timed, tmp_path / "timed.irscope")).times == timed.times
    text = times_text(timed, width=None, color=False)
    assert "not accounted for" in text
    assert "the front end is not among the parts" in text
    data = times_json(timed)
    assert data["whole_us"] == tree.whole_ns // 1000
    json.dumps(data)
    ElementTree.fromstring(times_svg(timed))


def test_perfetto_reads_every_part_of_a_compile_where_it_is(timed: Capture) -> None:
    assert timed.times is not None
    ((track, slices),) = tracks(times_trace(timed)).items()
    assert track == "axpy for cuda:80 / compile"
    written = [(one.name, one.start_ns, one.duration_ns, one.depth) for one in timed.times.spans]
    assert len(slices) == len(written)
    # Perfetto puts a part of no length into the one that begins with it.
    assert sorted(row for row in slices if row[2]) == sorted(row for row in written if row[2])


def test_times_name_llvm_passes_as_a_listing_does(product: Capture, listed: Capture) -> None:
    """The trace has classes and descriptions; a plan's names come from when LLVM asks for a pass."""
    times = with_times(product).times
    assert times is not None
    timed = [f"llvm:{span.name}" for span in times.spans if span.kind == "llvm" and "#" in span.name]
    # The inliner's advisor is asked for, and is no pass; older versions ask for the invalidation of an analysis too.
    untimed = ("inliner", "InvalidateAnalysisPass")
    assert timed == [one.label for one in listed.passes("llvm") if not any(part in one.name for part in untimed)]


def test_a_pass_of_llvm_is_left_out_and_all_else_is_the_same(product: Capture, listed: Capture) -> None:
    labels = {one.label: one for one in listed.passes("llvm")}
    assert {"llvm:sroa#1", "llvm:instcombine#1", "llvm:machine-cse#1"} <= labels.keys()
    assert {one.outcome for one in labels.values()} == {"ran"}
    # Naming them changes nothing.
    assert {stage: listed.artifact(stage).data for stage in listed.stages} == {
        stage: product.artifact(stage).data for stage in listed.stages
    }
    search = AblationSearch(("llvm",), (PassRule.parse("llvm:instcombine#1"), PassRule.parse("llvm:machine-cse")))
    with VariantPool() as pool:
        ablation = AblationRun(search).compile(product, pool)
    by_pass = {row.name: row for row in ablation.variants}
    assert by_pass.keys() == {"llvm:instcombine#1", "llvm:machine-cse#1"}
    assert all(row.compiles for row in by_pass.values())


def test_texts_of_llvm_passes_come_from_another_compile(product: Capture, listed: Capture) -> None:
    told: list[str] = []
    with reporting(told.append):
        full = with_llvm_passes(product)
    assert len(told) == 1
    assert (full.id, full.artifacts) == (product.id, product.artifacts)
    (combined,) = (one for one in full.passes("llvm") if one.label == "llvm:instcombine#1")
    before, after = full.text_before(combined), full.text_after(combined)
    assert before is not None
    assert after is not None
    assert before != after
    assert "define" in after
    # The names are those that plans take; without an argument, and after the inliner's advisor, LLVM prints nothing.
    assert {str(PassRule.parse(one.label)) for one in listed.passes("llvm")} >= {"llvm:NVPTX_Image_Optimizer#1"}
    named = {one.label for one in listed.passes("llvm") if one.argument}
    without_text = named - {one.label for one in full.passes("llvm")}
    assert all("inliner" in label for label in without_text), without_text
    assert with_llvm_passes(full) is full
    assert len(told) == 1


def test_a_plan_of_llvm_passes(product: Capture) -> None:
    def under(plan: str) -> Capture:
        return compiled(request_from_capture(product, plan=plan, snapshots="none", layouts=False, disassemble=False))

    off = under("-llvm:*")
    assert {one.outcome for one in off.passes("llvm")} == {"skipped"}
    assert off.has_compiled
    assert off.ttgir == product.ttgir
    assert off.llir != product.llir
    # A name of MLIR's is none of LLVM's.
    assert not list(under("-cse").passes("llvm"))
    with pytest.raises(PlanError, match="no pass of this LLVM is named 'llvm:no-such-pass'"):
        under("-llvm:no-such-pass")


@pytest.mark.newest
@pytest.mark.parametrize(
    ("kernel", "planted"),
    [
        ("axpy", "llvm:separate-const-offset-from-gep#1"),
        *(
            pytest.param("tile_product", name, marks=pytest.mark.exhaustive)
            for name in ("llvm:instcombine#1", "llvm:slsr#1", "llvm:machine-cse#1")
        ),
    ],
)
def test_a_planted_difference_names_the_pass_of_llvm(
    product: Capture, listed: Capture, kernel: str, planted: str
) -> None:
    """One build has passes of LLVM switched off, of which one makes the difference: a bisection names it."""
    if kernel != "axpy":
        product = recorded(kernel)
        listed = with_names(product)
    with reporting(lambda _: None):
        full = with_llvm_passes(product)
    idle = {one.label for one in full.passes("llvm") if one.changed is False}
    may_be_off = [one.label for one in listed.passes("llvm") if one.argument and one.label in idle]
    plan = PassPlan(tuple(PassRule.parse(label) for label in [*may_be_off[::3], planted]))

    def search(base: Capture) -> BisectSearch:
        def check(capture: Capture, _: Path) -> BisectVerdict:
            return BisectVerdict("good" if capture.ptx == base.ptx else "bad")

        return BisectSearch(check, "the PTX is the same", stages=("llvm",))

    with VariantPool(jobs=1) as pool, reporting(lambda _: None):
        bisection = bisected(product, search, pool, stages=("llvm",), plan=plan)
    assert bisection.guilty == (planted,)
    assert bisection.is_steady
    assert len(bisection.passes) > 20
    assert len(bisection.steps) < 12
    assert bisection.diff is not None
    assert not bisection.diff.is_empty

"""`irscope reduce --vs`: a difference between two sides is kept, with no more compiled than tells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from irscope.api.reduction.kept import kept_difference
from irscope.cli.reduce import changed
from irscope.device.measurement import Agreement
from irscope.model.capture import Artifact, Capture, Failure
from irscope.record.gpu import session as gpu_session
from irscope.record.gpu.session import require_variant
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.pool import settled
from irscope.store.file import save
from irscope.store.shelf import StoredCaptures
from tests.analysis.recorded import stored
from tests.cli.product import KERNELS, Run

OPERATIONS = "module {\n  tt.func @k(%%0: i32) {\n%s    tt.return\n  }\n}\n"
OTHER = partial(changed, versus=["plan=-pipeline"])
SIDE = RecordRequest(mode="text", text="function_type = (i32) -> ()")


class Compiler:
    """Makes of a text what is said of its plan: a failure, or a stage with so many operations."""

    def __init__(self, plain: Failure | int, without: Failure | int) -> None:
        self.sides = {"": plain, "-pipeline": without}
        self.asked: list[str] = []

    def __call__(self, request: RecordRequest) -> Capture:
        self.asked.append(str(request.plan))
        made = self.sides[self.asked[-1]]
        # Of a text the constants are not known.
        capture = replace(stored("chains", "cuda:90"), plan=request.plan, artifacts=())
        if isinstance(made, Failure):
            return replace(capture, status="failed", failure=made)
        body = "    %1 = arith.addi %0, %0 : i32\n" * made
        return replace(capture, artifacts=(Artifact("ttgir", OPERATIONS % body), Artifact("ptx", "")))


class Gpu:
    """A GPU that stands in: a launch computes something else where there are fewer than two additions."""

    baseline = replace(
        stored("chains", "cuda:90"), launch=replace(stored("chains", "cuda:90").launch, constants=(("BLOCK", "64"),))
    )

    def check(self, capture: Capture) -> Agreement:
        require_variant(capture, self.baseline, 1)
        return Agreement("identical" if capture.text("ttgir").count("addi") > 1 else "different")

    def time(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


PASS = Failure("pass", "no", "ttgir", "ttgir:coalesce#1")
ABORT = Failure("abort", "Assertion", "llir", "llir:to_llvmir#1")
PARSE = Failure("parse", "expected operation", "ttgir")


@pytest.mark.parametrize(
    ("figure", "first", "candidate", "asked"),
    [
        # The side that fails is compiled first, and the other one only if it fails so.
        ("outcome", (2, PASS), (2, PASS), ["-pipeline", ""]),
        ("outcome", (2, PASS), (PASS, PASS), ["-pipeline", ""]),
        ("outcome", (2, PASS), (2, 2), ["-pipeline"]),
        ("outcome", (2, PASS), (2, ABORT), ["-pipeline"]),
        ("outcome", (PASS, 2), (PASS, 1), ["", "-pipeline"]),
        ("outcome", (PASS, ABORT), (2, ABORT), [""]),
        ("ttgir", (2, 1), (1, 2), ["", "-pipeline"]),
        ("ttgir", (2, 1), (2, 2), ["", "-pipeline"]),
        ("ttgir", (2, 1), (PARSE, PARSE), [""]),
        ("ttgir", (2, 1), (1, ABORT), ["", "-pipeline"]),
    ],
)
def test_the_side_that_tells_more_is_compiled_first(figure: str, first: Any, candidate: Any, asked: list[str]) -> None:
    compiler = Compiler(*first)
    kept = kept_difference(OTHER, "plan=-pipeline", figure, compiler)(SIDE, compiler(SIDE))
    assert kept is not None
    assert kept.last_stage == ("ttgir" if figure == "ttgir" else "")
    assert settled(kept.judge, SIDE, Compiler(*first))[0]
    holds, _ = settled(kept.judge, SIDE, compiler := Compiler(*candidate))
    assert compiler.asked == asked
    # What is compiled says: an outcome is kept as it is, of a figure that it differs.
    kinds = [one.kind if isinstance(one, Failure) else None for one in candidate]
    before = [one.kind if isinstance(one, Failure) else None for one in first]
    assert holds == (kinds == before and (figure == "outcome" or candidate[0] != candidate[1]))


@pytest.mark.parametrize("figure", ["outcome", "ttgir", "ptx"])
def test_what_does_not_differ_is_not_kept(figure: str) -> None:
    for sides in ((2, 2), (PASS, PASS), (PARSE, 2)):
        compiler = Compiler(*sides)
        assert kept_difference(OTHER, "plan=-pipeline", figure, compiler)(SIDE, compiler(SIDE)) is None


def test_what_does_not_fit_is_an_outcome_with_figures() -> None:
    fit = Failure("fit", "out of resource", "cubin")
    compiler = Compiler(2, fit)
    kept = kept_difference(OTHER, "plan=-pipeline", "outcome", compiler)(SIDE, compiler(SIDE))
    assert kept is not None
    assert "does not fit" in kept.text or "cubin" in kept.text


def test_results_of_a_gpu_decide() -> None:
    compiler = Compiler(2, 1)
    kept = kept_difference(OTHER, "plan=-pipeline", "outcome", compiler, Gpu())(SIDE, compiler(SIDE))
    assert kept is not None
    rows = {(2, 1): True, (3, 0): True, (2, 2): False, (1, 1): False, (1, 2): False, (2, PASS): False}
    for sides, holds in rows.items():
        assert settled(kept.judge, SIDE, Compiler(*sides))[0] == holds, sides
    # The script's arguments stay, or it cannot be launched.
    other = replace(SIDE, text="function_type = () -> ()")
    assert settled(kept.judge, other, Compiler(2, 1)) == (False, ())


TWICE = """module {
  tt.func public @k(%x: i32, %y: i32) {
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %x, %0 : i32
    %2 = arith.muli %x, %0 : i32
    %3 = arith.addi %1, %y : i32
    tt.print " 1 " {hex = false, isSigned = array<i32: 1, 1>} : %3, %2 : i32, i32
    tt.return
  }
}
"""


@pytest.mark.exhaustive
@pytest.mark.newest
@pytest.mark.triton
def test_a_difference_is_reduced(irscope: Run, tmp_path: Path) -> None:
    path, file = tmp_path / "k.irscope", tmp_path / "reduced.mlir"
    artifacts = tuple(Artifact(stage, TWICE) for stage in ("source", "ttir"))
    save(replace(stored("chains", "cuda:90"), artifacts=artifacts), path)
    code, _, err = irscope("reduce", path, "--vs", "plan=-ttir:cse", "--differs", "ttir", "-o", file, "-j", 1)
    assert code == 0, err
    assert "the other side is plan=-ttir:cse" in err
    # What CSE merges, and nothing else but what other passes would remove it for.
    operations = re.findall(r"^ *(?:%\S+ = )?([a-z]\S+)", file.read_text(), re.MULTILINE)
    counts = Counter(one for one in operations if "." in one)
    assert 2 in counts.values()
    assert "tt.get_program_id" not in counts
    assert counts.total() <= 5


@pytest.mark.exhaustive
@pytest.mark.newest
@pytest.mark.triton
def test_results_on_a_gpu_that_stands_in(
    irscope: Run, product: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the pipeliner it computes something else, as long as a load is in its loop."""
    with_gpu = replace(product, environment=replace(product.environment, gpu="NVIDIA H200"))

    class Device(Gpu):
        baseline = with_gpu

        def check(self, capture: Capture) -> Agreement:
            assert "cubin" in capture.stages
            require_variant(capture, self.baseline, 1)
            return Agreement("identical" if "cp.async" in capture.text("ptx") else "different")

    @contextmanager
    def device_session(request: RecordRequest, launch: int | None, **_: object) -> Iterator[Gpu]:
        yield Device()

    monkeypatch.setattr(gpu_session, "device_session", device_session)
    monkeypatch.setattr("irscope.cli.launches.captures_of", lambda *_: StoredCaptures.of([with_gpu]))
    file = tmp_path / "reduced.mlir"
    code, _, err = irscope("reduce", KERNELS, "--vs", "plan=-pipeline", "--result", "-o", file)
    assert code == 0, err
    assert "kept: its output is that of the launch, and the other side" in err
    text = file.read_text()
    assert "tt.load" in text
    # All arguments of the launch.
    assert text.count("!tt.ptr") >= 3

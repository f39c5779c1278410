"""A failure in the compiler's own words: the table of failures, by kind and version."""

from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.model.capture import Capture
from irscope.record.process import session
from irscope.render.text.failure import failure_text
from irscope.store.file import from_bytes, to_bytes
from tests.record.failure_cases import CASES, EVERY_VERSION, KERNELS, LIKE_OTHERS, PRODUCT, SMALL, Case

pytestmark = pytest.mark.triton


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    return irscope.record(KERNELS, kernel="product", signature=PRODUCT, constexprs=SMALL)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The limits of the recording processes that were started."""
    started: list[float] = []
    real = session._Followed.follow

    def follow(followed):  # type: ignore[no-untyped-def]
        started.append(followed.assembly._request.timeout_s)
        return real(followed)

    monkeypatch.setattr(session._Followed, "follow", follow)
    return started


def record(case: Case, product: Capture, folder: Path) -> Capture:
    if case.text is None:
        how = {"kernel": case.kernel, "signature": case.signature, "constexprs": case.constexprs}
        return irscope.record(KERNELS, **how, **case.how)
    text, stage = case.text(product)
    path = folder / f"case.{stage}"
    path.write_text(text, "utf-8")
    return irscope.record(path, **{"target": "cuda:90", **case.how})


def _this_version() -> str:
    from irscope.record.triton.api import triton_version

    return ".".join(triton_version().split(".")[:2])


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.name,
            marks=()
            if case.name in EVERY_VERSION
            else pytest.mark.exhaustive
            if case.name in LIKE_OTHERS
            else pytest.mark.newest,
        )
        for case in CASES
    ],
)
def test_a_failure_says_why_first(case: Case, product: Capture, tmp_path: Path, limits: list[float]) -> None:
    if case.versions and _this_version() not in case.versions:
        pytest.skip(f"only Triton {', '.join(case.versions)} fails so")
    capture = record(case, product, tmp_path)
    failure = capture.failure
    assert failure is not None, capture
    first = "\n".join(failure_text(capture).splitlines()[:3])
    # "one | other": either, where it hangs on what memory was left.
    assert [said for said in case.said if not any(one in first for one in said.split(" | "))] == [], first
    assert failure.kind in case.kind.split("|")
    assert capture.status == "failed"
    assert failure.where.startswith(case.where)
    # One limit for all of it: what is compiled again has what is left, and after a time-out nothing is.
    limit = float(case.how.get("timeout_s", 300.0))
    assert limits[0] == limit
    assert all(left < limit for left in limits[1:])
    assert len(limits) == 1 or case.kind != "timeout"
    failed = [one for one in capture.snapshots if one.outcome == "failed"]
    assert [one.label for one in failed] == ([failure.pass_label] if failure.pass_label else [])
    if case.before and failed:
        assert capture.text_before(failed[0])
    assert from_bytes(to_bytes(capture)).failure == failure


@pytest.mark.newest
def test_the_chain_of_calls_is_pythons() -> None:
    capture = irscope.record(KERNELS, kernel="chain", signature="*fp32", constexprs={"BLOCK": 64})
    assert capture.failure is not None
    lines = KERNELS.read_text().splitlines()
    places = [line for line in capture.failure.message.splitlines() if line.startswith("  File ")]
    assert [place.rpartition(" ")[2] for place in places] == ["chain", "middle", "innermost"]
    shown = iter(capture.failure.message.splitlines())
    for line in shown:
        if line.startswith("  File "):
            number = int(line.split("line ")[1].partition(",")[0])
            text, caret = next(shown), next(shown)
            assert text.strip() == lines[number - 1].strip()
            called = text[caret.index("^") :]
            assert called.startswith(("middle(", "innermost(", "missing_in_helper"))


@pytest.mark.newest
def test_what_does_not_fit_keeps_all_that_was_made() -> None:
    capture = irscope.record(
        KERNELS, kernel="wide", signature="*fp32", constexprs={"BLOCK": 64}, options={"num_warps": 64}
    )
    assert capture.has_compiled
    assert capture.status == "failed"
    assert capture.stages == ("source", "ttir", "ttgir", "llir", "ptx", "cubin", "sass")

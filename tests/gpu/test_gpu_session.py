"""Variants of a held launch on the GPU: races, wrong results, faults, hangs and slow-downs that were put there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.record.gpu.session import DeviceSession, device_session
from irscope.record.process.requests import RecordRequest, request_for, request_from_capture
from irscope.record.process.session import record_request

SCRIPTS = Path(__file__).parent / "scripts"

pytestmark = [pytest.mark.gpu, pytest.mark.triton]


def held(script: str) -> Iterator[DeviceSession]:
    request = replace(request_for(SCRIPTS / script, snapshots="none"), layouts=False, disassemble=False)
    with device_session(request, None, launch_timeout_s=8.0) as session:
        yield session


@pytest.fixture(scope="module")
def row_sum() -> Iterator[DeviceSession]:
    yield from held("row_sum.py")


@pytest.fixture(scope="module")
def product() -> Iterator[DeviceSession]:
    yield from held("scaled_matmul.py")


def compiled(session: DeviceSession, plan: str = "", **options: object) -> Capture:
    request = request_from_capture(session.baseline, plan=plan, options=options, snapshots="none")
    (capture,) = record_request(replace(request, layouts=False, disassemble=False)).captures
    assert capture.status == "ok", capture.failure
    return capture


def edited(session: DeviceSession, stage: str, text: str) -> Capture:
    """What is compiled on from an edited stage."""
    base = session.baseline
    assert text != base.text(stage), "nothing was edited"
    target = str(base.target)
    request = RecordRequest(
        mode="text",
        targets=(target,),
        stage=stage,
        text=text,
        compiled_launch=base.launch,
        compiled_target=target,
        snapshots="none",
    )
    (capture,) = record_request(replace(request, layouts=False, disassemble=False)).captures
    assert capture.status == "ok", capture.failure
    return capture


def at_entry(ptx: str, code: str) -> str:
    """PTX with code put before the kernel's first instruction."""
    return re.sub(r"(// %bb\.0:[^\n]*\n)", lambda match: match[1] + code, ptx, count=1)


def no_difference(session: DeviceSession, capture: Capture) -> bool:
    """One comparison in twenty may say otherwise for no reason: not three in a row."""
    return any(not session.time([capture], rounds=60)[0][1].different for _ in range(3))


def test_the_baseline_against_itself(row_sum: DeviceSession) -> None:
    assert row_sum.info.outputs == ("out_ptr",)
    found = row_sum.check(row_sum.baseline)
    assert (found.verdict, found.differing, found.detail) == ("identical", 0, "")
    assert no_difference(row_sum, row_sum.baseline)


def test_a_race_that_was_put_there(row_sum: DeviceSession) -> None:
    racy = edited(row_sum, "ptx", re.sub(r"bar\.sync\s+0;", "", row_sum.baseline.text("ptx")))
    assert any(not row_sum.check(racy).passes for _ in range(5))


def test_the_race_of_a_fence_that_a_pass_would_have_put_there(product: DeviceSession) -> None:
    # One of the two puts it there; in newer versions either does, where the other is off.
    racy = compiled(product, "-fence_insertion -proxy_fence_insertion")
    assert "fence.proxy.async" not in racy.text("ptx")
    assert racy.cubin != product.baseline.cubin
    assert any(not product.check(racy).passes for _ in range(10))


def test_a_wrong_result(row_sum: DeviceSession) -> None:
    wrong = edited(row_sum, "ttgir", row_sum.baseline.text("ttgir").replace("arith.subf", "arith.mulf"))
    found = row_sum.check(wrong)
    assert (found.verdict, found.argument) == ("different", "out_ptr")
    assert found.differing > 1000


def test_outputs_that_are_not_written(row_sum: DeviceSession) -> None:
    silent = edited(row_sum, "ptx", re.sub(r"(?m)^\s*(@%p\d+ )?st\.global[^;]*;", "", row_sum.baseline.text("ptx")))
    found = row_sum.check(silent)
    assert found.verdict == "different"
    assert f"{2048 * 4096} elements never written" in found.detail


def test_a_fault_ends_its_process_alone(row_sum: DeviceSession) -> None:
    before = row_sum.restarts
    code = "{ .reg .b64 %bad; mov.u64 %bad, 64; st.global.u32 [%bad], 1; }\n"
    found = row_sum.check(edited(row_sum, "ptx", at_entry(row_sum.baseline.text("ptx"), code)))
    assert found.verdict == "fault"
    assert "illegal memory access" in found.detail
    assert row_sum.check(row_sum.baseline).verdict == "identical"
    assert row_sum.restarts == before + 1


def test_a_hang_is_ended(row_sum: DeviceSession) -> None:
    code = "$irscope_hangs:\nbra.uni $irscope_hangs;\n"
    found = row_sum.check(edited(row_sum, "ptx", at_entry(row_sum.baseline.text("ptx"), code)))
    assert found.verdict == "timeout"
    assert row_sum.check(row_sum.baseline).verdict == "identical"


def test_a_slow_down(product: DeviceSession) -> None:
    slow = compiled(product, "-pipeline")
    assert product.check(slow).passes
    ((timing, ratio),) = product.time([slow], rounds=40)
    assert ratio.different
    assert ratio.low > 1.05
    assert timing.low_us <= timing.median_us <= timing.high_us


def test_another_number_of_warps_takes_other_metadata(row_sum: DeviceSession) -> None:
    for warps in (4, 16):
        # Sums in another order: equal but for rounding.
        found = row_sum.check(compiled(row_sum, num_warps=warps))
        assert found.verdict == "close", found
        assert found.max_abs_error is not None
        assert found.max_abs_error < 1e-3


def test_descriptors_tuples_views_and_atomics() -> None:
    for session in held("descriptors.py"):
        assert session.check(compiled(session, "-coalesce")).verdict == "identical"
        wrong = edited(session, "ttgir", session.baseline.text("ttgir").replace("arith.mulf", "arith.addf"))
        found = session.check(wrong)
        assert (found.verdict, found.argument) == ("different", "target")
        # The target is a view of half of its memory, the source too; the scale is read, the count is both.
        assert session.info.bytes == 2 * 512 * 512 * 2 + 4 + 2 * 4
        assert no_difference(session, session.baseline)

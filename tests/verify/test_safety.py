"""Planted faults are found, with their witness and what made them; their twins are safe."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations
from math import prod
from pathlib import Path

import numpy as np
import pytest

from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.model.launch_record import LaunchRecord
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.text.verdict import render_verdict
from irscope.verify import safety
from irscope.verify.safety import verify_launch
from irscope.verify.verdict import KERNEL, SafetyVerdict
from tests.once import kept

KERNELS = Path(__file__).with_name("kernels.py")
LINES = KERNELS.read_text("utf-8").splitlines()
pytestmark = [pytest.mark.triton, pytest.mark.newest]
SAFE = (
    "copy_to_n", "copy_shifted", "described", "described_by_host", "tiles_overlap_with_equal_values", "split_k_atomic",
    "described_from_column_four",
    "split_k_lock",
    "last_program_sums", "reversed_read_back_after_barrier", "same_thread_read_back", "scalar_update", "recurrence",
    "split_k_lock_releases", "carries_when_flagged", "asserts_indices", "fills_described",
    "added_in_place", "barrier_with_arrival", "adds_to_zeros", "reads_what_it_wrote", "uses_64_bits",
    "rows_at_64_bits", "looked_up", "clamped", "searched_in_place", "reversed_behind_three_sums",
    "scalar_update_behind_sums",
)  # fmt: skip
# Kernel → kind, what made it, and a part of the line of each access.
WRONG = {
    "copy_past_n": ("out-of-bounds", KERNEL, ["mask=offsets <= n"]),
    "copy_before_zero": ("out-of-bounds", KERNEL, ["offsets - 1"]),
    "far_beyond": ("out-of-bounds", KERNEL, ["offsets * 16"]),
    "described_too_large": ("out-of-bounds", KERNEL, ["source.load"]),
    "described_by_host_overlap": ("program-race", KERNEL, ["target.store", "target.store"]),
    "described_from_column_five": ("misaligned", KERNEL, ["source.load([tl.program_id(0) * BLOCK, 5])"]),
    "described_tiles_overlap": ("program-race", KERNEL, ["target.store", "target.store"]),
    "tiles_overlap": ("program-race", KERNEL, ["tl.store", "tl.store"]),
    "tiles_overlap_with_some_equal_values": ("program-race", KERNEL, ["tl.store", "tl.store"]),
    # Two views of one tensor.
    "shifted_into": ("program-race", KERNEL, ["tl.load(x_ptr", "tl.store(y_ptr"]),
    "split_k_plain": ("program-race", KERNEL, ["tl.store(y_ptr", "tl.store(y_ptr"]),
    "split_k_relaxed_lock": ("program-race", KERNEL, ["tl.store(y_ptr", "tl.store(y_ptr"]),
    "split_k_lock_acquires": ("program-race", KERNEL, ["tl.store(y_ptr", "tl.store(y_ptr"]),
    "carries_when_flag_is_seen": ("program-race", KERNEL, ["tl.store(sum_ptr", "before = tl.load(sum_ptr"]),
    "waits_for_one_more": ("never-ends", KERNEL, ["<= PROGRAMS"]),
    "asserts_fewer_indices": ("failed-assertion", KERNEL, ["tl.device_assert"]),
    "fills_described_too_wide": ("out-of-bounds", KERNEL, ["y_desc.store"]),
    "counts_by_scope_of_cta": ("program-race", KERNEL, ["tl.atomic_add", "tl.atomic_add"]),
    "reversed_read_back_of_each": ("thread-race", KERNEL, ["tl.store(x_ptr", "BLOCK - 1"]),
    "stores_again_by_another_layout": ("thread-race", KERNEL, ["gl.store(x_ptr", "gl.store(x_ptr"]),
    "first_program_sums": ("program-race", KERNEL, ["tl.store(partial_ptr", "tl.load(partial_ptr"]),
    "reversed_read_back": ("thread-race", KERNEL, ["tl.store(x_ptr", "BLOCK - 1"]),
    "reversed_behind_no_sums": ("thread-race", KERNEL, ["tl.store(x_ptr + offsets", "BLOCK - 1"]),
    "marked_behind_sums": ("thread-race", KERNEL, ["tl.store(x_ptr + 3", "BLOCK - 1"]),
    "scalar_read_back": ("thread-race", KERNEL, ["tl.store(x_ptr, 2.0)", "scale = tl.load"]),
    "recurrence_pipelined": ("lost-order", "ttgir:pipeline#1", ["x = tl.load", "tl.store(x_ptr + (i + 1)"]),
    "other_layout_read_back": ("thread-race", KERNEL, ["gl.store(x_ptr", "gl.load(x_ptr"]),
    "adds_to_unwritten": ("uninitialised-read", KERNEL, ["tl.load(y_ptr + offsets) + tl.load(x_ptr"]),
    "counts_in_unwritten": ("uninitialised-read", KERNEL, ["tl.atomic_add"]),
    "rows_at_32_bits": ("out-of-bounds", KERNEL, ["tl.load(x_ptr + row"]),
    "wraps_at_32_bits": ("out-of-bounds", KERNEL, ["tl.load(x_ptr + row"]),
    "looked_up_by_signed": ("out-of-bounds", KERNEL, ["tl.load(table_ptr"]),
    "clamped_above": ("out-of-bounds", KERNEL, ["tl.minimum(n - 1, place)"]),
    "barrier_without_arrival": ("never-ends", KERNEL, ["mbarrier.wait"]),
}


def captures(target: str) -> dict[str, Capture]:
    request = request_for(KERNELS, targets=(target,), disassemble=False)
    recorded = kept(("verify", KERNELS.read_text("utf-8"), target), lambda: tuple(record_request(request).captures))
    return {capture.name: capture for capture in recorded}


@cache
def verdict_of(kernel: str) -> SafetyVerdict:
    return verify_launch(captures("cuda:90")[kernel])


@pytest.mark.parametrize("kernel", SAFE)
def test_a_kernel_that_is_right_is_safe(kernel: str) -> None:
    verdict = verdict_of(kernel)
    assert (verdict.answer, verdict.undecided) == ("safe", ())
    assert verdict.proved == (kernel == "rows_at_64_bits")
    assert verdict.proved or verdict.programs == verdict.all_programs
    assert bool(verdict.notes) == (kernel == "tiles_overlap_with_equal_values")


@pytest.mark.parametrize("kernel", WRONG)
def test_a_planted_fault_is_found(kernel: str) -> None:
    kind, made_by, parts = WRONG[kernel]
    verdict = verdict_of(kernel)
    assert verdict.answer == "wrong"
    violation = next(one for one in verdict.violations if len(one.accesses) == len(parts))
    assert (violation.kind, violation.made_by) == (kind, made_by)
    places = [LINES[int(access.place.rpartition(":")[2]) - 1] for access in violation.accesses]
    pairs = [zip(parts, order, strict=True) for order in permutations(places)]
    assert any(all(part in line for part, line in pair) for pair in pairs), places
    assert violation.code in render_verdict(verdict)


@pytest.mark.parametrize(
    "target", [pytest.param(one, marks=pytest.mark.exhaustive) for one in ("hip:gfx942", "cuda:80", "cuda:100")]
)
def test_other_targets_have_the_same_verdicts(target: str) -> None:
    # The layouts and the mbarriers of the Gluon kernels do not compile everywhere.
    found = {name: verify_launch(capture).answer for name, capture in captures(target).items() if not capture.failure}
    # Where there is no TMA, tiles begin anywhere.
    right = {"described_from_column_five"} if target in ("hip:gfx942", "cuda:80") else set()
    assert {name for name, answer in found.items() if answer == "wrong"} == {*WRONG} & {*found} - right
    assert {name for name, answer in found.items() if answer == "safe"} == {*SAFE} & {*found}


def test_programs_that_are_not_executed_are_proved_or_not_decided() -> None:
    pytest.importorskip("z3", reason="proofs need z3-solver")
    several = {name: one for name, one in captures("cuda:90").items() if prod(one.launch.grid or ()) > 1}
    found = {name: verify_launch(capture, elements=1) for name, capture in several.items()}
    proved = {name for name, verdict in found.items() if verdict.proved}
    # What is updated in place belongs to the same threads both times, by the layouts of the TTGIR.
    in_place = {"added_in_place", "adds_to_zeros"}
    others = {
        "copy_to_n", "copy_shifted", "split_k_atomic", "looked_up", "clamped", "described", "described_by_host",
        "described_from_column_four", "rows_at_64_bits", "keeps_positive", "fills_described",
    }  # fmt: skip
    assert proved == in_place | others
    assert all(found[name].answer == "safe" for name in proved)
    assert "all 4 programs (1 executed, the others by a proof)" in found["copy_to_n"].scope
    # What z3 cannot rule out is executed: no fault of one program among many is missed.
    wrong = {name for name, verdict in found.items() if verdict.answer == "wrong"}
    assert wrong == ({*WRONG} & {*several} - {"reversed_read_back_of_each"}) | {"ends_in_the_next_row"}
    left = "1 more programs read addresses that they write, and their threads were not followed"
    assert found["reversed_read_back_of_each"].undecided[-1].startswith(left)


def test_the_threads_of_all_programs_are_followed_at_once() -> None:
    capture = captures("cuda:90")["reversed_read_back_of_each"]
    (violation,) = verify_launch(capture).violations
    assert violation.kind == "thread-race"
    # Program 0 meets a barrier that the others do not.
    assert {access.program for access in violation.accesses} == {(1, 0, 0)}


def test_programs_that_wait_for_later_ones_are_executed_together() -> None:
    verdict = verdict_of("meets_the_others")
    assert (verdict.answer, verdict.programs) == ("safe", 4)
    assert verdict.shared == "program (0, 0, 0), by thread in the PTX"
    (endless,) = verdict_of("waits_for_one_more").violations
    assert endless.address == "count_ptr + 0 bytes"


def test_a_store_of_many_threads_is_released_behind_a_barrier() -> None:
    capture = captures("cuda:90")["publishes_tiles"]
    assert verify_launch(capture).answer == "safe"
    # As Triton 3.6 lowers it.
    ptx = capture.text("ptx").replace("\tbar.sync", "\t//", 1)
    artifacts = tuple(replace(one, data=ptx) if one.stage == "ptx" else one for one in capture.artifacts)
    (violation,) = verify_launch(capture.with_(artifacts=artifacts)).violations
    lines = [LINES[int(access.place.rpartition(":")[2]) - 1].strip() for access in violation.accesses]
    assert (violation.kind, violation.made_by) == ("program-race", "the lowering")
    assert [line.partition("(")[0] for line in lines] == ["tl.store", "tl.atomic_xchg", "tl.store"]


def test_a_scalar_is_read_by_all_threads() -> None:
    (violation,) = verdict_of("scalar_read_back").violations
    assert [(one.operation, one.warp, one.lane) for one in violation.accesses] == [
        ("tt.store", 0, 0),
        ("tt.load", 1, 0),
    ]


def test_threads_that_are_not_executed_are_not_decided_where_some_paths_have_barriers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(safety, "DEFAULT_INSTRUCTIONS", 10)
    for kernel in ("reversed_behind_three_sums", "reversed_behind_no_sums"):
        verdict = verify_launch(captures("cuda:90")[kernel])
        (reason,) = (one for one in verdict.undecided if "whether a barrier stands between" in one)
        assert reason.endswith("it executes more than 10 instructions")
    # No path has a barrier.
    assert verify_launch(captures("cuda:90")["reversed_read_back"]).answer == "wrong"


def test_a_pointer_that_a_loop_carries_is_its_own_tensor_s() -> None:
    (violation,) = verdict_of("advances_two_pointers").violations
    assert "4 bytes beyond the end of the storage of x_ptr" in violation.detail


def test_an_access_out_of_bounds_hides_no_race_of_the_same_line() -> None:
    assert [one.kind for one in verdict_of("ends_in_the_next_row").violations] == ["out-of-bounds", "program-race"]


def test_relaxed_operations_are_named_where_nothing_orders_programs() -> None:
    first = verdict_of("split_k_relaxed_lock").violations[0]
    assert first.detail.endswith(" are relaxed")
    assert " at kernels.py:" in first.detail


def test_masks_that_come_from_unknown_elements_may_be_true() -> None:
    verdict = verdict_of("keeps_positive")
    assert (verdict.answer, verdict.notes) == ("safe", ("whatever the elements of x_ptr are",))
    names = "keeps_positive_past_n", "keeps_positive_in_order", "reads_where_it_is_positive"
    assert {name: verdict_of(name).answer for name in names} == dict.fromkeys(names, "not decided")


def test_the_witness_of_an_access_out_of_bounds_is_its_element() -> None:
    (violation,) = verdict_of("copy_past_n").violations
    (access,) = violation.accesses
    assert (access.program, access.element) == ((3, 0, 0), (232,))
    assert "4 bytes beyond the end of the storage of x_ptr, which has 4000 bytes" in violation.detail


def test_two_programs_are_named_with_their_elements() -> None:
    violation = verdict_of("tiles_overlap").violations[0]
    (first, second) = violation.accesses
    assert first.program != second.program
    assert violation.address == "y_ptr + 512 bytes"
    # Program p begins at 128 p: both accesses are of y[128].
    assert [access.program[0] * 128 + access.element[0] for access in (first, second)] == [128, 128]


def test_elements_that_nobody_knows_are_asked_for() -> None:
    capture = captures("cuda:90")["gathered"]
    assert verify_launch(capture).answer == "not decided"
    assert "index_ptr" in verify_launch(capture).undecided[0]
    inside, outside = np.full(128, 511), np.full(128, 512)
    assert verify_launch(capture, values={"index_ptr": inside}).answer == "safe"
    wrong = verify_launch(capture, values={"index_ptr": outside})
    assert (wrong.answer, wrong.violations[0].kind) == ("wrong", "out-of-bounds")
    with pytest.raises(UsageError, match="index_prt"):
        verify_launch(capture, values={"index_prt": inside})


def test_drawn_elements_show_no_fault() -> None:
    for name in ("counted", "gathered_by_a_copy"):
        verdict = verdict_of(name)
        assert (verdict.answer, verdict.violations) == ("not decided", ())
        assert "depend on the elements of index_ptr" in verdict.undecided[0]
    counted = captures("cuda:90")["counted"]
    assert verify_launch(counted, values={"index_ptr": np.arange(128)}).answer == "safe"
    assert verify_launch(counted, values={"index_ptr": np.arange(128) // 2}).answer == "wrong"
    # What does not depend on them is a fault.
    (violation,) = verdict_of("gathered_past_n").violations
    assert (violation.kind, violation.accesses[0].element) == ("out-of-bounds", (100,))


def test_unwritten_memory_that_a_selection_may_leave_out_is_not_decided() -> None:
    verdict = verdict_of("selects_of_unwritten")
    assert (verdict.answer, verdict.violations) == ("not decided", ())
    assert "y_ptr, which torch.empty made" in verdict.undecided[0]


def test_a_sample_of_programs_is_never_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = captures("cuda:90")["copy_to_n"]
    # As without z3.
    monkeypatch.setattr("irscope.verify.safety.prove_programs", lambda *_: None)
    sampled = verify_launch(capture, elements=1024)
    assert sampled.answer == "not decided"
    assert 0 < sampled.programs < sampled.all_programs
    assert verify_launch(capture, elements=None).answer == "safe"


def test_memory_of_unknown_size_is_not_decided() -> None:
    capture = captures("cuda:90")["copy_past_n"]
    assert capture.launch.record is not None
    unsized = [replace(one, storage_bytes=None) for one in capture.launch.record.arguments]
    bare = capture.with_(launch=replace(capture.launch, record=LaunchRecord(tuple(unsized))))
    assert verify_launch(bare).answer == "not decided"
    empty = verify_launch(capture.with_(launch=replace(capture.launch, grid=(4, 0, 1))))
    assert (empty.answer, empty.notes) == ("safe", ("the launch runs no program: its grid is 4×0×1",))
    assert "x_ptr, y_ptr" in verify_launch(bare).undecided[0]


def test_a_capture_without_a_launch_is_not_decided() -> None:
    capture = captures("cuda:90")["copy_to_n"]
    bare = capture.with_(launch=replace(capture.launch, record=None))
    assert verify_launch(bare).answer == "not decided"

"""Decisions in the logs of each Triton version, of kernels whose reasons were planted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from irscope.ir.logs.decisions import (
    AsyncDot,
    LoadPipelining,
    LogDecision,
    Partition,
    PartitionMerge,
    PlacedBuffer,
    PtxasAdvice,
    Refusal,
    Remark,
    Rematerialisation,
    ThreadWidth,
    VectorWidth,
)
from irscope.ir.logs.reasons import read_decisions
from irscope.model.evidence import PassLog
from tests.record.reasons import DATA, line_of, stored_logs

EVERY = sorted(DATA.glob("*.xz"))
SPECIALISED = [path for path in EVERY if "cuda100" in path.name]
FILES = [path for path in EVERY if path not in SPECIALISED]
ON_HOPPER = [path for path in FILES if "cuda90" in path.name]


def decided(path: Path, kernel: str) -> list[LogDecision]:
    return [decision for log in stored_logs(path)[kernel] for decision in read_decisions(log)]


def at(decisions: list[LogDecision], text: str) -> list[LogDecision]:
    return [one for one in decisions if line_of(text) in [frame.line for frame in one.chain]]


def widths(decisions: list[LogDecision], text: str, operation: str = "tt.load") -> list[ThreadWidth]:
    found = [one for one in at(decisions, text) if isinstance(one, ThreadWidth)]
    return [one for one in found if one.operation is not None and one.operation.name == operation]


def test_every_version_is_there() -> None:
    assert len(ON_HOPPER) == 4
    assert len(FILES) == 8
    assert len(SPECIALISED) == 4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_narrow_load_says_what_limits_it(path: Path) -> None:
    decisions = decided(path, "narrow")
    (narrow,), (wide,) = widths(decisions, "narrow_load ="), widths(decisions, "wide_load =")
    (strided,) = widths(decisions, "strided_load =")
    assert (narrow.at_once, narrow.limit, narrow.divisibility, narrow.contiguity) == (1, "divisibility", (2,), (1024,))
    assert (strided.at_once, strided.limit, strided.contiguity) == (1, "contiguity", (1,))
    # 1024 elements are four for each of 256 lanes of a gfx942, and eight for each of 128.
    whole = (4, "tile") if "hip" in path.name else (8, "")
    assert (wide.at_once, wide.limit) == whole
    assert narrow.operation is not None
    assert narrow.operation.value.startswith("%narrow_load")
    assert "limited by divisibility" in narrow.said


@pytest.mark.parametrize("path", ON_HOPPER, ids=lambda path: path.stem)
def test_a_remark_is_on_the_line_of_what_limits_it(path: Path) -> None:
    decisions = decided(path, "narrow")
    remarks = [one for one in decisions if isinstance(one, VectorWidth)]
    assert {one.chain[0].line for one in remarks} == {line_of("narrow_load ="), line_of("strided_load =")}
    assert {(one.elements, one.per_thread, one.mask_alignment) for one in remarks} == {(1, 8, -1)}


@pytest.mark.parametrize("path", ON_HOPPER, ids=lambda path: path.stem)
def test_a_helper_called_twice_has_a_decision_for_each_call(path: Path) -> None:
    decisions = decided(path, "helped")
    (wide,), (narrow,) = widths(decisions, "helped_wide ="), widths(decisions, "helped_narrow =")
    assert (wide.at_once, narrow.at_once) == (8, 1)
    assert wide.chain[0].line == narrow.chain[0].line == line_of("return tl.load")
    (remark,) = (one for one in decisions if isinstance(one, VectorWidth))
    places = [[(frame.line, frame.column) for frame in one.chain] for one in (narrow, remark)]
    assert places[0] == places[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_load_too_small_to_be_pipelined(path: Path) -> None:
    decisions = [one for one in decided(path, "product") if isinstance(one, LoadPipelining)]
    left = [one for one in at([*decisions], "a + rows[:, None] * tight") if isinstance(one, LoadPipelining)]
    right = [one for one in decisions if one not in left]
    assert {(one.width_bits, one.distance) for one in left} == {(16, None)}
    assert {one.reason for one in left} == {"a thread copies less than 32 bits at once"}
    assert {(one.width_bits, one.distance, one.reason) for one in right} == {(128, 0, "")}


@pytest.mark.parametrize("path", ON_HOPPER, ids=lambda path: path.stem)
def test_a_dot_that_is_waited_for(path: Path) -> None:
    for kernel, reason in (("product", "shmem operands aren't multi-buffered"), ("used", "unconditionally used")):
        (dot,) = (one for one in decided(path, kernel) if isinstance(one, AsyncDot))
        assert reason in dot.reason
        assert dot.operation is not None
        assert dot.operation.name == "ttng.warp_group_dot"
        text = "total = tl.dot(left, right, total)" + (" * 0.5" if kernel == "used" else "")
        lines = [n for n, line in enumerate(KERNEL_LINES, 1) if line.strip() == text]
        assert dot.chain[0].line in lines


KERNEL_LINES = (Path(__file__).parents[2] / "record" / "kernels" / "reasons.py").read_text().splitlines()


@pytest.mark.parametrize("path", ON_HOPPER, ids=lambda path: path.stem)
def test_what_ptxas_advises(path: Path) -> None:
    (advice,) = (one for one in decided(path, "serialised") if isinstance(one, PtxasAdvice))
    assert (advice.code, advice.function, advice.stage) == ("C7510", "serialised", "cubin")
    assert "wgmma.mma_async instructions are serialized" in advice.text
    assert (advice.ptx_line is not None) == path.name.startswith("3.9")
    assert not [one for one in decided(path, "used") if isinstance(one, PtxasAdvice)]


@pytest.mark.parametrize("path", [path for path in FILES if "hip" in path.name], ids=lambda path: path.stem)
def test_no_ping_pong(path: Path) -> None:
    (refused,) = (one for one in decided(path, "product") if isinstance(one, Refusal))
    assert refused.reason.startswith("no ping-pong schedule: 2 global loads")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dot_that_is_not_what_the_gpu_could(path: Path) -> None:
    said = "missing native support for fp8 variant" if "hip" in path.name else "MMA version 3 acceleration not applied"
    found = [one for one in decided(path, "small") if isinstance(one, Remark) and said in one.said]
    assert [one.chain[0].line for one in found] == [line_of("few_rows = tl.dot")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_buffer_has_the_operation_that_it_is_of(path: Path) -> None:
    owned = [one for one in decided(path, "product") if isinstance(one, PlacedBuffer)]
    assert owned
    assert all(one.operation is not None for one in owned)
    lines = {one.chain[0].line for one in owned if one.chain}
    assert {line_of("left = tl.load(a + rows[:, None] * tight"), *lines} == lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_decisions(path: Path, golden: Callable[[str, str], None]) -> None:
    lines: list[str] = []
    for kernel, logs in stored_logs(path).items():
        for log in logs:
            lines += [
                f"{kernel} {log.stage} {one.line} {one.kind} {' < '.join(map(str, one.chain))} {one.said}"
                for one in read_decisions(log)
            ]
    golden(f"reasons/{path.stem}.txt", "\n".join(lines) + "\n")


def test_buffers_have_the_lines_that_say_them() -> None:
    text = (
        "[allocation-shared-memory]: Dump bufferRange: id size offset ---------\n-- 3 8192 16 interval 1 9\n-- 4 16 0"
    )
    (buffer,) = read_decisions(PassLog("llir", text, 7))
    assert isinstance(buffer, PlacedBuffer)
    assert (buffer.number, buffer.size_bytes, buffer.offset_bytes, buffer.first, buffer.last) == (3, 8192, 16, 1, 9)
    assert (buffer.line, buffer.index) == (2, 7)


def test_a_conversion_that_stays_and_one_that_goes() -> None:
    part = "[tritongpu-remove-layout-conversions]: "
    source = 'check backward remat with source %x = tt.load %p : !tt.ptr<f16> loc("k.py":3:4) encoding #ttg.blocked<{}>'
    costs = f"{part}  convert layout cost: 8\n{part}  rematerialisation cost: 32\n"
    kept = f"{part}{source}\n{costs}{part}  skipped rematerialization due to higher cost\n"
    gone = f"{part}{source}\n{costs}{part}  remat convert op %y = ttg.convert_layout %x : …\n"
    first, second = read_decisions(PassLog("ttgir", kept + gone))
    assert isinstance(first, Rematerialisation)
    assert isinstance(second, Rematerialisation)
    assert (first.conversion_cost, first.rematerialisation_cost, first.encoding) == (8, 32, "#ttg.blocked<{}>")
    assert (first.reason, second.reason) == ("computing its source again costs more", "")
    assert str(first.chain[0]) == "k.py:3:4"


def test_what_no_reader_knows_is_no_decision() -> None:
    text = "[triton-loop-pipeline]: Load of a kind that is new\n[tritongpu-coalesce]: perThread: 8\nmore\n"
    assert read_decisions(PassLog("ttgir", text)) == ()


@pytest.mark.parametrize("path", SPECIALISED, ids=lambda path: path.stem)
def test_warps_that_are_specialised_say_what_each_group_gets(path: Path) -> None:
    decisions = decided(path, "specialised")
    partitions = [one for one in decisions if isinstance(one, Partition)]
    merges = [one for one in decisions if isinstance(one, PartitionMerge)]
    if path.name.startswith("3.6"):
        # Its log does not say.
        assert not partitions + merges
        return
    assert [(one.number, one.flags, one.cost) for one in partitions] == [
        (2, ("LOAD",), 0), (1, ("MMA",), 64), (0, ("STORE", "TMEM"), 0)
    ]  # fmt: skip
    assert partitions[1].said == f"partition 1: {partitions[1].operations} operations, cost 64 (MMA)"
    assert all(one.chain == () and one.stage == "ttgir" and one.index is not None for one in partitions)
    text = next(log.text for log in stored_logs(path)["specialised"] if log.index == partitions[0].index)
    lines = text.split("\n")
    assert [lines[one.line - 1].startswith("Partition@0x") for one in partitions] == [True] * 3
    assert len(merges) == text.count("apply heuristic") + text.count('merge "')
    assert (merges[0].rule, merges[0].first, merges[0].second) == (
        "load_local_alloc", "tt.descriptor_load", "ttg.local_alloc"
    )  # fmt: skip
    assert merges[-1].said == "LOAD (2 operations) and LOAD (2 operations) go to the same warps: load"


def test_partitions_that_are_printed_otherwise_stay_text() -> None:
    written = """final partitions:
Partition@0x1f {
  id=None
  size=2
  cost=0
  flags=NONE
}
Partition@0x2f {
  id=1
  weight=2
}
"""
    (one,) = read_decisions(PassLog("ttgir", written, 1))
    assert (one.said, one.line) == ("a partition: 2 operations, cost 0 (none of note)", 2)
    assert read_decisions(PassLog("ttgir", written.replace("size", "count"), 1)) == ()

"""Rows of global memory of a stored capture, with a launch written for it, without one, and with narrow copies."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.ir.mlir.model import Operation
from irscope.layout.described import CaptureLayouts, DescribedLayout
from irscope.memory.access import Cost, Traffic
from irscope.memory.costs import as_json, costs_of
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Target
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.store.file import load

DATA = Path(__file__).parent.parent / "data" / "layouts"
BATCHES, HEADS, ROWS, DEPTH, BLOCK = 2, 4, 256, 64, 128
"""Of the launch; a program computes a block of rows of one head."""


def capture(alignment: int = 512, offset: int = 0, width: int = DEPTH) -> Capture:
    """Flash attention with a record: tensors of float16, `width` elements from row to row."""
    whole = load(DATA / "flash_attention-cuda-90.irscope")
    strides = (HEADS * ROWS * width, ROWS * width, width, 1)
    arguments = [
        Argument(
            f"{name}_ptr", "tensor", "float16", None, (BATCHES, HEADS, ROWS, DEPTH), strides, offset, None, alignment
        )
        for name in "qkvz"
    ]
    arguments += [
        Argument(name, "scalar", "int", value) for name, value in (("heads", HEADS), ("nq", ROWS), ("nk", ROWS))
    ]
    arguments += [
        Argument(f"stride_{name}{axis}", "scalar", "int", stride)
        for name in "qkvz"
        for axis, stride in zip("bhn", strides, strict=False)
    ]
    grid = (ROWS // BLOCK, BATCHES * HEADS, 1)
    return replace(whole, launch=replace(whole.launch, record=LaunchRecord(tuple(arguments)), grid=grid))


def rows(whole: Capture, argument: str) -> list[Cost]:
    return [cost for cost in costs_of(whole) if cost.access is not None and cost.access.argument == argument]


def test_a_tile_is_read_once_by_each_program() -> None:
    (load_q,) = rows(capture(), "q_ptr")
    access = load_q.access
    assert access is not None
    tile = BLOCK * DEPTH * 2
    assert access.certainty == "exact"
    assert access.first.bytes == access.last.distinct_bytes == (tile, tile)
    assert access.launch.units == access.launch.ideal_units == (16 * tile // 32,) * 2
    assert load_q.excess == 0
    assert not load_q.hint


def test_a_pipelines_copies_count_once_a_turn() -> None:
    """Each head's keys and values are read by the two programs of its rows: causal, so the first reads one
    block of the two."""
    for name in ("k_ptr", "v_ptr"):
        own = rows(capture(), name)
        assert len(own) > 1
        bytes_read = sum(cost.access.launch.bytes[0] for cost in own if cost.access is not None)
        assert (
            bytes_read == BATCHES * HEADS * (ROWS + ROWS) * DEPTH * 2 or bytes_read == BATCHES * HEADS * 3 * BLOCK * 128
        )
        assert all(cost.access.certainty == "exact" for cost in own if cost.access is not None)


def test_an_unaligned_base_costs_a_sector_for_every_row() -> None:
    (load_q,) = rows(capture(alignment=16, offset=8), "q_ptr")
    assert load_q.access is not None
    # A warp's instruction reads four rows of 128 bytes: together 512 bytes that begin in the middle of a sector.
    assert load_q.access.first.units == (32 * 17, 32 * 17)
    assert load_q.access.assumed == ("the storage of q_ptr begins at a multiple of 512 bytes",)


def by_rows(width: int, base: int = 0) -> int:
    """Sectors of q's block, counted by the bytes of each instruction: eight lanes a row, four rows."""
    lanes = [base + row * width * 2 + lane * 16 for row in range(BLOCK) for lane in range(8)]
    instructions = [lanes[at : at + 32] for at in range(0, len(lanes), 32)]
    return sum(len({byte // 32 for start in one for byte in range(start, start + 16)}) for one in instructions)


@pytest.mark.parametrize("alignment", [4, 8, 16, 64])
def test_a_base_that_is_not_known_gives_bounds(alignment: int) -> None:
    """Three elements into its storage it cannot be so aligned: the storage is not, and it may be any odd multiple."""
    (load_q,) = rows(capture(alignment=alignment, offset=3, width=72), "q_ptr")
    assert load_q.access is not None
    possible = [by_rows(72, base) for base in range(alignment, 128 + alignment, 2 * alignment)]
    assert load_q.access.first.units == (min(possible), max(possible))
    assert load_q.access.certainty == ("exact" if alignment == 64 else "range")


def test_without_a_record_it_is_said() -> None:
    whole = capture()
    (load_q,) = rows(replace(whole, launch=replace(whole.launch, record=None)), "q_ptr")
    assert load_q.access is not None
    assert load_q.access.certainty == "range"
    assert any("no launch was recorded" in text for text in load_q.access.assumed)
    assert "stride_qn has no value; it is a multiple of 16" in load_q.access.assumed
    low, high = load_q.access.first.units
    assert 0 < low < high == 512


def test_a_narrow_copy_is_pointed_out_with_its_argument() -> None:
    whole = capture()
    # The same kernel as if one stride were not known to be divisible by 16, and its copies were four bytes wide.
    ttgir = whole.text("ttgir").replace("%stride_kn: i32 {tt.divisibility = 16 : i32}", "%stride_kn: i32")
    ptx = whole.text("ptx").replace("0x10", "0x4")
    artifacts = tuple(
        Artifact(item.stage, {"ttgir": ttgir, "ptx": ptx}.get(item.stage, item.data)) for item in whole.artifacts
    )
    narrow = replace(whole, artifacts=artifacts)
    for name, cause in (("k_ptr", "%stride_kn is not known to be divisible by 16"), ("v_ptr", "cannot prove")):
        copies = [cost for cost in rows(narrow, name) if cost.access is not None and cost.access.launch.units[1]]
        assert copies
        for cost in copies:
            assert cost.access is not None
            assert (cost.access.bits_per_thread, cost.access.possible_bits) == (32, 128)
            assert cost.excess > 0
            assert cause in cost.hint


@pytest.mark.parametrize("width", [72, 65])
def test_rows_that_do_not_begin_on_a_line_are_seen(width: int) -> None:
    (load_q,) = rows(capture(width=width), "q_ptr")
    assert load_q.access is not None
    expected = by_rows(width)
    assert load_q.access.first.units == (expected, expected)
    assert load_q.excess > 0


TURNS = """module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %end = arith.constant 5000 : i32
    %made = "another.descriptor"() : () -> !tt.tensordesc<tensor<16x16xf32>>
    scf.for %i = %zero to %end step %one : i32 {
      %square = arith.muli %i, %i : i32
      %place = arith.xori %square, %i : i32
      %p = tt.addptr %x, %place : !tt.ptr<f32>, i32
      %v = tt.load %p : !tt.ptr<f32>
    }
    %w = tt.load %x : !tt.ptr<f32>
    %b = tt.descriptor_load %made[%zero, %zero] : !tt.tensordesc<tensor<16x16xf32>> -> tensor<16x16xf32>
    tt.return
  }
}
"""
"""A load at places without a rule, one at a known place, and one that cannot be read."""


@pytest.mark.parametrize("turns", [5000, 3])
def test_a_programs_figures_say_how_sure_they_are(turns: int) -> None:
    argument = Argument("x", "tensor", "float32", None, (1000,), (1,), 0, 4000, 512)
    launch = Launch(
        Kernel("kernel", "k.py"), (("x", "*fp32"),), options=(("num_warps", 4),), grid=(2, 1, 1),
        record=LaunchRecord((argument,)),
    )  # fmt: skip
    text = TURNS.replace("5000", str(turns))
    whole = Capture(launch, Target.parse("cuda:90"), artifacts=(Artifact("ttgir", text),))
    found = sorted((cost.access for cost in costs_of(whole) if cost.access is not None), key=lambda one: one.line)
    assert [one.programs for one in found] == [one.certainty for one in found] == ["exact", "exact", "range"]
    in_loop, alone, unread = found
    # Four warps, and a lane's four bytes are one sector.
    assert alone.first.units == alone.last.units == (4, 4)
    # Of a loop too long to be run, wherever each iteration loads.
    assert in_loop.first.units == (4 * turns, 4 * turns)
    # Nothing is known of it: not even that a program asks for nothing.
    for traffic in (unread.each, unread.first, unread.inner, unread.last, unread.launch):
        assert traffic == Traffic.unknown()


RARE = """#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %wanted = arith.constant 4 : i32
    %id = tt.get_program_id x : i32
    %square = arith.muli %id, %id : i32
    %holds = arith.cmpi eq, %square, %wanted : i32
    %places = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %p = tt.addptr %base, %places : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
    scf.if %holds {
      %v = tt.load %p : tensor<128x!tt.ptr<f32>, #blocked>
    }
    tt.return
  }
}
"""
"""A load in the program alone whose number squared is 4; its layout has no map, as none was asked for."""


@pytest.mark.parametrize(("wanted", "times", "assumed"), [(4, 1, ("the layout has no map",)), (3, 0, ())])
def test_of_what_is_never_executed_nothing_is_assumed(wanted: int, times: int, assumed: tuple[str, ...]) -> None:
    argument = Argument("x", "tensor", "float32", None, (128,), (1,), 0, 512, 512)
    launch = Launch(Kernel("kernel", "k.py"), (("x", "*fp32"),), grid=(7, 1, 1), record=LaunchRecord((argument,)))
    text = RARE.replace("constant 4", f"constant {wanted}")
    (cost,) = costs_of(Capture(launch, Target.parse("cuda:90"), artifacts=(Artifact("ttgir", text),)))
    assert cost.access is not None
    assert cost.access.launch.executions[1] >= times
    assert (cost.access.launch.executions == (0, 0)) == (not times)
    assert cost.access.assumed == assumed


def test_json_holds_the_figures() -> None:
    for row in as_json(costs_of(capture())):
        assert (row["access"] is None) == (row["kind"] != "global")


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [(["--help"], False), (["show", str(DATA / "matmul-cuda-80.irscope")], False),
     (["layout", str(DATA / "matmul-cuda-80.irscope"), "--costs"], True)],
)  # fmt: skip
def test_numpy_is_imported_where_addresses_are(arguments: list[str], needs: bool) -> None:
    """It takes longer to import than most commands run."""
    command = [sys.executable, "-X", "importtime", "-m", "irscope", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (re.search(r"\| +numpy$", answer.stderr, re.MULTILINE) is not None) == needs


def test_a_layout_that_the_capture_lacks_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    look = CaptureLayouts.of_access

    def counted(self: CaptureLayouts, operation: Operation) -> DescribedLayout | None:
        looked.append(operation.first_line)
        return look(self, operation)

    monkeypatch.setattr(CaptureLayouts, "of_access", counted)
    rows = [row for row in costs_of(replace(capture(), layouts=())) if row.kind == "global"]
    # Once for its lanes, in whatever many iterations, and once for its row.
    assert sorted(looked) == sorted(2 * [row.line for row in rows])

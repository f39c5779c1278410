"""Reordering: what is independent may stand in any order, what is not is shown as moved."""

from __future__ import annotations

import random

import pytest

from irscope.analysis.diff.texts import diff_texts
from irscope.ir.mlir.reader import Block, Operation, parse_mlir
from irscope.model.capture import StageKind
from tests.analysis.snapshots import DUMPS, snapshots

BLOCK = """module {
  tt.func @k(%p: !tt.ptr<f32>, %n: i32) {
    %0 = arith.addi %n, %n : i32
    %1 = arith.muli %n, %n : i32
    %2 = arith.addi %0, %1 : i32
    %3 = tt.load %p : !tt.ptr<f32>
    %4 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
    %5 = tt.load %p evictionPolicy = evict_first : !tt.ptr<f32>
    tt.store %p, %3 : !tt.ptr<f32>
    gpu.barrier
    %6 = scf.if %n -> (i32) {
      %7 = arith.subi %n, %2 : i32
      scf.yield %7 : i32
    } else {
      scf.yield %n : i32
    }
    "some.use"(%2, %4, %5, %6) : (i32, f32, f32, i32) -> ()
    tt.return
  }
}
"""
PTX = """.visible .entry k(
)
{
	.reg .b32 	%r<9>;
	ld.param.b32 	%r1, [k_param_0];
	add.s32 	%r2, %r1, 1;
	mul.lo.s32 	%r3, %r1, 3;
	ld.global.b32 	%r4, [%r1];
	ld.global.b32 	%r5, [%r1+4];
	mov.b32 	%r6, %r2;
	mov.b32 	%r6, %r3;
	st.global.b32 	[%r1], %r6;
	bar.sync 	0;
	mov.u32 	%r7, %clock;
	st.global.b32 	[%r1+8], %r7;
	ret;
}
"""
LLVM = """define void @k(ptr %0, i32 %1) {
  %3 = add i32 %1, 1
  %4 = mul i32 %1, 3
  %5 = load i32, ptr %0, align 4
  %6 = call float @llvm.exp2.f32(float 1.0)
  %7 = call i32 asm sideeffect "x", "=r"()
  store i32 %4, ptr %0, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}
"""


def moved(text: str, one: int, other: int) -> str:
    """The text with a line, counted from 1, put where another one stands."""
    lines = text.split("\n")
    lines.insert(other - 1, lines.pop(one - 1))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "kind", "one", "other", "is_free"),
    [
        (BLOCK, "mlir", 3, 4, True),
        (BLOCK, "mlir", 3, 5, False),  # %0 behind its reader
        (BLOCK, "mlir", 6, 8, False),  # past a volatile load
        (BLOCK, "mlir", 8, 6, False),
        (BLOCK, "mlir", 6, 3, True),  # a load before arithmetic
        (BLOCK, "mlir", 9, 3, False),  # a store before loads
        (BLOCK, "mlir", 8, 10, False),  # a load past a store
        (BLOCK, "mlir", 9, 10, False),  # a store past a barrier
        (BLOCK, "mlir", 12, 11, False),  # out of the branch
        (BLOCK, "mlir", 5, 12, False),  # into the branch
        (BLOCK, "mlir", 3, 18, False),  # past all its readers
        (PTX, "ptx", 6, 7, True),
        (PTX, "ptx", 8, 9, True),
        (PTX, "ptx", 10, 11, False),  # two writes of one register
        (PTX, "ptx", 9, 12, False),
        (PTX, "ptx", 12, 13, False),
        (PTX, "ptx", 14, 13, False),  # what the clock says
        (PTX, "ptx", 7, 11, False),
        (LLVM, "llvm", 2, 3, True),
        (LLVM, "llvm", 5, 2, True),
        (LLVM, "llvm", 4, 5, True),
        (LLVM, "llvm", 4, 7, False),
        (LLVM, "llvm", 6, 7, False),
        (LLVM, "llvm", 7, 8, False),
    ],
)
def test_what_a_move_is(text: str, kind: StageKind, one: int, other: int, is_free: bool) -> None:
    for left, right in ((text, moved(text, one, other)), (moved(text, one, other), text)):
        diff = diff_texts(left, right, kind)
        assert diff.is_empty == is_free, diff.summary
        if not is_free:
            assert diff.counts["moved"] >= 1
            assert not diff.counts["added"] + diff.counts["removed"]


def test_a_branch_moves_with_all_that_it_holds() -> None:
    lines = BLOCK.split("\n")
    branch = lines[10:16]
    before = lines[:5] + branch + lines[5:10] + lines[16:]
    assert diff_texts(BLOCK, "\n".join(before), "mlir").is_empty
    with_store = BLOCK.replace("%7 = arith.subi %n, %2 : i32", "tt.store %p, %3 : !tt.ptr<f32>").replace("%7", "%n")
    lines = with_store.split("\n")
    past_barrier = lines[:9] + lines[10:16] + lines[9:10] + lines[16:]
    assert diff_texts(with_store, "\n".join(past_barrier), "mlir").counts["moved"]


@pytest.mark.parametrize("cut", range(11, 17))
def test_a_branch_that_was_cut_is_compared(cut: int) -> None:
    """The branch that changed places is not closed on one side, or on the other."""
    lines = BLOCK.split("\n")
    before = "\n".join(lines[:5] + lines[10:16] + lines[5:10] + lines[16:])
    whole = "\n".join(lines[:cut])
    assert not diff_texts(whole, before, "mlir").is_empty
    assert not diff_texts(before, whole, "mlir").is_empty


# Operations that may stand anywhere in their block where their operands are; a choice of our own, by hand.
FREE = ("arith.", "math.", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.make_range", "tt.addptr", "ttg.convert")


def shuffled(text: str, seed: int) -> str:
    """The module with the pure operations of each block in another order that keeps operands before their readers."""
    random_ = random.Random(seed)
    lines = text.split("\n")
    result = list(lines)

    def shuffle(block: Block) -> None:
        own = [one for one in block.operations if len(one.lines) == 1]
        runs: list[list[Operation]] = [[]]
        for one in block.operations:
            if one in own and one.name.startswith(FREE):
                runs[-1].append(one)
            else:
                runs.append([])
        for run in runs:
            waiting, order = list(run), list[Operation]()
            while waiting:
                made = {value for one in waiting for value in one.results}
                ready = [one for one in waiting if not made.intersection(one.operands)]
                order.append(random_.choice(ready))
                waiting.remove(order[-1])
            for place, one in zip(run, order, strict=True):
                result[place.first_line - 1] = lines[one.first_line - 1]

    for operation in parse_mlir(text).walk():
        for region in operation.regions:
            for block in region.blocks:
                shuffle(block)
    return "\n".join(result)


@pytest.mark.parametrize("name", DUMPS)
def test_shuffled_blocks_are_no_difference(name: str) -> None:
    # What no pass has cleaned yet holds many equal operations that nothing reads: no reader tells these apart.
    chosen = [text for _, text in snapshots(name) if 2_000 < len(text) < 60_000][5::9]
    changed = 0
    for seed, text in enumerate(chosen):
        other = shuffled(text, seed)
        changed += other != text
        diff = diff_texts(text, other, "mlir")
        assert diff.is_empty, diff.summary
        assert sorted(diff.right_numbers) == sorted(diff.left_numbers)
    assert changed

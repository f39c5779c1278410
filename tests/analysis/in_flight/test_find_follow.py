"""A program followed through its loop: the slots, the waits and the masks of loops that the compiler pipelined.

The oracle is what any correct pipeline does: each tile is multiplied in order, is there before it is read, and is
not written over before that. Whatever is read wrong of a slot, a wait or a mask breaks one of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from irscope.analysis.in_flight.find import in_flight
from irscope.analysis.in_flight.model import BEFORE, InFlight
from irscope.model.capture import Capture
from tests.analysis.in_flight.launched import BLOCK_K, matmul
from tests.analysis.roofline.launched import attention

CASES = ("matmul-cuda-80", "matmul-hip-gfx942")


def followed(capture: Capture) -> InFlight:
    found = in_flight(capture)
    assert found is not None
    return found


def faults(found: InFlight, tiles: int) -> Iterator[str]:
    """What no correct pipeline of so many tiles does."""
    dots = [step for step in found.steps if step.kind == "dot" and not step.is_off]
    multiplied = [step.tile for step in dots]
    if list(dict.fromkeys(multiplied)) != list(range(tiles)):
        yield f"multiplied are {multiplied}"
    for ring in found.rings:
        if [stay.tile for stay in ring.stays] != list(range(tiles)):
            yield f"{ring.value} holds {len(ring.stays)} tiles"
        last = dict.fromkeys(range(ring.slots), -1)
        for stay in ring.stays:
            if stay.landed is None or stay.free is None or not stay.read or min(stay.read) < stay.landed:
                yield f"tile {stay.tile} of {ring.value} is read before it is there"
            if stay.written < last[stay.slot]:
                yield f"tile {stay.tile} of {ring.value} is written over another"
            last[stay.slot] = stay.free if stay.free is not None else 0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("tiles", [8, 11])
def test_each_tile_is_there_before_it_is_multiplied(name: str, tiles: int) -> None:
    found = followed(matmul(name, tiles * BLOCK_K))
    assert list(faults(found, tiles)) == []
    assert all(ring.slots > 1 for ring in found.rings)
    assert [ring.type for ring in found.rings] == ["128×64×f16", "64×256×f16"]
    assert found.steps[0].iteration == BEFORE
    # What has no mask by itself is done in as many iterations as there are tiles, but for those that were peeled off.
    assert found.iterations == found.launch_iterations
    assert found.iterations is not None
    assert tiles - 3 <= found.iterations <= tiles


def test_the_last_iterations_copy_nothing() -> None:
    found = followed(matmul("matmul-cuda-80", 8 * BLOCK_K))
    off = {step.iteration for step in found.steps if step.kind == "copy" and step.is_off}
    assert off == {6, 7}
    assert found.flying(len(found.steps) - 1, "copy") == 0


def changed(pattern: str, new: str | Callable[[re.Match[str]], str]) -> Capture:
    """A matmul of eight tiles with a change in its TTGIR."""
    capture = matmul("matmul-cuda-80", 8 * BLOCK_K)
    text, count = re.subn(pattern, new, capture.text("ttgir"))
    assert count
    rest = tuple(one for one in capture.artifacts if one.stage != "ttgir")
    own = next(one for one in capture.artifacts if one.stage == "ttgir")
    return replace(capture, artifacts=(replace(own, data=text), *rest))


@pytest.mark.parametrize(
    ("pattern", "new"),
    [
        # A wait that leaves one more group in flight.
        (r"(ttg\.async_wait [^\n]*num = )(\d)", lambda match: f"{match[1]}{int(match[2]) + 2}"),
        # The slots are counted in the other order.
        (r"(ttg\.memdesc_index %a\[)%c0_i32", lambda match: f"{match[1]}%c1_i32"),
        # A mask that holds always.
        (r"arith\.cmpi slt, (%acc_\d+), (%acc_\d+) : i32", r"arith.cmpi sle, \1, \1 : i32"),
    ],
)
def test_a_pipeline_that_is_wrong_looks_wrong(pattern: str, new: str | Callable[[re.Match[str]], str]) -> None:
    assert list(faults(followed(changed(pattern, new)), 8))


def test_a_loop_that_hardly_iterations_is_followed_as_if_it_turned_often() -> None:
    found = followed(attention())
    # The block of queries that comes last in the sequence has one block of keys that no mask cuts.
    assert (found.iterations, found.launch_iterations, found.loops) == (None, 1, 2)
    assert {step.tile for step in found.steps if step.kind == "dot"} == set(range(6))
    assert not any(step.is_off for step in found.steps)


def test_without_a_launch_nothing_is_said_of_its_iterations() -> None:
    capture = matmul("matmul-cuda-80", 512)
    found = followed(replace(capture, launch=replace(capture.launch, record=None, grid=None)))
    assert (found.iterations, found.launch_iterations, found.program) == (None, None, None)
    assert any(step.kind == "dot" for step in found.steps)


TMA = """
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %true = arith.constant true
    %a = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #bar, #smem, mutable>
    %a0 = ttg.memdesc_index %a[%c0] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %b0 = ttg.memdesc_index %b[%c0] : !ttg.memdesc<2x1xi64, #bar, #smem, mutable> -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttng.async_tma_copy_global_to_local %d[%c0, %c0] %a0, %b0, %true : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    scf.for %i = %c0 to %c5 step %c1  : i32 {
      %even = arith.andi %i, %c1 : i32
      %next = arith.xori %even, %c1 : i32
      %more = arith.cmpi slt, %i, %c5 : i32
      %an = ttg.memdesc_index %a[%next] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %bn = ttg.memdesc_index %b[%next] : !ttg.memdesc<2x1xi64, #bar, #smem, mutable> -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
      ttng.async_tma_copy_global_to_local %d[%c0, %c0] %an, %bn, %more : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %ai = ttg.memdesc_index %a[%even] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %bi = ttg.memdesc_index %b[%even] : !ttg.memdesc<2x1xi64, #bar, #smem, mutable> -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
      ttng.wait_barrier %bi, %c0 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      %x = ttg.local_load %ai : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
    }
    tt.return
  }
}
"""  # noqa: E501


def with_ttgir(text: str) -> Capture:
    capture = matmul("matmul-cuda-80", 512)
    own = next(one for one in capture.artifacts if one.stage == "ttgir")
    return replace(capture, artifacts=(replace(own, data=text),))


def test_a_barrier_tells_which_copy_is_waited_for() -> None:
    found = followed(with_ttgir(TMA))
    assert found.iterations == 5
    (ring,) = found.rings
    assert [(stay.slot, stay.tile) for stay in ring.stays] == [(0, 0), (1, 1), (0, 2), (1, 3), (0, 4), (1, 5)]
    reads = [step.tile for step in found.steps if step.kind == "read"]
    assert reads == [0, 1, 2, 3, 4]
    for stay in ring.stays[:5]:
        assert stay.landed is not None
        assert found.steps[stay.landed].iteration == stay.tile
    assert found.flying(len(found.steps) - 1, "copy") == 1


def test_of_partitions_without_a_loop_nothing_is_followed() -> None:
    text = TMA.replace(
        "    tt.return\n", "    ttg.warp_specialize() attributes {}\n    default {\n    }\n    tt.return\n"
    )
    found = followed(with_ttgir(text))
    assert (found.steps, found.note) == ((), "no partition of its warps has a loop that accesses memory")


def test_damaged_ir_is_no_error() -> None:
    for end in (200, 900, 2000):
        in_flight(with_ttgir(TMA[:end]))
    in_flight(with_ttgir(TMA.replace("%c0", "%nothing")))

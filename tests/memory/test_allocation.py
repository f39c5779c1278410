"""Memory over time: against the compiler's log, its totals, and sizes that are taken from the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irscope.memory.allocation import AllocatedMemory, allocations_of, shared_text
from irscope.model.capture import Capture, Kernel, Launch, PassSnapshot, Target
from tests.examples.compile_cases import EXAMPLES, attention_case, tma_case
from tests.memory.compiler_log import CASES, FOR_EVER, Row, logged_buffers
from tests.memory.kernels import compiled
from tests.recording import record_without_sass, without_torch


def rows_of(allocation: AllocatedMemory) -> list[Row]:
    return sorted(
        (one.size, one.offset, one.start, FOR_EVER if one.kind == "warps" else one.end) for one in allocation.buffers
    )


def check_totals(capture: Capture) -> None:
    shared, *tensor = allocations_of(capture)
    metadata = dict(capture.metadata)
    assert shared.total == capture.resources.shared_bytes == metadata["shared"]
    assert max((one.stop for one in shared.buffers), default=0) == shared.total
    assert shared.held_at_peak <= shared.total
    assert [one.total for one in tensor] == [size for size in [metadata.get("tmem_size")] if size]
    for allocation in (shared, *tensor):
        assert all(one.stop <= allocation.total for one in allocation.buffers)
        for one in allocation.buffers:
            together = [other for other in allocation.live_at(one.start) if other is not one and other.row == one.row]
            assert all(other.stop <= one.offset or one.stop <= other.offset for other in together)


@pytest.mark.triton
@pytest.mark.parametrize(("kernel", "target"), CASES)
def test_buffers_are_the_compilers(kernel: str, target: str) -> None:
    capture = compiled(kernel, target)
    check_totals(capture)
    (*_, theirs) = logged_buffers(kernel, target)
    shared = allocations_of(capture)[0]
    if all(one.is_exact for one in shared.buffers):
        assert rows_of(shared) == theirs
    assert sorted(row[1:] for row in rows_of(shared)) == sorted(row[1:] for row in theirs)
    assert all(one.place.endswith(".py:" + one.place.rpartition(":")[2]) for one in shared.buffers)


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    "case",
    [
        attention_case(64, True, 128, 64, 4, 3),
        pytest.param(tma_case(128, 128, 64, 4, 3, 2), marks=pytest.mark.exhaustive),
    ],
)
def test_examples_in_tensor_memory(case, tmp_path: Path) -> None:
    capture = record_without_sass(
        without_torch(EXAMPLES / f"{case.script}.py", tmp_path),
        kernel=case.kernel,
        signature=", ".join(case.signature.split()),
        constexprs=case.constants,
        options=case.options,
        target="cuda:100",
        layouts=False,
    )
    check_totals(capture)
    assert len(allocations_of(capture)) == 2


def with_text(text: str, target: str = "cuda:90") -> Capture:
    snapshot = PassSnapshot(0, "llir", "allocate_shared_memory_nv", 1, changed=True, text=text)
    return Capture(Launch(Kernel("kernel", "k.py")), Target.parse(target), snapshots=(snapshot,))


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    ("kernel", "target"),
    [("product", "cuda:90"), ("sums", "hip:gfx942"), ("gathered", "cuda:80"), ("branching", "cuda:100")],
)
def test_sizes_that_are_not_written_are_bounds(kernel: str, target: str) -> None:
    """As Triton before 3.9 leaves them: what is then called exact must be so."""
    capture = compiled(kernel, target)
    text = shared_text(capture)
    assert text is not None
    known = {(one.line, one.offset): one for one in allocations_of(capture)[0].buffers if one.is_exact}
    without = allocations_of(with_text(re.sub(r", allocation\.size = \d+ : i32", "", text), target))[0]
    for one in without.buffers:
        true = known.get((one.line, one.offset))
        assert true is None or (one.size == true.size if one.is_exact else one.size >= true.size)
    assert max(one.stop for one in without.buffers) == without.total


MODULE = """#shared = {encoding}
#smem = #ttg.shared_memory
module attributes {{"ttg.num-warps" = 4 : i32, ttg.shared = {total} : i32}} {{
  tt.func public @kernel() {{
    %a = ttg.local_alloc {{allocation.offset = {offset}}} : () -> !ttg.memdesc<{type}, #shared, #smem, mutable>
    ttg.local_dealloc %a : !ttg.memdesc<{type}, #shared, #smem, mutable>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("encoding", "kind", "sizes", "padding"),
    [
        ("#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>", "3x64x32xf16", [12288], 0),
        ("#ttg.padded_shared<[32:+4, 256:+8] {order = [1, 0], shape = [64, 32]}>", "64x32xf16", [4096 + 616], 616),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>",
         "64x32xi8", [4096], 0),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16, "
         "CGALayout = [[1, 0], [0, 0]]}>", "64x32xf16", [2048], 0),
    ],
)  # fmt: skip
def test_sizes_of_types(encoding: str, kind: str, sizes: list[int], padding: int) -> None:
    # 63 whole paddings of 4 and 7 of 8 elements stand between 2048 elements of two bytes.
    text = MODULE.format(encoding=encoding, total=sum(sizes), offset="0 : i32", type=kind)
    (shared,) = allocations_of(with_text(text))
    assert [one.size for one in shared.buffers] == sizes
    assert [one.padding for one in shared.buffers] == [padding]
    assert [(one.start, one.end) for one in shared.buffers] == [(0, 2)]


def test_a_tensor_in_partitions_is_a_buffer_in_each() -> None:
    text = MODULE.format(
        encoding="#ttg.partitioned_shared<{numPartitions = 2, numGroups = 1, partitionDim = 0, partitionLayout = "
        "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>",
        total=69632, offset="[0 : i32, 65536 : i32]", type="64x64xf16",
    )  # fmt: skip
    (shared,) = allocations_of(with_text(text, "hip:gfx950"))
    assert [(one.offset, one.size) for one in shared.buffers] == [(0, 4096), (65536, 4096)]
    assert (shared.total, shared.held_at_peak, shared.limit) == (69632, 8192, 160 * 1024)


def test_a_capture_without_that_pass_has_none() -> None:
    assert allocations_of(Capture(Launch(Kernel("kernel")), Target.parse("cuda:90"))) == ()
    assert allocations_of(with_text("nothing that is MLIR")) == ()


def test_a_function_that_calls_itself_ends() -> None:
    text = """module attributes {ttg.shared = 64 : i32} {
  tt.func public @kernel() {
    tt.call @"one(1,)"() {allocation.offset = 0 : i32} : () -> ()
    tt.return
  }
  tt.func private @"one(1,)"() {
    tt.call @two() {allocation.offset = 16 : i32} : () -> ()
    tt.return
  }
  tt.func private @two() {
    tt.call @"one(1,)"() {allocation.offset = 8 : i32} : () -> ()
    tt.return
  }
}
"""
    ((one,), *_) = (allocation.buffers for allocation in allocations_of(with_text(text)))
    assert (one.kind, one.what, one.offset, one.stop) == ("call", "one(1,)", 0, 64)

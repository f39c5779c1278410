"""Asking the compiler for layouts: whole modules, single texts, and children that die of a question."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.errors import MissingTool
from irscope.model.capture import Target
from irscope.model.layout import LayoutMap, LayoutRefusal, LayoutRow, LayoutUse, LinearLayout
from irscope.record.layouts.questions import ask_layout, layouts_of_text
from irscope.record.process.annotations import LayoutJob, LayoutServer, Measure, Measured, Message, Module, Question
from irscope.record.process.child import end_group
from irscope.tools import ToolLimits

pytest.importorskip("triton", reason="layouts are asked of the installed compiler, and Triton is not installed")
pytestmark = pytest.mark.triton

TARGET = Target.parse("cuda:90")
BLOCKED = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
MODULE = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#rotating = #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#odd = #vendor.thing<{a = 1}>
#smem = #ttg.shared_memory
#loc1 = loc("kernel.py":7:3)
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%x: tensor<64x64xf16, #blocked>) {
    %a = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem> loc(#loc1)
    %b = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> loc(#loc1)
    %c = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #rotating, #smem, mutable> loc(#loc1)
    %d = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #one, #smem, mutable> loc(#loc1)
    %e = vendor.op %x : tensor<64x64xf16, #odd>
    tt.return
  }
}
"""


def layout_of(row: LayoutRow) -> LinearLayout:
    assert row.map is not None, row.reason
    return row.map.layout


def test_every_layout_of_a_module() -> None:
    rows = layouts_of_text(MODULE, TARGET)
    found = {row.alias: row for row in rows}
    assert set(found) == {"#blocked", "#shared", "#rotating", "#one", "#odd"}
    assert layout_of(found["#blocked"]).vectors("lane") == ((0, 8), (0, 16), (0, 32), (1, 0), (2, 0))
    assert found["#shared"].buffers == 3
    assert len(layout_of(found["#shared"]).vectors("offset")) == 12
    assert len(layout_of(found["#rotating"]).vectors("offset")) == 12
    assert layout_of(found["#one"]).bases == (("offset", ()), ("block", ()))
    refusal = found["#odd"].answer
    assert isinstance(refusal, LayoutRefusal)
    assert refusal.code == "unknown-encoding"
    assert "vendor.thing" in refusal.message
    (use, *_) = found["#shared"].operations
    assert use == LayoutUse("ttg.local_alloc", (10, 11), ("%a", "%b"), ("kernel.py:7",), (("kernel.py:7",),))
    assert layouts_of_text(MODULE, TARGET, [replace(row, alias="#known") for row in rows]) == rows


def test_a_child_that_dies_is_replaced() -> None:
    # The text of wmma that 3.7 brought makes 3.6 abort; in later versions a wrong rank does so in some layouts.
    with LayoutServer() as server:
        job = server.ask(Module.of(TARGET), types=[f"tensor<64x64xf16, {BLOCKED}>"] * 3)
        server.poll(0)
        assert server._child is not None
        end_group(server._child.pid)
        answered = server.wait(job).answered_types()
    assert all(isinstance(answer, LayoutMap) or answer.code == "crash" for answer in answered)
    assert sum(isinstance(answer, LayoutMap) for answer in answered) >= 2


@pytest.mark.newest
def test_a_child_that_does_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what it does, not by the clock: on a loaded machine it only waits for a processor."""
    monkeypatch.setattr(sys.modules[LayoutServer.__module__], "_QUESTION_LIMITS", ToolLimits(asleep_s=0.5))
    with LayoutServer() as server:
        job = server.ask(Module.of(TARGET), types=[f"tensor<64x64xf16, {BLOCKED}>"])
        assert server._child is not None
        os.kill(server._child.pid, signal.SIGSTOP)
        (answer,) = server.wait(job).answered_types()
    assert isinstance(answer, LayoutMap)
    assert job.deaths == 1


def test_blame_falls_on_the_type_under_way() -> None:
    module = Module.of(TARGET)
    one, three = (LayoutMap(LinearLayout.of({"lane": []}, (size,))) for size in (2, 8))
    job = LayoutJob(Question(module, ("tensor<2xf16, a>", "tensor<4xf16, b>", "tensor<8xf16, c>"), job=1))
    job.take(Message(1, "begin", 0))
    job.take(Message(1, "answer", 0, answer=one))
    job.take(Message(1, "begin", 1))
    job.child_died("was ended by SIGABRT")
    assert job.question == Question(module, types=("tensor<8xf16, c>",), job=1)
    job.take(Message(1, "begin", 0))
    job.take(Message(1, "answer", 0, answer=three))
    job.take(Message(1, "end"))
    first, second, third = job.answered_types()
    assert first == one
    assert isinstance(second, LayoutRefusal)
    assert second.code == "crash"
    assert "SIGABRT" in second.message
    assert third == three


@pytest.mark.newest
def test_without_triton_rows_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "triton.py").write_text("raise ImportError('there is none')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    assert {row.answer.code for row in layouts_of_text(MODULE, TARGET) if isinstance(row.answer, LayoutRefusal)} == {
        "no-triton"
    }


@pytest.mark.newest
def test_nothing_is_left_running() -> None:
    server = LayoutServer()
    server.ask(Module.of(TARGET), types=[f"tensor<64x64xf16, {BLOCKED}>"])
    assert server._child is not None
    pid = server._child.pid
    server.close()
    server.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_recording_tells_of_them() -> None:
    from irscope.model.capture import Kernel, Launch
    from irscope.record.process.annotations import Annotations
    from irscope.record.process.events import ArtifactMade, CompileBegun, LayoutsKnown, RecordingEvent
    from irscope.record.process.requests import RecordRequest

    events: list[RecordingEvent] = []
    with LayoutServer() as server:
        sink = Annotations(events.append, RecordRequest(mode="script"), server)
        begin = [
            CompileBegun(3, TARGET, Launch(Kernel("kernel"))),
            ArtifactMade(3, "ttgir", MODULE),
            ArtifactMade(3, "ptx", "…"),
        ]
        for event in begin:
            sink(event)
        sink.finish()
    assert events[:3] == begin
    (known,) = [event for event in events if isinstance(event, LayoutsKnown)]
    assert known.n == 3
    assert len(known.layouts) == 5


@pytest.mark.newest
def test_differences_are_told_element_by_element() -> None:
    from irscope.layout.described import DescribedLayout
    from irscope.record.layouts.verify import Verified, _compared, why_not

    bases = {"register": [[1]], "lane": [[2], [4], [8], [16], [32]], "warp": [[0]], "block": []}
    answer = LayoutMap(LinearLayout.of(bases, (64,)))
    row = LayoutRow("#a", "#ttg.linear<{register = []}>", (64,), answer=answer)
    item = DescribedLayout(row, TARGET)
    assert why_not(item) == ""
    # Either of the two warps may have stored it.
    right = [index // 2 + 32 * (index % 2) for index in range(64)]
    assert str(_compared(item, Measured(tuple(right)))) == "#a 64: the hardware agrees on all 64 elements"
    wrong = _compared(item, Measured((7, *right[1:])))
    assert not wrong.agrees
    assert str(wrong).splitlines()[1] == "  (0,): the map says thread 0, 32, the hardware thread 7"
    assert not _compared(item, Measured(error="the process ended")).agrees
    assert "not checked: it is for hip:gfx942" in str(
        Verified("#a", (64,), 0, skipped=why_not(DescribedLayout(row, Target.parse("gfx942"))))
    )


def test_a_child_that_dies_of_a_layout_is_started_again_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    from irscope.record.layouts import verify

    monkeypatch.setattr(verify, "_MODULE", "tests.record.layouts.dying")
    # The child does not look for modules in the working folder.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[3]), *sys.path]))
    types = ("good", "deadly", "good", "bad", "deadly")
    questions = [Measure("cuda:90", kind, (2,), 32, True, 4) for kind in types]
    good, dead, *rest = verify._measured(questions)
    assert good == Measured((0, 1))
    assert dead.error == "the process exited with code 3: deadly"
    assert rest == [good, Measured(error="bad"), dead]


@pytest.mark.newest
def test_verifying_needs_a_gpu() -> None:
    from irscope.layout.described import DescribedLayout
    from irscope.record.layouts.verify import verify_layouts

    torch = pytest.importorskip("torch", reason="without torch nothing can be launched")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    item = DescribedLayout(ask_layout(BLOCKED, (64, 64), 4, TARGET), TARGET)
    with pytest.raises(MissingTool, match="--verify needs an NVIDIA GPU"):
        verify_layouts([item])


@pytest.mark.gpu
def test_the_hardware_agrees_on_a_table_of_layouts() -> None:
    from irscope.layout.described import DescribedLayout
    from irscope.layout.rows import type_of_row
    from irscope.record.layouts.verify import verify_layouts, why_not
    from tests.layout.cases import CASES

    cases = [
        case
        for case in CASES
        if case.target.startswith("cuda") and case.num_ctas == 1 and case.since <= (3, 6) and len(case.shape) <= 3
    ]
    items: list[DescribedLayout] = []
    with LayoutServer() as server:
        for case in cases:
            row = LayoutRow(case.label, case.encoding, case.shape, (case.element,))
            target = Target.parse(case.target)
            job = server.ask(Module.of(target, case.num_warps), types=[type_of_row(row)])
            (answer,) = server.wait(job).answered_types()
            item = DescribedLayout(replace(row, answer=answer), target)
            if not why_not(item):
                items.append(item)
    assert len(items) >= 100
    reports = verify_layouts(items)
    assert not [str(report) for report in reports if not report.agrees]


@pytest.mark.gpu
def test_the_hardware_agrees_on_flash_attentions_layouts() -> None:
    from irscope.layout.described import DescribedLayout
    from irscope.record.layouts.verify import verify_layouts
    from irscope.store.file import load

    capture = load(Path(__file__).parents[2] / "data" / "layouts" / "flash_attention-cuda-90.irscope")
    reports = verify_layouts([DescribedLayout(row, capture.target) for row in capture.layouts])
    assert not [str(report) for report in reports if not report.agrees]
    assert sum(not report.skipped for report in reports) >= 10

"""Asking the compiler for layouts: whole modules, single texts, and children that die of a question."""

from __future__ import annotations

import json
import time

import pytest

from irscope.capture import Target
from irscope.errors import ParseError, UsageError
from irscope.record.layouts import LayoutJob, LayoutServer, ask_layout, describe_layouts

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


@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_every_layout_of_a_module(fork: bool) -> None:
    import triton  # noqa: F401 - the fork has it loaded

    rows = describe_layouts(MODULE, TARGET, fork=fork)
    found = {row["alias"]: row for row in rows}
    assert set(found) == {"#blocked", "#shared", "#rotating", "#one", "#odd"}
    assert found["#blocked"]["bases"]["lane"] == [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]]
    assert found["#shared"]["buffers"] == 3
    assert len(found["#shared"]["bases"]["offset"]) == 12
    assert len(found["#rotating"]["bases"]["offset"]) == 12
    assert found["#one"]["bases"] == {"offset": [], "block": []}
    assert "vendor.thing" in found["#odd"]["reason"]
    (use, *_) = found["#shared"]["operations"]
    assert use == {
        "name": "ttg.local_alloc", "lines": [10, 11], "values": ["%a", "%b"], "python": ["kernel.py:7"],
        "chains": [["kernel.py:7"]],
    }  # fmt: skip
    json.dumps(rows)


def test_a_child_that_dies_is_replaced() -> None:
    # The text of wmma that 3.7 brought makes 3.6 abort; in later versions a wrong rank does so in some layouts.
    rows = [{"type": f"tensor<64x64xf16, {BLOCKED}>"} for _ in range(3)]
    with LayoutServer(fork=False) as server:
        job = server.ask_types(rows, TARGET)
        server.poll(0)
        assert server._child is not None
        server._child.kill()
        answered = server.wait(job)
    assert all("bases" in row or "does not survive" in row["reason"] for row in answered)
    assert sum("bases" in row for row in answered) >= 2


def test_blame_falls_on_the_type_under_way() -> None:
    job = LayoutJob({"job": 1, "text": "…"}, [{"type": "a"}, {"type": "b"}, {"type": "c"}])
    job.take({"state": "begin", "index": 0})
    job.take({"state": "answer", "index": 0, "answer": {"bases": {}}})
    job.take({"state": "begin", "index": 1})
    job.child_died("was ended by signal 6")
    assert job.question == {"job": 1, "types": ["c"]}
    job.take({"state": "begin", "index": 0})
    job.take({"state": "answer", "index": 0, "answer": {"bases": {"x": []}}})
    job.take({"state": "end"})
    first, second, third = job.result()
    assert first["bases"] == {}
    assert "signal 6" in second["reason"]
    assert third["bases"] == {"x": []}


def test_a_layout_given_as_text() -> None:
    row = ask_layout(BLOCKED, (128, 64), 4, TARGET, "fp16")
    assert row["kind"] == "blocked"
    assert row["elements"] == ["f16"]
    assert row["bases"]["warp"] == [[4, 0], [8, 0]]
    assert ask_layout(BLOCKED, (128, 64), None, TARGET)["bases"] == row["bases"]


@pytest.mark.parametrize(
    ("text", "shape", "warps", "target", "error", "message"),
    [
        ("blocked", (64,), 4, "cuda:90", ParseError, "is no encoding"),
        (BLOCKED, (48, 64), 4, "cuda:90", UsageError, "no power of two"),
        (BLOCKED, (64, 64), 8, "cuda:90", UsageError, "is for 4 warps, not for 8"),
        (BLOCKED, (64, 64), 4, "hip:gfx942", UsageError, "32 threads a warp"),
        (BLOCKED.replace("[1, 0]", "[0]"), (64, 64), 4, "cuda:90", UsageError, "does not take"),
        (BLOCKED, (64,), 4, "cuda:90", UsageError, "does not take"),
    ],
)
def test_what_does_not_fit(text: str, shape: tuple, warps: int, target: str, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        ask_layout(text, shape, warps, Target.parse(target))


def test_nothing_is_left_running() -> None:
    server = LayoutServer(fork=False)
    server.ask(MODULE, TARGET)
    began = time.monotonic()
    server.close()
    server.close()
    assert time.monotonic() - began < 5


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("fork", [True, False])
def test_a_recording_tells_of_them(fork: bool) -> None:
    from irscope.record.events import Event
    from irscope.record.layout_steps import LayoutSteps

    told: list[Event] = []
    with LayoutSteps(told.append, fork=fork) as sink:
        sink(Event("compile-begin", {"n": 3, "target": "cuda:90", "warp_size": 32}))
        sink(Event("artifact", {"n": 3, "stage": "ttgir"}, MODULE))
        sink(Event("artifact", {"n": 3, "stage": "ptx"}, "…"))
    assert [event.kind for event in told[:3]] == ["compile-begin", "artifact", "artifact"]
    (event,) = [event for event in told if event.kind == "layouts"]
    assert event["n"] == 3
    assert len(event["layouts"]) == 5


def test_differences_are_told_element_by_element() -> None:
    from irscope.layout.described import DescribedLayout
    from irscope.record.layout_verify import Verified, _compared, why_not

    bases = {"register": [[1]], "lane": [[2], [4], [8], [16], [32]], "warp": [[0]], "block": []}
    row = {
        "alias": "#a",
        "encoding": "#ttg.linear<{register = []}>",
        "shape": [64],
        "bases": bases,
        "out_dims": [["dim0", 64]],
    }
    item = DescribedLayout.of(row, TARGET)
    assert why_not(item) == ""
    # Either of the two warps may have stored it.
    right = [index // 2 + 32 * (index % 2) for index in range(64)]
    assert str(_compared(item, {"values": right})) == "#a 64: the hardware agrees on all 64 elements"
    wrong = _compared(item, {"values": [7, *right[1:]]})
    assert not wrong.agrees
    assert str(wrong).splitlines()[1] == "  (0,): the map says thread 0, 32, the hardware thread 7"
    assert not _compared(item, {"error": "the process ended"}).agrees
    assert "not checked: it is for hip:gfx942" in str(
        Verified("#a", (64,), 0, skipped=why_not(DescribedLayout.of(row, Target.parse("gfx942"))))
    )


def test_verifying_needs_a_gpu() -> None:
    from irscope.errors import MissingTool
    from irscope.layout.described import DescribedLayout
    from irscope.record.layout_verify import verify_layouts

    torch = pytest.importorskip("torch", reason="without torch nothing can be launched")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    item = DescribedLayout.of(ask_layout(BLOCKED, (64, 64), 4, TARGET), TARGET)
    with pytest.raises(MissingTool, match="--verify needs an NVIDIA GPU"):
        verify_layouts([item])


@pytest.mark.gpu
def test_the_hardware_agrees_on_a_table_of_layouts() -> None:
    from irscope.layout.described import DescribedLayout
    from irscope.layout.encoding import parse_encoding
    from irscope.layout.rows import query_type
    from irscope.record.layout_verify import verify_layouts, why_not
    from tests.layout.cases import CASES

    cases = [
        case
        for case in CASES
        if case.target.startswith("cuda") and case.num_ctas == 1 and case.since <= (3, 6) and len(case.shape) <= 3
    ]
    items: list[DescribedLayout] = []
    with LayoutServer(fork=False) as server:
        for case in cases:
            space = parse_encoding(case.encoding).space
            row = {
                "alias": case.label,
                "encoding": case.encoding,
                "shape": list(case.shape),
                "elements": [case.element],
                "type": query_type(case.encoding, case.shape, case.element, space),
            }
            target = Target.parse(case.target)
            (answered,) = server.wait(server.ask_types([row], target, case.num_warps))
            item = DescribedLayout.of(answered, target)
            if not why_not(item):
                items.append(item)
    assert len(items) >= 100
    reports = verify_layouts(items)
    assert not [str(report) for report in reports if not report.agrees]


@pytest.mark.gpu
def test_the_hardware_agrees_on_flash_attentions_layouts() -> None:
    from pathlib import Path

    from irscope.layout.described import describe
    from irscope.record.layout_verify import verify_layouts
    from irscope.store import load

    capture = load(Path(__file__).parent.parent / "data" / "layouts" / "flash_attention-cuda-90.irscope")
    reports = verify_layouts(describe(capture.layouts, capture.target))
    assert not [str(report) for report in reports if not report.agrees]
    assert sum(not report.skipped for report in reports) >= 10

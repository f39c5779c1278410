"""Parts of a timed compile: irscope's own cut around the compiler's, and LLVM's passes read from its time trace."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.passes.times import time_tree
from irscope.ir.logs.time_trace import AskedPass, LlvmTrace, Part, compile_times, llvm_spans


def event(name: str, begun_us: int, duration_us: int, detail: str = "") -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": 1, "ts": begun_us, "dur": duration_us, "name": name, "args": {"detail": detail}}


def trace(*events: dict[str, Any], begun_ns: int = 0, asked: tuple[AskedPass, ...] = ()) -> LlvmTrace:
    rows = [event("irscope", 0, 0), *events, event("Total RunPass", 0, 999)]
    return LlvmTrace(json.dumps({"traceEvents": rows}).encode(), begun_ns, asked, {"Machine CSE": "machine-cse"})


def test_irscope_is_cut_where_the_compiler_runs_in_it() -> None:
    parts: list[Part] = [
        ("kernel", "compile", 100, 900, 0),
        ("irscope", "irscope", 110, 800, 1),
        ("get_version", "call", 120, 50, 2),
        ("ttir", "stage", 200, 500, 2),
        ("irscope", "irscope", 210, 400, 3),
        ("inliner#1", "pass", 300, 100, 4),
        ("cse#1", "pass", 450, 50, 4),
        ("build", "call", 650, 20, 3),
        ("put", "call", 920, 30, 1),
    ]
    times = compile_times(parts, [], 7, ("a note",))
    assert [(span.name, span.start_ns, span.duration_ns, span.depth) for span in times.spans] == [
        ("kernel", 0, 900, 0),
        ("irscope", 10, 90, 1),
        ("ttir", 100, 500, 1),
        ("irscope", 110, 90, 2),
        ("inliner#1", 200, 100, 2),
        ("irscope", 300, 50, 2),
        ("cse#1", 350, 50, 2),
        ("irscope", 400, 110, 2),
        ("build", 550, 20, 2),
        ("irscope", 600, 210, 1),
        ("put", 820, 30, 1),
    ]
    assert (times.processor_ns, times.notes) == (7, ("a note",))
    tree = time_tree(times)
    assert tree.recording_ns == 90 + 210 + 90 + 50 + 110
    assert tree.whole_ns == 900 - tree.recording_ns


def test_what_follows_the_last_call_is_the_freeing_of_the_compile() -> None:
    parts: list[Part] = [
        ("kernel", "compile", 0, 1000, 0),
        ("CompiledKernel.__init__", "call", 700, 100, 1),
        ("get_group", "call", 710, 50, 2),
        ("irscope", "irscope", 880, 100, 1),
    ]
    tree = time_tree(compile_times(parts, [], 0, ()))
    assert [(node.name, node.duration_ns) for node in tree.root.parts] == [
        ("CompiledKernel.__init__", 100),
        ("freeing of the MLIR context", 80),
    ]
    assert tree.unaccounted_ns == 700 + 20


def test_passes_of_llvm_stand_in_the_part_around_them() -> None:
    parts: list[Part] = [("llir", "stage", 0, 900_000, 0), ("llvm-opt", "pass", 100_000, 500_000, 1)]
    llvm = trace(
        event("SROAPass", 6, 60, "kernel"),
        event("DominatorTreeAnalysis", 10, 30, "kernel"),
        event("AAManager", 45, 2, "kernel"),
        event("PassManager<llvm::Function>", 70, 80, "kernel"),
        event("RunPass", 200, 50, "Machine CSE"),
        event("RunPass", 260, 9, "NVPTX Image Optimizer"),
        event("RunPass", 280, 9, "Required Pass"),
        begun_ns=100_000,
        asked=(
            (105_000, b"sroa", True),
            (300_500, b"Machine CSE", True),
            (361_000, b"NVPTX Image Optimizer", True),
        ),
    )
    spans = compile_times(parts, [llvm], 0, ()).spans
    assert [(span.name, span.kind, span.start_ns, span.depth) for span in spans[2:]] == [
        ("sroa#1", "llvm", 106_000, 2),
        ("DominatorTreeAnalysis", "llvm analysis", 110_000, 3),
        ("machine-cse#1", "llvm", 300_000, 2),
        ("NVPTX_Image_Optimizer#1", "llvm", 360_000, 2),
        ("Required_Pass", "llvm", 380_000, 2),
    ]


def test_passes_that_begin_in_one_microsecond_keep_their_order() -> None:
    """LLVM writes an event when it ends: a short pass before the next one, an analysis before the pass around it."""
    llvm = trace(
        event("RunPass", 9, 0, "NVPTX Image Optimizer"),
        event("RunPass", 9, 4, "Machine CSE"),
        event("DominatorTreeAnalysis", 20, 30, "kernel"),
        event("SROAPass", 20, 60, "kernel"),
        event("RunPass", 80, 0, "Required Pass"),
    )
    assert [(span.name, span.depth) for span in llvm_spans([llvm])] == [
        ("NVPTX_Image_Optimizer", 0),
        ("machine-cse", 0),
        ("SROAPass", 0),
        ("DominatorTreeAnalysis", 1),
        ("Required_Pass", 0),
    ]


def test_a_pass_of_another_name_stands_between_those_that_are_asked_for_around_it() -> None:
    """Passes of less than a microsecond, and a clock that is two late: the nearest by the clock is a required one."""
    llvm = trace(
        event("RunPass", 7, 0, "Required Pass"),
        event("RunPass", 8, 0, "Machine CSE"),
        event("RunPass", 9, 0, "Convert Allocas"),
        event("RunPass", 9, 0, "Always"),
        event("RunPass", 10, 0, "NVPTX Image Optimizer"),
        event("RunPass", 12, 0, "Always"),
        asked=((6_000, b"Machine CSE", True), (7_000, b"lower-alloca", True), (8_000, b"NVPTX Image Optimizer", True)),
    )
    assert [span.name for span in llvm_spans([llvm])] == [
        *("Required_Pass", "machine-cse#1", "lower-alloca#1", "Always", "NVPTX_Image_Optimizer#1", "Always"),
    ]


def test_passes_of_the_middle_end_are_named_by_what_was_asked_before_them() -> None:
    """A required pass and one that is left out in between; clocks that differ by a microsecond."""
    llvm = trace(
        event("SROAPass", 10, 5),
        event("RequiredPass", 18, 0),
        event("LICMPass", 20, 3),
        event("SROAPass", 29, 3),
        event("LICMPass", 40, 0),
        event("SROAPass", 50, 3),
        asked=(
            (10_900, b"sroa", True),
            (20_900, b"licm", True),
            (25_900, b"licm", False),
            (29_900, b"sroa", True),
            (40_900, b"licm", True),
            (50_900, b"sroa", True),
        ),
    )
    names = [span.name for span in llvm_spans([llvm, llvm])]
    assert names == [
        *("sroa#1", "RequiredPass", "licm#1", "sroa#2", "licm#3", "sroa#3"),
        *("sroa#4", "RequiredPass", "licm#4", "sroa#5", "licm#6", "sroa#6"),
    ]


@given(st.lists(st.sampled_from(["irscope", "pass", "stage", "call"]), max_size=30), st.data())
def test_no_time_is_lost_or_counted_twice(kinds: list[Any], data: st.DataObject) -> None:
    """Parts drawn at random, each within the one before it or after it: pieces nest, and the whole stays."""
    parts: list[Part] = [("whole", "compile", 0, 10_000, 0)]
    around = [(0, 10_000)]
    begun = 0
    for kind in kinds:
        depth = data.draw(st.integers(1, len(around)))
        # What ends here has ended: the next one begins after it.
        begun = max(begun, around[depth][1] if depth < len(around) else begun)
        del around[depth:]
        end = around[-1][1]
        begun = data.draw(st.integers(begun, max(begun, end)))
        duration = data.draw(st.integers(0, max(0, end - begun)))
        if begun > end:
            continue
        parts.append((kind, kind, begun, duration, depth))
        around.append((begun, begun + duration))
    spans = compile_times(parts, [], 0, ()).spans
    depth = -1
    for span in spans:
        assert 0 <= span.depth <= depth + 1
        depth = span.depth
    assert [span.start_ns for span in spans] == sorted(span.start_ns for span in spans)
    tree = time_tree(compile_times(parts, [], 0, ()))
    assert tree.whole_ns + tree.recording_ns == 10_000

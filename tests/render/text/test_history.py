"""A compiler's log as text: what was decided, then all that was printed."""

from __future__ import annotations

from irscope.model.capture import Capture, Kernel, Launch, PassSnapshot
from irscope.model.evidence import PassLog
from irscope.render.text.history import entries_text, log_text
from irscope.target import Target

SNAPSHOT = PassSnapshot(4, "ttgir", "assign_latencies", 1)
CAPTURE = Capture(Launch(Kernel("k", "/home/jo/k.py")), Target.parse("cuda:90"), snapshots=(SNAPSHOT,))
LOAD = '[triton-loop-pipeline]: Load %x = tt.load %p : !tt.ptr<f16> loc("/home/jo/k.py":3:4)'


def test_decisions_come_first_and_equal_ones_are_counted() -> None:
    text = f"{LOAD} is too small for pipelining\n{LOAD} is too small for pipelining\n-- more\n"
    lines = log_text(CAPTURE, [PassLog("ttgir", text, 4, 9)]).splitlines()
    assert lines[0].split() == ["pass", "line", "decided"]
    assert lines[1].startswith("ttgir:assign_latencies#1  k.py:3  not pipelined: ")
    assert lines[1].endswith("×2")
    assert lines[3] == "ttgir:assign_latencies#1"
    # Those of Triton stand one by one, in their order.
    assert lines[4].startswith("triton-loop-pipeline  k.py:3  Load %x = tt.load")
    assert lines[5].endswith("+1 lines")
    assert lines[6].strip() == "9 more lines were not kept"


def test_what_llvm_repeats_is_counted() -> None:
    text = "remark: k.py:3:4: not eliminated\n" * 40 + "remark: k.py:5:4: not eliminated\n"
    lines = log_text(CAPTURE, [PassLog("ptx", text)]).splitlines()
    assert lines[0] == "ptx"
    assert [line.split() for line in lines[1:]] == [
        ["remark", "k.py:3", "not", "eliminated", "×40"],
        ["remark", "k.py:5", "not", "eliminated"],
    ]


def test_nothing_is_said_so() -> None:
    assert log_text(CAPTURE, []) == "The compiler printed nothing about these passes.\n"


def test_a_hostile_log_moves_nothing() -> None:
    shown = log_text(CAPTURE, [PassLog("ttgir", "\x1b[2J\u202e[a-b]: x\n", 4)])
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_all_of_it_as_one_text() -> None:
    assert entries_text(PassLog("ttgir", f"{LOAD} has width 16\n  more\n", 4, 2)) == (
        "triton-loop-pipeline /home/jo/k.py:3 Load %x = tt.load %p : !tt.ptr<f16> has width 16\n  more\n"
        "2 more lines were not kept"
    )

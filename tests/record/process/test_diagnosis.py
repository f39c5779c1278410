"""Which lines of a compiler's output say why it failed."""

from __future__ import annotations

import pytest

from irscope.record.process.diagnosis import assembler_message, unreadable_llvm, with_diagnostics

PTX = """//
.visible .entry k()
{
  .loc 1 2 5
  bogus.f32 %r1, %r2;
  ret;
}
  .file 1 "/a/k.py"
"""


@pytest.mark.parametrize(
    ("diagnostics", "telling"),
    [
        (
            "python: /a/FMA.cpp:28: virtual V (anonymous namespace)::M::f(V): Assertion `x == y' failed.\n#0 0x1",
            "Assertion `x == y' failed (FMA.cpp:28, M::f)",
        ),
        ("LLVM ERROR: Cannot select: f\n", "LLVM ERROR: Cannot select: f"),
        ("loc(callsite(very long at long)): error: LLVM Translation failed", "error: LLVM Translation failed"),
        ("nothing of note", ""),
        (
            "noise\nk.py:3:4: error: not legal\n  x = y\n      ^\nk.py:1:1: error: Failures have been detected while "
            "processing an MLIR pass pipeline",
            "k.py:3:4: error: not legal\n  x = y\n      ^",
        ),
        ("why\nthe reason\nUNREACHABLE executed at /a/Error.h:7!\n", "why: the reason (Error.h:7)"),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
            "out of memory: std::bad_alloc, what():  std::bad_alloc",
        ),
        (
            "k.py:9:4: error: bad\n  x\n  ^\nk.py:3:4: note: called from\n  y\n  ^\nk.py:1:1: note: see",
            "k.py:9:4: error: bad\n  x\n  ^\nk.py:3:4: note: called from\n  y\n  ^",
        ),
    ],
)
def test_the_telling_lines_come_first(diagnostics: str, telling: str) -> None:
    message = with_diagnostics("PassManager::run failed", diagnostics)
    assert message.endswith("PassManager::run failed")
    assert telling in message
    assert telling or message == "PassManager::run failed"
    assert "Failures have been detected" not in message


def test_an_assertion_comes_before_the_errors_that_follow_from_it() -> None:
    message = with_diagnostics(
        "no", "k.py:1:1: error: first\npython: /a/B.cpp:2: f(): Assertion `x' failed.\nLLVM ERROR: last"
    )
    assert message.splitlines() == [
        "Assertion `x' failed (B.cpp:2, f)",
        "k.py:1:1: error: first",
        "LLVM ERROR: last",
        "no",
    ]


def test_the_assembler_is_quoted_with_its_line_and_pythons() -> None:
    log = "noise\nptxas /tmp/tmpq.ptx, line 5; error   : Not a name\nptxas fatal   : Ptx assembly aborted due to errors"
    message = assembler_message(log, "ptx", {"ptx": PTX}, {"/a/k.py": "def k():\n    bogus()\n"}, "k")
    assert message.splitlines() == [
        "ptxas k.ptx, line 5; error   : Not a name",
        "  line 5: bogus.f32 %r1, %r2;",
        "  from /a/k.py:2: bogus()",
    ]
    assert assembler_message("all is well", "ptx", {"ptx": PTX}, {}, "k") == ""


def test_a_line_that_is_not_there_is_left_out() -> None:
    log = "ptxas /tmp/tmpq.ptx, line 500; error   : Not a name"
    assert assembler_message(log, "ptx", {"ptx": PTX}, {}, "k") == "ptxas k.ptx, line 500; error   : Not a name"


def test_llvm_ir_that_cannot_be_read() -> None:
    said = "LLVM ERROR: failed to parse IR: expected top-level entitylineno: 2"
    assert unreadable_llvm(said, "a\nb\n") == "line 2: error: expected top-level entity\n  line 2: b"
    assert unreadable_llvm("LLVM ERROR: another", "a") == ""

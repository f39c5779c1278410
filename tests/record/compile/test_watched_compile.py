"""What a compiler prints is told apart by passes, and cut to whole lines."""

from __future__ import annotations

from irscope.model.evidence import MOST_LOG_BYTES, MOST_LOG_LINES, PassLog
from irscope.record.compile.watched_compile import PassLogs, logged
from irscope.record.process.events import Logged


def test_each_pass_has_what_was_printed_while_it_ran() -> None:
    printed, found = "", list[Logged]()

    def read() -> str:
        nonlocal printed
        text, printed = printed, ""
        return text

    logs = PassLogs(3, read, found.append)
    printed = "before\n"
    logs.pass_begins()
    printed = "first\n"
    logs.pass_ends("ttgir", 7)
    printed = "between\n"
    logs.pass_begins()
    logs.pass_ends("ttgir", 8)
    printed = "after\n"
    logs.stage_ends("ttgir", "ptxas\n")
    logs.stage_ends("llir", "")
    assert [(one.n, one.log.stage, one.log.index, one.log.text) for one in found] == [
        (3, "ttgir", 7, "first\n"),
        (3, "ttgir", None, "before\nbetween\nafter\nptxas\n"),
    ]


def test_what_is_too_long_is_cut_to_whole_lines() -> None:
    assert logged(0, "ttgir", 1, "a\nb") == Logged(0, PassLog("ttgir", "a\nb", 1))
    many = logged(0, "ttgir", 1, "x\n" * (MOST_LOG_LINES + 5)).log
    assert (many.text.count("\n") + 1, many.lines_left_out) == (MOST_LOG_LINES, 5)
    line = "é" * 500
    long = logged(0, "ttgir", 1, f"{line}\n" * 9000).log
    assert len(long.text.encode()) <= MOST_LOG_BYTES
    assert long.text.count("\n") + 1 + long.lines_left_out == 9000
    assert set(long.text.split("\n")) == {line}
    # One line that is too long alone.
    assert logged(0, "ttgir", 1, "x" * (MOST_LOG_BYTES + 1)) == Logged(0, PassLog("ttgir", "", 1, 1))

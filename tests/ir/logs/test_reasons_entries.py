"""Entries of a compiler's log: every line is in one, with its writer and its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.ir.logs.reasons import LogEntry, read_entries
from tests.work import MEASURES, Measure

FORMS = (
    "[axis-info]: getMaskAlignment maskOrder[0] 0 alignment 64",
    '[tritongpu-coalesce]: Considering op: %x = tt.load %p : !tt.ptr<f16> loc("x"("k.py":11:13))',
    "k.py:11:13: remark: Warning: vectorization fails vec = 1 origin vec = 1 numElems = 32 mask is 64",
    "k.py:20:5: note: called from",
    "remark: k.py:16:5: load of type <4 x i32> not eliminated",
    "ptxas info    : (C7510) Potential Performance Loss",
    "-- 3 8192 0 interval 188 189",
    "} loc(#loc3)",
    "]: loc(",
    "",
)


def only(text: str) -> LogEntry:
    (entry,) = read_entries(text)
    return entry


@given(st.lists(st.sampled_from(FORMS) | st.text('%[]:() "loc\nx1\\', max_size=30)).map("\n".join))
def test_every_line_is_in_an_entry(text: str) -> None:
    entries = read_entries(text)
    assert sum(entry.lines for entry in entries) == text.count("\n") + (text[-1:] not in ("", "\n"))
    assert [entry.line for entry in entries] == [
        1 + sum(one.lines for one in entries[:at]) for at in range(len(entries))
    ]


def test_an_operation_has_its_location_with_its_callers() -> None:
    where = 'callsite("x"("lib.py":3:10) at "k.py":20:5)'
    entry = only(f"[triton-loop-pipeline]: Load %x = tt.load %p : !tt.ptr<f16> loc({where}) has width 16\n")
    assert (entry.kind, entry.type) == ("debug", "triton-loop-pipeline")
    assert entry.text == "Load %x = tt.load %p : !tt.ptr<f16> has width 16"
    assert [str(frame) for frame in entry.chain] == ["lib.py:3:10", "k.py:20:5"]
    assert entry.chain[0].name == "x"


def test_an_operation_with_a_region_has_the_location_behind_it() -> None:
    entry = only('[a-b]: Original loop:\n%3 = scf.for {\n  scf.yield loc("k.py":1:1)\n} loc("k.py":10:5)\n')
    assert [str(frame) for frame in entry.chain] == ["k.py:10:5"]
    assert entry.text.split("\n") == ["Original loop:", "%3 = scf.for {", "  scf.yield", "}"]


def test_a_diagnostic_has_the_callers_that_follow_it() -> None:
    text = "lib.py:3:10: remark: too narrow\n\n  x = tl.load(p)\n      ^\nk.py:20:5: note: called from\n  f(p)\n  ^\n"
    entry = only(text)
    assert (entry.kind, entry.type, entry.first, entry.lines) == ("diagnostic", "remark", "too narrow", 7)
    assert [str(frame) for frame in entry.chain] == ["lib.py:3:10", "k.py:20:5"]


def test_a_remark_of_llvm_without_a_place_has_none() -> None:
    first, second = read_entries("remark: <unknown>:0:0: BasicBlock:\nmov.b32: 3\nremark: k.py:16:5: not eliminated\n")
    assert (first.kind, first.chain, first.lines) == ("llvm", (), 2)
    assert [str(frame) for frame in second.chain] == ["k.py:16:5"]


def test_strings_and_brackets_that_do_not_end() -> None:
    assert only('[a-b]: op loc("k.py').text == 'op loc("k.py'
    assert only("[a-b]: op loc(callsite(").text == "op loc(callsite("
    assert only('[a-b]: "%d)" loc("a)(b.py":1:2) end').text == '"%d)" end'


@pytest.mark.parametrize("unit", [" loc(", ' loc("', " loc(x)", '"\\', "a:1:", "%x = "])
@pytest.mark.parametrize("work", MEASURES)
def test_reading_is_linear(unit: str, work: Measure) -> None:
    assert work.is_linear(lambda times: read_entries(unit * times), len(unit))

"""Logs that are cut, mutated or hostile: read as far as they go, in time linear in their length."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.ir.logs.dump import captures_from_log, read_llvm_dump
from irscope.ir.logs.dump_mlir import read_mlir_dump
from irscope.store.file import from_bytes, to_bytes
from tests.ir.dump_logs import log, module
from tests.work import MEASURES, Measure


@cache
def short_log() -> str:
    text = log("3.9.0.cuda90.mlir")
    starts = [match.start() for match in re.finditer("// -----// IR Dump Before InlinerPass", text)]
    first, second = text[: starts[1]], text[starts[1] : starts[2]]
    # The dialect of LLVM is nearly all of a log: the first passes over it stand for the others.
    return "".join(part[: part.index("IR Dump Before ConvertNVVM")] for part in (first, second))


def test_a_log_that_is_cut_tells_of_what_came_before() -> None:
    text = short_log()
    whole = [snapshot for item in read_mlir_dump(text) for snapshot in item.snapshots]
    places = random.Random(7).sample(range(len(text)), 100)
    for place in places:
        found = captures_from_log(text[:place], "")
        snapshots = [snapshot for capture in found for snapshot in capture.snapshots]
        known = [snapshot for snapshot in snapshots if not snapshot.text_left_out]
        assert len(known) >= len(snapshots) - 3
        for index, snapshot in enumerate(snapshots):
            assert snapshot.argument == whole[index].argument
            if not snapshot.text_left_out:
                assert (snapshot.changed, snapshot.text) == (whole[index].changed, whole[index].text)


def test_a_log_that_is_cut_at_its_start_is_read() -> None:
    text = short_log()
    whole = [snapshot for item in read_mlir_dump(text) for snapshot in item.snapshots]
    for place in random.Random(3).sample(range(len(text)), 50):
        snapshots = [snapshot for capture in captures_from_log(text[place:], "") for snapshot in capture.snapshots]
        # The dumps of what a pass ran within itself can't be told for such, where its own is missing.
        arguments = [each.argument for each in snapshots[3:]]
        assert arguments == [each.argument for each in whole[len(whole) - len(arguments) :]]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = log("3.6.0.failing") + short_log()[:60_000] + log("3.9.0.cuda90.stderr")[-40_000:]
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 1, 5, 80, 3_000])))
        fresh = draw(
            st.one_of(
                st.text(max_size=20),
                st.sampled_from(
                    ["\n", "}\n", '"', "(", "{", "// -----// IR Dump Before ", "module {", "tt.func @", "<"]
                ),
                st.just(text[start:end] * 2),
            )
        )
        text = text[:start] + fresh + text[end:]
    return text


@given(mutated())
def test_a_damaged_log_is_read_without_an_exception(text: str) -> None:
    for capture in captures_from_log(text, "log"):
        assert from_bytes(to_bytes(capture)) == capture
    read_llvm_dump(text, "llir")


@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    captures_from_log(text, "")
    captures_from_log(f"// -----// IR Dump Before {text}", "")
    read_llvm_dump(f"; *** IR Dump After {text}", "llir")


@pytest.mark.parametrize(
    "line",
    [
        "// -----// ",
        "// -----// IR Dump Before X (x) ('tt.func' operation: @",
        "module {\n",
        "define void @f() {\n",
        "; *** IR Dump After ",
        "; *** IR Dump After X on loop a in function f ***\n",
        "// -----// IR Dump Before X (x)\nmodule {\n  llvm.func @",
        "\n",
        " ",
        "#-}\nmodule\n",
        "@",
    ],
)
@pytest.mark.parametrize("work", MEASURES)
def test_hostile_logs_take_linear_work(line: str, work: Measure) -> None:
    for begin in ("", "// -----// IR Dump Before ", f"{module('k')}; *** IR Dump After A on [module] ***\n"):

        def read(times: int, begin: str = begin) -> None:
            whole = begin + line * times
            captures_from_log(whole, "")
            read_llvm_dump(whole, "llir")

        assert work.is_linear(read, len(line)), begin

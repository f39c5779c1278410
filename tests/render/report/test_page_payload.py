"""The data of a report gives back every text and every diff, exactly."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.ir.locations.stages import read_locations
from irscope.model.capture import Artifact, Capture
from irscope.model.evidence import CompilerLog, PassLog
from irscope.render.report import page as module
from irscope.render.report import texts as columns
from irscope.render.report.page import Payload
from irscope.render.report.texts import difference, pack, with_steps
from tests.report_browser.captures import failed, hostile, softmax, without_a_pass

CAPTURES = [softmax(), without_a_pass(), failed(), hostile()]
NAMES = ["ok", "off", "failed", "hostile"]


def unpack(data: bytes) -> Any:
    return json.loads(zlib.decompress(data, -zlib.MAX_WBITS))


def applied(base: Sequence[str], packed: Mapping[str, Any]) -> list[str]:
    """The lines that `difference` told, as `frontend/src/data/payload.ts` makes them."""
    fresh = str(packed["l"]).split("\n")[:-1]
    steps: list[int] = packed["o"]
    lines: list[str] = []
    at = end = 0
    for index in range(0, len(steps), 3):
        new, step, count = steps[index : index + 3]
        lines += fresh[at : at + new]
        at += new
        start = end + step
        lines += base[start : start + count]
        end = start + count
    return lines + fresh[at:]


def copies(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first line, lines) of a base that `difference` copied."""
    end = 0
    for index in range(0, len(steps), 3):
        start = end + steps[index + 1]
        end = start + steps[index + 2]
        yield start, steps[index + 2]


class Reader:
    """Reads a payload the way the page does."""

    def __init__(self, payload: Payload) -> None:
        self.index: dict[str, Any] = unpack(pack(payload.index))
        self.chunks = [chunk.to_bytes() for chunk in payload.chunks]

    def blob(self, chunk: int, place: list[int]) -> Any:
        offset, length, *base = place
        likely = json.dumps(self.blob(base[0], base[1:]), separators=(",", ":")).encode()[-(1 << 15) :] if base else b""
        return json.loads(inflated(self.chunks[chunk][offset : offset + length], likely))

    def lines(self, number: int) -> list[str]:
        chunk, offset, length, cut, base, _ = self.index["texts"][number]
        if base < 0:
            return inflated(self.chunks[chunk][offset : offset + length]).split("\n")
        of_base, steps = self.lines(base), self.blob(chunk, [offset, cut])
        copied = {line for first, count in copies(steps) for line in range(first, first + count)}
        likely = "\n".join(line for at, line in enumerate(of_base) if at not in copied).encode()[-(1 << 15) :]
        fresh = inflated(self.chunks[chunk][offset + cut : offset + length], likely)
        return applied(of_base, {"o": steps, "l": fresh})

    def text(self, number: int) -> str:
        row = self.index["texts"][number]
        if len(row) == 2:
            plain = iter(self.text(row[0]).split("\n"))
            return "\n".join(joined(margin, plain) for margin in self.text(row[1]).split("\n"))
        text = "\n".join(self.lines(number))
        return without_steps(text) if row[5] else text


def joined(margin: str, plain: Iterator[str]) -> str:
    """A line of its margin and the next line without locations, as `frontend/src/data/columns.ts` joins them."""
    if margin.startswith(columns.HIDDEN):
        return margin[1:]
    line = next(plain)
    if margin.startswith(columns.OTHER):
        return margin[1:]
    before, sign, behind = margin.partition(columns.BESIDE)
    return before + line + behind if sign else line + margin


def inflated(data: bytes, likely: bytes = b"") -> str:
    return zlib.decompressobj(-zlib.MAX_WBITS, zdict=likely).decompress(data).decode()


def without_steps(text: str) -> str:
    """What `with_steps` told, as `frontend/src/data/numbers.ts` reads it."""
    last: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        start, prefix, step = match.groups()
        kind = "_" if prefix[-1] == "_" else prefix
        before = last.get(kind, 0)
        found = before + int(step)
        if start is not None or kind in ("!", "#loc") or (kind[-1].isalpha() and found > before):
            last[kind] = found
        return f"{start or ''}{prefix}{found}"

    return re.sub(r"(?m)(^ *)?(%[A-Za-z_][A-Za-z0-9_]*_|%[a-z]{0,2}|!|#loc)([+-]\d+)(?![A-Za-z0-9_])", number, text)


@cache
def alone() -> Reader:
    return Reader(Payload([softmax()]))


@cache
def together() -> Reader:
    """Of all captures, after one that their texts are told by."""
    return Reader(Payload([softmax(), *CAPTURES]))


@pytest.mark.parametrize("number", range(1, 1 + len(CAPTURES)), ids=NAMES)
def test_every_text_comes_back(number: int) -> None:
    reader, capture = together(), CAPTURES[number - 1]
    row = reader.index["captures"][number]
    for stage, item in zip(row["stages"], capture.artifacts, strict=True):
        assert ("text" in stage) == isinstance(item.data, str)
        if isinstance(item.data, str):
            assert reader.text(stage["text"]) == item.data
    for one, snapshot in zip(reader.blob(number, row["passes"]), capture.snapshots, strict=True):
        before, after = capture.text_before(snapshot), capture.text_after(snapshot)
        assert (reader.text(one["before"]) if "before" in one else None) == before
        assert (reader.text(one["after"]) if "after" in one else None) == after
    assert [reader.text(text) for _, text in row["sources"]] == [item.text for item in capture.sources]
    assert reader.text(row["kernelSource"]) == capture.launch.kernel.source


def test_many_captures_take_the_memory_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts come back; lines are held of one capture of each kernel; and what is left out of each is said."""
    monkeypatch.setattr(module, "_MOST_STUDIED", 2)
    captures = [softmax().with_(notes=(str(number),)) for number in range(2)]
    captures += [replace(one, artifacts=_marked(one, number)) for number, one in enumerate([softmax()] * 3)]
    reader = Reader(payload := Payload(captures))
    assert len(payload.texts._lines) == len(Payload(captures[:3]).texts._lines)
    for capture, row in zip(captures, reader.index["captures"], strict=True):
        assert row["notes"] == [*capture.notes, module._NOT_STUDIED]
        texts = {one["stage"]: reader.text(one["text"]) for one in row["stages"] if "text" in one}
        assert texts == capture.texts
    assert all(module._NOT_STUDIED not in row["notes"] for row in Payload(captures[:2]).index["captures"])


def _marked(capture: Capture, number: int) -> tuple[Artifact, ...]:
    return tuple(
        replace(one, data=f"// {number}\n{one.data}") if isinstance(one.data, str) else one for one in capture.artifacts
    )


def test_each_capture_says_what_it_differs_in() -> None:
    one = softmax()
    wide = one.with_(launch=replace(one.launch, options=(*one.launch.options, ("maxnreg", 64))))
    off = without_a_pass()
    rows = Payload([one, wide, off]).index["captures"]
    told = [row["differsIn"] for row in rows]
    assert len({(row["kernel"], text) for row, text in zip(rows, told, strict=True)}) == len(rows)
    assert "maxnreg=64" in told[1]
    assert f"plan={off.plan}" in told[2]
    assert [row["differsIn"] for row in alone().index["captures"]] == [""]


def test_two_kernels_are_compared_by_structure() -> None:
    one, wide = softmax(), softmax(8)
    kernel = replace(wide.launch.kernel, name="another")
    other = wide.with_(launch=replace(wide.launch, kernel=kernel))
    rows = Payload([one, other]).index["captures"]
    assert rows[1]["compared"]["with"] == 0
    assert rows[1]["compared"]["stages"]
    # Of more captures, each is compared with the first of its kernel.
    assert "compared" not in Payload([one, other, failed()]).index["captures"][1]


def test_a_pass_has_its_log_and_what_was_decided() -> None:
    step = next(snapshot for snapshot in softmax().passes() if snapshot.stage == "ttgir")
    text = (
        '[triton-loop-pipeline]: Load %x = tt.load %p : !tt.ptr<f16> loc("k.py":3:4) is too small for pipelining\n-- 1'
    )
    log = CompilerLog((PassLog("ttgir", text, step.index, 7), PassLog("ptx", "remark: k.py:1:1: spilled\n")))
    reader = Reader(Payload([replace(softmax(), log=log)]))
    rows = [row for row in reader.blob(0, reader.index["captures"][0]["passes"]) if "log" in row]
    (row,) = rows
    assert (row["stage"], row["index"]) == ("ttgir", step.index)
    assert [place for place, _ in row["decisions"]] == ["k.py:3"]
    assert reader.lines(row["log"]) == [
        "triton-loop-pipeline k.py:3 Load %x = tt.load %p : !tt.ptr<f16> is too small for pipelining", "-- 1",
        "7 more lines were not kept",
    ]  # fmt: skip


def test_locations_come_back() -> None:
    capture, reader = softmax(), alone()
    packed = reader.blob(0, reader.index["captures"][0]["locations"])
    runs = packed["stages"]["ttgir"]
    lines = [chain for chain, count in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]
    wanted = read_locations(capture.text("ttgir"), "mlir")
    assert len(lines) == len(wanted.by_line)
    for number, chain in enumerate(lines, 1):
        frames = [] if chain < 0 else [packed["frames"][index] for index in packed["chains"][chain]]
        assert [(packed["files"][file], line, column) for file, line, column, *_ in frames] == [
            (frame.file, frame.line, frame.column) for frame in wanted.chain_at(number)
        ]


def test_equal_texts_are_stored_once() -> None:
    one, two = alone(), Payload([softmax(), softmax()])
    assert len(one.index["texts"]) == len(two.index["texts"])


def test_the_index_is_plain_json() -> None:
    index = together().index
    assert json.loads(json.dumps(index))["version"] == 1


LINES = st.lists(st.sampled_from(["a", "b", "", "  }", "%0 = x loc(#loc1)", "%0 = x loc(#loc2)"]), max_size=30)


NUMBERED = st.text(st.sampled_from(list("%!#loc_rdx+-0123456789 \n=")), max_size=60)


@given(NUMBERED)
def test_steps_make_the_numbers_again(text: str) -> None:
    stepped = with_steps(text)
    assert stepped is None or without_steps(stepped) == text


def test_a_line_inserted_above_leaves_the_steps_of_those_below() -> None:
    below = "%{} = add %{}, %a\n%x_{} = f %{}\n!{} = !{{!{}}}"
    short = with_steps("%x_4 = f\n!7 = !{}\n%11 = load %a\n" + below.format(12, 11, 5, 12, 8, 7))
    long = with_steps("%x_4 = f\n%x_5 = f\n!7 = !{}\n%11 = neg %a\n%12 = load %a\n" + below.format(13, 12, 6, 13, 8, 7))
    assert short is not None
    assert long is not None
    assert short.split("\n")[3:] == long.split("\n")[5:]
    assert with_steps('f"%-5 d"') is None


@given(LINES, LINES)
def test_a_difference_makes_the_lines_again(base: list[str], lines: list[str]) -> None:
    assert applied(base, difference(base, lines)) == lines

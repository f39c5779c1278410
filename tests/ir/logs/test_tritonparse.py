"""Traces of tritonparse as captures, against tritonparse's own parser and the program that was traced."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from irscope.__main__ import run
from irscope.errors import ParseError, installing
from irscope.ir.locations.stages import read_locations
from irscope.ir.logs.files import unpacked
from irscope.ir.logs.tritonparse import PythonSource, captures_from_trace, is_trace
from irscope.model.capture import Capture, stage_named
from irscope.model.launch_record import Argument
from irscope.store.file import from_bytes, to_bytes
from irscope.store.recent import CaptureStore

DATA = Path(__file__).parents[2] / "data" / "tritonparse"
TRACE = DATA / "softmax.bin.ndjson"
MOST = 1 << 24
PROGRAM = (DATA / "softmax.py").read_text("utf-8").splitlines()


def events() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(TRACE.read_bytes()).splitlines()]


def of_events(rows: Sequence[Any]) -> tuple[Capture, ...]:
    return captures_from_trace("".join(f"{json.dumps(row)}\n" for row in rows), "a trace")


@pytest.fixture(scope="module")
def captures() -> tuple[Capture, ...]:
    return of_events(events())


def test_each_compile_is_a_capture_with_its_launch(captures: tuple[Capture, ...]) -> None:
    four, eight, scale, other = captures
    assert [capture.name for capture in captures] == ["softmax", "softmax", "scale", "scale"]
    assert [capture.launch.option("num_warps") for capture in captures] == [4, 8, 4, 4]
    assert [capture.launch.grid for capture in captures] == [(32, 1, 1), (32, 1, 1), (13, 1, 1), (25, 1, 1)]
    assert [capture.stages for capture in captures] == [("ttir", "ttgir", "llir", "ptx")] * 4
    assert {str(capture.target) for capture in captures} == {"cuda:90"}
    assert len({capture.id for capture in captures}) == 4
    assert four.launch.constants == eight.launch.constants == (("BLOCK", "128"),)
    assert scale.launch.constants == (("BLOCK", "256"),)
    assert dict(scale.launch.signature) == {
        "out": "*fp32", "x": "*fp32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr",
    }  # fmt: skip
    assert dict(scale.launch.attributes) == dict.fromkeys(("out", "x", "n"), "tt.divisibility=16")
    assert "The trace has 2 launches of it" in four.notes[-1]
    assert other.compile_us == sum(item.duration_us or 0 for item in other.artifacts) > 0


def test_the_record_of_a_launch_is_what_the_program_gave(captures: tuple[Capture, ...]) -> None:
    record = captures[2].launch.record
    assert record is not None
    assert [argument.path for argument in record.arguments] == ["out", "x", "factor", "n"]
    x = record.argument("x")
    assert x is not None
    assert (x.dtype, x.shape, x.strides, x.storage_offset) == ("float32", (32, 100), (100, 1), 0)
    assert x.alignment_bytes == 512
    assert record.argument("factor") == Argument("factor", "scalar", "float", 0.5)
    assert record.argument("n") == Argument("n", "scalar", "int", 3200)


def test_the_kernel_stands_in_its_file(captures: tuple[Capture, ...]) -> None:
    for capture in captures:
        kernel = capture.launch.kernel
        assert kernel.file == "softmax.py"
        assert PROGRAM[kernel.line - 1].startswith(f"def {capture.name}(")
        assert kernel.source.splitlines() == PROGRAM[kernel.first_line - 1 :][: len(kernel.source.splitlines())]
        assert kernel.source.splitlines()[-1].strip().startswith("tl.store(")
        (source,) = capture.sources
        # The trace holds the function alone.
        lines = source.text.splitlines()
        assert "".join(lines[: kernel.first_line - 1]) == ""
        assert lines[kernel.first_line - 1 :] == PROGRAM[kernel.first_line - 1 : len(lines)]


def test_a_tuning_gives_the_winner(captures: tuple[Capture, ...]) -> None:
    tunings = [capture.launch.autotuning for capture in captures]
    assert [tuning and (tuning.index, tuning.count, tuning.winner, tuning.median_ms) for tuning in tunings] == [
        (0, 2, True, 1.0), (1, 2, False, 1.0), None, None,
    ]  # fmt: skip


def test_the_lines_of_python_are_those_of_tritonparse() -> None:
    mappings = json.loads((DATA / "mappings.json").read_text("utf-8"))
    compared = 0
    for event in events():
        if event["event_type"] != "compilation":
            continue
        (capture,) = of_events([event])
        for stage, lines in mappings[event["payload"]["metadata"]["hash"]].items():
            locations = read_locations(capture.text(stage), stage_named(stage).kind)
            for number, line in lines.items():
                chain = locations.chain_at(int(number))
                if not chain or not PROGRAM[line - 1].strip():
                    # Where a load was split, a .loc of PTX counts on to a line that has no code: irscope knows.
                    continue
                assert (chain[0].file, chain[0].line) == ("softmax.py", line), (stage, number)
                compared += 1
    assert compared > 200


def test_a_capture_of_a_trace_is_stored_whole(captures: tuple[Capture, ...]) -> None:
    for capture in captures:
        assert from_bytes(to_bytes(capture)) == capture


def test_the_command_reads_packed_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", str(TRACE)]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("cuda:90") == 4
    assert printed.err == ""
    assert sorted(path.name.partition("-")[0] for path in CaptureStore().paths()) == ["scale"] * 2 + ["softmax"] * 2
    assert run(["source", "last", "--stage", "ptx"]) == 0
    assert "tl.store(out + at" in capsys.readouterr().out
    empty = tmp_path / "empty.ndjson"
    empty.write_text('{"event_type": "launch"}\n', "utf-8")
    assert run(["import", str(empty)]) == 1
    assert "no compile in it" in capsys.readouterr().err


def test_a_folder_of_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rank_0.bin.ndjson").write_bytes(TRACE.read_bytes())
    (tmp_path / "rank_1.ndjson").write_bytes(gzip.decompress(TRACE.read_bytes()).splitlines()[0])
    assert run(["import", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 5


def test_zstd_needs_its_library() -> None:
    pytest.importorskip("zstandard")
    data = (DATA / "softmax.zstd.ndjson").read_bytes()
    assert unpacked(data, "it", MOST) == unpacked(TRACE.read_bytes(), "it", MOST)
    with pytest.raises(ParseError, match="zstd"):
        unpacked(data[:4] + b"\0" * 40, "it", MOST)


def test_zstd_without_it_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(ParseError, match=re.escape(installing("zstd"))):
        unpacked((DATA / "softmax.zstd.ndjson").read_bytes(), "it", MOST)


def test_unpacking_is_bounded() -> None:
    bomb = gzip.compress(b"\0" * 100_000)
    assert len(unpacked(bomb * 50, "it", 300_000)) == 300_001
    cut = TRACE.read_bytes()[:-20]
    assert unpacked(cut, "it", MOST) == gzip.decompress(TRACE.read_bytes())[: len(unpacked(cut, "it", MOST))]


@pytest.mark.parametrize(
    "row",
    [
        [],
        "text",
        {"event_type": "compilation"},
        {"event_type": "compilation", "payload": []},
        {"event_type": "compilation", "payload": {"file_content": {"k.ttir": 3, "k.ptx": ""}, "metadata": [1]}},
        {"event_type": "launch", "compilation_metadata": "x", "grid": {}, "extracted_args": []},
        {"event_type": "autotune", "configs_timings": [1]},
    ],
)
def test_what_is_no_event_is_passed_over(row: Any) -> None:
    assert len(of_events([row, *events()])) == 4


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("grid", [-1]),
        ("grid", [1 << 60]),
        ("grid", [1, 2, 3, 4]),
        ("grid", ["x"]),
        ("extracted_args", {"x": {"type": "tensor", "shape": [-1], "stride": [1]}}),
        ("extracted_args", {"x": {"type": "tensor", "shape": 5}}),
        ("extracted_args", {"x": {"type": "tensor", "shape": [1], "stride": [1], "data_ptr": "no"}}),
        ("extracted_args", {"x": {"type": "int", "value": []}}),
    ],
)
def test_a_launch_that_cannot_be_is_not_kept(field: str, value: Any) -> None:
    rows = [row | ({field: value} if row["event_type"] == "launch" else {}) for row in events()]
    for capture in of_events(rows):
        assert from_bytes(to_bytes(capture)) == capture


def test_what_tritonparse_left_out_is_said() -> None:
    rows = events()
    rows[0]["payload"]["file_content"]["softmax.llir"] = "<file too large: 20000000 bytes>"
    first = of_events(rows)[0]
    assert first.stages == ("ttir", "ttgir", "ptx")
    assert first.notes[-1] == "The trace holds no text of llir."


def test_a_function_kept_alone_stands_at_its_line() -> None:
    code = "@triton.jit\ndef scale(\n    out, x\n):\n    pass\n"
    source = PythonSource.of({"file_path": "a.py", "start_line": 11, "end_line": 15, "code": code})
    assert (source.function, source.first_line, source.line, source.parameters) == ("scale", 11, 12, ("out", "x"))
    assert source.text.splitlines()[source.line - 1] == "def scale("
    assert source.function_text == code


def test_a_graph_of_torch_compile_is_named() -> None:
    rows = events()
    rows[0]["payload"]["pt_info"] = {"frame_id": 3, "frame_compile_id": 1, "attempt": 0}
    assert [origin.title for origin in of_events(rows)[0].graphs] == ["graph 3/1"]


def test_a_trace_is_known_by_its_first_line() -> None:
    assert is_trace(json.dumps(events()[0]))
    assert not is_trace("// -----// IR Dump Before\n")
    assert not is_trace('{"a": 1}\n{"event_type": 1}')

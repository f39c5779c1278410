"""`irscope export --tritonparse`: read by irscope again, and accepted by tritonparse's own validation and parser."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irscope.ir.logs.tritonparse import captures_from_trace, trace_of
from irscope.model.capture import Capture
from irscope.store.file import load
from tests.cli.product import ROOT, Run

CAPTURES = sorted((ROOT / "tests" / "data" / "layouts").glob("*.irscope"))
FLASH = ROOT / "tests" / "data" / "layouts" / "flash_attention-cuda-90.irscope"
SOFTMAX = ROOT / "tests" / "data" / "tritonparse" / "softmax.bin.ndjson"


def again(capture: Capture) -> Capture:
    """The capture of its own trace."""
    text = "".join(json.dumps(event, default=str) + "\n" for event in trace_of(capture))
    (found,) = captures_from_trace(text, "a trace")
    return found


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_what_a_trace_has_a_place_for_is_read_again(path: Path) -> None:
    capture = load(path)
    found = again(capture)
    assert (found.name, found.target) == (capture.name, capture.target)
    assert found.texts == {stage: text for stage, text in capture.texts.items() if stage != "sass"}
    given, launch = capture.launch, found.launch
    assert launch.grid == given.grid
    assert {**dict(launch.options)}.items() >= dict(given.options).items()
    if given.kernel.source:
        assert (launch.kernel, launch.constants, launch.signature) == (given.kernel, given.constants, given.signature)
    if given.record is not None and given.grid is not None:
        assert launch.record is not None
        for one, other in zip(given.record.arguments, launch.record.arguments, strict=True):
            assert (other.path, other.kind, other.dtype, other.value) == (one.path, one.kind, one.dtype, one.value)
            assert (other.shape, other.strides, other.block_shape) == (one.shape, one.strides, one.block_shape)


def test_a_trace_of_tritonparse_comes_back(irscope: Run, tmp_path: Path) -> None:
    """Import, export and import again: all that was in the trace but addresses and tunings."""
    first, second = tmp_path / "first.irscope", tmp_path / "trace.ndjson"
    assert irscope("import", SOFTMAX, "-o", first)[0] == 0
    code, _, err = irscope("export", *sorted(tmp_path.glob("*.irscope")), "--tritonparse", "-o", second)
    assert (code, "4 compiles, 4 launches" in err) == (0, True)
    from irscope.ir.logs.files import unpacked

    before = captures_from_trace(unpacked(SOFTMAX.read_bytes(), "x", 1 << 24).decode(), "x")
    after = captures_from_trace(second.read_text(), "y")
    assert len(before) == len(after) == 4
    for left, right in zip(sorted(before, key=_key), sorted(after, key=_key), strict=True):
        assert _comparable(left) == _comparable(right)


def _key(capture: Capture) -> str:
    return f"{capture.name} {capture.launch.grid} {capture.launch.option('num_warps')}"


def _comparable(capture: Capture) -> Capture:
    record = capture.launch.record
    assert record is not None
    plain = replace(record, arguments=tuple(replace(one, alignment_bytes=None) for one in record.arguments))
    return capture.with_(launch=replace(capture.launch, record=plain, autotuning=None), notes=())


def test_tritonparse_accepts_the_trace(irscope: Run, tmp_path: Path) -> None:
    """Its schemas find no error, and its parser maps lines of each stage to the kernel's Python."""
    validation = pytest.importorskip(
        "tritonparse.validation.json_validator", reason="tritonparse, which reads the trace, is not installed"
    )
    from tritonparse.parse.utils import unified_parse  # pyright: ignore[reportMissingImports]

    (tmp_path / "raw").mkdir()
    path = tmp_path / "raw" / "dedicated_log_triton_trace_user_.ndjson"
    assert irscope("export", FLASH, "--tritonparse", "-o", path)[0] == 0
    assert validation.validate_trace_file(str(path))["errors"] == []
    unified_parse(source=str(tmp_path / "raw"), out=str(tmp_path / "parsed"), overwrite=True)
    payload = _compilation(tmp_path / "parsed")
    assert payload["source_mappings"]["ttgir"], "its parser found no line of Python"
    # Its viewer (website/src/utils/dataLoader.ts) passes over a compile without these, and names it by the first path.
    assert payload["metadata"]["hash"]
    assert payload["file_path"].keys() == payload["file_content"].keys()
    assert next(iter(payload["file_path"])).rpartition(".")[0] == load(FLASH).name


def _compilation(folder: Path) -> dict[str, Any]:
    import gzip

    for path in folder.rglob("*.ndjson*"):
        data = path.read_bytes()
        for line in (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).splitlines():
            event = json.loads(line)
            if event["event_type"] == "compilation":
                return event["payload"]
    raise AssertionError("no compile was parsed")


def test_wrong_use_is_told(irscope: Run, tmp_path: Path) -> None:
    code, _, err = irscope("export", FLASH)
    assert (code, "--tritonparse -o trace.ndjson" in err) == (2, True)
    code, _, err = irscope("export", FLASH, "--tritonparse", "-o", tmp_path / "x.json")
    assert (code, "end in .ndjson" in err) == (2, True)

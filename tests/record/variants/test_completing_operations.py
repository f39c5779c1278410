"""The operations of instructions are found once, where a capture was recorded, and kept with it."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irscope.__main__ import run
from irscope.model.capture import Artifact, Capture
from irscope.record.compile import second
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore
from tests.render.report.unpacked import bytes_of, unpacked

pytestmark = pytest.mark.triton

KERNELS = Path(__file__).parents[2] / "record" / "kernels" / "same_line.py"
DUMP = ["dump", f"{KERNELS}::two_stores", "--signature", "*fp32:16, *fp32:16, *i8:16", "--constexpr", "BLOCK=1024"]


def costs(subject: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["layout", subject, "--costs", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.newest
def test_they_are_found_once_and_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run([*DUMP, "--target", "cuda:90", "--stage", "sass"]) == 0
    before = CaptureStore().load("last")
    assert before.operations == ()
    # What was not recorded here is not compiled.
    foreign = tmp_path / "foreign.irscope"
    other = Artifact("ttgir", before.text("ttgir").replace("tt.store", "tt.store ", 1))
    kept = tuple(other if item.stage == "ttgir" else item for item in before.artifacts)
    # It has the id of one that was.
    untrusted = replace(before.environment, is_trusted=False)
    save(before.with_(artifacts=kept, environment=untrusted), foreign)
    assert not any(row["by_operation"] for row in costs(str(foreign), capsys))
    assert load(foreign).operations == ()

    found = costs("last", capsys)
    assert all(row["by_operation"] for row in found)
    stores = [row for row in found if row["operation"] == "tt.store"]
    assert [list(row["figures"]["assembly_bits"]) for row in sorted(stores, key=lambda row: row["line"])] == [
        ["128"],
        ["64"],
    ]
    after = CaptureStore().load("last")
    assert [row.stage for row in after.operations] == ["ptx"]
    assert after.with_(operations=()) == before

    def not_again(capture: Capture, run: object, stages: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(second, "find_operations", not_again)
    assert costs("last", capsys) == found
    # Where the stage has no operations, the table says what its instructions are.
    capsys.readouterr()
    assert run(["layout", str(foreign), "--costs"]) == 0
    assert "operations on one line have the same" in capsys.readouterr().out
    assert run(["layout", "last", "--costs"]) == 0
    assert "operations on one line have the same" not in capsys.readouterr().out


@pytest.mark.newest
def test_a_report_looks_for_them_only_if_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run([*DUMP, "--target", "cuda:90"]) == 0
    found = second.find_operations

    def not_now(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(second, "find_operations", not_now)
    assert run(["report", "last", "-o", str(tmp_path / "without.html")]) == 0
    assert CaptureStore().load("last").operations == ()
    monkeypatch.setattr(second, "find_operations", found)
    assert run(["report", "last", "--operations", "-o", str(tmp_path / "with.html")]) == 0
    monkeypatch.setattr(second, "find_operations", not_now)
    assert run(["report", "last", "-o", str(tmp_path / "stored.html")]) == 0
    without, complete, stored = (data_of(tmp_path / f"{name}.html") for name in ("without", "with", "stored"))
    assert not any(row["by_operation"] for row in without["memory"]["costs"])
    assert without["locations"]["operations"] == {}
    assert all(row["by_operation"] for row in complete["memory"]["costs"])
    assert set(complete["locations"]["operations"]) == {"ptx", "sass"}
    assert stored == complete


def data_of(page: Path) -> dict[str, Any]:
    """The memory and the locations of a page's capture."""
    scripts = dict(re.findall(r'<script type="application/octet-stream" id="(\w+)">([^<]*)<', page.read_text("utf-8")))
    index, chunk = unpacked(scripts["index"]), bytes_of(scripts["chunk0"])
    (row,) = json.loads(index)["captures"]
    parts = {name: chunk[row[name][0] : sum(row[name])] for name in ("memory", "locations")}
    return {name: json.loads(zlib.decompress(part, -zlib.MAX_WBITS)) for name, part in parts.items()}

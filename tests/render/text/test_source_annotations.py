"""Columns beside machine code: every line of the stage stays as it is, behind columns of one width."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from irscope.__main__ import run
from irscope.analysis.source.annotations import AnnotatedCode, AnnotatedInstruction, annotate
from irscope.ir.locations.strip import strip_locations
from irscope.ir.logs.source_page import Counters
from irscope.render.text.source import COLUMNS, AnnotationColumns, annotations_json, render_annotated
from irscope.store.file import load, save

DATA = Path(__file__).parents[2] / "data"
PROFILED = DATA / "counters" / "softmax_kernel.irscope"
COLOR = re.compile("\x1b\\[[0-9;]*m")


@pytest.mark.parametrize("color", [False, True])
def test_the_text_stands_behind_its_columns(color: bool) -> None:
    capture = load(DATA / "layouts" / "matmul-hip-gfx942.irscope")
    text = capture.text("amdgcn")
    columns = AnnotationColumns(annotate(capture), COLUMNS)
    sentence, head, *lines = COLOR.sub("", render_annotated(text, "amdgcn", columns, color=color)).splitlines()
    width = len(columns.head) + 2
    plain = [line.expandtabs(4).rstrip() for line in strip_locations(text, "amdgcn").splitlines()]
    assert [line[width:] for line in lines] == plain
    assert head.split() == ["live", "marks"]
    peak = columns.found.peak
    assert peak is not None
    assert sentence == (
        f"amdgcn: at most {peak.live} live registers of {columns.found.registers} that a thread has, at line "
        f"{peak.line} (irscope); stalls were not measured: irscope profile measures them on a GPU"
    )
    # Each instruction's own figure, by the lines that locations leave.
    shown = [int(line[:width].split()[0]) for line in lines if line[:width].split()]
    assert shown == [one.live for one in columns.found.instructions]
    # The bar of the peak is the longest, and others are shorter in proportion.
    bars = {int(line[:3]): line[:width].count("█") for line in lines if line[:3].strip()}
    assert bars[peak.live or 0] == 8
    assert all(bars[live] == round(8 * live / (peak.live or 1)) for live in bars)


def test_only_the_chosen_lines_are_shown() -> None:
    found = AnnotatedCode(
        "sass",
        (
            AnnotatedInstruction(2, 7, "store", "", Counters(stalls=(("long_sb", 30), ("selected", 9)))),
            AnnotatedInstruction(3, 14, "", "wgmma", Counters(stalls=(("barrier", 10),))),
            AnnotatedInstruction(4, None, "", "", None),
        ),
        16,
        "nvdisasm",
    )
    columns = AnnotationColumns(found, COLUMNS)
    text = ".section .text.k\n        0000  -  STL [R1], R2\n        0010  -  HGMMA R4\n        0020  -  EXIT\n"
    shown = render_annotated(text, "sass", columns, only=frozenset({3, 2}))
    assert shown == (
        "sass: at most 14 live registers of 16 that a thread has, at line 3 (nvdisasm); "
        "stalls: shares of 40 samples of stalled warps\n"
        "live          marks        stalls\n"
        "  7 ████      spill store  75 % global memory 100 %          0000  -  STL [R1], R2\n"
        " 14 ████████  wgmma        25 % a barrier 100 %              0010  -  HGMMA R4\n"
    )
    assert columns.of_lines([2, 3]) == {"registers": "14", "marks": "spill ×1, wgmma ×1", "stalls": "100"}
    assert columns.of_lines([4]) == {"registers": "", "marks": "", "stalls": ""}
    assert AnnotationColumns(found, ["marks"]).sentence() == ""


def test_json_holds_the_same() -> None:
    found = annotate(load(PROFILED))
    value = json.loads(json.dumps(annotations_json(found)))
    assert [one["live"] for one in value["instructions"]] == [one.live for one in found.instructions]
    assert sum(one["counters"]["stalled"] for one in value["instructions"]) == value["stalled"] == found.stalled
    assert value["peak"]["live"] == max(one["live"] for one in value["instructions"])


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def out(*words: str, code: int = 0) -> str:
        assert run([*words]) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    capture = load(PROFILED)
    path = str(save(capture, tmp_path / "one.irscope"))
    shown = out("show", path, "--stage", "sass", "--annotate", "all")
    columns = AnnotationColumns(annotate(capture), COLUMNS)
    assert shown == render_annotated(capture.text("sass"), "sass", columns)
    assert " global memory " in shown
    one = next(one for one in columns.found.instructions if one.counters is not None and one.counters.stalled)
    among = out("source", path, "--stage", "sass", "--annotate", "registers,stalls")
    assert f"{one.line:13}  {AnnotationColumns(columns.found, ['registers', 'stalls']).at(one.line)}" in among
    table = out("source", path, "--annotate", "registers,stalls")
    assert "live  stalls  Python" in table
    assert json.loads(out("source", path, "--annotate", "marks", "--json"))[0]["annotations"] == annotations_json(
        columns.found
    )
    asked = ("show", path, "--stage", "sass", "--annotate", "all", "--json")
    assert json.loads(out(*asked))[0]["annotations"] == [annotations_json(columns.found)]
    bad = out("show", path, "--stage", "sass", "--annotate", "register", code=2)
    assert (
        "--annotate 'register' is not a column: write registers, marks, stalls or all. Did you mean 'registers'?" in bad
    )
    assert "--annotate needs a stage: --stage sass" in out("show", path, "--annotate", "all", code=2)
    assert "stage 'ttgir' is not machine code" in out("show", path, "--stage", "ttgir", "--annotate", "all", code=2)

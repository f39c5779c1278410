"""Live registers in the page: those that `--annotate` prints, of each instruction and each line of Python."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from irscope.analysis.source.annotations import annotate
from irscope.analysis.source.map import source_map
from irscope.model.capture import Artifact
from irscope.model.evidence import Profile
from irscope.render.report import texts as packing
from irscope.render.report.texts import packed_annotations
from irscope.render.text.source import AnnotationColumns, render_annotated, render_table
from tests.report_browser.captures import softmax

SOURCES = Path(packing.__file__).parent / "frontend" / "src" / "data"


def test_each_instruction_and_line_of_python_is_as_the_command_prints_it() -> None:
    capture = softmax()
    packed = packed_annotations(capture)
    assert packed is not None
    found = annotate(capture)
    lines = [*accumulate(packed["lines"])]
    assert lines == [one.line for one in found.instructions]
    assert packed["live"] == tuple(-1 if one.live is None else one.live for one in found.instructions)
    assert packed["registers"] == 168
    marked: dict[int, list[str]] = {}
    for at, _, text in packed["marks"]:
        marked.setdefault(lines[at], []).append(text)
    columns = AnnotationColumns(found, ("registers", "marks"))
    sentence, _, *printed = render_annotated(capture.text("sass"), "sass", columns).splitlines()
    assert packed["said"] == sentence
    for number, shown in zip(lines, (columns.at(line) for line in lines), strict=True):
        # " 12 ███      barrier"
        live, _, marks = shown.replace("█", "").strip().partition(" ")
        assert (live, marks.split()) == (
            str(packed["live"][lines.index(number)]),
            " ".join(marked.get(number, [])).split(),
        )
    assert len(printed) > len(lines)
    assert {kind for _, kind, _ in packed["marks"]} == {"barrier"}
    table = render_table(capture, source_map(capture, ["sass"]), columns=columns).splitlines()
    assert len(packed["python"]["kernels.py"]) > 5
    for line, live, marks in packed["python"]["kernels.py"]:
        (row,) = (row for row in table if re.match(rf" *{line}\b", row))
        assert row.split()[2] == live
        assert row.endswith(marks)


def test_what_holds_none_or_is_damaged_has_none() -> None:
    capture = softmax()
    assert packed_annotations(replace(capture, artifacts=capture.artifacts[:4])) is None
    for text in ("", "no instruction\n"):
        broken = tuple(Artifact("sass", text) if one.stage == "sass" else one for one in capture.artifacts)
        assert packed_annotations(replace(capture, artifacts=broken)) is None
    # Registers are of the code, whatever the profile is of.
    assert packed_annotations(replace(capture, profile=Profile("what is no CSV"))) == packed_annotations(capture)


def test_the_page_has_the_same_fields() -> None:
    (fields,) = re.findall(
        r"interface MachineCode \{(.*?)\n\}", (SOURCES / "annotations.ts").read_text("utf-8"), re.DOTALL
    )
    assert re.findall(r"^  (\w+): ", fields, re.MULTILINE) == [*packing.MachineCode.__slots__]

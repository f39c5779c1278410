"""The table of counts, and the lines of Python among those of a stage."""

from __future__ import annotations

import re

import pytest

from irscope.analysis.source.map import source_map
from irscope.render.text.source import (
    counts_json,
    kinds_text,
    operations_json,
    render_interleaved,
    render_table,
    source_blocks,
)
from tests.analysis.recorded import stored, without_sources

KERNEL = "kernels/locations.py"


def test_the_table_shows_each_line_of_the_kernel_and_of_its_helpers() -> None:
    capture = stored("chains", "cuda:90")
    text = render_table(capture, source_map(capture))
    assert "kernels/locations.py" in text
    assert "kernels/helpers.py" in text
    (row,) = [line for line in text.split("\n") if "biggest = tl.max(third" in line]
    assert row.split()[0] == "25"
    assert "shuffle" in row
    assert "Triton's own lines" in text
    assert "triton/language/standard.py:216" in text
    assert not any(line != line.rstrip() for line in text.split("\n"))


def test_what_a_line_calls_stands_in_brackets() -> None:
    capture = stored("chains", "cuda:90")
    text = render_table(capture, source_map(capture))
    (row,) = [line for line in text.split("\n") if "first = scaled(x, factor)" in line]
    assert re.search(r"\(\d+\)", row)


def test_a_narrow_table_keeps_its_numbers() -> None:
    capture = stored("chains", "cuda:90")
    found = source_map(capture)
    whole, narrow = (render_table(capture, found, width=width) for width in (None, 80))
    assert "…" not in narrow
    rows = re.compile(r"^ {0,3}(\d+)(?: .*)?$", re.MULTILINE)
    assert rows.findall(narrow) == rows.findall(whole)
    assert max(map(len, narrow.split("\n\nTriton's own")[0].splitlines())) <= 80
    # The Python is whole, and so are the instructions below it.
    python = [row.text for block in source_blocks(capture, found) for row in block.rows]
    assert all(" ".join(line.split()) in " ".join(narrow.split()) for line in python)
    plain = " ".join(narrow.split())
    assert "ld.constant.32" in whole
    assert all(" ".join(text.split("  ")[-1].split()) in plain for text in whole.splitlines() if " ×" in text)


def test_colours_change_nothing_else() -> None:
    capture = stored("chains", "cuda:90")
    found = source_map(capture)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", render_table(capture, found, color=True))
    assert [line.rstrip() for line in plain.split("\n")] == render_table(capture, found).split("\n")


@pytest.mark.parametrize("stage", ["source", "ttir", "ttgir", "llir", "ptx", "sass"])
def test_every_operation_of_a_stage_stands_under_a_line_of_python(stage: str) -> None:
    capture = stored("chains", "cuda:90")
    found = source_map(capture)
    text = render_interleaved(capture, found, stage)
    shown = {int(match[1]) for match in re.finditer(r"^ {8,12}(\d+)  ", text, re.MULTILINE)}
    assert shown == set(found.stage(stage).operations.lines)


def test_an_operation_says_who_called_and_which_line_of_the_library_it_is_of() -> None:
    capture = stored("chains", "cuda:90")
    text = render_interleaved(capture, source_map(capture), "sass", only={("kernels/helpers.py", 9)})
    assert "called from 19" in text
    assert "called from 20" in text
    text = render_interleaved(capture, source_map(capture), "sass", only={(KERNEL, 25)})
    assert "triton/language/standard.py:216" in text


def test_a_capture_without_python_still_lists_its_lines() -> None:
    capture = without_sources(stored("chains", "cuda:90"))
    found = source_map(capture)
    assert "25" in render_table(capture, found)
    assert sum(len(block.rows) for block in source_blocks(capture, found)) == len(found.python_lines)


def test_json_holds_counts_and_chains() -> None:
    capture = stored("chains", "cuda:90")
    found = source_map(capture)
    data = counts_json(capture, found, {(KERNEL, 25)})
    (row,) = data["lines"]
    assert row["text"].strip().startswith("biggest")
    assert row["stages"]["sass"]["kinds"]["shuffle"] > 0
    operations = operations_json(found, "sass", {(KERNEL, 25)}, re.compile("SHFL"))
    assert operations
    assert all(one["kind"] == "shuffle" and one["chain"][-1]["line"] == 25 for one in operations)


def test_the_kinds_that_matter_come_first() -> None:
    capture = stored("product", "cuda:90")
    found = source_map(capture)
    assert kinds_text(found.counts(KERNEL, 42)).startswith("wgmma ×")
    assert kinds_text(()) == ""

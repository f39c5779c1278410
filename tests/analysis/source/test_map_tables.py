"""The source map against tables made by reading the kernels: more than sixty rows for every stage of two targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

from irscope.analysis.source.map import SourceMap, source_map
from tests.analysis.recorded import KERNELS, recorded
from tests.analysis.source_marks import MARKS, Mark
from tests.analysis.source_rows import FUNCTION_ROWS, SOFTMAX_ROWS, Row
from tests.analysis.source_rows_attention import ATTENTION_ROWS

pytestmark = pytest.mark.triton

ROWS = (*FUNCTION_ROWS, *SOFTMAX_ROWS, *ATTENTION_ROWS)
STAGES = {
    "cuda:90": ("ttir", "ttgir", "llir", "ptx", "sass"),
    "hip:gfx942": ("ttir", "ttgir", "llir", "amdgcn"),
}
AT = [(target, stage) for target, stages in STAGES.items() for stage in stages]

# %cst_3 = arith.constant dense<2101> : tensor<128xi32>        %c4101_i32 = arith.constant 4101 : i32
_CONSTANT = re.compile(r"\s*(?P<name>%[\w$.]+) = arith\.constant (?:dense<)?(?P<number>-?\d+)\b")
# of MLIR, of LLVM IR, of SASS and of AMDGCN's `.loc`
_LOCATION = re.compile(r" loc\(.*|, !dbg .*|/\* 0x.*|\s*//## .*|\s*\.loc\s.*")


@cache
def mapped(kernel: str, target: str) -> SourceMap:
    return source_map(recorded(kernel, target))


@cache
def code(kernel: str, target: str, stage: str) -> tuple[str, ...]:
    """The lines of a stage as a reader looks for an operation in them: nothing but its code."""
    lines = [_LOCATION.sub("", line) for line in recorded(kernel, target).text(stage).split("\n")]
    if stage == "llir":  # not declarations, attributes or comments
        lines = [line if line.startswith("  ") else "" for line in lines]
    return tuple(lines)


def named(kernel: str, target: str, place: str) -> str:
    """`x ^ 5101 < elsewhere(x)#1` as `marked_helpers:10 < marked:75`, by looking for these texts in the Python."""
    capture = recorded(kernel, target)
    files = [Path(capture.launch.kernel.file)]
    files += [KERNELS / "marked_helpers.py"] if files[0].name == "marked.py" else []
    rows = [(file.stem, number, line) for file in files for number, line in enumerate(file.read_text().split("\n"), 1)]
    found: list[str] = []
    for piece in place.split(" < "):
        text, _, nth = piece.partition("#") if re.search(r"#\d+$", piece) else (piece, "", "")
        lines = [f"{stem}:{number}" for stem, number, line in rows if text in line]
        assert lines, f"no line has {text!r}"
        assert nth or len(lines) == 1, f"{lines} have {text!r}"
        found.append(lines[int(nth or 1) - 1])
    return " < ".join(found)


@cache
def statements(file: str) -> dict[int, int]:
    """Line -> the line on which the innermost statement begins that it is a part of, for a file of Python."""
    first: dict[int, int] = {}
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.stmt) and node.end_lineno is not None and not hasattr(node, "body"):
            first.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), node.lineno))
    return first


def shown(kernel: str, target: str, stage: str, line: int) -> set[str]:
    """Where irscope says that a line comes from."""
    found = mapped(kernel, target)
    places = [found.places[place] for place in found.stage(stage).places_at(line)]
    return {
        " < ".join(f"{Path(file).stem}:{statements(file).get(number, number)}" for file, number in place)
        for place in places
    }


def agrees(places: set[str], expected: set[str], stage: str) -> bool:
    """Whether these are the places.

    Before Triton 3.8 SASS has no call sites: callers may be missing, and with a line of the library all that is known.
    """
    if stage != "sass" or not version("triton").startswith(("3.6.", "3.7.")):
        return places == expected
    return all(any(f"{one} <".startswith(f"{place} <") for one in expected) for place in places)


def lines_of_mark(mark: Mark, target: str, stage: str) -> list[int]:
    """The lines whose operation has a mark's number, 1-based."""
    lines = code(mark.kernel, target, stage)
    if stage in ("ttir", "ttgir"):
        return list(_readers_of(lines, mark.number))
    number = f"0x{mark.number:x}" if stage in ("sass", "amdgcn") else f"{mark.number}"
    pattern = re.compile(rf"(?<![\w.%$:]){number}\b")
    opcode = re.compile(r"\b(?:xor|icmp|llvm\.[su]max)\b" if stage == "llir" else "")
    return [n for n, line in enumerate(lines, 1) if pattern.search(line) and opcode.search(line)]


def _readers_of(lines: Iterable[str], number: int) -> Iterable[int]:
    """The operations that read a constant of MLIR, function by function: names start again in each."""
    names: set[str] = set()
    for place, line in enumerate(lines, 1):
        if "tt.func" in line:
            names = set()
        constant = _CONSTANT.match(line)
        if constant is not None:
            names |= {constant["name"]} if int(constant["number"]) == number else set()
        elif any(re.search(rf"{re.escape(name)}(?![\w$.])", line) for name in names):
            yield place


def lines_of_row(row: Row, target: str, stage: str) -> list[int]:
    """The lines that a row is of, 1-based."""
    text, _, nth = row.text_at(target, stage).partition(" #")
    pattern = re.compile(rf"(?:{text})(?!\w)" if stage in ("ttir", "ttgir") and text[-1].isalnum() else text)
    found = [number for number, line in enumerate(code(row.kernel, target, stage), 1) if pattern.search(line)]
    if not nth:
        return found
    place = int(nth)
    return found[place - 1 :][:1] if place > 0 else found[place:][:1]


def rows_at(target: str, stage: str) -> list[Row]:
    return [row for row in ROWS if row.text_at(target, stage)]


@pytest.mark.newest
@pytest.mark.parametrize(("target", "stage"), AT)
@pytest.mark.parametrize("kernel", ["inlined", "called"])
def test_a_number_that_one_line_has_is_mapped_to_that_line(kernel: str, target: str, stage: str) -> None:
    wrong: list[object] = []
    for mark in [one for one in MARKS if one.kernel == kernel]:
        lines = lines_of_mark(mark, target, stage)
        assert lines, f"{stage} has no {mark.number}"
        expected = {named(kernel, target, place) for place in mark.places}
        for line in [lines[mark.nth - 1]] if mark.nth else lines:
            if not agrees(shown(kernel, target, stage, line), expected, stage):
                text = code(kernel, target, stage)[line - 1]
                wrong.append((mark.number, line, text, shown(kernel, target, stage, line), expected))
    assert not wrong


@pytest.mark.newest
@pytest.mark.parametrize(("target", "stage"), AT)
@pytest.mark.parametrize("kernel", ["functions", "softmax", "attention"])
def test_what_one_line_alone_can_make_is_mapped_to_that_line(kernel: str, target: str, stage: str) -> None:
    wrong: list[object] = []
    for row in [one for one in rows_at(target, stage) if one.kernel == kernel]:
        lines = lines_of_row(row, target, stage)
        assert lines, f"{stage} has no {row.text_at(target, stage)!r}"
        expected = {named(kernel, target, row.place)}
        places = [shown(kernel, target, stage, line) for line in lines]
        # Some of what the compiler made of a line has no location in the text itself: that is no wrong one.
        good = [agrees(place, expected, stage) for place in places]
        if not any(good) or any(place and not fits for place, fits in zip(places, good, strict=True)):
            texts = [code(kernel, target, stage)[line - 1].strip() for line in lines]
            wrong += [(row.place, *one, expected) for one in zip(lines, texts, places, strict=True)]
    assert not wrong


@pytest.mark.newest
@pytest.mark.parametrize(("target", "stage"), AT)
def test_every_stage_has_more_than_sixty_rows(target: str, stage: str) -> None:
    assert len(MARKS) + len(rows_at(target, stage)) > 60
    assert {row.kernel for row in rows_at(target, stage)} == {"functions", "softmax", "attention"}

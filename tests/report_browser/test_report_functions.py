"""The viewer's functions against the analysis: Node runs `frontend/tested.mjs`, which its sources build."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from irscope.analysis.diff.texts import TextDiff, diff_texts, word_marks
from irscope.ir.columns import read_body
from irscope.model.capture import Capture, StageKind, stage_named
from irscope.render.canvas import fills
from irscope.render.report.texts import (
    TOKEN,
    packed_difference,
    plain_by_number,
    split_margins,
    value_columns,
    with_steps,
)
from irscope.render.text.tables import percent
from tests.analysis.diff.test_reorder import BLOCK, LLVM, PTX, moved, shuffled
from tests.analysis.mutations import changeable, changed
from tests.ir.mlir.test_reader import SCOPES
from tests.ir.renaming import WAYS, renamed
from tests.report_browser.captures import hostile, softmax

TESTED = Path(__file__).parents[2] / "irscope" / "render" / "report" / "frontend" / "tested.mjs"
DATA = Path(__file__).parents[1] / "data"
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")

# Calls a function of the viewer on each row that comes in.
CALL = """
import { readFileSync } from "node:fs";
const [file, name] = process.argv.slice(1);
const module = await import(file);
const rows = JSON.parse(readFileSync(0, "utf-8"));
const plain = (_, value) => value instanceof Map ? [...value] : value;
console.log(JSON.stringify(rows.map(row => module[name](...row)), plain));
"""


def called(name: str, rows: list[Any]) -> list[Any]:
    """What a function of the viewer answers to each row of arguments."""
    call = ["node", "--input-type=module", "-e", CALL, TESTED.as_uri(), name]
    answer = subprocess.run(call, input=json.dumps(rows), capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_shares_are_rounded_as_everywhere_else() -> None:
    shares = [warps / most for most in (32, 48, 64, 1000) for warps in range(most + 1)]
    assert called("percent", [[one] for one in shares]) == [percent(one) for one in shares]


def pairs_of(capture: Capture) -> list[tuple[str, str, str]]:
    """The texts before and after every pass that changed something, and the language of both."""
    found: list[tuple[str, str, str]] = []
    for item in capture.snapshots:
        before, after = capture.text_before(item), capture.text_after(item)
        if before and after and before != after:
            found.append((before, after, "mlir"))
    return found


def cases() -> list[tuple[str, str, str]]:
    """Every change of the sample's passes, its stages with other warps, and texts that no reader expects."""
    one, other, evil = softmax(), softmax(8), hostile()
    stages = [
        (one.text(stage), other.text(stage), stage_named(stage).kind)
        for stage in one.stages
        if not stage_named(stage).is_binary
    ]
    odd = [(evil.text("source"), evil.text("ttgir"), "mlir"), (evil.text("ptx"), "", "ptx"), ("", "", "llvm")]
    text = one.text("ttgir")
    cut = [(text, text[: len(text) // 2], "mlir"), (text[len(text) // 3 :], text, "mlir"), (text, text, "binary")]
    names = [(text, renamed(text, way), "mlir") for text in (text, SCOPES) for way in WAYS]
    orders = [(text, shuffled(text, seed), "mlir") for seed, text in enumerate((one.text("ttir"), text, BLOCK))]
    orders += [(BLOCK, moved(BLOCK, *pair), "mlir") for pair in ((6, 8), (9, 10), (5, 12))]
    orders += [(PTX, moved(PTX, 6, 7), "ptx"), (PTX, moved(PTX, 10, 11), "ptx"), (LLVM, moved(LLVM, 4, 7), "llvm")]
    others = [*assembly(), *odd, *cut, *names, *orders]
    return [*pairs_of(one), *stages, *others, (one.text("ptx"), one.text("llir"), "llvm")]


def assembly() -> list[tuple[str, str, str]]:
    """Two kernels of each physical assembly against each other, and each with a few registers changed."""
    found: list[tuple[str, str, str]] = []
    for kind, names in (
        ("amdgcn", ("softmax_gfx1100.amdgcn", "matmul_gfx942.amdgcn", "add_gfx1201.amdgcn")),
        ("sass", ("softmax_90.nvdisasm.txt", "add_120.nvdisasm.txt", "add_75.nvdisasm.txt")),
    ):
        texts = [(DATA / "asm" / name).read_text() for name in names]
        found += [(one, other, kind) for one, other in zip(texts, [*texts[1:], texts[0]], strict=True)]
        for text in texts:
            rng, lines = random.Random(7), changeable(text.split("\n"), cast(StageKind, kind))
            changes = [changed(text, cast(StageKind, kind), rng, lines, []) for _ in range(12)]
            found += [(text, change.text, kind) for change in changes if change is not None]
        unknown = [re.sub(r"\b(?:v_add\w*|LDC|FADD)", "NEWOP" if kind == "sass" else "x_new", text) for text in texts]
        found += [(one, other, kind) for one, other in zip(texts, unknown, strict=True)]
    return found


def diffs_of(rows: list[tuple[str, str, str]]) -> list[TextDiff]:
    return [diff_texts(one, other, cast(StageKind, kind)) for one, other, kind in rows]


Held = tuple[list[str], list[str] | None]
"""A text as the page holds it: its lines without locations, and its margins."""


def held(text: str, kind: str) -> tuple[Held, dict[int, str]]:
    """A text as the page holds it, and its lines without locations by their numbers."""
    plain, margins = split_margins(text, cast(StageKind, kind))
    return (plain, margins or None), plain_by_number(plain, margins)


def test_the_page_shows_what_the_analysis_compares() -> None:
    rows = cases()
    diffs = diffs_of(rows)
    calls: list[list[Any]] = []
    for (one, other, kind), diff in zip(rows, diffs, strict=True):
        (ours, left), (theirs, right) = held(one, kind), held(other, kind)
        calls.append([packed_difference(diff, left, right), ours, theirs])
    for row, diff, read in zip(rows, diffs, called("diffOf", calls), strict=True):
        assert (read["summary"], read["fallback"]) == (diff.summary, diff.fallback), row
        assert tuple(read["left"]) == diff.left_lines
        assert tuple(read["right"]) == diff.right_lines
        assert tuple(read["leftNumbers"]) == diff.left_numbers
        assert tuple(read["rightNumbers"]) == diff.right_numbers
        assert [
            (
                item["op"],
                item["left"],
                item["leftCount"],
                item["right"],
                item["rightCount"],
                item["rewired"],
                item["partner"],
            )
            for item in read["entries"]
        ] == [
            (
                item.op,
                item.left.start,
                len(item.left),
                item.right.start,
                len(item.right),
                item.is_rewired,
                item.partner.start if item.partner else -1,
            )
            for item in diff.entries
        ]


def test_few_lines_of_a_difference_are_held_in_full() -> None:
    shares: dict[str, tuple[int, int]] = {}
    # nvdisasm's own text, which the sample has, is not the one that captures hold.
    rows = [row for row in cases() if row[2] not in ("binary", "sass") and len(row[1]) > 1000]
    for (one, other, kind), diff in zip(rows, diffs_of(rows), strict=True):
        packed = packed_difference(diff, held(one, kind)[1], held(other, kind)[1])
        full, lines = shares.get(kind, (0, 0))
        full += (len(packed["leftOther"]) + len(packed["rightOther"])) // 2
        shares[kind] = full, lines + len(diff.left_lines) + len(diff.right_lines)
    for kind, (full, lines) in shares.items():
        assert full * 10 < lines, (kind, full, lines)


def test_a_text_is_its_lines_and_its_margins() -> None:
    texts = [(text, kind) for one, other, kind in cases() for text in (one, other)]
    parts = [held(text, kind)[0] for text, kind in texts]
    rows = [(text, part) for (text, _), part in zip(texts, parts, strict=True) if part[1] is not None]
    assert len(rows) > 50
    for (text, _), lines in zip(rows, called("wholeOf", [part for _, part in rows]), strict=True):
        assert lines == text.split("\n")


def test_the_page_marks_the_words_that_the_analysis_marks() -> None:
    pairs: list[tuple[str, str]] = []
    for diff in diffs_of(pairs_of(softmax())):
        changed = [item for item in diff.entries if item.op == "changed"][:60]
        pairs += [(diff.left_lines[item.left[0]], diff.right_lines[item.right[0]]) for item in changed]
    pairs = [pair for pair in pairs if max(map(len, pair)) < 2000]
    assert len(pairs) > 50
    for pair, marks in zip(pairs, called("wordMarks", pairs), strict=True):
        assert [[tuple(span) for span in side] for side in marks] == [list(side) for side in word_marks(*pair)], pair


def test_the_page_finds_the_values_of_every_language() -> None:
    """Each value of a virtual register or an SSA value by its definition and its uses, as the body has them."""
    one = softmax()
    texts = [(SCOPES, "mlir"), (LLVM, "llvm"), (PTX, "ptx")]
    texts += [(one.text(stage), stage_named(stage).kind) for stage in one.stages if stage in ("ttir", "ttgir", "ptx")]
    for text, kind in texts:
        part, plain = held(text, kind)
        columns = value_columns(text, cast(StageKind, kind), plain)
        body = read_body(text, cast(StageKind, kind), frozenset({"locations"}))
        rows, expected = list[list[Any]](), list[dict[str, Any]]()
        for line, values in enumerate(body.values):
            for value in dict.fromkeys(values):
                name = body.names[value]
                rows.append([part, columns, name, body.numbers[line]])
                definer = body.definers[value]
                uses = [body.numbers[other] for other, used in enumerate(body.uses) if value in used]
                definitions = [body.numbers[definer]] if definer >= 0 else []
                expected.append({"name": name, "definitions": definitions, "uses": uses})
        found = called("valueIn", rows)
        for one_found in found:
            # A register that is written again has several definitions; the body names the first.
            one_found["definitions"] = one_found["definitions"][:1]
        wrong = [
            (want, own)
            for want, own in zip(expected, found, strict=True)
            if TOKEN.fullmatch(want["name"]) and own != want
        ]
        assert not wrong, (kind, len(wrong), wrong[:3])


def test_registers_are_defined_where_they_are_written() -> None:
    for text, kind, name, writes in (
        ("    IADD3 R4, R4, 1, RZ ;\n    LDG.E.64 R6, [R4] ;\n    STG.E [R6], R7 ;", "sass", "R6", [2]),
        ("    v_add_u32 v4, v4, v1\n    global_load_dwordx2 v[4:5], v[6:7], off", "amdgcn", "v[4:5]", [2]),
    ):
        part, plain = held(text, kind)
        (found,) = called("valueIn", [[part, value_columns(text, cast(StageKind, kind), plain), name, 2]])
        assert found["definitions"] == writes, found


def test_numbers_are_read_back() -> None:
    texts = [text for one, other, _ in cases() for text in (one, other)] + ["\r%5 = x\u2028%6 %5\n%rd3 %rd1"]
    pairs = [(text, stepped) for text in dict.fromkeys(texts) if (stepped := with_steps(text)) is not None]
    assert sum(text != stepped for text, stepped in pairs) > 20
    assert called("withNumbers", [[stepped.split("\n")] for _, stepped in pairs]) == [
        text.split("\n") for text, _ in pairs
    ]


def test_layouts_have_the_colours_of_the_command_line() -> None:
    rows = [(value, count, dark) for count in (1, 4, 16, 17, 32) for dark in (False, True) for value in range(count)]
    for row, found in zip(rows, called("fillOf", [list(row) for row in rows]), strict=True):
        value, count, dark = row
        # Halves are rounded in two ways.
        assert all(abs(a - b) <= 1 for a, b in zip(found, fills(count, dark)[value], strict=True)), row

"""The committed viewer is what its sources build, and the lock file names no other registry."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any, cast

import pytest

from irscope.analysis.diff.marks import word_marks
from irscope.analysis.diff.texts import TextDiff, diff_texts
from irscope.ir.body.counts import operation_counts
from irscope.ir.body.reader import read_body
from irscope.model.capture import Capture, StageKind, stage_named
from tests.analysis.diff.test_reorder import BLOCK, LLVM, PTX, moved, shuffled
from tests.analysis.mutations import changeable, changed
from tests.ir.mlir.test_reader import LOOP, SCOPES
from tests.ir.renaming import WAYS, renamed
from tests.report_browser.captures import hostile, softmax

REPORT = Path(__file__).parents[2] / "irscope" / "render" / "report"
DATA = Path(__file__).parents[1] / "data"
ASSETS = ("loader.js", "viewer.js.deflate", "graphs.js.deflate", "viewer.css", "digests.json", "THIRD_PARTY.md")


def test_the_lock_file_names_only_the_public_registry() -> None:
    lock = json.loads((REPORT / "frontend" / "package-lock.json").read_text("utf-8"))
    places = [one["resolved"] for one in lock["packages"].values() if "resolved" in one]
    assert all(place.startswith("https://registry.npmjs.org/") for place in places)
    assert all("integrity" in one for name, one in lock["packages"].items() if name)


def test_the_assets_are_there_and_point_nowhere() -> None:
    for name in ASSETS:
        data = (REPORT / "assets" / name).read_bytes()
        text = (zlib.decompress(data, -zlib.MAX_WBITS) if name.endswith(".deflate") else data).decode()
        assert text
        assert "sourceMappingURL" not in text


def test_the_licences_of_all_packages_in_the_viewer_are_there() -> None:
    text = (REPORT / "assets" / "THIRD_PARTY.md").read_text("utf-8")
    lock = json.loads((REPORT / "frontend" / "package-lock.json").read_text("utf-8"))
    tools = ("esbuild", "prettier", "typescript", "spdx-license-list")
    for path, one in lock["packages"].items():
        name = path.removeprefix("node_modules/")
        if name and not one.get("optional") and name not in tools:
            assert f"## {name} {one['version']}\n" in text
    assert "THE ACCOMPANYING PROGRAM IS PROVIDED UNDER THE TERMS OF THIS ECLIPSE PUBLIC LICENSE" in text
    assert re.search(r"<https://gitlab.com/graphviz/graphviz/\S+>", text)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the packages that the lock file names."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("report") / "frontend"
    shutil.copytree(REPORT / "frontend", folder, ignore=shutil.ignore_patterns("node_modules"))
    command = [npm, "ci", "--no-audit", "--no-fund"]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = answer.stdout + answer.stderr
    if answer.returncode and any(word in said for word in ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT")):
        pytest.skip("the npm registry cannot be reached")
    assert answer.returncode == 0, said
    return folder


@pytest.mark.slow
def test_the_assets_equal_their_build(installed: Path) -> None:
    for script in ("check", "build"):
        made = subprocess.run(["npm", "run", script], cwd=installed, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
    for name in ASSETS:
        assert (installed.parent / "assets" / name).read_bytes() == (REPORT / "assets" / name).read_bytes(), (
            f"{name} is not what its sources build: run 'npm ci && npm run build' in irscope/render/report/frontend"
        )


# Bundles a module of the viewer and calls one of its functions on each row that comes in.
CALL = """
import { buildSync } from "esbuild";
import { readFileSync } from "node:fs";
const [file, name] = process.argv.slice(1);
const { outputFiles } = buildSync({ entryPoints: [file], bundle: true, format: "esm", write: false });
const module = await import("data:text/javascript," + encodeURIComponent(outputFiles[0].text));
const rows = JSON.parse(readFileSync(0, "utf-8"));
const plain = (_, value) => value instanceof Map ? [...value] : value;
console.log(JSON.stringify(rows.map(row => module[name](...row)), plain));
"""


def called(folder: Path, file: str, name: str, rows: list[Any]) -> list[Any]:
    """What a function of the viewer answers to each row of arguments."""
    call = ["node", "--input-type=module", "-e", CALL, f"src/{file}", name]
    answer = subprocess.run(call, cwd=folder, input=json.dumps(rows), capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


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


@pytest.mark.slow
def test_the_page_compares_as_the_analysis_does(installed: Path) -> None:
    rows = cases()
    found = called(
        installed,
        "structure/structural.ts",
        "diffTexts",
        [[one.split("\n"), other.split("\n"), kind] for one, other, kind in rows],
    )
    for row, diff, read in zip(rows, diffs_of(rows), found, strict=True):
        assert (read["summary"], read["fallback"]) == (diff.summary, diff.fallback), row
        assert tuple(read["left"]) == diff.left_lines
        assert tuple(read["right"]) == diff.right_lines
        assert tuple(read["leftNumbers"]) == diff.left_numbers
        assert tuple(read["rightNumbers"]) == diff.right_numbers
        assert [tuple(item.values()) for item in read["entries"]] == [
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


@pytest.mark.slow
def test_the_page_counts_operations_as_the_analysis_does(installed: Path) -> None:
    texts = [(one, kind) for one, _, kind in cases()]
    rows = [[one.split("\n"), kind] for one, kind in texts]
    for (text, kind), found in zip(texts, called(installed, "structure/counts.ts", "countsOf", rows), strict=True):
        assert dict(found) == operation_counts(text, cast(StageKind, kind))


@pytest.mark.slow
def test_the_page_marks_the_words_that_the_analysis_marks(installed: Path) -> None:
    pairs: list[tuple[str, str]] = []
    for diff in diffs_of(pairs_of(softmax())):
        changed = [item for item in diff.entries if item.op == "changed"][:60]
        pairs += [(diff.left_lines[item.left[0]], diff.right_lines[item.right[0]]) for item in changed]
    pairs = [pair for pair in pairs if max(map(len, pair)) < 2000]
    assert len(pairs) > 50
    for pair, marks in zip(pairs, called(installed, "data/marks.ts", "wordMarks", pairs), strict=True):
        assert [[tuple(span) for span in side] for side in marks] == [list(side) for side in word_marks(*pair)], pair


@pytest.mark.slow
def test_the_page_finds_values_by_their_scopes(installed: Path) -> None:
    body = read_body(SCOPES, "mlir", frozenset({"locations"}))
    rows, expected = list[list[Any]](), list[dict[str, Any]]()
    for line, values in enumerate(body.values):
        for value in dict.fromkeys(values):
            rows.append([SCOPES.split("\n"), body.names[value], "mlir", body.numbers[line]])
            definer = body.definers[value]
            uses = [body.numbers[other] for other, used in enumerate(body.uses) if value in used]
            definitions = [body.numbers[definer]] if definer >= 0 else []
            expected.append({"name": body.names[value], "definitions": definitions, "uses": uses})
    assert called(installed, "code/values.ts", "valueIn", rows) == expected


@pytest.mark.slow
def test_the_page_s_graphs_do_not_change_with_names(installed: Path) -> None:
    texts = [softmax().text("ttgir"), LOOP]
    rows = [[text.split("\n"), "mlir", True] for one in texts for text in (one, *(renamed(one, way) for way in WAYS))]
    graphs = called(installed, "graph/model.ts", "graphOf", rows)
    for at in range(0, len(graphs), 3):
        shapes = [
            (
                [(node["line"], node["group"], node["style"]) for node in graph["nodes"]],
                [(edge["from"], edge["to"]) for edge in graph["edges"]],
            )
            for graph in graphs[at : at + 3]
        ]
        assert shapes[0][1]
        assert shapes[0] == shapes[1] == shapes[2]

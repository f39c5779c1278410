"""`irscope edit`: what is compiled of an edited text, what is said of one that fails, and the names of variants."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture, Failure
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.render.text.failure import edited_failure_text as error_in
from irscope.store.file import save
from irscope.store.recent import CaptureStore
from tests.analysis.recorded import stored
from tests.cli.json_reference import Reference, check
from tests.cli.product import KERNELS, Run

# What the editor does: replaces a text, by another one each time it is opened.
EDITOR = """
import pathlib, sys
counter, path = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[-1])
turn = int(counter.read_text()) if counter.exists() else 0
counter.write_text(str(turn + 1))
old, new = [("tl.float32", "tl.flot32"), ("tl.flot32", "tl.float16")][turn]
assert old in path.read_text()
path.write_text(path.read_text().replace(old, new))
"""


def put(capture: Capture, folder: Path) -> Path:
    save(capture, path := folder / "it.irscope")
    return path


@pytest.mark.triton
@pytest.mark.newest
def test_ir_is_compiled_on_with_what_was_edited(
    product: Capture, tmp_path: Path, irscope: Run, reference: Reference
) -> None:
    """The text after a pass gives the capture's own PTX; with a layout changed, it has the narrower copies."""
    record = LaunchRecord((Argument("n", "scalar", "int", 64),))
    product = replace(product, launch=replace(product.launch, record=record, grid=(2, 1, 1)))
    CaptureStore().add(product)
    text = irscope("edit", product.id, "--at", "coalesce", "--text")[1]
    (file := tmp_path / "edited.mlir").write_text(text)
    assert "ttgir:coalesce#1 is unchanged: nothing was compiled" in irscope(
        "edit", product.id, "--at", "coalesce", "--edited", file
    )[1]  # fmt: skip
    wide = re.search(r"(#blocked\w*) = #ttg.blocked<{sizePerThread = \[1, 8\], threadsPerWarp = \[16, 2\]", text)
    assert wide is not None
    narrow = "sizePerThread = [1, 4], threadsPerWarp = [8, 4]"
    file.write_text(text.replace(wide[0], f"{wide[1]} = #ttg.blocked<{{{narrow}"))
    code, out, err = irscope("edit", product.id, "--at", "coalesce", "--edited", file, "--stat")
    assert code == 0, err
    assert re.search(r"^cp.async.128 .* –", out, re.MULTILINE), out
    assert "Kept as coalesce-1" in out
    # The name is a capture for every command, and the same edit keeps it.
    shown = json.loads(irscope("show", "coalesce-1", "--json")[1])[0]
    assert shown["environment"]["origin"] == [["edit", "coalesce-1"]]
    assert CaptureStore().find("last") == CaptureStore().path_of(product)
    # It has the passes before the edit, what the edited text was, and what the launch was given.
    variant = CaptureStore().load("coalesce-1")
    labels = [[one.label for one in each.passes()] for each in (product, variant)]
    assert labels[0] == labels[1]
    assert [one.index for one in variant.passes()] == [*range(len(labels[0]))]
    at = next(one for one in variant.passes() if one.label == "ttgir:coalesce#1")
    assert at.text == file.read_text()
    assert [one for one in variant.passes() if one.index < at.index] == [
        one for one in product.passes() if one.index < at.index
    ]
    assert all(one.outcome == "ran" for one in variant.passes())
    assert (variant.launch.record, variant.launch.grid) == (product.launch.record, (2, 1, 1))
    assert variant.launch.record is not None
    # The text of another kernel, or of other parameters, is refused, whichever command takes it.
    for wrong, told in (
        (text.replace("tile_product", "other"), "holds the kernel 'other'"),
        (re.sub(r"!tt\.ptr<f32>", "!tt.ptr<bf16>", text), "the launch would not fit"),
        ("\n", "is empty: give an edited text of ttgir:coalesce#1"),
    ):
        (other := tmp_path / "other.mlir").write_text(wrong)
        for words in (
            ("edit", product.id, "--at", "coalesce", "--edited", other),
            ("edit", product.id, "--at", "coalesce", "--edited", other),
        ):
            code, _, err = irscope(*words)
            assert code == 2
            assert told in " ".join(err.split())
    again = check(
        reference, irscope, "edit", "edit", product.id, "--at", "coalesce", "--edited", file, "--name", "narrow"
    )
    assert (again["name"], again["variant"]) == ("narrow", shown["id"])
    assert {CaptureStore().load(name).id for name in ("narrow", "coalesce-1")} == {shown["id"]}
    assert "'narrow' is taken" in irscope("edit", product.id, "--at", "ttir", "--edited", file, "--name", "narrow")[2]


@pytest.mark.triton
@pytest.mark.newest
def test_python_is_edited_until_it_compiles(
    product: Capture, tmp_path: Path, irscope: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is what a recording of a file with the edited kernel gives."""
    import irscope as library

    (script := tmp_path / "editor.py").write_text(EDITOR)
    monkeypatch.setenv("VISUAL", f"'{sys.executable}' '{script}' '{tmp_path / 'turn'}'")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("irscope.cli.edit.is_terminal", lambda: True)
    asked: list[str] = []
    monkeypatch.setattr("click.confirm", lambda text, **_: not asked.append(text))
    code, out, err = irscope("edit", product.id, "--at", "source", "--trust", "--stat", "--name", "half")
    assert code == 0, err
    assert "Kept as half" in out
    (error,) = asked
    line = next(at for at, row in enumerate(KERNELS.read_text().splitlines(), 1) if "tl.float32" in row)
    text = irscope("edit", product.id, "--at", "source", "--text")[1]
    shift = line - next(at for at, row in enumerate(text.splitlines(), 1) if "tl.float32" in row)
    assert f'half.py", line {line - shift}, in tile_product' in error
    half = CaptureStore().load("half")
    (other := tmp_path / "other.py").write_text(KERNELS.read_text().replace("tl.float32", "tl.float16"))
    same = library.record(other, kernel="tile_product", signature="*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 16")
    assert strip_locations(half.text("ttgir"), "mlir") == strip_locations(same.text("ttgir"), "mlir")
    assert half.text("ttgir") != product.text("ttgir")
    assert Path(half.launch.kernel.file).read_text().splitlines() == text.replace("float32", "float16").splitlines()


def test_a_foreign_kernels_python_is_run_only_if_trusted(tmp_path: Path, irscope: Run) -> None:
    path = put(stored("chains", "cuda:90"), tmp_path)
    code, _, err = irscope("edit", path, "--at", "source", "--edited", path)
    assert code == 2
    assert "was not recorded here, nor derived from one that was" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--at", "sass"), "no compile can resume from it"),
        (("--at", "nope"), "no pass is named 'nope'"),
        (("--at", "ttgir", "--name", "dead"), "not a text that reads as an id"),
        (("--at", "ttgir", "--name", "last"), "write letters"),
        (("--at", "ttgir"), "neither VISUAL nor EDITOR names an editor"),
    ],
)
def test_what_cannot_be_edited_is_said(
    words: tuple[str, ...], told: str, tmp_path: Path, irscope: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = irscope("edit", put(stored("chains", "cuda:90"), tmp_path), *words)
    assert code in (1, 2)
    assert told in " ".join(err.split())


def test_without_a_terminal_the_other_way_is_named(
    tmp_path: Path, irscope: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "vi")
    code, _, err = irscope("edit", put(stored("chains", "cuda:90"), tmp_path), "--at", "ttgir")
    assert code == 2
    assert "give it with --edited FILE" in " ".join(err.split())


def test_the_parsers_error_is_shown_at_the_line_of_the_text() -> None:
    capture: Any = stored("chains", "cuda:90")
    said = "loc(\"/tmp/x/thin.ttgir\":2:3): error: custom op 'nope' is unknown"
    failed = replace(capture, status="failed", failure=Failure("parse", said, "ttgir"))
    text = error_in(failed, "module {\n  nope\n}\n", Path("mine.mlir"))
    assert text == "mine.mlir:2:3: error: custom op 'nope' is unknown\n  nope\n  ^"

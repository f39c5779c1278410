"""Whose code may run: what a capture is made of decides, and not where its file lies."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.cli.captures import compiled_again
from irscope.cli.streams import say
from irscope.model.capture import Capture, SourceFile
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import reporting
from irscope.store.file import load, save
from irscope.store.recent import CaptureStore
from tests.cli.product import ROOT, Run

FOREIGN = ROOT / "tests" / "data" / "layouts" / "matmul-cuda-80.irscope"
EVIL = "import os\nimport triton\n\nos.mkdir('{folder}')\n\n\n@triton.jit\ndef {name}():\n    pass\n"


def evil(tmp_path: Path) -> tuple[Capture, Path]:
    """A foreign capture whose Python text leaves a folder when it runs, and the folder."""
    left, one = tmp_path / "it-ran", load(FOREIGN)
    text = EVIL.format(folder=left, name=one.name)
    kernel = replace(one.launch.kernel, file="/e/evil.py", line=8, source="@triton.jit\ndef x():\n    pass\n")
    return replace(one, launch=replace(one.launch, kernel=kernel), sources=(SourceFile("/e/evil.py", text),)), left


def run_it(irscope: Run, subject: object, edited: Path) -> set[int]:
    """The exit codes of all that would run a capture's Python text."""
    return {
        irscope("reproduce", subject, "--verify")[0],
        irscope("edit", subject, "--at", "source", "--edited", edited)[0],
        irscope("reduce", subject, "--check", "true", "--python-output", edited.with_name("out.py"))[0],
    }


def test_no_place_makes_a_foreign_capture_trusted(irscope: Run, tmp_path: Path) -> None:
    """Of a file, a collection, a packed one and the store, under its own id, and after something was added to it."""
    capture, left = evil(tmp_path)
    path = save(capture, tmp_path / "evil.irscope")
    (edited := tmp_path / "edited.py").write_text(capture.sources[0].text)
    assert irscope("record", path, "-o", tmp_path / "packed.irscope")[0] == 0
    assert irscope("record", tmp_path / "packed.irscope", "-o", tmp_path / "again")[0] == 0
    CaptureStore().add(capture)
    CaptureStore().update(replace(capture, notes=("more is known",)))
    shutil.copytree(tmp_path / "again", tmp_path / "copied")
    for subject in (path, tmp_path / "packed.irscope", tmp_path / "again", tmp_path / "copied", "last", capture.id):
        assert run_it(irscope, subject, edited) == {2}, subject
        assert not left.exists()


@pytest.mark.triton
@pytest.mark.newest
def test_what_is_made_of_a_capture_is_as_trusted_as_it(product: Capture, irscope: Run, tmp_path: Path) -> None:
    """Recompiles, edits, collections and copies of one's own capture, and of the same from another machine."""
    assert product.environment.is_trusted
    asked = RecordingOptions(options=(("num_warps", 8),), disassemble=False, layouts=False, snapshots="none")
    foreign = replace(product, environment=replace(product.environment, is_trusted=False))
    (edited := tmp_path / "edited.py").write_text(
        irscope("edit", product.id, "--at", "source", "--text")[1].replace("float32", "float16")
    )
    for one, trusted in ((product, True), (foreign, False)):
        with reporting(say):
            made = compiled_again(one, asked)
        assert load(CaptureStore().path_of(made)).environment.is_trusted is trusted
        path = save(one, tmp_path / f"{trusted}.irscope")
        assert irscope("record", path, "-o", tmp_path / f"{trusted}")[0] == 0
        (collected,) = (tmp_path / f"{trusted}").glob("*.irscope")
        assert load(shutil.copy(collected, tmp_path / "copy.irscope")).environment.is_trusted is trusted
        words = ["edit", path, "--at", "source", "--edited", edited, "--name", f"of-{trusted}"]
        assert irscope(*words)[0] == (0 if trusted else 2)
        assert irscope(*words, "--trust", "--name", f"given-{trusted}")[0] == 0
        # That it was run once by request makes it no more trusted.
        assert CaptureStore().load(f"given-{trusted}").environment.is_trusted is trusted

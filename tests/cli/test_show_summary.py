"""The table of many captures is that of their whole captures, and is made of their manifests alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.__main__ import run
from irscope.cli import show as module
from irscope.cli.show import summary
from irscope.errors import CaptureNotFound
from irscope.store import shelf
from irscope.store.file import load, read_manifest, save
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

DATA = Path(__file__).parents[1] / "data"
# Of captures from before what their id is made of changed, the file states another.
FILES = [path for path in sorted(DATA.rglob("*.irscope")) if read_manifest(path)["id"] == load(path).id]


def listed(paths: list[Path]) -> StoredCaptures:
    own = Shelf()
    return StoredCaptures(CaptureFile.listed(own, None, path) for path in paths)


def test_it_reads_no_text_of_many_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_STUDIED", 1)
    assert len(FILES) > 20
    whole = summary(StoredCaptures.of(load(path) for path in FILES), False)
    read: list[Path] = []
    real = shelf.read_manifest
    monkeypatch.setattr(shelf, "load", lambda path: pytest.fail(f"{path} was read"))
    monkeypatch.setattr(shelf, "read_manifest", lambda path: read.append(path) or real(path))
    assert summary(listed(FILES), False) == whole
    assert read == FILES


def test_what_is_listed_may_be_gone(tmp_path: Path) -> None:
    kept = listed([save(load(FILES[0]), tmp_path / "one.irscope")])
    assert kept.files[0].facts.id == load(FILES[0]).id
    gone = listed([tmp_path / "none.irscope"])
    with pytest.raises(CaptureNotFound, match=r"cannot read .*none\.irscope"):
        summary(gone, False)


def test_a_recordings_note_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = [replace(load(path), notes=("from the recording",)) for path in FILES if "ttgir" in load(path).stages][:2]
    paths = [str(save(one, tmp_path / f"{number}.irscope")) for number, one in enumerate(held)]
    assert run(["show", *paths, "--stage", "ttgir"]) == 0
    assert capsys.readouterr().err.count("from the recording") == 1

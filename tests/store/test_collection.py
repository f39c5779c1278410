"""Collections: an index that is only a copy, and what choosing from one takes."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from irscope.model.capture import Capture, Failure
from irscope.model.facts import CaptureFacts
from irscope.store import collection as module
from irscope.store.collection import Collection, PackedCollection, is_collection
from irscope.store.file import load, read_manifest, save
from irscope.store.shelf import chosen, differences, outline_of

DATA = Path(__file__).parents[1] / "data" / "layouts"
FILES = sorted(DATA.glob("*.irscope"))


@pytest.fixture(scope="module")
def captures() -> list[Capture]:
    return [load(path) for path in FILES]


def filled(folder: Path, captures: list[Capture]) -> Collection:
    collection = Collection(folder)
    with collection.changing():
        assert [collection.add(one) for one in captures] == ["new"] * len(captures)
    return collection


def facts_read(collection: Collection) -> list[CaptureFacts]:
    """What the files say, without the index."""
    return sorted(
        (CaptureFacts.of(load(path)) for path in collection.path.glob("*.irscope")),
        key=lambda one: (one.name, one.date),
    )


def test_facts_of_a_manifest_are_those_of_the_capture(captures: list[Capture]) -> None:
    for path, capture in zip(FILES, captures, strict=True):
        assert outline_of(read_manifest(path), str(path)).facts == CaptureFacts.of(capture)


def test_the_same_compile_is_one_capture(tmp_path: Path, captures: list[Capture]) -> None:
    collection = filled(tmp_path, captures)
    again = captures[0].with_(notes=("recorded again",))
    assert Collection(tmp_path).add(again) == "replaced"
    other = captures[0].with_(launch=replace(captures[0].launch, constants=(("BLOCK", "7"),)))
    assert Collection(tmp_path).add(other) == "new"
    interrupted = captures[1].with_(status="failed", failure=Failure("interrupt", "Ctrl-C"))
    assert Collection(tmp_path).add(interrupted) == "kept"
    assert len(collection.entries()) == len(captures) + 1
    assert load(collection.path_of(again)).notes == ("recorded again",)
    assert load(collection.path_of(captures[1])).status == "ok"


def test_an_index_that_is_true_saves_reading_the_files(
    tmp_path: Path, captures: list[Capture], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = filled(tmp_path, captures).entries()
    read: list[str] = []
    monkeypatch.setattr("irscope.store.shelf.read_manifest", lambda path: read.append(path.name) or read_manifest(path))
    assert Collection(tmp_path).entries() == entries
    assert read == []
    changed = tmp_path / entries[0].file
    os.utime(changed, ns=(1, 1))
    assert [one.facts for one in Collection(tmp_path).entries()] == [one.facts for one in entries]
    assert read == [changed.name]


@pytest.mark.parametrize(
    "damage", ["missing", "empty", "not JSON", "of another version", "other fields", "deep", "lies"]
)
def test_an_index_that_is_not_true_is_made_again(tmp_path: Path, captures: list[Capture], damage: str) -> None:
    collection = filled(tmp_path, captures)
    index = tmp_path / module.INDEX
    held = json.loads(index.read_text())
    if damage == "missing":
        index.unlink()
    elif damage == "lies":
        # Of files that are gone, outside of the folder, and that were changed since.
        held["captures"][0]["file"] = "../../etc/passwd"
        held["captures"][1]["bytes"] += 1
        held["captures"][1]["facts"]["name"] = "forged"
        index.write_text(json.dumps(held))
    else:
        texts = {
            "empty": "",
            "not JSON": "{",
            "of another version": json.dumps(held | {"index": 99}),
            "other fields": json.dumps(held | {"captures": [{"file": 3}]}),
            "deep": "[" * 100_000,
        }
        index.write_text(texts[damage])
    assert [one.facts for one in Collection(tmp_path).entries()] == facts_read(collection)
    assert {row["file"] for row in json.loads(index.read_text())["captures"]} == {
        path.name for path in tmp_path.glob("*.irscope")
    }


def test_a_folder_for_nothing_is_not_left(tmp_path: Path, captures: list[Capture]) -> None:
    for folder, remains in ((tmp_path / "new", False), (tmp_path / "there", True)):
        if remains:
            folder.mkdir()
        with pytest.raises(KeyError), Collection(folder).changing():
            raise KeyError
        assert folder.is_dir() is remains
    filled(tmp_path / "new", captures)
    assert len(Collection(tmp_path / "new").entries()) == len(captures)


def test_files_may_come_and_go(tmp_path: Path, captures: list[Capture]) -> None:
    collection = filled(tmp_path, captures)
    collection.path_of(captures[0]).unlink()
    save(captures[1].with_(notes=("longer",)), tmp_path / "renamed.irscope")
    (tmp_path / "damaged.irscope").write_bytes(b"PK\x03\x04 no more")
    # A process that was killed leaves such a file.
    (tmp_path / ".matmul.irscope.x1y2").write_bytes(b"half")
    kept = {path.name for path in tmp_path.glob("[!.]*.irscope")} - {"damaged.irscope"}
    assert {one.file: one.facts for one in collection.entries()} == {
        name: CaptureFacts.of(load(tmp_path / name)) for name in kept
    }
    (problem,) = collection.unreadable
    assert "damaged.irscope" in problem


@pytest.mark.parametrize(
    "damage",
    [{"launch": 7}, {"target": "none"}, {"schema": 99}, {"warp_size": -1}, {"artifacts": None}, {"plan": "?!"}],
    ids=str,
)
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "file"])
def test_what_cannot_be_read_is_named(
    packed: bool, damage: dict[str, object], tmp_path: Path, captures: list[Capture]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    good = save(captures[0], folder / "good.irscope")
    with zipfile.ZipFile(good) as stored, zipfile.ZipFile(folder / "odd.irscope", "w") as made:
        for name in stored.namelist():
            data = stored.read(name)
            if name == "capture.json":
                data = json.dumps({**json.loads(data), **damage}).encode()
            made.writestr(name, data)
    collection = Collection(folder)
    if packed:
        with zipfile.ZipFile(tmp_path / "all.irscope", "w") as made:
            made.writestr("index.json", "[]")
            for path in folder.glob("*.irscope"):
                made.write(path, path.name)
        collection = PackedCollection(tmp_path / "all.irscope")
    assert [one.file for one in collection.entries()] == ["good.irscope"]
    (problem,) = collection.unreadable
    assert "odd.irscope" in problem


def test_a_folder_that_cannot_be_written_to_is_read(
    tmp_path: Path, captures: list[Capture], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in FILES:
        shutil.copy(path, tmp_path)

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "write_atomically", refused)
    assert len(Collection(tmp_path).entries()) == len(captures)
    assert not (tmp_path / module.INDEX).exists()
    with pytest.raises(PermissionError), Collection(tmp_path).changing():
        pass


def test_captures_are_read_when_they_are_asked_for(tmp_path: Path, captures: list[Capture]) -> None:
    collection = filled(tmp_path, captures)
    entries = collection.entries()
    found = collection.captures(entries)
    (tmp_path / entries[0].file).unlink()
    assert [one.facts.name for one in found.files] == [one.facts.name for one in entries]
    assert asdict(found[1]) == asdict(load(tmp_path / entries[1].file))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("matmul_grouped_kernel", ["matmul_grouped_kernel", "matmul_grouped_kernel"]),
        ("matmul*", ["matmul_grouped_kernel", "matmul_grouped_kernel"]),
        ("*transpose*", ["transpose_kernel"]),
        ("[a-l]*", ["attention_kernel"]),
        ("matmul_grouped", []),
        ("", []),
    ],
)
def test_what_a_text_chooses(tmp_path: Path, captures: list[Capture], text: str, names: list[str]) -> None:
    entries = filled(tmp_path, captures).entries()
    assert [one.facts.name for one in chosen(entries, text)] == names
    for entry in entries:
        assert chosen(entries, entry.facts.id[:8]) == [entry]
        assert chosen(entries, entry.facts.id[:3]) == []


def test_what_tells_captures_apart(captures: list[Capture]) -> None:
    one = next(one for one in captures if one.name.startswith("matmul"))
    launch = one.launch
    wide = one.with_(
        launch=replace(launch, options=tuple((k, 2 if k == "num_warps" else v) for k, v in launch.options))
    )
    loose = one.with_(launch=replace(launch, attributes=launch.attributes[1:]))
    told = differences([CaptureFacts.of(item) for item in (one, wide, loose)])
    name, kind = launch.signature[0]
    warps = launch.option("num_warps")
    assert launch.attributes[0] == (name, "tt.divisibility=16")
    assert told == [
        f"{name}={kind}:16 num_warps={warps}",
        f"{name}={kind}:16 num_warps=2",
        f"{name}={kind} num_warps={warps}",
    ]
    assert differences([CaptureFacts.of(one)] * 2) == ["", ""]


def test_what_is_a_collection(tmp_path: Path, captures: list[Capture]) -> None:
    assert not is_collection(tmp_path)
    assert not is_collection(tmp_path / "none")
    assert not is_collection(FILES[0])
    (tmp_path / "notes.txt").write_text("")
    assert not is_collection(tmp_path)
    filled(tmp_path, captures)
    assert is_collection(tmp_path)

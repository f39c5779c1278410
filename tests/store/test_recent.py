"""The index of the store: against the files themselves, whatever became of it or of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from irscope.errors import CaptureNotFound, UsageError
from irscope.model.capture import Artifact, Capture, Environment, Failure, Kernel, Launch
from irscope.store.file import save
from irscope.store.recent import CaptureStore
from irscope.store.shelf import StoredRow
from irscope.target import Target


def capture(name: str, block: int = 64, *, failed: bool = False, target: str = "cuda:90", date: str = "") -> Capture:
    launch = Launch(
        Kernel(name, f"/kernels/{name}.py", 3),
        (("x", "*fp16"), ("BLOCK", "constexpr")),
        (("BLOCK", str(block)),),
        (("x", "tt.divisibility=16"),),
        (("cluster", (1, 2)), ("num_warps", 4)),
    )
    return Capture(
        launch,
        Target.parse(target),
        artifacts=(Artifact("ttir", f"module {{}} // {name} {block}"),),
        environment=Environment(
            date=date or "2026-01-02T03:04:05+00:00", command="irscope dump x", triton_version="3.9"
        ),
        status="failed" if failed else "ok",
        failure=Failure("pass", "no") if failed else None,
    )


def from_files(folder: Path) -> list[StoredRow]:
    """The rows as the files alone give them."""
    index = folder / "index.json"
    kept = index.read_bytes() if index.exists() else None
    index.unlink(missing_ok=True)
    rows = CaptureStore(folder).rows()
    if kept is not None:
        index.write_bytes(kept)
    return rows


def test_it_says_what_the_files_say(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path)
    for one in (capture("one"), capture("two", failed=True), capture("one", 128, target="hip:gfx942")):
        store.add(one)
    rows = store.rows()
    assert rows == from_files(tmp_path)
    assert [(row.facts.name, row.facts.failure, str(row.facts.target)) for row in rows] == [
        ("one", "", "hip:gfx942"), ("two", "pass", "cuda:90"), ("one", "", "cuda:90"),
    ]  # fmt: skip
    assert rows[0].facts.parts == {"x": "*fp16:16", "BLOCK": "128", "cluster": "(1, 2)", "num_warps": "4"}
    assert {row.recording for row in rows} == {"2026-01-02T03:04:05+00:00 irscope dump x"}


def test_files_that_came_changed_and_went_behind_its_back(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path)
    paths = [store.add(capture("kernel", block)) for block in (1, 2, 3)]
    paths[0].unlink()
    save(capture("another"), tmp_path / "another-0123456789abcdef.irscope")
    save(capture("kernel", 2, failed=True), paths[1])
    (tmp_path / "broken-0123.irscope").write_bytes(b"no capture")
    rows = store.rows()
    assert rows == from_files(tmp_path)
    assert {(row.facts.name, row.facts.failure, row.facts.parts["BLOCK"]) for row in rows} == {
        ("another", "", "64"), ("kernel", "pass", "2"), ("kernel", "", "3"),
    }  # fmt: skip


@pytest.mark.parametrize("damage", [b"", b"{\n", b"[1]\nnull\n\xff\n", b'{"name": 1}\n'])
def test_a_damaged_index_is_none(tmp_path: Path, damage: bytes) -> None:
    store = CaptureStore(tmp_path)
    store.add(capture("one"))
    (tmp_path / "index.json").write_bytes(damage)
    assert [row.facts.name for row in store.rows()] == ["one"]
    # What was read is in it now.
    assert b"/kernels/one.py" in (tmp_path / "index.json").read_bytes()


def _last(store: CaptureStore) -> list[Path]:
    return [store.folder / row.file for row in store.last_recording()]


def test_the_last_recording_is_the_last_complete_one(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path)
    store.add(capture("before"))
    paths = [store.add(capture("kernel", block), is_complete=False) for block in (3, 1, 2)]
    assert [path.name.partition("-")[0] for path in _last(store)] == ["before"]
    in_order = [paths[1], paths[2], paths[0]]
    store.complete(in_order)
    assert _last(store) == in_order
    assert [store.folder / row.file for row in store.rows()][:3] == in_order[::-1]
    with pytest.raises(CaptureNotFound, match="'last' names 3 captures"):
        store.find("last")
    # One that was interrupted stores some of them again, and others.
    store.add(capture("kernel", 1), is_complete=False)
    store.add(capture("other"), is_complete=False)
    assert _last(store) == in_order
    # The index may be lost, and what more is known of a capture be written.
    (tmp_path / "index.json").unlink(missing_ok=True)
    assert store.update(capture("kernel", 2, failed=True))
    assert _last(store) == in_order
    # What is dropped of it is left out; a damaged list is none.
    paths[1].unlink()
    assert _last(store) == in_order[1:]
    for damage in (b"", b"{", b"7", b"null", b'{"a": 1}', b"[" * 100_000):
        (tmp_path / "last.json").write_bytes(damage)
        with pytest.raises(CaptureNotFound, match=r"no recording was complete|dropped"):
            store.last_recording()


def test_a_store_that_cannot_be_written_is_listed(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path)
    store.add(capture("one"))
    (tmp_path / "index.json").mkdir()
    assert [row.facts.name for row in store.rows()] == ["one"]
    store.add(capture("two"))
    assert [row.facts.name for row in store.rows()] == ["two", "one"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "abcd"),
        ({"kernel": "mat"}, "ab"),
        ({"kernel": "*max"}, "c"),
        ({"where": ["file=/kernels/soft"]}, "c"),
        ({"where": ["target=hip"]}, "b"),
        ({"where": ["target=h100", "target=mi300x"]}, "abd"),
        ({"where": ["BLOCK=128"]}, "b"),
        ({"where": ["BLOCK=64", "num_warps=4"]}, "acd"),
        ({"failed": True}, "c"),
        ({"since": "2026-01-03"}, "d"),
        ({"last": True}, "ab"),
        ({"kernel": "mat", "where": ["target=cuda"]}, "a"),
    ],
)
def test_the_filters_of_ls(tmp_path: Path, given: dict[str, object], found: str) -> None:
    pytest.importorskip("click")
    from irscope.cli.ls import Filters

    store = CaptureStore(tmp_path)
    stored = {
        "d": capture("add", date="2026-01-09T00:00:00+00:00"),
        "c": capture("softmax", failed=True, target="cuda:80"),
        "b": capture("matmul", 128, target="hip:gfx942"),
        "a": capture("matmul"),
    }
    names = {store.add(one, is_complete=False).name: name for name, one in stored.items()}
    store.complete([store.path_of(stored[name]) for name in "ba"])
    last = {row.file for row in store.last_recording()}
    chosen = Filters(**given).chosen(store.rows(), last)  # type: ignore[arg-type]
    assert "".join(names[row.file] for row in chosen) == found


@pytest.mark.parametrize("given", [{"since": "yesterday"}, {"where": ["BLOCK"]}, {"where": ["target=cuda:nine"]}])
def test_a_filter_that_is_none(given: dict[str, object]) -> None:
    pytest.importorskip("click")
    from irscope.cli.ls import Filters

    with pytest.raises(UsageError, match="write"):
        Filters(**given).chosen([], set())  # type: ignore[arg-type]


def test_a_store_is_listed_without_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CaptureStore(tmp_path)
    for number in range(100):
        store.add(capture("kernel", number))
    assert len(store.rows()) == 100
    monkeypatch.setattr("irscope.store.shelf.read_manifest", lambda path: pytest.fail(f"{path} was read"))
    assert len(store.rows()) == 100
    assert os.listdir(tmp_path).count("index.json") == 1

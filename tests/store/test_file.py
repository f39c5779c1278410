"""Captures to and from files: round trips, bounds, and files that are none."""

from __future__ import annotations

import errno
import functools
import io
import json
import os
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import (
    Artifact,
    Autotuning,
    Capture,
    Environment,
    Failure,
    Kernel,
    Launch,
    PassSnapshot,
    Resources,
    SourceFile,
    Target,
)
from irscope.model.evidence import (
    CompilerLog,
    GraphCall,
    GraphNode,
    GraphOrigin,
    OperationLines,
    PassLog,
    Profile,
)
from irscope.plan import PassPlan
from irscope.store.disk import machine_key, write_atomically
from irscope.store.file import from_bytes, load, save, to_bytes
from irscope.store.recent import CaptureStore
from tests.layout.values import rows as layout_rows

words = st.text(max_size=12)
# Text that a compiler prints may hold bytes that are no UTF-8: surrogate escapes.
texts = st.text(st.characters(codec="utf-8"), max_size=200) | st.just("caf\udce9 \x00")
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
pairs = st.lists(st.tuples(words, words), max_size=3).map(tuple)
value_pairs = st.dictionaries(words, plain_values, max_size=3).map(lambda rows: tuple(rows.items()))
snapshots = st.builds(
    PassSnapshot,
    index=st.integers(0, 999),
    stage=st.sampled_from(["ttir", "ttgir", "llir"]),
    name=words,
    occurrence=st.integers(1, 9),
    argument=words,
    options=words,
    outcome=st.sampled_from(["ran", "skipped", "failed"]),
    changed=st.none() | st.booleans(),
    text=st.none() | texts,
    duration_us=st.none() | st.integers(0, 10**9),
    group=st.sampled_from(["mlir", "llvm"]),
    scope=words,
)
numbers = st.integers(0, 99)
graphs = st.builds(
    GraphOrigin,
    graph=words,
    part=st.sampled_from(["forward", "backward", "inference", ""]),
    kernel=numbers,
    kernels=numbers,
    launches=numbers,
    heuristic=words,
    source_nodes=st.lists(words, max_size=2).map(tuple),
    operators=st.lists(words, max_size=2).map(tuple),
    nodes=st.lists(st.builds(GraphNode, words, words, words, numbers, words, words), max_size=2).map(tuple),
    others=st.lists(st.builds(GraphCall, words, st.lists(words, max_size=2).map(tuple), numbers), max_size=2).map(
        tuple
    ),
)
captures = st.builds(
    Capture,
    launch=st.builds(
        Launch,
        kernel=st.builds(Kernel, words, words, st.integers(0, 99), texts, st.integers(0, 99)),
        signature=pairs,
        constants=pairs,
        attributes=pairs,
        options=value_pairs,
        grid=st.none() | st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
        autotuning=st.none()
        | st.builds(Autotuning, st.integers(0, 9), st.integers(1, 9), words, st.none() | st.booleans()),
    ),
    target=st.sampled_from([Target.parse("cuda:90"), Target.parse("hip:gfx942")]),
    plan=st.sampled_from([PassPlan(), PassPlan.parse("-combine +ttgir:coalesce#2")]),
    artifacts=st.lists(
        st.builds(Artifact, st.sampled_from(["ttir", "ptx"]), texts, st.none() | st.integers(0, 9))
        | st.builds(Artifact, st.just("cubin"), st.binary(max_size=64)),
        max_size=3,
        unique_by=lambda artifact: artifact.stage,
    ).map(tuple),
    snapshots=st.lists(snapshots, max_size=4, unique_by=lambda item: (item.group, item.index)).map(tuple),
    layouts=st.lists(layout_rows, max_size=2).map(tuple),
    resources=st.builds(Resources, registers=st.none() | st.integers(0, 255)),
    environment=st.builds(Environment, triton_version=words, tools=pairs, parts=pairs, variables=pairs),
    status=st.sampled_from(["ok", "failed"]),
    failure=st.none() | st.builds(Failure, st.just("pass"), texts, words, words, texts),
    metadata=value_pairs,
    sources=st.lists(st.builds(SourceFile, words, texts), max_size=2).map(tuple),
    notes=st.lists(words, max_size=2).map(tuple),
    graphs=st.lists(graphs, max_size=2).map(tuple),
    snapshot_level=st.sampled_from(["all", "triton", "none"]),
    compile_us=st.none() | st.integers(0, 10**9),
)


def whole(kind: Any, *, any_number: bool, free: bool = False) -> st.SearchStrategy[Any]:
    """Every value of a field's type, in the range that its class gives it, or with any number at all."""
    origin, inside = get_origin(kind), get_args(kind)
    within = functools.partial(whole, any_number=any_number, free=free)
    if is_dataclass(kind) and isinstance(kind, type):
        return st.builds(kind, **dict(_whole_fields(kind, any_number)))
    if origin is Literal:
        return st.sampled_from(inside)
    if origin is tuple:
        if inside[1:] == (...,):
            return st.lists(within(inside[0]), max_size=2).map(tuple)
        return st.tuples(*map(within, inside))
    if inside:
        return st.one_of(*map(within, inside))
    simple = {
        bool: st.booleans(),
        str: st.text(max_size=4) | st.just("caf\udce9 \x00"),
        type(None): st.none(),
        Any: plain_values,
        int: st.integers() if free or any_number else st.integers(0, (1 << 53) - 1),
        float: st.floats() if any_number else st.floats(0, 1e15),
    }
    if kind is float and free and not any_number:
        return st.floats(allow_nan=False, allow_infinity=False)
    return simple[kind]


def _whole_fields(kind: Any, any_number: bool) -> Iterator[tuple[str, st.SearchStrategy[Any]]]:
    hints = get_type_hints(kind)
    for item in fields(kind):
        free = bool(item.metadata.get("any_value"))
        part = whole(hints[item.name], any_number=any_number, free=free)
        if item.name == "options" and kind is Launch:
            part = value_pairs
        # Which file holds the seal of a trusted capture is asked below.
        yield item.name, st.just(False) if item.name == "is_trusted" else part


def whole_captures(*, any_number: bool) -> st.SearchStrategy[Capture]:
    parts = {name: functools.partial(whole, kind, any_number=any_number) for name, kind in WHOLE.items()}
    return st.builds(
        Capture,
        target=st.sampled_from([Target.parse("cuda:90"), Target.parse("hip:gfx942")]),
        snapshots=st.lists(snapshots, max_size=1).map(tuple),
        layouts=st.lists(layout_rows, max_size=1).map(tuple),
        status=st.sampled_from(["ok", "failed"]),
        metadata=value_pairs,
        **{name: part() for name, part in parts.items()},
    )


WHOLE: dict[str, Any] = {
    "launch": Launch,
    "resources": Resources,
    "environment": Environment,
    "failure": Failure | None,
    "profile": Profile | None,
    "graphs": tuple[GraphOrigin, ...],
    "sources": tuple[SourceFile, ...],
    "notes": tuple[str, ...],
    "compile_us": int | None,
}
"""The fields of a capture whose types say what they may be; the others have strategies above."""


def capture(name: str = "matmul", text: str = "module {}") -> Capture:
    return Capture(
        Launch(Kernel(name, "kernels.py", 3)),
        Target.parse("cuda:90"),
        artifacts=(Artifact("source", text), Artifact("cubin", b"\x7fELF")),
    )


def with_operations(one: Capture) -> Capture:
    lines = [item.data.count("\n") + 1 for item in one.artifacts if item.stage == "ptx" and isinstance(item.data, str)]
    rows = [OperationLines.of("ptx", [1, *[0] * (count - 1)]) for count in lines]
    return replace(one, operations=(*rows, OperationLines("sass", reason="the code is another")))


def with_log(one: Capture) -> Capture:
    steps = [(item.stage, item.index) for item in one.passes()]
    rows = [PassLog(stage, f"[a]: {stage}\n" * 3, index, index) for stage, index in dict.fromkeys(steps)]
    return replace(one, log=CompilerLog((*rows, PassLog("ptx", "module {}")), ("cubin",)))


def with_profile(one: Capture) -> Capture:
    return replace(one, profile=Profile('"Kernel Name","matmul"\n', "a GPU", "a tool", own_binary=True))


@given(captures | captures.map(with_operations) | captures.map(with_log) | captures.map(with_profile))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_capture_comes_back_as_it_was(one: Capture) -> None:
    data = to_bytes(one)
    assert from_bytes(data) == one
    assert to_bytes(from_bytes(data)) == data


@given(whole_captures(any_number=False))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_every_field_comes_back_over_its_whole_range(one: Capture) -> None:
    assert from_bytes(to_bytes(one)) == one


@given(whole_captures(any_number=True))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_no_file_is_written_that_is_not_read(one: Capture) -> None:
    """Whatever the numbers: what cannot be read back is left out by name, or the capture is refused when saved."""
    try:
        data = to_bytes(one)
    except CaptureFormatError:
        return
    loaded = from_bytes(data)
    left_out = loaded.notes[len(one.notes) :]
    assert (loaded.launch.kernel, loaded.target, loaded.status) == (one.launch.kernel, one.target, one.status)
    assert bool(left_out) == (replace(loaded, notes=one.notes) != one) or "inf" in str(one) or "nan" in str(one)


def test_a_number_that_json_does_not_have_is_its_text() -> None:
    one = capture()
    one = replace(one, launch=replace(one.launch, options=(("eps", float("inf")), ("list", (float("nan"), 1)))))
    assert from_bytes(to_bytes(one)).launch.options == (("eps", "inf"), ("list", ("nan", 1)))


def test_a_write_changes_nothing_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mask of new files is the process's: a thread that creates a file meanwhile would get another."""
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the mask is the process's"))
    path = save(capture(), tmp_path / "one.irscope")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


def test_the_seal_is_of_this_machine_and_of_every_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path / "mine"))
    trusted = replace(capture(), environment=Environment(triton_version="3.9.0", is_trusted=True))
    data = to_bytes(trusted)
    assert from_bytes(data) == trusted
    assert to_bytes(from_bytes(data)) == data
    assert (tmp_path / "mine" / "key").stat().st_mode & 0o077 == 0
    # What a file states of itself proves nothing, and another seal does not either.
    untrusted = replace(trusted, environment=Environment(triton_version="3.9.0"))
    other = to_bytes(replace(untrusted, notes=("mine",)))
    assert not from_bytes(other[:-64] + data[-64:]).environment.is_trusted
    with zipfile.ZipFile(save(untrusted, tmp_path / "stated.irscope")) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["capture.json"])
    manifest["environment"]["is_trusted"] = True
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, json.dumps(manifest) if name == "capture.json" else member)
    assert not from_bytes(buffer.getvalue()).environment.is_trusted
    for place in range(0, len(data), 7):
        changed = bytearray(data)
        changed[place] ^= 1
        try:
            assert not from_bytes(bytes(changed)).environment.is_trusted
        except CaptureFormatError:
            continue
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path / "theirs"))
    assert not from_bytes(data).environment.is_trusted
    assert not (tmp_path / "theirs").exists()
    # Saved again there it is nobody's to trust, and no key can make it so.
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path / "mine"))
    assert not from_bytes(to_bytes(replace(untrusted, notes=("moved",)))).environment.is_trusted


def test_threads_that_seal_first_share_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path))
    keys = list[bytes | None]()
    threads = [threading.Thread(target=lambda: keys.append(machine_key(create=True))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(keys) == {(tmp_path / "key").read_bytes()}
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_the_manifest_comes_first_and_reads_alone(tmp_path: Path) -> None:
    path = save(capture(), tmp_path / "one.irscope")
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist()[0] == "capture.json"
        manifest = json.loads(archive.read("capture.json"))
        assert archive.read(manifest["artifacts"][0]["member"]) == b"module {}"
    assert manifest["schema"] == 1


def test_a_text_is_stored_once(tmp_path: Path) -> None:
    text = "module {}\n" * 100
    one = replace(capture(text=text), snapshots=(PassSnapshot(0, "ttir", "cse", 1, changed=True, text=text),))
    with zipfile.ZipFile(save(one, tmp_path / "one.irscope")) as archive:
        assert sum(text.encode() == archive.read(name) for name in archive.namelist()) == 1


def test_a_newer_schema_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "new.irscope"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("capture.json", json.dumps({"schema": 99}))
    with pytest.raises(CaptureFormatError, match=r"schema version 99; this irscope reads up to 1. Update it"):
        load(path)


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04", b"not a zip", b"PK\x05\x06" + bytes(18)], ids=["empty", "cut zip", "text", "empty zip"]
)
def test_what_is_no_capture_is_said_to_be_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.irscope"
    path.write_bytes(data)
    with pytest.raises(CaptureFormatError, match=r"x.irscope"):
        load(path)


@given(st.data())
@settings(deadline=None)
def test_a_damaged_file_is_an_error_of_ours_or_reads(data: st.DataObject) -> None:
    good = bytearray(to_bytes(capture()))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))
    for damaged in (bytes(good), bytes(good[:cut])):
        try:
            from_bytes(damaged)
        except CaptureFormatError:
            continue


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CaptureNotFound, match="No such file"):
        load(tmp_path / "none.irscope")


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(capture(), tmp_path / "one.irscope")
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(capture("other"), path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["one.irscope"]


def test_a_write_that_fails_names_the_file_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(OSError, match="No space left") as raised:
        write_atomically(tmp_path / "page.html", b"")
    assert (raised.value.filename, raised.value.errno) == (str(tmp_path / "page.html"), errno.ENOSPC)
    monkeypatch.undo()
    gone = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(tmp_path / ".page.html.x1y2"))
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(gone))
    with pytest.raises(FileNotFoundError) as missing:
        write_atomically(tmp_path / "page.html", b"")
    assert missing.value.filename == str(tmp_path / "page.html")
    monkeypatch.undo()
    # What is in the way is another file: that one is named.
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError) as in_the_way:
        write_atomically(tmp_path / "file" / "page.html", b"")
    assert in_the_way.value.filename == str(tmp_path / "file")


def test_the_store_finds_by_id_and_by_last(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path)
    one, two = capture("first"), capture("second")
    store.add(one)
    path = store.add(two)
    os.utime(path, ns=(2**62, 2**62))
    assert store.load(one.id[:6]) == one
    assert store.load("last") == two
    assert [row.facts.name for row in store.rows()] == ["second", "first"]
    with pytest.raises(CaptureNotFound, match=r"'irscope ls' lists them"):
        store.find("ffff0000")


def test_the_store_drops_the_oldest_past_its_limit(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path, limit_bytes=3000)
    for number in range(8):
        path = store.add(capture(f"kernel{number}", os.urandom(400).hex()))
        os.utime(path, ns=(10**9 * number, 10**9 * number))
    names = [row.facts.name for row in store.rows()]
    assert names[0] == "kernel7"
    assert sum(path.stat().st_size for path in store.paths()) <= 3000 + 2000
    assert len(names) < 8


def test_what_decides_a_compile_decides_the_id() -> None:
    one = capture()
    others = [
        replace(one, plan=PassPlan.parse("-combine")),
        replace(one, target=Target.parse("cuda:80")),
        replace(one, launch=replace(one.launch, options=(("num_warps", 8),))),
        replace(one, launch=replace(one.launch, constants=(("BLOCK", "64"),))),
        replace(one, environment=Environment(triton_version="3.8.0")),
        capture(text="module { }"),
    ]
    assert len({item.id for item in [one, *others]}) == 7
    assert replace(one, environment=Environment(date="2026-01-01", command="irscope dump")).id == one.id


def test_a_text_that_no_file_can_hold_is_stored_as_far_as_it_can_be() -> None:
    """Bytes that are not UTF-8 are kept; other lone surrogates, which only a program can make, are replaced."""
    text = "module {} // \udc80 \ud800 é\n"
    stored = replace(capture(), artifacts=(Artifact("ttir", text),), snapshots=(), notes=("\ud800",))
    loaded = from_bytes(to_bytes(stored))
    assert loaded.text("ttir") == "module {} // \udc80 � é\n"
    assert len(loaded.notes) == 1


def test_a_text_of_too_many_lines_is_left_out_and_refused_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "\n" * 500_001
    snapshots = tuple(PassSnapshot(index, "ttir", "cse", index + 1, text=long[index:]) for index in (0, 1))
    stored = replace(capture(), artifacts=(*capture().artifacts, Artifact("ptx", long)), snapshots=snapshots)
    loaded = from_bytes(to_bytes(stored))
    assert (loaded.artifacts, loaded.snapshots) == (
        capture().artifacts,
        (replace(snapshots[0], text=None), snapshots[1]),
    )
    assert [note.partition(",")[0] for note in loaded.notes] == [
        "The recording holds no stage ptx",
        "The recording holds no IR after ttir:cse#1",
    ]
    data = to_bytes(replace(stored, artifacts=(Artifact("ptx", long[1:]),), snapshots=()))
    monkeypatch.setattr("irscope.store.schema._MAX_TEXT_LINES", 499_999)
    with pytest.raises(CaptureFormatError, match=r"its stages/ptx has 500,000 lines; irscope reads up to 499,999"):
        from_bytes(data)


def test_graphs_beyond_the_bound_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As many as are allowed take two seconds to be written and read.
    monkeypatch.setattr("irscope.store.schema._MAX_GRAPH_ROWS", 1000)
    node = GraphNode("add", "aten.add.Tensor", "a.py", 1, "f", "x + 1")
    path = tmp_path / "large.irscope"
    for count in (1000, 999):
        save(replace(capture(), graphs=(GraphOrigin("0", "forward", nodes=(node,) * count),)), path)
        assert [len(origin.nodes) for origin in load(path).graphs] == ([count] if count == 999 else [])
    monkeypatch.setattr("irscope.store.schema._MAX_GRAPH_ROWS", 999)
    with pytest.raises(CaptureFormatError, match=r"its graphs have 1,000 nodes and calls; irscope reads up to 999"):
        load(path)


def test_a_graph_is_no_part_of_the_identity() -> None:
    assert replace(capture(), graphs=(GraphOrigin("0", "forward"),)).id == capture().id

"""Captures to and from files: round trips, bounds, and files that are none."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

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
from irscope.model.compiler_log import CompilerLog, PassLog
from irscope.model.graph_origin import GraphCall, GraphNode, GraphOrigin
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.model.operation_lines import OperationLines
from irscope.model.profile import Profile
from irscope.plan import PassPlan
from irscope.store.file import from_bytes, load, save, to_bytes, write_atomically
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


def test_a_view_may_run_backwards() -> None:
    """Libraries pass objects of their own for tensors, whose strides may be negative."""
    flipped = Argument("x", "tensor", "float16", shape=(4, 8), strides=(8, -1), storage_offset=7)
    one = capture()
    one = replace(one, launch=replace(one.launch, record=LaunchRecord((flipped,))))
    assert from_bytes(to_bytes(one)).launch.record == one.launch.record


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
    monkeypatch.setattr(tempfile, "mkstemp", lambda **_: (_ for _ in ()).throw(gone))
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


def test_a_text_of_too_many_lines_is_refused_by_name() -> None:
    stored = replace(capture(), artifacts=(Artifact("ptx", "\n" * 500_001),), snapshots=())
    with pytest.raises(CaptureFormatError, match=r"its stages/ptx has 500,001 lines; irscope reads up to 500,000"):
        from_bytes(to_bytes(stored))


def test_graphs_beyond_the_bound_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As many as are allowed take two seconds to be written and read.
    monkeypatch.setattr("irscope.store.schema._MAX_GRAPH_ROWS", 1000)
    node = GraphNode("add", "aten.add.Tensor", "a.py", 1, "f", "x + 1")
    path = tmp_path / "large.irscope"
    for count in (999, 1000):
        save(replace(capture(), graphs=(GraphOrigin("0", "forward", nodes=(node,) * count),)), path)
        if count == 999:
            assert len(load(path).graphs[0].nodes) == count
    with pytest.raises(CaptureFormatError, match=r"its graphs have 1,001 nodes and calls; irscope reads up to 1,000"):
        load(path)


def test_a_graph_is_no_part_of_the_identity() -> None:
    assert replace(capture(), graphs=(GraphOrigin("0", "forward"),)).id == capture().id

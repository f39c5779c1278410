"""`irscope record -o`, and commands that are given a collection."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.errors import CaptureFormatError, CaptureNotFound
from irscope.model.capture import Artifact, Capture
from irscope.model.launch_record import Argument, LaunchRecord, OtherLaunch
from irscope.store.collection import Collection, PackedCollection
from irscope.store.file import from_bytes, is_packed, load, save
from irscope.store.recent import CaptureStore
from irscope.store.schema import INDEX
from tests.cli.conftest import Run
from tests.cli.product import ROOT
from tests.cli.test_commands import TWO_KERNELS

DATA = ROOT / "tests" / "data" / "layouts"
MATMULS = sorted(DATA.glob("matmul-*.irscope"))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of two captures of a matmul, and one of a transposition."""
    folder = tmp_path_factory.mktemp("kernels")
    for path in (*MATMULS, DATA / "matrix_transpose-cuda-90.irscope"):
        save(load(path), folder / path.name)
    return folder


def test_captures_and_collections_are_collected(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    code, out, said = irscope("record", kernels, DATA / "flash_attention-cuda-90.irscope", "-o", made)
    assert code == 0
    assert said.splitlines()[-1] == f"{made}: 4 captures; 4 new, 0 replaced."
    assert sorted(line.split()[1] for line in out.splitlines()[1:]) == [
        "attention_kernel", "matmul_grouped_kernel", "matmul_grouped_kernel", "transpose_kernel",
    ]  # fmt: skip
    code, out, said = irscope("record", MATMULS[0], "-o", made, "--json")
    assert [row["added"] for row in json.loads(out)].count("replaced") == 1
    assert said.splitlines()[-1] == f"{made}: 4 captures; 0 new, 1 replaced."
    assert irscope("ls", made)[::2] == (0, "")


def test_the_elements_of_tensors_are_left_out_of_what_is_shared(irscope: Run, tmp_path: Path) -> None:
    lengths = Argument(
        "lengths", "tensor", "int32", shape=(2,), least=77, greatest=4242, data="lengths", result="after"
    )
    record = LaunchRecord((lengths, Argument("n", "scalar", "int", value=4096)))
    capture = load(MATMULS[0])
    launch = replace(capture.launch, record=record, others=(OtherLaunch((4, 1, 1), record),))
    save(replace(capture, launch=launch), tmp_path / "own.irscope")
    for made in (tmp_path / "folder", tmp_path / "one.irscope"):
        assert irscope("record", tmp_path / "own.irscope", "-o", made, "--no-data")[0] == 0
        assert irscope("dump", f"{made}::{capture.name}", "-o", tmp_path / "shared.irscope")[0] == 0
        shared = load(tmp_path / "shared.irscope")
        for held in (shared.launch.record, shared.launch.others[0].record):
            assert held == LaunchRecord((Argument("lengths", "tensor", "int32", shape=(2,)), record.arguments[1]))
        with zipfile.ZipFile(tmp_path / "shared.irscope") as file:
            assert not any(b"4242" in file.read(name) for name in file.namelist())
        assert shared.id == capture.id
    assert load(tmp_path / "own.irscope").launch == launch
    code, _, said = irscope("record", tmp_path / "own.irscope", "--no-data")
    assert (code, "-o FOLDER|FILE.irscope" in said) == (2, True)


def test_a_capture_that_cannot_be_read_stops_no_command_over_many(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    """Whether its manifest is damaged, or a text of it while the index is true: it is named, and the exit code is 1."""
    folder = tmp_path / "folder"
    shutil.copytree(kernels, folder)
    Collection(folder).entries()
    bad = folder / MATMULS[0].name
    with zipfile.ZipFile(bad) as archive:
        at = archive.getinfo("stages/ttgir").header_offset + 200
    data, status = bytearray(bad.read_bytes()), bad.stat()
    data[at : at + 64] = bytes(64)
    bad.write_bytes(data)
    os.utime(bad, ns=(status.st_atime_ns, status.st_mtime_ns))
    (folder / "none.irscope").write_bytes(b"PK no capture")
    named = load(MATMULS[0]).id[:8]
    made = tmp_path / "made"
    for words in (["check", folder], ["report", folder, "-o", tmp_path / "page.html"], ["record", folder, "-o", made]):
        code, _, said = irscope(*words)
        assert code == 1, words
        assert (f"({named}) is left out" in said, "none.irscope' is not a capture" in said) == (True, True), said
    others = {load(path).id for path in folder.glob("ma*.irscope") if path != bad}
    assert {load(path).id for path in made.glob("*.irscope")} == others
    assert len(others) == 2


def test_what_takes_long_is_saved_one_by_one(
    irscope: Run, kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To disassemble takes nearly all the time of a first `check`, and of `record`: what was done is kept."""
    folder, made = tmp_path / "folder", tmp_path / "made"
    folder.mkdir()
    for path in kernels.glob("*.irscope"):
        one = load(path)
        save(one.with_(artifacts=(*one.artifacts, Artifact("cubin", path.name.encode()))), folder / path.name)
    done: list[str] = []

    def with_listing(capture: Capture) -> tuple[Capture, str]:
        done.append(capture.id)
        if len(done) == 2:
            raise KeyboardInterrupt
        return capture.with_(artifacts=(*capture.artifacts, Artifact("sass", "// none\n"))), ""

    def with_sass(folder: Path) -> set[str]:
        return {capture.id for capture in map(load, folder.glob("*.irscope")) if "sass" in capture.stages}

    monkeypatch.setattr(importlib.import_module("irscope.record.process.annotations"), "with_listing", with_listing)
    for words in (["record", folder, "-o", made], ["check", folder, "--no-finding", "any"]):
        with contextlib.suppress(KeyboardInterrupt):
            irscope(*words)
        # The second command finds what the first one did, in the folder that it read, and goes on from there.
        assert with_sass(folder) == {*done[:1], *done[2:]}
    assert with_sass(made) == {*done[:1]}
    assert len(with_sass(folder)) == 3


def test_a_collection_is_one_file(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    """What a folder answers, its file answers; and it can be added to."""
    file = tmp_path / "kernels.irscope"
    code, _, said = irscope("record", MATMULS[0], "-o", file, "--json")
    assert (code, said.splitlines()[-1]) == (0, f"{file}: 1 capture; 1 new, 0 replaced.")
    code, _, said = irscope("record", kernels, "-o", file, "--json")
    assert (code, said.splitlines()[-1]) == (0, f"{file}: 3 captures; 2 new, 1 replaced.")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert len(json.loads(irscope("ls", file, "--json")[1])) == 3
    for path in MATMULS:
        # In which order they are named is the files' names', which differ.
        for command, *more in (("show", "--json"), ("passes", "--json"), ("show", "--stage", "ttgir")):
            named = [irscope(command, f"{place}::{load(path).id}", *more)[:2] for place in (file, kernels)]
            assert named[0] == named[1]
    packed = PackedCollection(file)
    held = {load(path).id: load(path) for path in kernels.glob("*.irscope")}
    assert {row.facts.id: from_bytes(packed.bytes_of(row.file)) for row in packed.entries()} == held
    assert {one.id: one for one in packed.captures(packed.entries())} == held
    # Whole or not at all, and the same from the same.
    before = file.read_bytes()
    assert irscope("record", kernels, "-o", file)[0] == 0
    assert file.read_bytes() == before


def test_what_is_listed_of_a_collection(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    file = tmp_path / "kernels.irscope"
    irscope("record", kernels, "-o", file)
    for place in (kernels, file):
        code, out, _ = irscope("ls", place, "--json")
        rows = json.loads(out)
        assert (code, len(rows)) == (0, 3)
        assert {row["id"] for row in rows} == {load(path).id for path in kernels.glob("*.irscope")}
        for row in rows:
            assert json.loads(irscope("show", row["file"], "--json")[1])[0]["id"] == row["id"]
        assert [
            row["target"]
            for row in json.loads(irscope("ls", f"{place}::matmul*", "--where", "target=hip", "--json")[1])
        ] == ["hip:gfx942"]
        code, _, said = irscope("ls", f"{place}::nothing")
        assert (code, said.startswith(f"irscope: {place} holds no kernel 'nothing'")) == (1, True)


def test_files_that_are_no_collection(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    code, _, said = irscope("record", kernels, "-o", capture := tmp_path / "one.irscope")
    assert code == 0
    capture.write_bytes(MATMULS[0].read_bytes())
    code, _, said = irscope("record", kernels, "-o", capture)
    assert (code, "is not a collection: name another file" in said) == (2, True)
    assert not is_packed(capture)
    for names in (["../outside.irscope"], ["a\\b.irscope"]):
        with zipfile.ZipFile(hostile := tmp_path / "hostile.irscope", "w") as archive:
            for name in ("index.json", *names):
                archive.writestr(name, b"{}")
        code, _, said = irscope("show", hostile)
        assert (code, "is not the name of a file in a folder" in said) == (1, True)
    with zipfile.ZipFile(hostile, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("index.json", b"{}")
        archive.writestr("bomb.irscope", bytes(1 << 20))
    code, _, said = irscope("ls", hostile)
    assert (code, "was compressed again" in said) == (1, True)
    with zipfile.ZipFile(hostile, "w") as archive:
        archive.writestr("index.json", b'{"index": 1, "captures": [{"file": 3}]}')
        archive.writestr("x.irscope", b"no capture")
        archive.writestr(MATMULS[0].name, MATMULS[0].read_bytes())
    code, out, said = irscope("ls", hostile, "--json")
    assert (code, [row["id"] for row in json.loads(out)]) == (1, [load(MATMULS[0]).id])
    assert "x.irscope' is not a capture, or is damaged" in said


def test_wrong_input(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    code, out, said = irscope("record")
    assert (code, out) == (2, "")
    assert "give a FILE, -m MODULE, --pytest PATH, or a command after --" in said
    code, out, said = irscope("record", "--launch", 2, "--", "true")
    assert (code, out) == (2, "")
    assert "a command after -- is recorded as it stands: leave out --launch (2)" in said
    file = tmp_path / "file"
    file.write_text("")
    code, _, said = irscope("record", "a.py", "-o", file)
    assert (code, said) == (
        2,
        f"irscope: -o {str(file)!r} is a file: a collection is a folder, or a file that ends in .irscope.\n",
    )
    code, out, said = irscope("record", tmp_path / "none.py", MATMULS[0], "-o", tmp_path / "made")
    assert code == 1
    assert "none.py' does not exist" in said
    assert "matmul_grouped_kernel" in out
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / INDEX).write_text("")
    code, _, said = irscope("show", tmp_path / "empty")
    assert code == 1
    assert (
        said
        == f"irscope: '{tmp_path}/empty' holds no capture. Record some: irscope record SCRIPT -o {tmp_path}/empty\n"
    )


@pytest.mark.parametrize("command", ["show", "dump", "why", "source", "draw dataflow", "passes"])
def test_commands_take_all_of_a_collection(irscope: Run, kernels: Path, command: str) -> None:
    more = ["--tries", "0"] if command == "why" else []
    code, out, _ = irscope(*command.split(), f"{kernels}::matmul*", "--json", *more)
    assert code == 0
    assert len(json.loads(out)) == 2
    targets = {row["target"] for row in json.loads(out)}
    assert targets == {"cuda:80", "hip:gfx942"}


@pytest.mark.parametrize(
    "command",
    ["layout", "ablate", "ablate --check compiles", "profile", "dump --via mlir-dump", "edit --at x --edited y"],
)
def test_one_capture_of_several_is_to_be_named(irscope: Run, kernels: Path, command: str) -> None:
    name, *options = command.split()
    code, out, said = irscope(name, f"{kernels}::matmul*", *options)
    assert (code, out) == (2, "")
    head, *rows = said.splitlines()
    assert head == f"irscope: {kernels}::matmul* names 2 captures, and one is needed:"
    for path, row in zip(MATMULS, rows, strict=True):
        capture = load(path)
        assert row.startswith(
            f"  {kernels}::{capture.id}  matmul_grouped_kernel ({capture.target}) target={capture.target}"
        )


def test_a_collection_is_not_loaded_as_a_capture(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.irscope"
    assert irscope("record", kernels, "-o", packed)[0] == 0
    for path, error in ((kernels, CaptureNotFound), (packed, CaptureFormatError)):
        with pytest.raises(error, match=r"'irscope dump .*::ID -o FILE.irscope' writes one"):
            load(path)


@pytest.mark.triton
def test_last_names_what_record_listed(irscope: Run, tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(TWO_KERNELS)
    other.write_text(TWO_KERNELS.replace("def ones", "def threes").replace("ones[", "threes["))
    both = ("-t", "cuda:80", "-t", "cuda:90")
    for words, count in (((one, other), 4), ((one, "--launch", 2), 1), ((one, "--launch", 1, *both), 2)):
        code, out, _ = irscope("record", *words, "--json")
        assert code == 0
        listed = [row["id"] for row in json.loads(out)]
        assert len(listed) == count
        assert [row.facts.id for row in CaptureStore().last_recording()] == listed


def test_one_capture_is_chosen(irscope: Run, kernels: Path, tmp_path: Path) -> None:
    one, other = (load(path) for path in MATMULS)
    code, out, _ = irscope("layout", f"{kernels}::{one.id[:6]}", "--json")
    assert (code, out) == irscope("layout", MATMULS[0], "--json")[:2]
    code, out, _ = irscope("diff", f"{kernels}::{one.id}", f"{kernels}::{other.id}", "--json", "--stat")
    assert out == irscope("diff", *MATMULS, "--json", "--stat")[1]
    code, _, said = irscope("show", f"{kernels}::matmul_kernel")
    assert code == 1
    assert said.endswith(
        "no kernel 'matmul_kernel', and no capture whose id begins so. Did you mean 'matmul_grouped_kernel'?\n"
    )
    assert irscope("report", kernels, "-o", tmp_path / "page.html")[0] == 0


@pytest.mark.triton
@pytest.mark.newest
def test_a_recording_that_is_killed_loses_nothing(irscope: Run, tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(TWO_KERNELS.replace("twos[(1,)]", "import time; time.sleep(600)\ntwos[(1,)]"))
    folder = tmp_path / "kernels"
    command = [sys.executable, "-m", "irscope", "record", script, "-o", folder]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not list(folder.glob("ones-*.irscope")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [one.facts.name for one in Collection(folder).entries()] == ["ones"]
    # Going on compiles only what is missing.
    script.write_text(TWO_KERNELS)
    store = CaptureStore()
    (kept,) = store.paths()
    first = load(kept)
    code, out, said = irscope("dump", script, "--resume", "--json")
    assert (code, [row["kernel"] for row in json.loads(out)]) == (0, ["ones", "twos"])
    assert "1 of 2 captures were stored before, and not compiled again." in said.splitlines()
    # Its SASS, which the first run did not come to, was added; the compile is the first run's.
    assert (load(kept).compile_us, load(kept).environment) == (first.compile_us, first.environment)
    assert len(store.paths()) == 2
    # The second run adds what is missing, and replaces what is there.
    code, out, said = irscope("record", script, "-o", folder, "--json")
    assert (code, said.splitlines()[-1]) == (0, f"{folder}: 2 captures; 1 new, 1 replaced.")
    assert {row["kernel"]: row["added"] for row in json.loads(out)} == {"ones": "replaced", "twos": "new"}
    for entry in Collection(folder).entries():
        assert load(folder / entry.file).id == entry.facts.id


@pytest.mark.newest
@pytest.mark.triton
def test_modules_of_the_working_folder_are_not_imported(tmp_path: Path) -> None:
    """As with `python FILE`, which looks in the file's folder alone."""
    pytest.importorskip("triton", reason="it compiles with Triton")
    (tmp_path / "copy.py").write_text("raise SystemExit('the copy.py of the working folder')\n")
    file = ROOT / "tests" / "record" / "kernels" / "no_torch.py"
    program = "import sys; del sys.path[0]; from irscope.__main__ import run; sys.exit(run(sys.argv[1:]))"
    words = ["record", f"{file}::tile_product", "--target", "cuda:90",
             "--signature", "*fp16:16, *fp16:16, *fp32:16, i32:16, 64"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(ROOT), "IRSCOPE_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

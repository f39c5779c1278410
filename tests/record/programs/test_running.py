"""Every way into a recording finds the same launches, runs the program as it is, and leaves nothing behind."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import irscope
from irscope.errors import RecordingError, UsageError
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.process import requests
from irscope.record.process.requests import RecordRequest, request_for, request_for_command
from irscope.record.process.session import Recording, record_request
from tests.record.programs.sample import ALONE, LAUNCH, WRITES, contents, write_notebook, write_package

pytestmark = [pytest.mark.triton, pytest.mark.newest]

Recorder = Callable[..., Recording]


def options(**values: Any) -> RecordingOptions:
    quick = {"targets": ("cuda:90",), "virtual": True, "layouts": False, "disassemble": False, "snapshots": "none"}
    return RecordingOptions(**{**quick, **values})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the package."""
    folder = tmp_path / "work"
    folder.mkdir()
    write_package(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return folder


@pytest.fixture
def record(here: Path) -> Recorder:
    """Records, and checks that it changes neither the working folder nor this process."""

    def recorded(request: RecordRequest) -> Recording:
        before = contents(here), dict(os.environ), list(sys.path)
        recording = record_request(request)
        assert (contents(here), dict(os.environ), list(sys.path)) == before
        return recording

    return recorded


def origins(capture: Capture) -> list[str]:
    return [name for _, name in capture.environment.origin]


def test_a_module_of_a_package_is_the_same_by_every_way(
    here: Path, record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-m`, a signature, tests and a command: one kernel of one file is one compile."""
    ran = record(request_for("", options(module="sample_package.inner.kernels", arguments=("64", "-x"))))
    assert "arguments ['64', '-x'] sample_package.inner" in ran.output
    (capture,) = ran.captures
    assert capture.has_compiled, capture.failure
    assert capture.launch.grid == (1, 1, 1)
    assert [Path(source.path).name for source in capture.sources] == ["kernels.py", "helpers.py"]

    command = [sys.executable, "-m", "sample_package.inner.kernels", "64"]
    users_own = here.parent / "own"
    users_own.mkdir()
    (users_own / "sitecustomize.py").write_text("print('the sitecustomize of the user')\n")
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(users_own), *filter(None, [os.environ.get("PYTHONPATH")])]))
        commanded = record(request_for_command(options(arguments=tuple(command))))
    assert "the sitecustomize of the user" in commanded.output
    (started,) = commanded.captures
    assert started.environment.origin == ()
    assert started.id == capture.id
    assert started.texts == capture.texts

    given = {"signature": "*fp32:16, *fp32:16", "constexprs": (("BLOCK", "64"),)}
    file = here / "sample_package" / "inner" / "kernels.py"
    (by_file,) = record(request_for(file, options(**given), kernel="doubled")).captures
    (by_module,) = record(request_for("", options(module="sample_package.inner.kernels::doubled", **given))).captures
    for other in (by_file, by_module):
        assert other.texts["source"] == capture.texts["source"]
        assert other.cubin == capture.cubin


def test_each_capture_knows_its_tests(here: Path, record: Recorder) -> None:
    asked = options(tests=("checks",), test_filter="not left_out", arguments=("-n", "2", "-p", "xdist"))
    recording = record(request_for("", asked))
    names = "checks/test_sample.py::"
    assert [origins(capture) for capture in recording.captures] == [
        [f"{names}test_doubled[fp32]", f"{names}test_again", f"{names}test_fails"][:2],
        [f"{names}test_doubled[fp16]"],
        [f"{names}test_fails"],
    ]
    assert all(capture.has_compiled and capture.launch.grid == (1, 1, 1) for capture in recording.captures)
    (end,) = recording.script_ends
    assert (end.code, end.message, end.complete) == (1, "1 of 4 tests failed", True)
    assert end.frames.strip() == f"{names}test_fails: ValueError: as planned"
    assert recording.notes[0].startswith("--numprocesses was switched off")
    (chosen,) = irscope.record_all(tests="checks/test_sample.py::test_again", target="cuda:90", virtual=True)
    assert origins(chosen) == [f"{names}test_again"]
    # What a test launched is no part of what it is.
    assert chosen.id == recording.captures[0].id


def test_a_notebook_runs_cell_by_cell(here: Path, record: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = here / "kernels.ipynb"
    write_notebook(
        ours, ALONE, "%nothing here\n" * ("IPython" not in sys.modules) + "n = 64", f"assert n == 64\n{LAUNCH}"
    )
    (script := here / "script.py").write_text(f"{ALONE}\n{LAUNCH}")
    monkeypatch.setattr(sys, "stdin", io.StringIO(script.read_text()))
    requests._standard_input.cache_clear()
    without_shell(here, monkeypatch)
    recording = record(request_for(ours, options()))
    (cell,) = recording.captures
    assert origins(cell) == ["kernels.ipynb#cell3"]
    assert cell.launch.kernel.file == f"{ours}#cell1"
    assert [(source.path, source.text) for source in cell.sources] == [(f"{ours}#cell1", ALONE)]
    assert recording.notes == (
        "A line of kernels.ipynb#cell2 was left out, as IPython is not installed: %nothing here",
    )
    (typed,) = record(request_for("-", options())).captures
    assert typed.launch.kernel.file == "<stdin>"
    assert typed.sources[0].text == script.read_text()
    (plain,) = record(request_for(script, options())).captures
    for other in (cell, typed):
        for stage in ("source", "ttir", "ttgir"):
            assert strip_locations(other.text(stage), "mlir") == strip_locations(plain.text(stage), "mlir")
    write_notebook(ours, ALONE, LAUNCH, "raise KeyError(5)", "launched = after()")
    failed = record(request_for(ours, options()))
    assert len(failed.captures) == 1
    assert failed.stopped[0].message == "KeyError: 5"
    assert f'File "{ours}#cell3", line 1' in failed.stopped[0].frames


def without_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the recorded Python find no IPython."""
    hidden = folder.parent / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['IPython'] = None\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(hidden), *filter(None, [os.environ.get("PYTHONPATH")])]))


def test_a_cell_with_magics_runs_as_ipython_has_it(here: Path, record: Recorder) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed: pip install 'irscope[test]'")
    ours = write_notebook(here / "magics.ipynb", ALONE, f"%%time\n{LAUNCH}", "x = !echo from the shell\nprint(x)")
    recording = record(request_for(ours, options()))
    (capture,) = recording.captures
    assert origins(capture) == ["magics.ipynb#cell2"]
    assert capture.launch.kernel.file == f"{ours}#cell1"
    assert "Wall time" in recording.output
    assert "['from the shell']" in recording.output
    assert not recording.stopped


@pytest.mark.parametrize("way", ["script", "command"])
def test_dry_keeps_the_folder_as_it_is(way: str, here: Path, record: Recorder) -> None:
    (here / "writes.py").write_text(f"{ALONE}\n{LAUNCH}\n{WRITES}")
    for name in ("changed.txt", "moved.txt", "removed/inside.txt"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("as it was")
    if way == "script":
        recording = record(request_for("writes.py", options(dry=True)))
        assert recording.captures[0].launch.kernel.file == str(here / "writes.py")
    else:
        # Its own folder is the copy, so only the script's changes by an absolute path reach that.
        code = f"import runpy; runpy.run_path({str(here / 'writes.py')!r})"
        recording = record(request_for_command(options(dry=True, arguments=(sys.executable, "-c", code))))
    assert [capture.name for capture in recording.captures] == ["stored"]
    assert not recording.stopped
    assert "refused 5 True ['changed.txt', 'checks', 'elsewhere.txt', 'new', " in recording.output
    (here / "only.py").write_text("open('written.txt', 'w')\n")
    # Without it, a script writes what it writes.
    record_request(request_for("only.py", options()))
    assert (here / "written.txt").exists()


def test_dry_refuses_a_folder_that_is_too_large(here: Path) -> None:
    with open(here / "large", "wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(RecordingError, match="more than 20,000 files or 512 MiB"):
        record_request(request_for("checks/test_sample.py", options(dry=True)))


@pytest.mark.parametrize(
    ("source", "values", "message"),
    [
        ("", {"module": "a/b.py"}, "write the name of a module"),
        ("", {"module": "a", "tests": ("checks",)}, "-m and --pytest do not go together"),
        ("", {"tests": ("nowhere/test.py::one",)}, "'nowhere/test.py::one' does not exist"),
        ("-", {"test_filter": "x"}, "-k chooses among tests"),
        ("nowhere.ipynb", {}, "'nowhere.ipynb' does not exist"),
        ("", {"tests": ("checks",), "signature": "*fp32"}, "--signature compiles a kernel of a FILE.py or of -m"),
        ("", {"module": "a", "constexprs": (("B", "1"),)}, "--constexpr goes with --signature"),
    ],
)
def test_what_does_not_fit_is_said(source: str, values: dict[str, Any], message: str, here: Path) -> None:
    with pytest.raises((UsageError, RecordingError), match=message):
        request_for(source, options(**values))


def test_python_names_one_program(here: Path) -> None:
    with pytest.raises(UsageError, match="-m sample_package and checks do not go together"):
        irscope.record_all("checks", module="sample_package")
    with pytest.raises(UsageError, match="nothing is given to record: give one of a source, module= and tests="):
        irscope.record_all()
    with pytest.raises(RecordingError, match="'nowhere' does not exist"):
        irscope.record_all(tests=Path("nowhere"))


def test_what_is_not_there_is_said(here: Path, record: Recorder) -> None:
    with pytest.raises(UsageError, match="no command is given"):
        request_for_command(options())
    with pytest.raises(RecordingError, match="the command 'no-such-command' cannot be run: No such file"):
        record(request_for_command(options(arguments=("no-such-command",))))
    with pytest.raises(RecordingError, match="pytest found no test that matches -k 'nothing' in checks"):
        record(request_for("", options(tests=("checks",), test_filter="nothing")))
    (here / "broken.ipynb").write_text("{}")
    with pytest.raises(RecordingError, match=r"broken.ipynb is not a notebook of format 4"):
        record(request_for("broken.ipynb", options()))
    kernels = here / "sample_package" / "inner" / "kernels.py"
    (note,) = record(request_for(kernels, options())).notes
    assert note.endswith("irscope dump -m sample_package.inner.kernels runs it.")
    (end,) = record(request_for_command(options(arguments=("sh", "-c", "exit 3")))).script_ends
    assert (end.code, end.message) == (3, "it exited with code 3")

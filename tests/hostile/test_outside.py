"""Standard streams that are closed, or of an encoding that lacks half the signs, end no command with a traceback."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from irscope.__main__ import run
from irscope.cli.streams import open_streams
from irscope.store.file import save
from tests.cli.product import ROOT
from tests.hostile.payload import with_payload
from tests.hostile.viewing import COMMANDS
from tests.marks import newest_but
from tests.report_browser.captures import softmax


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return save(softmax(), tmp_path / "x.irscope")


@pytest.mark.parametrize(
    "encoding",
    newest_but(["cp437"], "ascii", "cp437", "cp1252", "latin-1", "utf-8", rare=["ascii", "cp1252", "latin-1", "utf-8"]),
)
def test_every_encoding_holds_what_is_shown(
    file: Path, tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = save(with_payload(softmax()), tmp_path / "other.irscope")
    for words in COMMANDS:
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        told = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", told)
        open_streams()
        code = run([word.format(file=file, other=other, out=tmp_path) for word in words])
        out.flush()
        told.flush()
        said = told.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
        assert code in (0, 1), said
        assert "internal error" not in said
        out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_signs_that_an_encoding_lacks_are_spelt(file: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "irscope", "diff", str(file), str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert done.stdout.isascii()


@pytest.mark.parametrize(
    ("redirection", "code", "told"),
    [
        (">&-", 1, "standard output is closed"),
        ("2>&-", 0, ""),
        ("<&- 2>&- >&-", 1, ""),
        ("> /dev/full", 1, "standard output, or a temporary file"),
        ("| head -c 1", 0, ""),
    ],
)
def test_a_stream_that_takes_nothing(file: Path, redirection: str, code: int, told: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -m irscope show {file} --stage ttgir {redirection}"
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    "words", [["examples/vector_add.py"], ["examples/vector_add.py::add_kernel", "--signature", "i32"]]
)
def test_the_interpreter_is_named(words: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "irscope", "dump", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "TRITON_INTERPRET=1 is set" in done.stderr


@pytest.mark.parametrize("script", ["vector_add.py", str(ROOT / "examples" / "vector_add.py")])
def test_a_working_folder_that_is_gone(tmp_path: Path, script: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"rmdir {tmp_path}; {sys.executable} -m irscope dump {script}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "the working folder" in done.stderr
    assert "is gone" in done.stderr


def test_a_dumb_terminal_has_no_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    from irscope.render.text.terminal import page

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    page("text", stream, {"TERM": "dumb", "PAGER": "a-pager-that-would-run"})
    assert stream.getvalue() == "text\n"

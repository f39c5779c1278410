"""Fixtures of the tests of commands: the command line in this process, and a capture of a small matmul."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from irscope.__main__ import run as run_irscope
from irscope.model.capture import Capture
from irscope.store.file import load
from irscope.store.recent import CaptureStore
from tests.cli.product import KERNELS, ROOT, SIGNATURE, Run


@pytest.fixture
def irscope(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = run_irscope([str(one) for one in arguments])
        answer = capsys.readouterr()
        return code, answer.out, answer.err

    return run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file with a capture of a small matmul, and a home where it is `last`."""
    home = tmp_path_factory.mktemp("home")
    path = home / "product.irscope"
    command = [sys.executable, "-m", "irscope", "dump", f"{KERNELS}::tile_product", *SIGNATURE, "-o", path]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT), "IRSCOPE_HOME": str(home)})
    return path, home


@pytest.fixture
def product(recorded: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Capture:
    """That capture, which is `last`; what was compiled of it for one test is there for the next."""
    path, home = recorded
    monkeypatch.setenv("IRSCOPE_HOME", str(home))
    capture = load(path)
    CaptureStore().add(capture)
    return capture

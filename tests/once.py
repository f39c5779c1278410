"""What is made once in a run of the tests, and shared by its processes."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import pytest

_Value = TypeVar("_Value")
_run: list[pytest.TempPathFactory] = []
"""Of this run; none where no test runs."""
_read: dict[str, Any] = {}
"""What this process has made or read: tests ask for the same captures by the dozen, and reading them takes longer."""


def begin_run(factory: pytest.TempPathFactory) -> None:
    """From now on, `kept` has a folder to keep values in."""
    _run[:] = [factory]
    _read.clear()


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder of this run that `make` filled: the first process that asks makes it, and the others wait."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "once" / name
    folder.parent.mkdir(exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            # Only what is whole bears the name.
            unfinished = factory.mktemp(name)
            make(unfinished)
            unfinished.rename(folder)
    return folder


def kept(key: object, make: Callable[[], _Value]) -> _Value:
    """What `make` returns: it is called once in a run of the tests for each key, which is told by its `repr`."""
    if not _run:
        return make()
    name = sha256(repr(key).encode()).hexdigest()[:16]

    def write(folder: Path) -> None:
        _read[name] = make()
        (folder / "value").write_bytes(pickle.dumps(_read[name]))

    if name not in _read:
        folder = made_once(_run[0], name, write)
        if name not in _read:
            _read[name] = pickle.loads((folder / "value").read_bytes())
    return _read[name]

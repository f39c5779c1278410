"""The temporary folder of a recording: its parent makes and removes it, whatever becomes of the child.

A folder holds a file that its owner keeps locked. The lock ends with the owner, so a folder whose owner was killed is
known, and the next recording removes it. The processes of a recorded program find its recording there: an environment
variable names the folder. Every Python process that the program starts imports this.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from irscope.errors import MissingTool

_PREFIX = "irscope-recording-"
FOLDER_VARIABLE = "IRSCOPE_RECORDING_FOLDER"
"""The environment variable with the path of the folder, in which a child puts its temporary files."""

_LOCK = "owner"
_EMPTY_S = 60.0
_ATTEMPTS = 5


@contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder until the end of the block; removes those of killed processes first. Raises MissingTool."""
    if not hasattr(os, "fork"):
        raise MissingTool("recording needs Linux; this system can read captures made there.")
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent_of_temporaries()))
    lock = None
    try:
        lock = _locked(folder)
        yield folder
    finally:
        _remove(folder)
        if lock is not None:
            lock.close()


_kept: list[str] = []
"""The folder of this process, once it is kept."""


def keep_parent_of_temporaries() -> None:
    """Keep `parent_of_temporaries` as it is, whatever a program in this process does to its environment."""
    _kept[:] = [os.environ[FOLDER_VARIABLE]] if FOLDER_VARIABLE in os.environ else []


def parent_of_temporaries() -> str | None:
    """Where a child of a recording makes its temporary folders, for `tempfile`; None for the usual place."""
    folder = _kept[0] if _kept else os.environ.get(FOLDER_VARIABLE)
    return folder if folder and os.path.isdir(folder) else None


def sweep() -> None:
    import fcntl

    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            try:
                file = open(folder / _LOCK, "rb")  # noqa: SIM115
            except FileNotFoundError:
                # Its owner is about to lock it, or was killed in between: rmdir takes an empty folder only.
                if time.time() - status.st_mtime > _EMPTY_S:
                    folder.rmdir()
                continue
            with file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)


def _locked(folder: Path) -> IO[bytes] | None:
    """The folder's file, locked before it has its name; None where there are no locks."""
    import fcntl

    try:
        new = folder / f"{_LOCK}.new"
        file = open(new, "wb")  # noqa: SIM115
        fcntl.flock(file, fcntl.LOCK_EX)
        new.rename(folder / _LOCK)
    except OSError:
        return None
    return file


def _remove(folder: Path) -> None:
    """Remove it, the lock last: what is left half-way is known to the next sweep."""
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                if entry.name == _LOCK:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)
            if [entry.name for entry in os.scandir(folder)] in ([], [_LOCK]):
                (folder / _LOCK).unlink(missing_ok=True)
                folder.rmdir()
                return
        # A process that was killed this moment may still have made a file.
        time.sleep(0.02)


PROGRAM_VARIABLE = "IRSCOPE_PROGRAM"
"""The environment variable with the path of the folder, for the Python processes of a program that is recorded."""

DRY_VARIABLE = "IRSCOPE_DRY"
"""That with the working folder which they must leave as it is."""

_SOCKET = "socket"


def is_gathering(folder: Path) -> bool:
    return (folder / _SOCKET).exists()


def connected(folder: Path) -> socket.socket:
    """A connection to the recording of a folder; raises OSError if that has ended."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with address_in(folder) as address:
        made.connect(address)
    return made


@contextmanager
def address_in(folder: Path) -> Iterator[str]:
    """The address of a folder's socket: a path that is short enough for one, which has some hundred bytes."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{_SOCKET}"
    finally:
        os.close(descriptor)

"""Where the processes of a recorded program find its recording: a folder, which an environment variable names.

Every Python process that the program starts imports this, so it needs the standard library alone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["DRY_VARIABLE", "PROGRAM_VARIABLE", "address_in", "announce", "announced", "connected", "is_gathering"]

PROGRAM_VARIABLE = "IRSCOPE_PROGRAM"
"""The environment variable with the path of the folder, for the Python processes of a program that is recorded."""

DRY_VARIABLE = "IRSCOPE_DRY"
"""That with the working folder which they must leave as it is."""

_SOCKET, _PROCESSES = "socket", "processes"


def is_gathering(folder: Path) -> bool:
    """Whether a recording takes reports in a folder."""
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


def announce(folder: Path) -> None:
    """Say that this process has found the recording of a folder, and which are its ancestors."""
    place = folder / _PROCESSES
    with suppress(OSError):
        place.mkdir(exist_ok=True)
        (place / str(os.getpid())).write_text(" ".join(map(str, (os.getpid(), *_ancestors()))))


def announced(folder: Path) -> list[set[int]]:
    """Of each process that has found the recording of a folder: its number, and those of its ancestors."""
    with suppress(OSError):
        return [set(map(int, path.read_text().split())) for path in (folder / _PROCESSES).iterdir()]
    return []


def _ancestors() -> Iterator[int]:
    """The numbers of the parent of this process, of the parent of that, and so on, as far as /proc tells."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            # 4711 (python3) S 4710 …
            pid = int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return

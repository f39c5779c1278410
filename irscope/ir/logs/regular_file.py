"""Reads regular files from a folder that is not trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["FileRefused", "inside", "read_at_most", "read_regular"]


class FileRefused(Exception):
    """A file is refused; the message says why, without the file name."""


def inside(path: Path, folder: Path) -> bool:
    """Whether a path stays within a folder when its symbolic links are followed."""
    try:
        return path.resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except (OSError, RuntimeError):  # RuntimeError: a cycle of links, before Python 3.13
        return False


def read_at_most(file: BinaryIO, most: int) -> bytes:
    """The bytes of a file, at most so many; `file.read(most)` takes the memory of all of them whatever is there."""
    data = bytearray()
    while len(data) < most and (part := file.read(min(most - len(data), 1 << 20))):
        data += part
    return bytes(data)


def read_regular(path: Path, limit_bytes: int, folder: Path | None = None) -> bytes:
    """The bytes of a regular file.

    A device or a pipe is not opened for reading: it could block, or have no end. With `folder`, a symbolic link that
    leads out of it is not followed: a cache that came by mail may name any file of this machine.

    Raises FileRefused, also for a file of more than `limit_bytes`.
    """
    if folder is not None:
        if not inside(path, folder):
            raise FileRefused(f"is a link that leads out of {folder.name or folder}")
        path = path.resolve()
    try:
        # Not to block on a pipe that nobody writes to; regular files know no such flag.
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (getattr(os, "O_NOFOLLOW", 0) if folder else 0)
        )
    except OSError as error:
        raise FileRefused(f"cannot be read ({error.strerror})") from error
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileRefused("is no regular file")
        try:
            data = read_at_most(file, limit_bytes + 1)
        except OSError as error:
            raise FileRefused(f"cannot be read ({error.strerror})") from error
    if len(data) > limit_bytes:
        raise FileRefused(f"is larger than {limit_bytes:,} bytes, the most that is read")
    return data

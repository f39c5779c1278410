"""`--dry`: a program runs in a copy of the working folder, and may not write to the folder itself.

What it writes by a relative path lands in the copy, which is removed with the recording. By an absolute path it would
reach the real folder: Python refuses that, with a PermissionError. What a library written in C or another program opens
by an absolute path is not seen, nor are writes outside the working folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from irscope.errors import RecordingError
from irscope.record.process.meeting import DRY_VARIABLE

__all__ = ["MOST_BYTES", "MOST_FILES", "move_to_scratch_copy", "refuse_writes", "working_folder"]

MOST_BYTES = 1 << 29
MOST_FILES = 20_000
_LEFT_OUT = (".git", "__pycache__")

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.mkdir": (0,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
    "os.symlink": (1,),
    "os.link": (1,),
    "os.rename": (0, 1),
}
"""Python's audit events of what changes a file, with the places of the paths among their arguments."""


def working_folder() -> Path:
    """The folder that a recording was started in, also where a program runs in a copy of it."""
    return Path(os.environ.get(DRY_VARIABLE) or os.getcwd())


def move_to_scratch_copy(folder: Path) -> None:
    """Change to a copy of the working folder, in `folder`, until the end of this process and of those that it starts.

    Raises RecordingError if the working folder is too large to be copied.
    """
    real = Path.cwd()
    if folder.resolve().is_relative_to(real.resolve()):
        raise RecordingError(
            f"--dry cannot copy {str(real)!r}, which holds the temporary folder: change to another one."
        )
    _check_size(real)
    copy = folder / "dry" / real.name
    shutil.copytree(real, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT), copy_function=_copy)
    os.environ.update({DRY_VARIABLE: str(real), "PYTHONDONTWRITEBYTECODE": "1"})
    os.chdir(copy)
    refuse_writes(real)


def refuse_writes(real: Path) -> None:
    """Have Python refuse to change what is in a folder, until the end of this process."""
    sys.dont_write_bytecode = True
    below = os.path.realpath(real)

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            paths = (path,) if isinstance(flags, int) and flags & _WRITES else ()
            descriptor = -1
        elif event in _CHANGES:
            paths = tuple(arguments[place] for place in _CHANGES[event])
            descriptor = next((one for one in reversed(arguments) if isinstance(one, int)), -1)
        else:
            return
        for one in paths:
            if _is_below(one, below, descriptor):
                raise PermissionError(
                    f"--dry: {os.fsdecode(one)!r} is in the working folder itself, and stays as it is."
                )

    sys.addaudithook(check)


def _is_below(path: Any, folder: str, descriptor: int) -> bool:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    text = os.fsdecode(path)
    if not os.path.isabs(text) and descriptor > 2 and os.path.exists(f"/proc/self/fd/{descriptor}/."):
        # shutil.rmtree names what it removes from an open folder.
        text = os.path.join(os.path.realpath(f"/proc/self/fd/{descriptor}"), text)
    real = os.path.join(os.path.realpath(os.path.dirname(text) or os.curdir), os.path.basename(text))
    return any(one == folder or one.startswith(folder + os.sep) for one in (real, os.path.realpath(text)))


def _check_size(folder: Path) -> None:
    files, total = 0, 0
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in names:
            files, total = files + 1, total + os.lstat(os.path.join(parent, name)).st_size
        if files > MOST_FILES or total > MOST_BYTES:
            raise RecordingError(
                f"--dry copies the working folder, and {str(folder)!r} holds more than {MOST_FILES:,} files or "
                f"{MOST_BYTES >> 20} MiB: change to a smaller one."
            )


def _copy(source: str, target: str) -> str:
    # A pipe or a socket has no content to copy, and would block.
    if os.path.isfile(source) or os.path.islink(source):
        shutil.copy2(source, target, follow_symlinks=False)
    return target

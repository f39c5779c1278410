"""The disk of this machine: files written whole or not at all, irscope's own folder, and the key of seals."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

from irscope.errors import UsageError

_KEY = "key"
_KEY_BYTES = 32


def default_folder() -> Path:
    """Where irscope keeps things: `$IRSCOPE_HOME`, else the platform's cache folder.

    Raises OSError where the user has no home folder.
    """
    if home := os.environ.get("IRSCOPE_HOME"):
        return Path(home)
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "irscope"
    try:
        user = Path.home()
    except RuntimeError as error:
        raise OSError(None, "there is no home folder to keep captures in: IRSCOPE_HOME=FOLDER names one") from error
    if sys.platform == "darwin":
        return user / "Library" / "Caches" / "irscope"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", user / "AppData" / "Local")) / "irscope" / "Cache"
    return user / ".cache" / "irscope"


def cannot_write(error: OSError, folder: Path) -> OSError:
    """The error of a folder that cannot be written to, which names `IRSCOPE_HOME`."""
    reason = f"{error.strerror or error}. IRSCOPE_HOME=FOLDER names another place for captures"
    return OSError(error.errno, reason, str(folder))


def machine_key(*, create: bool = False) -> bytes | None:
    """The secret of this user and machine that seals captures, made if `create` says so; None where there is none."""
    try:
        path = default_folder() / _KEY
    except OSError:
        return None
    key = _read_key(path)
    if key is not None or not create:
        return key
    # Written whole under another name: another process reads all of a key or none.
    whole = path.with_name(f".{_KEY}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        # Unlike a rename, this leaves a key alone that another process made meanwhile.
        with suppress(FileExistsError):
            os.link(whole, path)
    except OSError:
        return None
    finally:
        with suppress(OSError):
            whole.unlink(missing_ok=True)
    return _read_key(path)


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def refuse_unwritable(path: Path, option: str = "-o") -> None:
    """Raise UsageError for an output that cannot be written; what is there, or `-`, is left to the writing."""
    if str(path) == "-" or path.exists():
        return
    folder = next(one for one in path.absolute().parents if one.exists())
    if not folder.is_dir():
        raise UsageError(f"{option} {str(path)!r}: {str(folder)!r} is a file, and no folder.")
    if not os.access(folder, os.W_OK):
        raise UsageError(
            f"{option} {str(path)!r}: nothing can be written to the folder {str(folder)!r}. Name another one."
        )


def write_atomically(path: Path, data: bytes, times_ns: tuple[int, int] | None = None) -> None:
    """Write a file whole or not at all, by another name first; a link stays one, a device is written in place.

    `times_ns`: when it was last read and changed, for other times than now. Raises OSError, which names this path.
    """
    path = path.resolve() if path.is_symlink() else path
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            _write_beside(path, data, times_ns)
    except OSError as error:
        # A full disk names no file, and the other name says nothing to who gave this one.
        unknown = error.filename is None or Path(error.filename).name.startswith(f".{path.name}.")
        if error.errno and unknown:
            error.filename, error.filename2 = str(path), None
        raise


def _write_beside(path: Path, data: bytes, times_ns: tuple[int, int] | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # The kernel applies the process's umask: to ask for it would set it, for every thread.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        # The folder was deleted this moment.
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if times_ns is not None:
            os.utime(temporary, ns=times_ns)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

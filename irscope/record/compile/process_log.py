"""What a process prints on its standard error, where that is a file: the compiler's output is cut out of it."""

from __future__ import annotations

import contextlib
import os
import sys

from irscope.record.triton.native_calls import NativeCalls

__all__ = ["ProcessLog"]


class ProcessLog:
    """The output, as it grows."""

    def __init__(self, path: str, native: NativeCalls) -> None:
        """`path`: of the file; empty where there is none. `native`: writes what the compiler holds back."""
        self._path = path
        self._native = native
        self._read_to = self.size()

    def size(self) -> int:
        """Bytes printed so far; 0 without a file."""
        self._native.write_errors()
        # Without a log the path is empty, and no file.
        with contextlib.suppress(OSError):
            return os.stat(self._path).st_size
        return 0

    def since(self, offset: int, end: int | None = None) -> str:
        """What was printed from one byte on, up to another or up to now."""
        self._native.write_errors()
        sys.stderr.flush()
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            file.seek(offset)
            return file.read(-1 if end is None else end - offset).decode("utf-8", "replace")
        return ""

    def news(self) -> str:
        """What was printed since this was asked last."""
        begun, self._read_to = self._read_to, self.size()
        return self._native.as_printed(self.since(begun, self._read_to))

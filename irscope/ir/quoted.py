r"""Strings as LLVM writes them: hexadecimal escapes in IR (`jos\C3\A9`), octal ones in assembly (`jos\303\251`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

# \C3   \\   \"   \n
_IR_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
# \303   \\   \"   \t
_ASSEMBLY_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
# /251rnel.py, what ptxas makes of \251rnel.py
_OCTAL_NAME = re.compile(r"/(?=[0-7]{3}[^/\\]*$)")

# /home/jos\303\251/a\\b.py, and not C:\kernels\matmul.py, which another compiler wrote
_ESCAPED = re.compile(r'(?:[^\\]|\\(?:[0-7]{3}|["\\bfnrt]))*')
# /home/a                 & b/kernel.py
_PADDED = re.compile(r" {2,}&")

_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"f": b"\f", b"b": b"\b"}


def unescape_ir(text: str) -> str:
    r"""A string of MLIR or LLVM IR without its escapes: `\"`, `\\`, `\n`, `\t` and two hex digits a byte.

    Bytes that are no UTF-8 become what Python makes of them in a path (surrogates).
    """
    return _unescape(text, _IR_ESCAPE, 16)


def unescape_assembly(text: str) -> str:
    r"""A string of LLVM's assembly without its escapes: `\"`, `\\`, `\n`, `\t` and three octal digits a byte.

    Bytes that are no UTF-8 become what Python makes of them in a path (surrogates).
    """
    return _unescape(text, _ASSEMBLY_ESCAPE, 8)


def _unescape(text: str, pattern: re.Pattern[bytes], base: int) -> str:
    if "\\" not in text:
        return text

    def byte(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        return bytes([int(escape, base) & 0xFF]) if len(escape) > 1 else _LETTERS.get(escape, escape)

    return pattern.sub(byte, text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def without_padding(path: str) -> str:
    """A path of nvdisasm's as it was: it sets an ampersand with a blank before it in a column."""
    return _PADDED.sub(" &", path) if "&" in path else path


class SassPaths:
    r"""The true paths of those in a cubin, where the escapes of PTX stand unread.

    ptxas takes the last backslash of a file's name for the end of its folder and writes a slash there:
    `/home/jos\303\251/k\303\251rnel.py` becomes `/home/jos\303\251/k\303/251rnel.py`.
    """

    def __init__(self, written: Iterable[str] = ()) -> None:
        """`written`: the paths as the PTX writes them, if it is there."""
        self._true = {_as_ptxas_writes(path): unescape_assembly(path) for path in written}

    def true(self, path: str) -> str:
        """The path that one of the disassembly stands for."""
        path = without_padding(path)
        if path not in self._true:
            self._true[path] = _guessed(path)
        return self._true[path]


def _as_ptxas_writes(path: str) -> str:
    start = path.rfind("/") + 1
    last = path.rfind("\\", start)
    return path if last < 0 else f"{path[:last]}/{path[last + 1 :]}"


def _guessed(path: str) -> str:
    if not _ESCAPED.fullmatch(path):
        return path
    plain = unescape_assembly(path)
    # A character of several bytes that was torn apart is whole again with the backslash in the slash's place.
    whole = unescape_assembly(_OCTAL_NAME.sub(lambda match: "\\", path))
    return whole if _is_text(whole) and not _is_text(plain) else plain


def _is_text(path: str) -> bool:
    return not any("\udc80" <= char <= "\udcff" for char in path)

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
_PADDED = re.compile(r"(?<! ) {2,}&")

_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"f": b"\f", b"b": b"\b"}


def unescape_ir(text: str) -> str:
    r"""A string of MLIR or LLVM IR without its escapes: `\"`, `\\`, `\n`, `\t` and two hex digits a byte."""
    return _unescape(text, _IR_ESCAPE, 16)


def unescape_assembly(text: str) -> str:
    r"""A string of LLVM's assembly without its escapes: `\"`, `\\`, `\n`, `\t` and three octal digits a byte."""
    return _unescape(text, _ASSEMBLY_ESCAPE, 8)


def _unescape(text: str, pattern: re.Pattern[bytes], base: int) -> str:
    """Bytes that are not UTF-8 become surrogates, as in Python's paths."""
    if "\\" not in text:
        return text

    def byte(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        return bytes([int(escape, base) & 0xFF]) if len(escape) > 1 else _LETTERS.get(escape, escape)

    return pattern.sub(byte, text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def without_padding(path: str) -> str:
    """A path without the blanks that nvdisasm inserts before an ampersand."""
    return _PADDED.sub(" &", path) if "&" in path else path


class SassPaths:
    r"""The paths in a cubin with the escapes of PTX resolved, which ptxas does not do.

    ptxas takes the last backslash of a file name for the end of its folder and replaces it by a slash:
    `/home/jos\303\251/k\303\251rnel.py` becomes `/home/jos\303\251/k\303/251rnel.py`.
    """

    def __init__(self, written: Iterable[str] = ()) -> None:
        """`written`: the paths as written in the PTX, if it is known."""
        self._true = {_as_ptxas_writes(path): unescape_assembly(path) for path in written}

    def true(self, path: str) -> str:
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
    # A multi-byte character that was split is restored by replacing the slash by a backslash.
    whole = unescape_assembly(_OCTAL_NAME.sub(lambda match: "\\", path))
    return whole if _is_text(whole) and not _is_text(plain) else plain


def _is_text(path: str) -> bool:
    return not any("\udc80" <= char <= "\udcff" for char in path)

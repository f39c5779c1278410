"""Text for a terminal: colours, tables and the pager."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Mapping
from typing import TextIO

from pygments.token import Comment, Keyword, Name, Number, String

from irscope.interruption import Interrupted
from irscope.model.capture import StageKind
from irscope.render.highlight.grammars import GRAMMARS, TokenType
from irscope.render.text.tables import visible

PALETTE: dict[TokenType, int] = {
    Comment: 243,
    Comment.Special: 243,
    Comment.Preproc: 243,
    String: 65,
    Number: 132,
    Keyword: 33,
    Keyword.Type: 30,
    Keyword.Constant: 132,
    Keyword.Declaration: 97,
    Keyword.Pseudo: 166,
    Name.Function: 130,
    Name.Label: 166,
    Name.Constant: 133,
    Name.Decorator: 97,
    Name.Attribute: 66,
    Name.Builtin: 30,
    Name.Tag: 66,
}
"""A colour of the 256 for each kind of word, all of them readable on black and on white; the rest has none.

Registers and SSA values have none on purpose: they are half of every line.
"""

_PLAIN = "\x1b[39m"

# \x1b[38;5;33m
_COLOR = re.compile("(\x1b\\[[0-9;]*m)")


def color_of(token: TokenType) -> int | None:
    """The palette's colour of a kind of word: its own, or that of the nearest kind above it."""
    while token.parent is not None:
        if token in PALETTE:
            return PALETTE[token]
        token = token.parent
    return None


def highlight(text: str, kind: StageKind) -> str:
    """The text of a stage in colours, its control characters made visible; a binary's has no colours."""
    grammar = GRAMMARS[kind]
    starts = [f"\x1b[38;5;{number}m" if number is not None else "" for number in map(color_of, grammar.types)]

    def colored(match: re.Match[str]) -> str:
        start = starts[(match.lastindex or 1) - 1]
        return f"{start}{match[0]}{_PLAIN}" if start else match[0]

    return grammar.pattern.sub(colored, visible(text))


def use_color(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to write colours to a stream.

    `NO_COLOR` says no, `FORCE_COLOR` says yes (both where they are not empty; a `FORCE_COLOR` of 0 says no); else
    colours go to a terminal that is not `TERM=dumb`.
    Sources: https://no-color.org and https://force-color.org.
    """
    if environ.get("NO_COLOR"):
        return False
    force = environ.get("FORCE_COLOR")
    if force:
        return force != "0"
    return _is_terminal(stream) and environ.get("TERM") != "dumb"


def page(text: str, stream: TextIO, environ: Mapping[str, str] | None = None) -> None:
    """Write a text to a stream: as it is, or, where that is a terminal, through a pager and with no control characters.

    The pager is `$IRSCOPE_PAGER`, else `$PAGER`, else `less -FRX`; an empty one or `cat` is none, `TERM=dumb` has
    none, and one that cannot be started is passed over. A reader that goes away early (`| head`, `q` in the pager) is
    no error.
    """
    environ = os.environ if environ is None else environ
    if _is_terminal(stream):
        text = harmless(text if text.endswith("\n") or not text else f"{text}\n")
        command = _pager(environ)
        if command and _paged(text, command, stream, environ):
            return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _hush(stream)


def harmless(text: str) -> str:
    """The text with no control characters but those of colours."""
    return "".join(part if index % 2 else visible(part) for index, part in enumerate(_COLOR.split(text)))


def _pager(environ: Mapping[str, str]) -> list[str]:
    if environ.get("TERM") == "dumb":
        return []
    chosen = environ.get("IRSCOPE_PAGER", environ.get("PAGER", "less -FRX"))
    try:
        command = shlex.split(chosen)
    except ValueError:
        return []
    return [] if command[:1] == ["cat"] else command


def _paged(text: str, command: list[str], stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Show the text in a pager; False if there is no such program."""
    import subprocess

    stream.flush()
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stream, env=dict(environ))
    except OSError:
        return False
    try:
        process.communicate(text.encode("utf-8", "replace"))
    except BrokenPipeError:
        pass
    except KeyboardInterrupt:  # the pager has it too, and decides
        pass
    except Interrupted as stop:
        if stop.number != signal.SIGINT:
            raise
    process.wait()
    return process.returncode != 127


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False


def _hush(stream: TextIO) -> None:
    """Send what is left in a stream's buffer nowhere: flushing it at exit would fail again."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)

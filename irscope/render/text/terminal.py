"""Text for a terminal: colours, tables and the pager."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TextIO

from pygments.token import Comment, Keyword, Name, Number, Operator, String

from irscope.errors import UsageError
from irscope.interruption import Interrupted
from irscope.model.capture import StageKind
from irscope.render.text.tables import visible

if TYPE_CHECKING:
    from irscope.render.highlight import TokenType

Theme = Literal["dark", "light"]

_GREY, _RED, _GREEN, _BLUE, _VIOLET, _MAGENTA = 243, 131, 29, 63, 98, 163
PALETTE: dict[TokenType, int] = {
    **dict.fromkeys((Comment, Comment.Special, Comment.Preproc), _GREY),
    **dict.fromkeys((Keyword.Pseudo, Name.Function, Name.Label), _RED),
    **dict.fromkeys((String, Keyword.Type, Name.Builtin), _GREEN),
    **dict.fromkeys((Keyword, Operator.Word), _BLUE),
    **dict.fromkeys((Keyword.Declaration, Name.Decorator, Name.Attribute, Name.Tag), _VIOLET),
    **dict.fromkeys((Number, Keyword.Constant, Name.Constant), _MAGENTA),
}
"""A colour of the 256 for each kind of word; the rest has none.

Registers and SSA values have none on purpose: they are half of every line.
"""

SHADES: dict[int, dict[Theme, int]] = {
    _GREY: {"dark": 246, "light": 242},
    _RED: {"dark": 174, "light": 124},
    _GREEN: {"dark": 71, "light": 22},
    _BLUE: {"dark": 75, "light": 25},
    _VIOLET: {"dark": 141, "light": 92},
    _MAGENTA: {"dark": 176, "light": 127},
}
"""Each colour of the palette on a dark and on a light terminal.

Contrast is at least 4.5 to 1: of the palette itself on black and on white, which no colour reaches on dark grey and on
white; of these shades on the backgrounds of usual dark and of usual light themes.
"""

_PLAIN = "\x1b[39m"

DIM = f"\x1b[38;5;{_GREY}m{{}}{_PLAIN}"
# \x1b[38;5;243m
_OF_PALETTE = re.compile("(?<=\x1b\\[38;5;)(?:" + "|".join(map(str, SHADES)) + ")(?=m)")
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
    from irscope.render.highlight import GRAMMARS

    grammar = GRAMMARS[kind]
    starts = [f"\x1b[38;5;{number}m" if number is not None else "" for number in map(color_of, grammar.types)]

    def colored(match: re.Match[str]) -> str:
        start = starts[(match.lastindex or 1) - 1]
        return f"{start}{match[0]}{_PLAIN}" if start else match[0]

    return grammar.pattern.sub(colored, visible(text))


def highlight_python(text: str) -> str:
    """A line of Python in colours, its control characters made visible."""
    parts: list[str] = []
    for token, word in _python_lexer().get_tokens(visible(text)):
        number = color_of(token)
        parts.append(word if number is None else f"\x1b[38;5;{number}m{word}{_PLAIN}")
    return "".join(parts)


@lru_cache(1)
def _python_lexer() -> Any:
    # The types of pygments' lexers are not known to a checker.
    from pygments import lexers

    module: Any = lexers
    return module.PythonLexer(stripnl=False, ensurenl=False)


def theme_of(environ: Mapping[str, str]) -> Theme | None:
    """Whether the terminal is dark or light: `IRSCOPE_THEME`, else `COLORFGBG`, which some terminals set, else None.

    Source of the colours that are dark: vim's `background`. Raises UsageError if `IRSCOPE_THEME` is another word.
    """
    if chosen := environ.get("IRSCOPE_THEME"):
        if chosen not in ("dark", "light"):
            raise UsageError(f"IRSCOPE_THEME={chosen!r} is not a theme: write dark or light.")
        return chosen
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    if not background.isdecimal():
        return None
    return "dark" if int(background) in (0, 1, 2, 3, 4, 5, 6, 8) else "light"


def themed(text: str, theme: Theme | None) -> str:
    """A text with the palette's colours in their shades of a theme; unchanged if that is not known."""
    return text if theme is None else _OF_PALETTE.sub(lambda match: str(SHADES[int(match[0])][theme]), text)


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

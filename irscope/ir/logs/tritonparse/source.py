"""The Python side of a compile in a trace: the kernel's text, its parameters and constants."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["PythonSource", "constants_of"]

_MOST_CHARACTERS = 1 << 22
_MOST_LINES = 200_000
# (3,)   (2, 0)
_PATH = re.compile(r"\((\d{1,4}),((?: ?\d{1,4},){0,64}(?: ?\d{1,4})?)\)")
# def softmax(
_FUNCTION = re.compile(r"^[ \t]*(?:async )?def ([A-Za-z_]\w*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PythonSource:
    """What a trace holds of a kernel's file."""

    path: str = ""
    text: str = ""
    """The file as far as it is known: lines before a function that was kept alone are empty."""
    function: str = ""
    """The kernel's name."""
    function_text: str = ""
    """With its decorators."""
    first_line: int = 0
    """1-based line of the first of these."""
    line: int = 0
    """1-based line of the `def`."""
    parameters: tuple[str, ...] = ()

    @staticmethod
    def of(values: Mapping[str, Any]) -> PythonSource:
        """The `python_source` of an event; empty for what is none."""
        path, code = values.get("file_path"), values.get("code")
        start = values.get("function_start_line") or values.get("start_line")
        if not isinstance(path, str) or not isinstance(code, str) or len(code) > _MOST_CHARACTERS:
            return PythonSource()
        if type(start) is not int or not 0 < start <= _MOST_LINES:
            return PythonSource(path, "")
        whole = "function_start_line" in values
        text = code if whole else "\n" * (start - 1) + code
        function_text = _block("".join(code.splitlines(keepends=True)[start - 1 :]) if whole else code)
        found = _FUNCTION.search(function_text)
        if found is None:
            return PythonSource(path, text)
        line = start + function_text.count("\n", 0, found.end())
        return PythonSource(path, text, found[1], function_text, start, line, _parameters(function_text))


def _block(text: str) -> str:
    """The function that a text begins with, its decorators included."""
    lines = text.splitlines(keepends=True)
    found = next((at for at, line in enumerate(lines) if _FUNCTION.match(line)), None)
    if found is None:
        return text
    indent = len(lines[found]) - len(lines[found].lstrip())
    opened = 0
    for at in range(found, len(lines)):
        line = lines[at]
        plain = line.strip()
        outside = plain and not plain.startswith(("#", ")", "]")) and len(line) - len(line.lstrip()) <= indent
        if at > found and opened <= 0 and outside:
            return "".join(lines[:at]).rstrip() + "\n"
        opened += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
    return text


def _parameters(function_text: str) -> tuple[str, ...]:
    """The names of a function's parameters; none where its text is no function of this Python."""
    try:
        tree = ast.parse(textwrap.dedent(function_text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    function = next((node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    if function is None:
        return ()
    given = function.args
    return tuple(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def constants_of(values: Mapping[str, Any], parameters: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Constants by parameter, as Python prints them, of `{"(3,)": 128}`."""
    found: dict[str, str] = {}
    for path, value in values.items():
        match = _PATH.fullmatch(path)
        if match is None or int(match[1]) >= len(parameters):
            continue
        elements = "".join(f"[{one}]" for one in re.findall(r"\d+", match[2]))
        found[parameters[int(match[1])] + elements] = repr(value)
    return tuple(found.items())

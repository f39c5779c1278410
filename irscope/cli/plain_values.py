"""Takes the values of plain options as they are given, where Typer would build a validator of pydantic's for each.

Typer 0.29 checks each value by a schema of its type: importing pydantic and making the schemas of one command takes
longer than the rest of a short command. A text, a path or nothing needs no check; what does is left to Typer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer import core

__all__ = ["plain_values"]

_CHECKED_PATHS = ("exists", "writable", "resolve_path", "allow_dash", "path_type", "shell_complete")
_CHECK = "get_runtime_param"


@contextmanager
def plain_values() -> Generator[None]:
    """Have Typer check no plain option until the end of the block; other versions of it have no need of that."""
    owner: Any = getattr(core, "_TyperParameter", None)
    check = getattr(owner, _CHECK, None)
    if check is None:
        yield
        return

    def unchecked(parameter: Any) -> _PlainValue:
        return _PlainValue(check)

    setattr(owner, _CHECK, unchecked)
    try:
        yield
    finally:
        setattr(owner, _CHECK, check)


class _PlainValue:
    """Stands in for the check of one option's value; `check` makes Typer's own."""

    def __init__(self, check: Callable[[Any], Any]) -> None:
        self.check = check

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of an option, of the type that it is declared with."""
        kind, declared = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if kind is str and isinstance(value, str):
            return value
        if kind == list[str] and all(isinstance(one, str) for one in value):
            return list(value)
        if (
            kind is Path
            and isinstance(value, str)
            and not any(getattr(declared, name, None) for name in _CHECKED_PATHS)
        ):
            return Path(value)
        if value == param.default and type(value) is kind:
            return value
        return self.check(param).coerce(value, param=param, ctx=ctx)

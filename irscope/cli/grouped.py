"""Options that several commands share, declared once and passed to each command as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, cast

Command = Callable[..., int]


def grouped(
    name: str, make: Callable[..., Any], shared: Mapping[str, inspect.Parameter] | None = None
) -> Callable[[Command], Command]:
    """The decorator of a command that takes several options as one value, its parameter `name`.

    Typer sees the options in place of it: parameters whose annotations say how they look on the command line, those of
    `make` unless `shared` gives others.
    """
    seen = inspect.signature(make, eval_str=True).parameters if shared is None else shared

    def decorate(command: Command) -> Command:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            own = (one.replace(kind=parameter.kind) for one in seen.values())
            parameters += own if parameter.name == name else [parameter]

        @wraps(command)
        def with_options(**values: Any) -> int:
            return command(**{name: make(**{option: values.pop(option) for option in seen})}, **values)

        cast("Any", with_options).__signature__ = inspect.Signature(parameters, return_annotation=int)
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options

    return decorate

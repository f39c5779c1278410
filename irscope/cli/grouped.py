"""Options that several commands share, declared once and passed to each command as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

Command = Callable[..., int]


def grouped(name: str, make: Callable[..., Any]) -> Callable[[Command], Command]:
    """The decorator of a command that takes the options of `make` as one value, its parameter `name`.

    Typer sees the parameters of `make`, whose annotations say how they look on the command line, in place of it.
    """
    shared = inspect.signature(make, eval_str=True).parameters

    def decorate(command: Command) -> Command:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += shared.values() if parameter.name == name else [parameter]

        @wraps(command)
        def with_options(**values: Any) -> int:
            return command(**{name: make(**{option: values.pop(option) for option in shared})}, **values)

        cast("Any", with_options).__signature__ = inspect.Signature(parameters, return_annotation=int)
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options

    return decorate

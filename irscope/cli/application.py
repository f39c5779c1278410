"""Typer's application, command and group, as irscope uses them: they start fast.

Typer 0.29 checks each value by a schema of pydantic's: importing that and making the schemas of one command takes
longer than the rest of a short command. A text, a path or nothing needs no check; what does is left to Typer. And the
overview of all commands is written without rich, which takes as long to import as all else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

__all__ = ["Application", "Command", "Overview"]

_CHECKED_PATHS = ("exists", "writable", "resolve_path", "allow_dash", "path_type", "shell_complete")
_UNCHECKED: Any = object()


class Application(typer.Typer):
    """A Typer application whose commands check no plain value."""

    def command(self, name: str | None = None, *, cls: Any = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command, as Typer does."""
        return super().command(name, cls=cls or Command, **settings)


class Command(TyperCommand):
    """A command whose plain options and arguments are taken as they are given."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments."""
        return _plain_parameters(super().get_params(ctx))


class Overview(TyperGroup):
    """The commands, listed in panels by their summaries."""

    panels: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {}
    """Title → (command, summary) of each."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the application."""
        return _plain_parameters(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the overview, in plain text."""
        self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by panels."""
        width = max(len(name) for rows in self.panels.values() for name, _ in rows)
        for title, rows in self.panels.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in rows])


class _PlainOption(TyperOption):
    def process_value(self, ctx: Any, value: Any) -> Any:
        if (plain := _plain_value(self, value)) is _UNCHECKED:
            return super().process_value(ctx, value)
        return plain if self.callback is None else self.callback(ctx, self, plain)


class _PlainArgument(TyperArgument):
    def process_value(self, ctx: Any, value: Any) -> Any:
        if (plain := _plain_value(self, value)) is _UNCHECKED:
            return super().process_value(ctx, value)
        return plain if self.callback is None else self.callback(ctx, self, plain)


def _plain_parameters(parameters: Sequence[Any]) -> list[Any]:
    """Parameters as they are, those that Typer would check by schemas with a way around for plain values."""
    for one in parameters:
        # Other versions of Typer have no descriptors, and no schemas.
        if hasattr(one, "type_descriptor") and type(one) in (TyperOption, TyperArgument):
            cast("Any", one).__class__ = _PlainOption if type(one) is TyperOption else _PlainArgument
    return list(parameters)


def _plain_value(parameter: Any, value: Any) -> Any:
    """The value of a parameter, of the type that it is declared with; `_UNCHECKED` where Typer has to check it."""
    kind, declared = parameter.type_descriptor.annotation, parameter.type_descriptor.parameter_info
    if parameter.required and not value:
        return _UNCHECKED
    if value is None:
        return () if parameter.multiple or parameter.nargs == -1 else None
    if kind is str and isinstance(value, str):
        return value
    if kind == list[str] and isinstance(value, (list, tuple)):
        texts = cast("Sequence[object]", value)
        return list(texts) if all(isinstance(text, str) for text in texts) else _UNCHECKED
    is_plain_path = not any(getattr(declared, name, None) for name in _CHECKED_PATHS)
    if kind is Path and isinstance(value, str) and is_plain_path:
        return Path(value)
    return value if value == parameter.default and type(value) is kind else _UNCHECKED

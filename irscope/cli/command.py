"""Functions as commands: the annotation of a parameter is its option or argument on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import click

from irscope.cli.parameters import Argument, Option
from irscope.model.recording_options import RecordingOptions

_SCRIPT_ARGUMENTS = "irscope.script_arguments"
"""The key of a context's `meta` for the arguments after `--`."""


class Command(click.Command):
    """A command made of a function: parameters that are dataclasses take the options that their fields declare."""

    def __init__(self, name: str, function: Callable[..., int]) -> None:
        self.function = function
        self.groups: dict[str, Any] = {
            parameter.name: parameter.annotation
            for parameter in inspect.signature(function, eval_str=True).parameters.values()
            if is_dataclass(parameter.annotation)
        }
        """The parameters that take several options as one value, and the classes of those."""
        self.runs_program = RecordingOptions in self.groups.values()
        epilog = ""
        if self.runs_program and name != "record":
            epilog = "What is recorded, for which target and with which passes: the options of irscope record --help."
        super().__init__(
            name,
            params=list(_parameters(function)),
            help=inspect.cleandoc(function.__doc__ or ""),
            epilog=epilog or None,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Separate what stands after `--`, the arguments of a script."""
        if self.runs_program and "--" in args:
            at = args.index("--")
            ctx.meta[_SCRIPT_ARGUMENTS] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> int:
        """Call the function. Where a part was left out, or a script stopped half-way, the exit code is 1."""
        from irscope.cli.keeping import noted_incomplete

        with noted_incomplete() as incomplete:
            code = self._invoked(ctx)
        return code or int(bool(incomplete))

    def _invoked(self, ctx: click.Context) -> int:
        values = {name: list(value) or None if _is_list(self, name) else value for name, value in ctx.params.items()}
        if self.runs_program:
            from irscope.cli.recording import run_recorded

            script = cast("tuple[str, ...]", ctx.meta.get(_SCRIPT_ARGUMENTS, ()))
            return run_recorded(self._call, values, script)
        return self._call(values, None)

    def _call(self, values: Mapping[str, Any], record_options: RecordingOptions | None) -> int:
        given = dict(values)
        for name, group in self.groups.items():
            if group is RecordingOptions:
                given[name] = record_options
            else:
                given[name] = group(**{item.name: given.pop(item.name) for item in fields(group)})
        return self.function(**given)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and the options, by panels."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, _Argument):
                if parameter.description:
                    rows.setdefault("Arguments", []).append((parameter.make_metavar(ctx), parameter.description))
            elif (record := parameter.get_help_record(ctx)) is not None:
                rows.setdefault(getattr(parameter, "panel", "Options"), []).append(record)
        for title, records in rows.items():
            with formatter.section(title):
                formatter.write_dl(records)


class _Argument(click.Argument):
    """An argument with a help text."""

    def __init__(self, name: str, declared: Argument, **settings: Any) -> None:
        super().__init__([name], metavar=declared.metavar, **settings)
        # Click's own `help` is of its later versions alone.
        self.description = declared.help
        self.is_hidden = declared.hidden

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The argument in the line of usage."""
        return [] if self.is_hidden else [self.metavar or ""]

    def make_metavar(self, ctx: click.Context) -> str:
        """The argument as its help shows it."""
        return self.metavar or ""


class _Option(click.Option):
    """An option in a panel of the help."""

    def __init__(self, name: str, declared: Option, **settings: Any) -> None:
        settings = {"metavar": declared.metavar} | settings
        super().__init__([*declared.names, name], help=declared.help, hidden=declared.hidden, **settings)
        self.panel = declared.panel


def _is_list(command: click.Command, name: str) -> bool:
    parameter = next((one for one in command.params if one.name == name), None)
    return parameter is not None and (parameter.multiple or parameter.nargs == -1)


def _parameters(function: Callable[..., int]) -> Iterator[click.Parameter]:
    """The parameters of a function, those of its groups in their place."""
    signature = inspect.signature(function, eval_str=True)
    has_list = False
    for parameter in signature.parameters.values():
        if parameter.annotation is RecordingOptions:
            from irscope.cli.recording import recording_parameters

            shown = function.__name__ == "record"
            for name, kind, declared, default in recording_parameters(shown=shown, takes_rest=not has_list):
                yield _parameter(name, kind, declared, default)
        elif is_dataclass(parameter.annotation):
            group = cast("Any", parameter.annotation)
            hints = get_type_hints(group, include_extras=True)
            for item in fields(group):
                kind, declared = get_args(hints[item.name])
                yield _parameter(item.name, kind, declared, item.default)
        else:
            kind, declared = get_args(parameter.annotation)
            has_list = has_list or (isinstance(declared, Argument) and _is_repeated(kind))
            yield _parameter(parameter.name, kind, declared, parameter.default)


def _is_repeated(kind: Any) -> bool:
    return get_origin(_without_none(kind)) is list


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    (plain,) = [one for one in get_args(kind) if one is not type(None)]
    return plain


def _parameter(name: str, kind: Any, declared: Option | Argument, default: Any) -> click.Parameter:
    """One parameter, of the type that it is annotated with."""
    plain = _without_none(kind)
    settings: dict[str, Any] = {"default": default, "required": default is inspect.Parameter.empty}
    if settings["required"] or default is None:
        del settings["default"]
    origin = get_origin(plain)
    if isinstance(declared, Argument):
        if origin is list:
            settings["nargs"] = -1
        return _Argument(name, declared, type=_type(get_args(plain)[0] if origin is list else plain), **settings)
    if plain in (int, float) and declared.metavar is None:
        settings["metavar"] = "N"
    settings["show_default"] = declared.shows_default and default not in (None, False, "", inspect.Parameter.empty)
    if plain is bool:
        return _Option(name, declared, is_flag=True, **({"default": default} | settings))
    if origin is list:
        return _Option(name, declared, multiple=True, type=_type(get_args(plain)[0]), **settings)
    if origin is tuple:
        return _Option(name, declared, nargs=len(get_args(plain)), type=str, **settings)
    return _Option(name, declared, type=_type(plain, declared), **settings)


def _type(kind: Any, declared: Option | None = None) -> click.ParamType[Any]:
    least = None if declared is None else declared.least
    most = None if declared is None else declared.most
    if kind is int:
        return click.IntRange(None if least is None else int(least), None if most is None else int(most))
    if kind is float:
        return click.FloatRange(least, most)
    return click.Path(path_type=Path) if kind is Path else click.STRING

"""Functions as commands, whose docstrings declare their options and arguments; several share some."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import click

from irscope.errors import UsageError
from irscope.model.recording_options import Option, RecordingOptions

_SCRIPT_ARGUMENTS = "irscope.script_arguments"
"""The key of a context's `meta` for the arguments after `--`."""
_WRITE_FOLDERS = ("record", "dump", "show", "layout", "draw")
"""The commands that write several files where `-o` names a folder."""


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
            help=inspect.cleandoc(function.__doc__ or "").partition("\n\nOptions:\n")[0],
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
        from irscope.cli.captures import run_request
        from irscope.cli.keeping import noted_incomplete
        from irscope.cli.streams import say
        from irscope.record.variants.completing import reporting

        with noted_incomplete() as incomplete, reporting(say, run_request):
            code = self._invoked(ctx)
        return code or int(bool(incomplete))

    def _invoked(self, ctx: click.Context) -> int:
        from irscope.store.disk import refuse_unwritable

        values: dict[str, Any] = {
            name: list(value) or None if _is_list(self, name) else value for name, value in ctx.params.items()
        }
        if (path := next((values[str(one.name)] for one in self.params if "--output" in one.opts), None)) is not None:
            if self.name not in _WRITE_FOLDERS and path.is_dir():
                named = str(path / "FILE")
                raise UsageError(f"-o {str(path)!r} is a folder: {self.name} writes one file, such as {named!r}.")
            refuse_unwritable(path)
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
                if (refuse := getattr(given[name], "refuse_for", None)) is not None:
                    refuse(self.name)
        return self.function(**given)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and the options, by panels."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, _Argument):
                if parameter.description:
                    rows.setdefault("Arguments", []).append((parameter.metavar or "", parameter.description))
            elif (record := parameter.get_help_record(ctx)) is not None:
                rows.setdefault(getattr(parameter, "panel", "Options"), []).append(record)
        for title, records in rows.items():
            with formatter.section(title):
                formatter.write_dl(records)


class _Argument(click.Argument):
    def __init__(self, name: str, declared: Option, **settings: Any) -> None:
        super().__init__([name], metavar=declared.metavar, **settings)
        # Click's own `help` is of its later versions alone.
        self.description = declared.help
        self.is_hidden = declared.hidden

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [] if self.is_hidden else [self.metavar or ""]


class _Option(click.Option):
    def __init__(self, name: str, declared: Option, **settings: Any) -> None:
        settings = {"metavar": declared.metavar} | settings
        super().__init__([*declared.names, name], help=declared.help, hidden=declared.hidden, **settings)
        self.panel = declared.panel


def _is_list(command: click.Command, name: str) -> bool:
    parameter = next((one for one in command.params if one.name == name), None)
    return parameter is not None and (parameter.multiple or parameter.nargs == -1)


def _parameters(function: Callable[..., int]) -> Iterator[click.Parameter]:
    own = _declared_options(function.__doc__)
    has_list = False
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.annotation is RecordingOptions:
            from irscope.cli.recording import recording_parameters

            shown = function.__name__ == "record"
            for name, option in recording_parameters(shown=shown, takes_rest=not has_list):
                yield _parameter(name, option.kind, option, option.default)
        elif is_dataclass(parameter.annotation):
            group = cast("Any", parameter.annotation)
            hints, of_group = get_type_hints(group, include_extras=True), _declared_options(group.__doc__)
            for item in fields(group):
                yield _parameter(item.name, *_declared(item.name, hints[item.name], of_group), item.default)
        else:
            kind, option = _declared(parameter.name, parameter.annotation, own)
            has_list = has_list or (not option.names and _is_repeated(kind))
            yield _parameter(parameter.name, kind, option, parameter.default)


def _declared(name: str, annotation: Any, own: Mapping[str, Option]) -> tuple[Any, Option]:
    """The type of a parameter, and its option: that of a shared annotation, or of its own docstring."""
    if get_origin(annotation) is not Annotated:
        return annotation, own[name]
    kind, text = get_args(annotation)
    return kind, Option.parse(text)[1]


def _is_repeated(kind: Any) -> bool:
    return get_origin(_without_none(kind)) is list


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    (plain,) = [one for one in get_args(kind) if one is not type(None)]
    return plain


def _parameter(name: str, kind: Any, declared: Option, default: Any) -> click.Parameter:
    plain = _without_none(kind)
    settings: dict[str, Any] = {"default": default, "required": default is inspect.Parameter.empty}
    if settings["required"] or default is None:
        del settings["default"]
    origin = get_origin(plain)
    if not declared.names:
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


def _declared_options(docstring: str | None) -> dict[str, Option]:
    """The options of a docstring's section `Options:`, by parameter."""
    _, _, section = inspect.cleandoc(docstring or "").partition("\nOptions:\n")
    rows: list[str] = []
    for line in section.splitlines():
        if line.startswith("        "):
            rows[-1] += f" {line.strip()}"
        else:
            rows.append(line.strip())
    return dict(map(Option.parse, rows))


_SUBJECT = (
    "A Python file or notebook (it is run, and every kernel launch recorded), - for a program on standard input, an IR "
    "file (.ttir .ttgir .llir .ptx), a capture (a .irscope file, or the first digits of a stored capture's id), a "
    "collection (a folder of them: FOLDER::KERNEL, FOLDER::'soft*' or FOLDER::ID choose from it), or 'last'."
)
Subject = Annotated[str | None, f"subject = [FILE[::KERNEL]|CAPTURE]: {_SUBJECT}"]
Subjects = Annotated[list[str] | None, f"subjects = [FILE[::KERNEL]|CAPTURE]…: {_SUBJECT}"]
Stages = Annotated[
    list[str] | None,
    "--stage, -s STAGE[,STAGE]: source, ttir, ttgir, llir, ptx, cubin, sass, amdgcn, hsaco, or all; repeatable.",
]
After = Annotated[str | None, "--after PASS[#N]: The IR after a pass."]
Lines = Annotated[str | None, "--lines 23-31: Only what comes from these lines of the kernel's file."]
Annotations = Annotated[
    list[str] | None,
    "--annotate COLUMN[,COLUMN]: Columns next to machine code: registers (live), marks (spills, dots, barriers), "
    "stalls, or all.",
]
Context = Annotated[int, "--context, -U (0..): Unchanged lines around a change."]
Part = Annotated[
    str | None,
    "--part PART: The GPU model: h100, h100-pcie, h200, … Default: the GPU that doctor --gpu measured, or the first.",
]
AsJson = Annotated[bool, "--json: Print JSON; docs/json.md describes it."]
Color = Annotated[bool | None, "--color/--no-color (hidden): Default: colour on a terminal."]
Output = Annotated[Path | None, "--output, -o PATH: Write to a file."]

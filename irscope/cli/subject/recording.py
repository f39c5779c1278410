"""The options of a recording on the command line: each command that records takes them as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from irscope.cli import script_arguments
from irscope.cli.grouped import Command, grouped
from irscope.cli.options import split_words
from irscope.cli.subject.endings import noted_incomplete
from irscope.cli.subject.named import refuse_unknown_names
from irscope.errors import PlanError, UsageError
from irscope.model.capture import STAGE_NAMES
from irscope.model.recording_options import Flag, RecordingOptions
from irscope.plan import PassPlan, PassRule

_OF_STAGES = ("stage",)
_OF_PASSES = ("after", "before", "one_pass", "between", "at", "from_pass")
"""The parameters of commands that name passes; `at` may be a stage."""
_LEVELS = ("triton", "all", "none")


def recorded(
    *, without: Collection[str] = (), only: Collection[str] = (), several: bool = False
) -> Callable[[Command], Command]:
    """The decorator of a command that takes a RecordingOptions as the parameter `record_options`.

    Args:
        without: the flags that the command does not take.
        only: those that it takes, if they are few.
        several: whether it takes several subjects, of which each program gets the arguments after --.
    """
    if unknown := {*without, *only} - _PARAMETERS.keys():
        raise TypeError(f"a recording has no parameter {', '.join(sorted(unknown))}.")
    names = only or _PARAMETERS.keys() - {*without, *(["arguments"] if several else [])}
    shared = {name: parameter for name, parameter in _PARAMETERS.items() if name in names}

    def decorate(command: Command) -> Command:
        @wraps(command)
        def noting_stops(**values: Any) -> int:
            _refuse_unknown_names(values)
            with noted_incomplete() as incomplete:
                code = command(**values)
            # A script that stopped half-way is a failure, whatever was made of the launches before.
            return code or int(bool(incomplete))

        made = grouped("record_options", recording_options, shared)(noting_stops)
        made.__dict__["runs_program"] = several or "arguments" in shared
        return made

    return decorate


def _refuse_unknown_names(values: dict[str, Any]) -> None:
    """Refuse the names of stages and passes among a command's options that no program's captures can have."""
    stages = [value for name in _OF_STAGES for value in _texts(values.get(name))]
    passes = [value for name in _OF_PASSES for value in _texts(values.get(name)) if value not in STAGE_NAMES]
    record_options: RecordingOptions = values["record_options"]
    if stages or passes or record_options.plan:
        for subject in [*_texts(values.get("subjects"))] or [values.get("subject") or values.get("left")]:
            refuse_unknown_names(subject, record_options, stages=split_words(stages), passes=passes)


def _texts(value: Any) -> Sequence[str]:
    return [value] if isinstance(value, str) else value or ()


def recording_options(**values: Any) -> RecordingOptions:
    """The values of the flags, by parameter, as options; raises UsageError and PlanError."""
    found: dict[str, Any] = {}
    for item in fields(RecordingOptions):
        flags: tuple[Flag, ...] = item.metadata["flags"]
        given = {flag.parameter: values.get(flag.parameter, flag.default) for flag in flags}
        if (combine := _COMBINED.get(item.name)) is not None:
            found[item.name] = combine(given)
        elif flags:
            (value,) = given.values()
            is_pair = flags[0].metavar == "NAME=VALUE"
            found[item.name] = _named_values(value, flags[0].names[0]) if is_pair else value
    if found["arguments"]:
        first, *_ = found["arguments"]
        raise UsageError(
            f"{first!r} is one argument too many: the command takes one subject, and what stands after -- is for its "
            f"script: irscope COMMAND FILE.py -- {first}"
        )
    found["arguments"] = script_arguments.get()
    if found["snapshots"] not in _LEVELS:
        raise UsageError(f"--snapshots {found['snapshots']!r}: write triton, all or none.")
    return RecordingOptions.of(found)


def _named_values(rows: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """The pairs of a repeatable NAME=VALUE option; raises UsageError."""
    pairs: list[tuple[str, str]] = []
    for row in rows or ():
        name, equals, value = row.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {row!r}: write NAME=VALUE.")
        pairs.append((name.strip(), value.strip()))
    return pairs


def versus_pair(text: str, option: str) -> tuple[str, str]:
    """The key and the value of `--vs KEY=VALUE`; raises UsageError for another text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option} {text!r}: write KEY=VALUE, such as target=cuda:80, num_warps=8 or BLOCK_K=32.")
    return key.strip().replace("-", "_"), value.strip()


def interpreter_at(text: str, option: str) -> Path:
    """The Python that a text names, or that of the environment that it names; raises UsageError if there is none."""
    path = Path(text).expanduser()
    found = path / "bin" / "python" if path.is_dir() else path
    if not found.is_file():
        raise UsageError(
            f"{option}{'' if option.endswith('=') else ' '}{text}: neither a Python nor an environment with bin/python."
        )
    return found.absolute()


def option_value(text: str) -> Any:
    """A compile option's value: a number, true or false, none, or the text itself."""
    named: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _compile_options(given: dict[str, Any]) -> dict[str, Any]:
    """`--option` and the flags of single options, which come first."""
    chosen = {name: option_value(value) for name, value in _named_values(given.pop("option"), "--option")}
    return chosen | {name: number for name, number in given.items() if number is not None}


def _plan(given: dict[str, Any]) -> PassPlan:
    """The plan of `--plan`, `--disable-pass` and `--enable-only` together."""
    plan = PassPlan()
    if (file := given["plan"]) is not None:
        try:
            plan = PassPlan.parse(Path(file).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise PlanError(f"cannot read the plan {file!r}: {error}.") from error
    disabled = tuple(PassRule.parse(text) for text in given["disable_pass"] or ())
    kept = tuple(PassRule.parse(text) for text in given["enable_only"] or ())
    return plan.joined(PassPlan(disabled, kept))


_COMBINED: dict[str, Callable[[dict[str, Any]], Any]] = {"options": _compile_options, "plan": _plan}
"""The options that several flags make."""


def _parameter(flag: Flag) -> inspect.Parameter:
    if flag.names:
        shown: Any = typer.Option(
            *flag.names,
            metavar=flag.metavar,
            help=flag.help,
            min=flag.least,
            show_default=flag.shows_default,
            rich_help_panel=flag.panel,
        )
    else:
        shown = typer.Argument(metavar=flag.metavar, help=flag.help)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(flag.parameter, kind, default=flag.default, annotation=Annotated[flag.kind, shown])


_PARAMETERS = {flag.parameter: _parameter(flag) for item in fields(RecordingOptions) for flag in item.metadata["flags"]}

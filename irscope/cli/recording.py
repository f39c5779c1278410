"""The options of a recording on the command line: every command that records takes them, as one value."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from irscope.cli.captures import refuse_unknown_names
from irscope.errors import PlanError, UsageError
from irscope.model.capture import STAGE_NAMES
from irscope.model.recording_options import Option, RecordingOptions
from irscope.plan import LLVM, PassPlan, PassRule

_OF_STAGES = ("stage",)
_OF_PASSES = ("after", "before", "one_pass", "between", "at")
"""The parameters of commands that name passes; `at` may be a stage."""
_LEVELS = ("triton", "all", "none")
_FLAGS = [flag for item in fields(RecordingOptions) for flag in item.metadata["flags"]]


def recording_parameters(*, shown: bool, takes_rest: bool) -> Iterator[tuple[str, Option]]:
    """(parameter, option) of each option of a recording.

    Args:
        shown: whether the help of the command lists them.
        takes_rest: whether to take more arguments than the command has, for the message that refuses them.
    """
    for name, option in _FLAGS:
        if option.names or takes_rest:
            yield name, replace(option, help=option.help if shown or option.names else "", hidden=not shown)


def run_recorded(
    call: Callable[[Mapping[str, Any], RecordingOptions], int], values: Mapping[str, Any], script: tuple[str, ...]
) -> int:
    """Call a command with its own values and the options of the recording; `script`: the arguments after `--`.

    Names of stages and passes are checked before.
    """
    record_options = _recording_options(values, script)
    _refuse_unknown_names(values, record_options)
    flags = {name for name, _ in _FLAGS}
    return call({name: value for name, value in values.items() if name not in flags}, record_options)


def refuse_options(record_options: RecordingOptions, why: str, *names: str) -> None:
    """Raise UsageError for options of a recording, by field, that mean nothing to a command."""
    for item in fields(RecordingOptions):
        value = getattr(record_options, item.name)
        if item.name in names and value != item.default:
            options = ", ".join(option.names[0] for _, option in item.metadata["flags"])
            shown = " ".join(map(str, cast("tuple[object, ...]", value))) if isinstance(value, tuple) else value
            raise UsageError(f"{why}: leave out {options} ({shown}).")


def _refuse_unknown_names(values: Mapping[str, Any], record_options: RecordingOptions) -> None:
    """Refuse the names of stages and passes among a command's options that no program's captures can have."""
    stages = [value for name in _OF_STAGES for value in _texts(values.get(name))]
    passes = [value for name in _OF_PASSES for value in _texts(values.get(name)) if value not in STAGE_NAMES]
    if stages or passes or record_options.plan:
        for subject in [*_texts(values.get("subjects"))] or [values.get("subject") or values.get("left")]:
            # LLVM's passes are a stage to plans alone, which `ablate` makes.
            names = [name for name in split_words(stages) if name != LLVM or "pairs" not in values]
            refuse_unknown_names(subject, record_options, stages=names, passes=passes)


def _texts(value: Any) -> Sequence[str]:
    return [value] if isinstance(value, str) else value or ()


def _recording_options(values: Mapping[str, Any], script: tuple[str, ...]) -> RecordingOptions:
    """The values of the flags, by parameter, as options; raises UsageError and PlanError."""
    chosen: dict[str, Any] = {}
    for item in fields(RecordingOptions):
        flags: tuple[tuple[str, Option], ...] = item.metadata["flags"]
        given = {name: values.get(name, option.default) for name, option in flags}
        if (combine := _COMBINED.get(item.name)) is not None:
            chosen[item.name] = combine(given)
        elif flags:
            (value,) = given.values()
            ((_, option),) = flags
            is_pair = option.metavar == "NAME=VALUE"
            chosen[item.name] = _named_values(value, option.names[0]) if is_pair else value
    if chosen["arguments"]:
        first, *_ = chosen["arguments"]
        raise UsageError(
            f"{first!r} is one argument too many: the command takes one subject, and what stands after -- is for its "
            f"script: irscope COMMAND FILE.py -- {first}"
        )
    chosen["arguments"] = script
    if chosen["snapshots"] not in _LEVELS:
        raise UsageError(f"--snapshots {chosen['snapshots']!r}: write triton, all or none.")
    return RecordingOptions.of(chosen)


def _named_values(rows: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for row in rows or ():
        name, equals, value = row.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {row!r}: write NAME=VALUE.")
        pairs.append((name.strip(), value.strip()))
    return pairs


def split_words(texts: Sequence[str] | None) -> list[str]:
    """The words of a repeatable option that takes several, separated by commas."""
    return [word.strip() for text in texts or () for word in text.split(",") if word.strip()]


def versus_pair(text: str) -> tuple[str, str]:
    """The key and the value of `--vs KEY=VALUE`; raises UsageError for another text."""
    key, _, value = (part.strip() for part in text.partition("="))
    if not key or not value:
        raise UsageError(f"--vs {text!r}: write KEY=VALUE, such as target=cuda:80, num_warps=8 or BLOCK_K=32.")
    return key.replace("-", "_"), value


def ptxas_at(text: str, option: str) -> str:
    """The path of a ptxas; raises UsageError for what is no program."""
    path = Path(text).expanduser().absolute()
    if not os.access(path, os.X_OK) or path.is_dir():
        raise UsageError(f"{option} ptxas={text}: {path} is not a program. Give the path of a ptxas alone.")
    return str(path)


def interpreter_at(text: str, option: str) -> Path:
    """The Python that a text names, or that of the environment that it names; raises UsageError if there is none."""
    path = Path(text).expanduser()
    python = path / "bin" / "python" if path.is_dir() else path
    if not python.is_file():
        raise UsageError(
            f"{option}{'' if option.endswith('=') else ' '}{text}: neither a Python nor an environment with bin/python."
        )
    return python.absolute()


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


def plan_text(file: str) -> str:
    """The text of a file with a plan; raises PlanError."""
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"cannot read the plan {file!r}: {error}.") from error


def _plan(given: dict[str, Any]) -> PassPlan:
    plan = PassPlan.parse(plan_text(given["plan"])) if given["plan"] is not None else PassPlan()
    disabled = tuple(PassRule.parse(text) for text in given["disable_pass"] or ())
    enabled = tuple(PassRule.parse(text) for text in given["enable_only"] or ())
    return plan.joined(PassPlan(disabled, enabled))


_COMBINED: dict[str, Callable[[dict[str, Any]], Any]] = {"options": _compile_options, "plan": _plan}
"""The options that several flags make."""

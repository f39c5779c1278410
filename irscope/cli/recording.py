"""The options of a recording, declared once: each command that records takes them as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, cast

from irscope.cli import options
from irscope.cli.subject import How, named_values, option_value
from irscope.errors import PlanError, UsageError
from irscope.plan import PassPlan, PassRule

_LEVELS = ("triton", "all", "none")


class RecordingCommand(Protocol):
    """A command that takes the options of a recording as one value."""

    def __call__(self, *args: Any, asked: How, **others: Any) -> int: ...


def recorded(
    *, without: Collection[str] = (), only: Collection[str] = ()
) -> Callable[[RecordingCommand], Callable[..., int]]:
    """The decorator of such a command: where it has `asked`, Typer sees the parameters of `how`.

    Args:
        without: those that the command does not take.
        only: those that it takes, where they are few.
    """
    if unknown := {*without, *only} - _PARAMETERS.keys():
        raise TypeError(f"a recording has no parameter {', '.join(sorted(unknown))}.")
    shared = {
        name: parameter for name, parameter in _PARAMETERS.items() if name not in without and (not only or name in only)
    }

    def decorate(command: RecordingCommand) -> Callable[..., int]:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += shared.values() if parameter.name == "asked" else [parameter]

        @wraps(command)
        def with_recording(**values: Any) -> int:
            asked = how(**{name: values.pop(name) for name in shared})
            code = command(**values, asked=asked)
            # A script that stopped half-way is a failure, whatever was made of the launches before.
            return code or int(bool(asked.incomplete))

        seen = cast("Any", with_recording)
        seen.__signature__ = inspect.Signature(parameters, return_annotation=int)
        seen.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_recording

    return decorate


def how(
    *,
    arguments: options.ScriptArguments = None,
    target: options.Targets = None,
    launch: options.LaunchNumber = None,
    virtual: options.Virtual = False,
    signature: options.Signature = None,
    constexpr: options.Constexprs = None,
    num_warps: options.NumWarps = None,
    num_stages: options.NumStages = None,
    num_ctas: options.NumCtas = None,
    option: options.CompileOptions = None,
    config: options.Config = "first",
    assume: options.Assume = None,
    disable_pass: options.DisablePass = None,
    enable_only: options.EnableOnly = None,
    plan: options.PlanFile = None,
    snapshots: options.Snapshots = "triton",
    llvm: options.LlvmPasses = False,
    timeout: options.Timeout = 300.0,
    verbose: options.Verbose = False,
) -> How:
    """The options of the command line as one value; raises UsageError and PlanError."""
    if snapshots not in _LEVELS:
        raise UsageError(f"--snapshots {snapshots!r}: write triton, all or none.")
    chosen = {name: option_value(value) for name, value in named_values(option, "--option")}
    numbers = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas}
    return How(
        targets=tuple(target or ()),
        launch=launch,
        virtual=virtual,
        signature=signature,
        constexprs=tuple(constexpr or ()),
        options=chosen | {name: number for name, number in numbers.items() if number is not None},
        config=config,
        assume=tuple(named_values(assume, "--assume")),
        plan=_plan(disable_pass or [], enable_only or [], plan),
        snapshots=snapshots,
        llvm_passes=llvm,
        timeout_s=timeout,
        verbose=verbose,
        arguments=tuple(arguments or ()),
    )


_PARAMETERS = inspect.signature(how, eval_str=True).parameters


def _plan(disable: list[str], only: list[str], file: Path | None) -> PassPlan:
    """The plan of `--plan`, `--disable-pass` and `--enable-only` together."""
    plan = PassPlan()
    if file is not None:
        try:
            plan = PassPlan.parse(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise PlanError(f"cannot read the plan {str(file)!r}: {error}.") from error
    disabled = tuple(PassRule.parse(text) for text in disable)
    kept = tuple(PassRule.parse(text) for text in only)
    return PassPlan(plan.disabled + disabled, plan.only + kept)

"""`irscope run`: a script's launches on the GPU under a plan, checked against the same ones under the empty plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json, width
from irscope.cli.recording import recorded
from irscope.cli.subject import How, check_plan, failure_text
from irscope.cli.talk import echo, say
from irscope.errors import UsageError

if TYPE_CHECKING:
    from irscope.plan import PassPlan
    from irscope.record.device_script import ScriptCheck

Script = Annotated[
    str | None,
    typer.Argument(metavar="FILE[::KERNEL]", help="The Python script that launches them.", show_default=False),
]
LaunchTimeout = Annotated[
    float,
    typer.Option(
        "--launch-timeout", metavar="SECONDS", min=0.1, help="For one launch on the GPU.", rich_help_panel="Measuring"
    ),
]


@app.command(rich_help_panel="On the GPU")
@recorded(only=("arguments", "launch", "disable_pass", "enable_only", "plan", "timeout"))
def run(
    subject: Script = None,
    every: Annotated[
        bool,
        typer.Option(
            "--every", help="Check every launch, not only the first of each compile.", rich_help_panel="Measuring"
        ),
    ] = False,
    launch_timeout: LaunchTimeout = 30.0,
    output: options.Output = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
    *,
    asked: How,
) -> int:
    """Run a script on the GPU, with passes off, and check each launch against the same one with all passes on.

    Each is first run on copies of its inputs, its outputs poisoned; the script goes on with the plan's own results, so
    that its own checks count too. A NaN never passes. Exit 0 only where every launch passes and the script ends well.
    """
    from irscope.record.device_script import check_script_on_device
    from irscope.render.agreement import render_agreements

    file, kernel = script_of(subject, "run")
    checked = check_script_on_device(
        _request(file, kernel, asked),
        launch=asked.launch,
        every=every,
        timeout_s=asked.timeout_s,
        launch_timeout_s=launch_timeout,
        echo=echo,
    )
    check_plan(asked.plan, checked.captures)
    for capture in checked.captures:
        if capture.failure is not None:
            say(failure_text(capture))
    if as_json:
        emit_json(_as_json(checked, asked.plan), output)
    else:
        rows = [(row.launch, row.kernel, row.grid, row.count, row.agreement) for row in checked.launches]
        paint = colored(color) and output is None
        emit(render_agreements(rows, width=width() if output is None else None, color=paint), output, painted=paint)
    _tell_end(file, checked, asked.launch)
    return 0 if checked.passes else 1


def script_of(subject: str | None, command: str) -> tuple[str, str]:
    """The script and the kernel that a subject names; raises UsageError for what is no script."""
    file, _, kernel = (subject or "").partition("::")
    if not file:
        raise UsageError(f"{command} launches what a script launches: give its FILE.")
    if Path(file).suffix != ".py":
        raise UsageError(
            f"{file!r} is no Python script: {command} launches on the inputs that a script makes. Give FILE.py; for a "
            "capture, the script that it was recorded of."
        )
    return file, kernel


def _request(file: str, kernel: str, asked: How) -> Any:
    from irscope.record.requests import request_for

    request = request_for(file, kernel=kernel, plan=str(asked.plan), arguments=asked.arguments, snapshots="none")
    return replace(request, layouts=False, disassemble=False)


def _as_json(checked: ScriptCheck, plan: PassPlan) -> dict[str, Any]:
    end = checked.script_end
    return {
        "plan": str(plan),
        "passes": checked.passes,
        "launches": [row.as_json() for row in checked.launches],
        "script": None if end is None else {"code": end.code, "message": end.message},
        "ended": checked.ended,
    }


def _tell_end(file: str, checked: ScriptCheck, launch: int | None) -> None:
    end = checked.script_end
    if checked.ended:
        say(f"{file}: its process is gone: {checked.ended}.")
    elif end is not None and end.stopped:
        say(f"{file} stopped: {end.message}.")
        if end.frames:
            say(end.frames.rstrip())
    if not checked.launches:
        which = f"launch {launch}" if launch is not None else "kernel"
        say(f"{file} launched no {which}: nothing was checked.")

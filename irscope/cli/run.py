"""`irscope run`: runs a script on the GPU under a plan and checks each launch against the empty plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irscope.cli import app, options
from irscope.cli.on_machine import OnMachine, with_machine
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.talk import echo, say
from irscope.cli.subject.captures import check_plan
from irscope.cli.subject.named import split_subject
from irscope.cli.subject.recording import recorded
from irscope.errors import NoDevice, UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.render.text.failure import failure_text

if TYPE_CHECKING:
    from irscope.plan import PassPlan
    from irscope.record.gpu.script import ScriptCheck
    from irscope.record.process.requests import RecordRequest

measuring = options.in_panel("Measuring")
Script = Annotated[
    str | None,
    typer.Argument(metavar="FILE[::KERNEL]", help="The Python script that makes the launches.", show_default=False),
]
LaunchTimeout = Annotated[
    float, measuring("--launch-timeout", metavar="SECONDS", min=0.1, help="Time limit for one launch on the GPU.")
]


@app.command(rich_help_panel="On the GPU")
@recorded(only=("arguments", "launch", "disable_pass", "enable_only", "plan", "timeout", "target"))
@with_destination
@with_machine
def run(
    subject: Script = None,
    every: Annotated[
        bool, measuring("--every", help="Check every launch, not only the first one of each compiled kernel.")
    ] = False,
    launch_timeout: LaunchTimeout = 30.0,
    *,
    machine: OnMachine,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Run a script with passes off, and check each launch against the same launch with all passes on.

    Each launch is first run on copies of its inputs, with its outputs poisoned. The script then continues with the
    results of the plan, so that its own checks count as well. A NaN never passes. The exit code is 0 only if every
    launch passes and the script ends without an error.

    Without a GPU, with --cpu or for a --target, the script is recorded on a virtual GPU, and the CPU runs the IR of
    the first launch of each compiled kernel: under a plan against the IR of all passes, else against the IR before
    any pass. The script's tensors hold their data on the CPU, so that its own checks count as well.
    """
    from irscope.record.process.requests import request_for
    from irscope.render.text.bench import render_agreements

    file, kernel = script_of(subject, record_options, "run")
    options = replace(record_options, snapshots="none", layouts=False, disassemble=False)
    request = request_for(file, options, kernel=kernel)
    checked = _checked(request, machine, record_options, every, launch_timeout)
    check_plan(record_options.plan, checked.captures)
    for capture in checked.captures:
        if capture.failure is not None:
            say(failure_text(capture))
    places = [(row.where, row.agreement) for row in checked.launches]
    rows = [(where.launch, where.kernel, where.grid, where.count, agreement) for where, agreement in places]
    to.emit(
        lambda: _as_json(checked, record_options.plan),
        lambda width, color: render_agreements(rows, width=width, color=color),
    )
    _tell_end(file, checked, record_options.launch)
    return 0 if checked.passes else 1


def _checked(
    request: RecordRequest, machine: OnMachine, options: RecordingOptions, every: bool, launch_timeout: float
) -> ScriptCheck:
    from irscope.record.gpu.on_machine import check_script_on_machine
    from irscope.record.gpu.script import check_script_on_device

    run = machine.run
    if not machine.is_chosen and not options.targets:
        try:
            return check_script_on_device(
                request, launch=options.launch, every=every, launch_timeout_s=launch_timeout, echo=echo
            )
        except NoDevice:
            say("There is no GPU here that Triton's driver takes: the launches are run on the CPU.")
    if every:
        raise UsageError("--every needs a GPU: the virtual GPU records the first launch of each compiled kernel.")
    return check_script_on_machine(request, run, launch=options.launch, echo=echo)


def script_of(subject: str | None, record_options: RecordingOptions, command: str) -> tuple[str, str]:
    """The script and the kernel that a subject names; raises UsageError if it is not a program."""
    file, kernel = split_subject(subject, record_options, "")
    if not file:
        raise UsageError(f"{command} makes the launches of a script: give its FILE.")
    if not record_options.program and file != "-" and Path(file).suffix not in (".py", ".ipynb"):
        raise UsageError(
            f"{file!r} is not a Python script: {command} needs the inputs that a script makes. Give FILE.py; for a "
            "capture, the script that it was recorded from."
        )
    return file, kernel


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
        say(f"{file}: its process ended: {checked.ended}.")
    elif end is not None and end.stopped:
        say(f"{file} stopped: {end.message}.")
        if end.frames:
            say(end.frames.rstrip())
    if not checked.launches:
        which = f"launch {launch}" if launch is not None else "kernel"
        say(f"{file} launched no {which}: nothing was checked.")

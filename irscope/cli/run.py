"""`irscope run`: checks the results of a script's launches, on the GPU or on the CPU."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from irscope.cli.captures import check_plan, say_failures
from irscope.cli.launches import OnMachine, script_of
from irscope.cli.output import Destination
from irscope.cli.streams import echo, progress, say
from irscope.errors import NoDevice, UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.requests import RecordRequest, request_for

if TYPE_CHECKING:
    from irscope.record.gpu.sanitized import Sanitizer
    from irscope.record.gpu.session import ScriptCheck


def run(
    subject: str | None = None,
    every: bool = False,
    launch_timeout: float = 30.0,
    sanitize: str | None = None,
    *,
    machine: OnMachine,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Run a script's kernels and check their results, with a GPU or without: a plan is compared with every pass on.

    Each launch is first run on copies of its inputs, with its outputs poisoned; the script then continues with the
    results of the plan, so that its own checks count as well. A NaN never passes. The exit code is 0 only if every
    launch passes and the script ends without an error.

    Without a GPU, with --cpu or for a --target, the script runs on a virtual GPU that computes, and the CPU runs the
    IR of the first launch of each compiled kernel: under a plan against the IR of all passes, else against the IR
    before any pass. --cpu on a machine with a GPU compares both: the GPU runs the script, and the CPU each of those
    launches.

    Options:
        subject = FILE[::KERNEL]: The Python script that makes the launches.
        every = --all: Check every launch, not only the first one of each compiled kernel.
        --launch-timeout SECONDS (0.1..): Time limit for one launch on the GPU.
        --sanitize NAME: Run on the GPU under a sanitizer: concurrency, global, or fp (with a plan), which are passes of
            Triton's, or memory, which is NVIDIA's compute-sanitizer.
    """
    from irscope.render.text.bench import render_agreements

    sanitizer = _sanitizer(sanitize, machine, record_options)
    # The CPU runs launches for any target.
    file, kernel = script_of(subject, replace(record_options, targets=()), "run")
    options = replace(record_options, snapshots="none", layouts=False, disassemble=False)
    request = request_for(file, options, kernel=kernel)
    if sanitizer is not None and sanitizer != "fp":
        return _sanitized(request, sanitizer, to)
    checked = _checked(request, machine, record_options, every, launch_timeout, sanitizer == "fp")
    check_plan(record_options.plan, checked.captures)
    say_failures(checked.captures)
    places = [(row.where, row.agreement) for row in checked.launches]
    rows = [(where.launch, where.kernel, where.grid, where.count, agreement) for where, agreement in places]
    to.emit(partial(_as_json, checked, record_options.plan), partial(render_agreements, rows))
    _tell_end(file, checked, record_options.launch)
    return 0 if checked.passes else 1


def _sanitizer(name: str | None, machine: OnMachine, options: RecordingOptions) -> Sanitizer | None:
    if name is None:
        return None
    from irscope.record.gpu.sanitized import sanitizer_named

    sanitizer = sanitizer_named(name)
    if machine.is_chosen or options.targets:
        raise UsageError("--sanitize runs on this machine's GPU: leave out --target and what is for the CPU.")
    if sanitizer == "fp" and options.plan == PassPlan():
        raise UsageError("--sanitize fp compares a plan with every pass on, exactly: give --disable-pass PASS.")
    return sanitizer


def _sanitized(request: RecordRequest, sanitizer: Sanitizer, to: Destination) -> int:
    from irscope.record.gpu.sanitized import sanitize_script
    from irscope.render.text.bench import render_reports

    done = sanitize_script(request, sanitizer, echo=echo)
    rows = [tuple(report.as_json().values()) for report in done.reports]
    to.emit(done.as_json, partial(render_reports, rows))
    end = done.script_end
    if end is not None and end.stopped:
        say(f"{request.path} stopped: {end.message}.")
    say(f"{len(done.captures)} kernels ran under the {sanitizer} sanitizer; it reported {len(done.reports)} lines.")
    return 0 if done.passes else 1


def _checked(
    request: RecordRequest,
    machine: OnMachine,
    options: RecordingOptions,
    every: bool,
    launch_timeout: float,
    in_ring: bool,
) -> ScriptCheck:
    """`in_ring`: with the fp sanitizer, under which other orders of a sum give the same bits."""
    from irscope.record.gpu.on_machine import check_script_on_machine
    from irscope.record.gpu.sanitized import exactly, instrumented
    from irscope.record.gpu.session import check_script_on_device
    from irscope.record.process.limits import run_limits

    run = replace(machine.run, limits=run_limits(options))
    if in_ring or (not machine.is_chosen and not options.targets):
        try:
            with instrumented("fp" if in_ring else None):
                checked = check_script_on_device(
                    request, launch=options.launch, every=every, launch_timeout_s=launch_timeout, echo=echo
                )
            return exactly(checked) if in_ring else checked
        except NoDevice:
            if in_ring:
                raise
            say("Triton's driver finds no GPU on this machine: the CPU runs the launches.")
    if every:
        raise UsageError("--all needs a GPU: the virtual GPU records the first launch of each compiled kernel.")
    with_gpu = machine.cpu and not options.targets and not options.virtual
    with progress() as tell:
        return check_script_on_machine(request, run, launch=options.launch, with_gpu=with_gpu, progress=tell, echo=echo)


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

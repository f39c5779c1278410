"""What a command line names: a program and a kernel of it, or a capture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.subject.stored import is_capture, refuse_empty, stored_captures
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import STAGE_NAMES, stage_named
from irscope.plan import PassPlan, PassRule
from irscope.target import Target

if TYPE_CHECKING:
    from irscope.model.recording_options import RecordingOptions

_BACKENDS = ("cuda", "hip")

__all__ = ["is_program", "is_script", "refuse_unknown_names", "split_subject"]


def split_subject(subject: str | None, record_options: RecordingOptions, default: str = "last") -> tuple[str, str]:
    """The file (or `-m MODULE`, `--pytest PATH`) and the kernel that a subject and the options name.

    `default`: what no subject stands for. Raises UsageError for a file beside -m or --pytest.
    """
    refuse_empty(subject)
    program = record_options.program
    file, _, kernel = (subject or ("" if program else default)).partition("::")
    if not program:
        return file, kernel
    if file:
        raise UsageError(f"{program} and {subject!r} do not go together: give one. ::KERNEL chooses a kernel of it.")
    module, _, named = program.partition("::") if record_options.module is not None else (program, "", "")
    return module, kernel or named


def refuse_unknown_names(
    subject: str | None,
    record_options: RecordingOptions,
    *,
    stages: Iterable[str] = (),
    passes: Iterable[str | None] = (),
) -> None:
    """Raise UsageError for a stage, and PlanError for a pass (the plan's too), that a program's captures cannot have.

    Passes of captures that are there already are looked for in them. Stages of a third-party backend are not known.
    """
    file, _ = split_subject(subject, record_options)
    if is_capture(file):
        held = {stage for one in stored_captures(subject).files for stage in one.stages} if stages else set[str]()
        for name in stages:
            if name not in ("all", *STAGE_NAMES, *held):
                raise UsageError(f"--stage {name!r}: there is no such stage.{did_you_mean(name, [*held])}")
        stages, passes = (), ()
    backends = {Target.parse(text).backend for text in record_options.targets} or {*_BACKENDS}
    for name in stages if backends <= {*_BACKENDS} else ():
        if name == "all":
            continue
        if name not in STAGE_NAMES:
            raise UsageError(f"--stage {name!r}: there is no such stage.{did_you_mean(name, STAGE_NAMES)}")
        if not backends & {*stage_named(name).backends} and stage_named(name).backends:
            raise UsageError(f"--stage {name}: a compile for {', '.join(record_options.targets)} has no such stage.")
    rules = tuple(PassRule.parse(text) for text in passes if text is not None)
    plan = record_options.plan.joined(PassPlan(() if record_options.llvm_passes else rules))
    if plan and record_options.interpreter is None:
        from irscope.record.triton.identity import refuse_unknown_passes

        refuse_unknown_passes(plan, backends)


def is_program(subject: str | None, record_options: RecordingOptions) -> bool:
    """Whether a subject is recorded when it is named: a script, a module, tests, a signature's kernel, an IR file."""
    file, _ = split_subject(subject, record_options)
    return not is_capture(file) and (bool(record_options.program) or file == "-" or Path(file).is_file())


def is_script(subject: str | None, record_options: RecordingOptions) -> bool:
    """Whether a subject is a program, which makes launches when it is run."""
    file, _ = split_subject(subject, record_options)
    runs = bool(record_options.program) or file == "-" or Path(file).suffix in (".py", ".ipynb")
    return runs and record_options.signature is None and is_program(subject, record_options)

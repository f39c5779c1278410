"""What a command line names: a program and a kernel of it, or a capture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.subject.stored import is_capture, refuse_empty
from irscope.errors import UsageError

if TYPE_CHECKING:
    from irscope.model.recording_options import RecordingOptions

__all__ = ["is_program", "is_script", "split_subject"]


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


def is_program(subject: str | None, record_options: RecordingOptions) -> bool:
    """Whether a subject is recorded when it is named: a script, a module, tests, a signature's kernel, an IR file."""
    file, _ = split_subject(subject, record_options)
    return not is_capture(file) and (bool(record_options.program) or file == "-" or Path(file).is_file())


def is_script(subject: str | None, record_options: RecordingOptions) -> bool:
    """Whether a subject is a program, which makes launches when it is run."""
    file, _ = split_subject(subject, record_options)
    runs = bool(record_options.program) or file == "-" or Path(file).suffix in (".py", ".ipynb")
    return runs and record_options.signature is None and is_program(subject, record_options)

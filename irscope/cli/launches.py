"""The launch that a command works on: chosen of several, and the program that makes it on the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.captures import captures_of, is_script, split_subject
from irscope.cli.recording import refuse_options, split_words
from irscope.cli.streams import say
from irscope.errors import NoDevice, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest, request_for
from irscope.record.variants.completing import tell_origin

if TYPE_CHECKING:
    from irscope.record.gpu.on_machine import MachineSession


def one_capture(subject: str | None, record_options: RecordingOptions) -> tuple[Capture, int]:
    """The launch that a subject names, and its number from 1.

    Of several it is the first, which is said; where autotuning timed its configurations, the first that is launched.
    """
    captures = captures_of(subject, record_options, of_one=True)
    tried = [one.facts.autotuning for one in captures.files]
    index = next((place for place, one in enumerate(tried) if one is None or one.winner is not False), 0)
    capture = captures[index]
    if len(captures) > 1:
        say(
            f"{len(captures)} launches: this is number {index + 1}, {capture.name}. --launch N takes another, "
            "FILE::KERNEL another kernel."
        )
    tell_origin(capture, say)
    return capture, record_options.launch or index + 1


def split_stages(texts: list[str] | None) -> tuple[str, ...]:
    """The stages of `--stage`; empty for all."""
    names = split_words(texts)
    return () if "all" in names else tuple(dict.fromkeys(names))


def why_no_gpu(subject: str | None, record_options: RecordingOptions, capture: Capture) -> str:
    """Why the variants of a capture cannot run here, as one sentence; empty if they can."""
    if not capture.environment.gpu:
        return "Whether the result is the same, and the time, need a GPU: this was recorded without one."
    if not is_script(subject, record_options):
        return "Whether the result is the same, and the time, need the script that launches it: give the FILE."
    return ""


def session_without_gpu(baseline: Capture, option: str = "") -> MachineSession:
    """The launch of a capture, run by the CPU; notes what is run on what. Raises NoDevice where it cannot be.

    `option`: what asked for the CPU, whether there is a GPU or not.
    """
    why = f"{option}:" if option else "There is no GPU here, and"
    from irscope.record.gpu.on_machine import session_on_machine

    try:
        session = session_on_machine(baseline)
    except UsageError as error:
        raise NoDevice(f"{why} the CPU cannot judge the result: {error}") from None
    if session.why_not_run:
        raise NoDevice(f"{why} the CPU cannot judge the result: {session.why_not_run}")
    drawn = f"; drawn at random: {', '.join(session.made_up)}" if session.made_up else ""
    who = f"{option}: {session.name}" if option else f"Without a GPU, {session.name}"
    say(f"{who} judges the result{drawn}. What LLVM and ptxas change is not seen.")
    return session


def program_request(subject: str | None, record_options: RecordingOptions) -> RecordRequest:
    """The request for recording a program again, to make its launches."""
    file, kernel = split_subject(subject, record_options, "")
    return request_for(file, record_options, kernel=kernel)


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
    refuse_options(record_options, f"{command} makes launches on the GPU that is there", "targets", "virtual")
    return file, kernel

"""What commands say of how a recording ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irscope.cli.autotuned import autotuning_notes
from irscope.cli.talk import say

if TYPE_CHECKING:
    from irscope.cli.subject import How
    from irscope.record.session import Recording

__all__ = ["nothing_recorded", "tell_end", "tell_refusals", "tell_stops"]

_LINES_OF_OUTPUT = 15


def tell_end(file: str, recording: Recording, asked: How) -> None:
    """Say how a recording ended, and what its captures do not hold."""
    tell_stops(file, recording, asked)
    stopped = [end for end in recording.stopped if not end.of_compile]
    if stopped and not asked.verbose and recording.output.strip():
        say("It printed last:")
        for line in recording.output.rstrip().splitlines()[-_LINES_OF_OUTPUT:]:
            say(f"  {line}")
    for note in recording.notes:
        say(note)
    for note in autotuning_notes(recording.captures, asked.config):
        say(note)


def tell_stops(file: str, recording: Recording, asked: How) -> None:
    """Say why a script stopped, and for which targets, and what was refused; the command's exit code is 1 then."""
    kept = sum(capture.has_compiled for capture in recording.captures)
    taken = f"; the {kept} compiled so far {'is' if kept == 1 else 'are'} kept" if kept else ""
    ends = {(end.message, end.frames): end for end in recording.stopped}
    for (message, frames), end in ends.items():
        where = [one.target for one in recording.stopped if (one.message, one.frames) == (message, frames)]
        several = len(recording.script_ends) + len(recording.refusals) > 1
        on = f" on {', '.join(where)}" if several else ""
        if end.of_compile:
            # Why that failed is told of with its capture.
            say(f"{file} stopped{on} at the launch whose compile failed{taken}.")
        else:
            say(f"{file} stopped{on}: {message}{taken}.")
            if frames:
                say(frames.rstrip())
        asked.incomplete.append(end.message)
    tell_refusals(recording, asked)


def tell_refusals(recording: Recording, asked: How) -> None:
    """Say for which targets nothing was recorded, and why."""
    for target, error in recording.refusals:
        say(f"nothing was recorded for {target}: {error}")
        asked.incomplete.append(target)


def nothing_recorded(file: str, kernel: str, recording: Recording) -> str:
    """Why there is no capture."""
    if recording.stopped:
        return f"nothing was recorded: {file} stopped before its first launch."
    which = f"kernel {kernel!r}" if kernel else "any kernel"
    return (
        f"{file} ran to its end without launching {which}. If it only defines kernels, give a signature: "
        f"irscope dump {file}::KERNEL --signature '*fp16:16, i32' --constexpr BLOCK=128"
    )

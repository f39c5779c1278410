"""Messages about how a recording ended."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from irscope.cli.output.talk import say
from irscope.errors import did_you_mean

if TYPE_CHECKING:
    from irscope.record.process.requests import Way
    from irscope.record.process.session import Recording

__all__ = ["note_incomplete", "noted_incomplete", "nothing_recorded", "tell_end", "tell_refusals", "tell_stops"]

_LINES_OF_OUTPUT = 15


_incomplete: ContextVar[list[str] | None] = ContextVar("incomplete", default=None)


@contextmanager
def noted_incomplete() -> Generator[list[str]]:
    """What was named in the block, and not recorded to its end."""
    names: list[str] = []
    token = _incomplete.set(names)
    try:
        yield names
    finally:
        _incomplete.reset(token)


def note_incomplete(*names: str) -> None:
    """Note that something was not recorded to its end: the command's exit code is 1 then."""
    if (noted := _incomplete.get()) is not None:
        noted.extend(names)


def tell_end(file: str, recording: Recording, config: str, *, verbose: bool) -> None:
    """Say how a recording ended, and what its captures lack.

    Args:
        file: the script.
        recording: of the script.
        config: the configurations of autotuned kernels that were to be compiled, as `--config` gave them.
        verbose: whether the script's output was shown already.
    """
    tell_stops(file, recording)
    # Tests that failed are named with their errors; of a command that failed only its output says why.
    stopped = [end for end in recording.stopped if not end.of_compile and not (end.complete and end.frames)]
    if stopped and not verbose and recording.output.strip():
        say("It printed last:")
        for line in recording.output.rstrip().splitlines()[-_LINES_OF_OUTPUT:]:
            say(f"  {line}")
    elif not verbose and (count := len(recording.output.split("\n")) - 1 if recording.output.strip() else 0):
        say(f"The script and the compiler printed {count} line{'s' * (count != 1)}: -v shows what.")
    from irscope.cli.subject.autotuned import autotuning_notes

    for note in (*recording.notes, *autotuning_notes(recording.captures, config)):
        say(note)


def tell_stops(file: str, recording: Recording) -> None:
    """Say why a script stopped, and for which targets nothing was recorded."""
    kept = sum(file.has_compiled for file in recording.captures.files)
    taken = f"; the {kept} compiled so far {'is' if kept == 1 else 'are'} kept" if kept else ""
    ends = {(end.message, end.frames): end for end in recording.stopped}
    for (message, frames), end in ends.items():
        where = [one.target for one in recording.stopped if (one.message, one.frames) == (message, frames)]
        several = len(recording.script_ends) + len(recording.refusals) > 1
        on = f" on {', '.join(where)}" if several else ""
        if end.of_compile:
            # The capture's own failure message says why.
            say(f"{file} stopped{on} at the launch whose compile failed{taken}.")
        else:
            # Tests that failed did not stop the others.
            say(f"{file}{on}: {message}{taken}." if end.complete else f"{file} stopped{on}: {message}{taken}.")
            if frames:
                say(frames.rstrip())
        note_incomplete(end.message)
    tell_refusals(recording)


def tell_refusals(recording: Recording) -> None:
    """Say for which targets nothing was recorded, and why."""
    for target, error in recording.refusals:
        say(f"nothing was recorded for {target}: {error}")
        note_incomplete(target)


def nothing_recorded(name: str, kernel: str, recording: Recording, way: Way) -> str:
    """Why a recording has no capture. `name`: of the program."""
    if recording.stopped and not recording.stopped[0].complete:
        return f"nothing was recorded: {name} stopped before its first launch."
    which = f"kernel {kernel!r}" if kernel else "any kernel"
    ran = f"{name} ran to its end without launching {which}."
    launched = sorted({other for end in recording.script_ends for other in end.passed_over})
    if launched:
        return f"{ran}{did_you_mean(kernel, launched, or_all=False)} It launched {', '.join(launched)}."
    if way not in ("file", "module"):
        return ran
    return (
        f"{ran} If it only defines kernels, give a signature: "
        f"irscope dump {name}::KERNEL --signature '*fp16:16, i32' --constexpr BLOCK=128"
    )

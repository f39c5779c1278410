"""The launch that a command works on, the program that makes it, and what runs without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irscope.cli.captures import captures_of, is_script, split_subject
from irscope.cli.output import Destination
from irscope.cli.recording import refuse_options, split_words
from irscope.cli.streams import say
from irscope.errors import NoDevice, UsageError
from irscope.model.capture import Capture
from irscope.model.plain import picked
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest, request_for
from irscope.record.variants.completing import tell_origin

if TYPE_CHECKING:
    from irscope.machine.captured import StageOfRun
    from irscope.machine.observed import Observation
    from irscope.record.gpu.on_machine import MachineRun, MachineSession


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
    tell_origin(capture)
    return capture, record_options.launch or index + 1


def split_stages(texts: list[str] | None) -> tuple[str, ...]:
    """The stages of `--stage`; empty for all."""
    names = split_words(texts)
    return () if "all" in names else tuple(dict.fromkeys(names))


def why_no_gpu(subject: str | None, record_options: RecordingOptions, capture: Capture) -> str:
    """Why the variants of a capture cannot run here, as one sentence; empty if they can."""
    if not capture.environment.gpu:
        return "Comparing results and timing need a GPU: this was recorded without one."
    if not is_script(subject, record_options):
        return "Comparing results and timing need the script that launches it: give the FILE."
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
    say(f"{who} judges the result{drawn}. Changes by LLVM and ptxas are not covered.")
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


@dataclass(frozen=True, slots=True)
class OnMachine:
    """How `run` runs launches on the CPU.

    Options:
        --cpu: Run on the CPU; with a GPU, compare what both compute.
        --stage ttir|ttgir: The IR that the CPU runs.
        --at PASS[#N]: Run the IR after a pass on the CPU.
        --programs (1..): Run a sample of the programs of each launch.
    """

    cpu: bool = False
    stage: str | None = None
    at: str | None = None
    programs: int | None = None

    @property
    def is_chosen(self) -> bool:
        """Whether any option asks for the CPU."""
        return self != OnMachine()

    @property
    def run(self) -> MachineRun:
        """What is run of each launch; raises UsageError."""
        from irscope.record.gpu.on_machine import MachineRun

        return MachineRun(_stage_of(self.stage or "ttgir"), self.at or "", self.programs)


@dataclass(frozen=True, slots=True)
class Values:
    """Which values `show` prints.

    Options:
        --values: Run the launch on the CPU, and print the results of each operation, by line of Python.
        --value %NAME: Only this value, such as %acc, with its elements.
        --program X[,Y[,Z]]: Run only this program of the grid.
        --line (1..): Only what comes from this line of the file.
        --at PASS[#N]: Run the IR after a pass.
    """

    values: bool = False
    value: str | None = None
    program: str | None = None
    line: int | None = None
    at: str | None = None

    def __post_init__(self) -> None:
        chosen = {"--value": self.value, "--program": self.program, "--line": self.line, "--at": self.at}
        given = " ".join(f"{name} {value}" for name, value in chosen.items() if value is not None)
        if given and not self.values:
            raise UsageError(f"{given}: these choose among the values of a launch: give --values with them.")


def show_values(captures: Sequence[Capture], values: Values, stages: tuple[str, ...], to: Destination) -> int:
    """Print the values of each capture's launch; returns the exit code."""
    from irscope.machine.observed import observe_values
    from irscope.render.text.values import render_values

    if len(stages) > 1:
        raise UsageError("--values runs one IR: give one --stage, ttir or ttgir.")
    stage, program = _stage_of(stages[0] if stages else "ttir"), _program_of(values.program)
    rows: list[tuple[Capture, Observation]] = []
    for capture in captures:
        observed = observe_values(
            capture, stage=stage, at=values.at or "", name=values.value or "", line=values.line, program=program
        )
        if observed.made_up:
            made_up = ", ".join(observed.made_up)
            say(f"{capture.name}: drawn at random, since the recording does not hold their elements: {made_up}")
        rows.append((capture, observed))

    def as_text(width: int | None, color: bool) -> str:
        texts: list[str] = []
        for capture, observed in rows:
            head = f"{capture.name} ({capture.target})\n" if len(rows) > 1 else ""
            texts.append(head + render_values(observed, width=width, color=color))
        return "\n\n".join(texts)

    def as_json() -> dict[str, Any]:
        return {"captures": [picked(one, "id kernel=name target") | found.as_json() for one, found in rows]}

    to.emit(as_json, as_text)
    return 0


def _stage_of(text: str) -> StageOfRun:
    if text not in ("ttir", "ttgir"):
        raise UsageError(f"--stage {text!r}: the CPU runs ttir and ttgir.")
    return text


def _program_of(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) > 3 or not all(part.strip().isdecimal() for part in parts):
        raise UsageError(f"--program {text!r}: write its place along each axis of the grid, such as 3,0.")
    x, y, z = (*map(int, parts), 0, 0)[:3]
    return x, y, z

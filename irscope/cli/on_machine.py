"""What runs on irscope's own machine, without a GPU: the launches of `run`, and the values that `show` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irscope.cli.output import Destination
from irscope.cli.streams import say
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.render.text.tables import picked

if TYPE_CHECKING:
    # They import NumPy, which the commands do not need without these options.
    from irscope.machine.captured import StageOfRun
    from irscope.machine.observed import Observation
    from irscope.record.gpu.on_machine import MachineRun


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

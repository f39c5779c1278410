"""The values of a run: what each operation of a kernel gave, by line of Python, and where the first NaN arose."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import numpy as np

from irscope.errors import NotRun, UsageError, WrongProgram, did_you_mean
from irscope.ir.locations.model import line_text, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.model import Operation
from irscope.machine.arithmetic import is_float
from irscope.machine.captured import StageOfRun, captured_inputs, launched_grid, run_text, text_at
from irscope.machine.control import Bindings, Machine, Step
from irscope.machine.launch import NO_LIMITS, SMALL_RUN, RunLimits
from irscope.machine.values import Array, Held, unsigned
from irscope.model.capture import Capture

_MOST_SHOWN = 64
"""Elements of a value that are kept of its last execution."""
_NONFINITE: Mapping[str, Callable[[Array], Array]] = {"nan": np.isnan, "infinity": np.isinf}


@dataclass(frozen=True, slots=True)
class ObservedValue:
    """One value of the IR, in all programs that ran and all executions of its operation."""

    line: int
    """In the IR, 1-based."""
    place: str
    """`file:line` of the Python that it is from; empty if there is none."""
    name: str
    """`%acc_41`, as the text writes it."""
    operation: str
    type: str
    shape: tuple[int, ...]
    executions: int
    minimum: float | None
    """Of the elements that are no NaN; None if all are."""
    maximum: float | None
    nans: int
    infinities: int
    elements: tuple[float, ...]
    """The first ones of its last execution, of the first program that ran, in row-major order."""


@dataclass(frozen=True, slots=True)
class Nonfinite:
    """The first operation that made a NaN, or an infinity, of operands that held none."""

    kind: str
    """`nan` or `infinity`."""
    line: int
    place: str
    name: str
    operation: str
    program: tuple[int, int, int]
    element: tuple[int, ...]
    operands: tuple[float, ...]
    """What its operands are at that element, as far as they have it."""
    is_loaded: bool = False
    """Whether it stood in memory, and this operation read it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a run of a kernel showed."""

    stage: str
    at: str
    values: tuple[ObservedValue, ...]
    nonfinite: tuple[Nonfinite, ...]
    made_up: tuple[str, ...]
    """The tensors whose elements were drawn at random."""

    def as_json(self) -> dict[str, Any]:
        """As plain values; floats that JSON does not have are words."""
        return _plain(asdict(self))


def observe_values(
    capture: Capture,
    values: Mapping[str, Any] | None = None,
    *,
    stage: StageOfRun = "ttir",
    at: str = "",
    name: str = "",
    line: int | None = None,
    program: tuple[int, int, int] | None = None,
    seed: int = 0,
    limits: RunLimits = NO_LIMITS,
) -> Observation:
    """Run a capture's kernel on the CPU as `run_capture` does, and note its values.

    `name`: only this value, `%acc`, or those that a pass numbered after it, `%acc_41`. `line`: only what comes from
    this line of the kernel's file. `program`: only this one is run. Raises NotRun, WrongProgram and UsageError.
    """
    grid = launched_grid(capture)
    text = text_at(capture, stage, at)
    watch = _Watch(text, capture)
    inputs = captured_inputs(capture, values, seed, limits)
    run_text(text, grid, inputs, programs=_programs(grid, program), observer=watch.note, limits=limits)
    found = watch.values()
    if name:
        wanted = f"%{name.removeprefix('%')}"
        names = [one.name for one in found]
        found = [one for one in found if one.name == wanted or _is_numbered(one.name, wanted)]
        if not found:
            raise UsageError(f"no value of this IR is called {wanted!r}.{did_you_mean(wanted, names, or_all=False)}")
    if line is not None:
        found = [one for one in found if one.place.rpartition(":")[2] == str(line)]
    return Observation(stage, at, tuple(found), tuple(watch.nonfinite.values()), inputs.made_up)


def recorded_observation(capture: Capture) -> Observation | None:
    """The values of a small launch whose tensors the capture holds, in the TTGIR; None of another one."""
    record = capture.launch.record
    tensors = [one for one in record.arguments if one.kind != "scalar"] if record is not None else []
    if not tensors or not all(one.data for one in tensors) or capture.launch.grid is None:
        return None
    try:
        return observe_values(capture, stage="ttgir", limits=SMALL_RUN)
    except (NotRun, UsageError, WrongProgram):
        return None


@dataclass(frozen=True, slots=True)
class _StoredNonfinite:
    """NaNs or infinities that a launch leaves in memory, which held none before."""

    arose: Nonfinite
    tensor: str
    """The first tensor that holds some."""
    count: int
    """Of its elements."""
    programs: int
    """How many programs were run."""


def stored_nonfinite(capture: Capture, programs: Sequence[int] | None, limits: RunLimits) -> list[_StoredNonfinite]:
    """Run the TTGIR of a launch whose tensors the capture holds; returns what non-finite values it makes and stores.

    Of a value that was loaded, or made of one, nothing is returned. `programs`: numbers of those that are run. Raises
    NotRun where a tensor is not known or a limit is exceeded, WrongProgram and UsageError.
    """
    grid = launched_grid(capture)
    inputs = captured_inputs(capture, limits=limits)
    if inputs.made_up:
        raise NotRun(f"not run: the elements of {', '.join(inputs.made_up)} are not known")
    before = {name: tensor.copy() for name, tensor in inputs.tensors.items() if is_float(tensor.dtype)}
    text = text_at(capture, "ttgir")
    after = run_text(text, grid, inputs, programs=programs, limits=limits)
    stored: dict[str, tuple[str, int]] = {}
    for name, old in before.items():
        is_new = unsigned(np.ascontiguousarray(after[name])) != unsigned(np.ascontiguousarray(old))
        for kind, is_such in _NONFINITE.items():
            count = int((is_new & is_such(after[name].astype(np.float64))).sum())
            if count:
                stored.setdefault(kind, (name, count))
    if not stored:
        return []
    watch = _Watch(text, capture)
    run_text(text, grid, captured_inputs(capture), programs=programs, observer=watch.note, limits=limits)
    ran = prod(grid) if programs is None else len(programs)
    arose = [(watch.nonfinite[kind], row) for kind, row in stored.items() if kind in watch.nonfinite]
    return [_StoredNonfinite(one, *row, ran) for one, row in arose if not one.is_loaded]


def _programs(grid: tuple[int, int, int], program: tuple[int, int, int] | None) -> list[int] | None:
    if program is None:
        return None
    if any(not 0 <= place < size for place, size in zip(program, grid, strict=True)):
        raise UsageError(f"the grid {'×'.join(map(str, grid))} has no program {','.join(map(str, program))}.")
    x, y, z = program
    return [x + grid[0] * (y + grid[1] * z)]


def _is_numbered(name: str, wanted: str) -> bool:
    base, _, number = name.partition("#")[0].rpartition("_")
    return base == wanted and number.isdecimal()


@dataclass(slots=True)
class _Sum:
    """What is known of a value so far."""

    operation: Operation
    place: int
    executions: int = 0
    minimum: float | None = None
    maximum: float | None = None
    nans: int = 0
    infinities: int = 0
    elements: tuple[float, ...] = ()


class _Watch:
    def __init__(self, text: str, capture: Capture) -> None:
        self.nonfinite: dict[str, Nonfinite] = {}
        self._locations = read_locations(text, "mlir")
        self._file = capture.launch.kernel.file
        self._sums: dict[tuple[int, int], _Sum] = {}

    def note(self, machine: Machine, step: Step, frame: Bindings, results: Sequence[Held]) -> None:
        for place, held in enumerate(results):
            kind = step.types[place]
            element = kind.element if kind.form == "tensor" and kind.element is not None else kind
            if isinstance(held, np.ndarray) and held.size and element.form in ("integer", "float", "index"):
                self._note(machine, step, frame, place, held)

    def _note(self, machine: Machine, step: Step, frame: Bindings, place: int, values: Array) -> None:
        row = self._sums.setdefault((id(step.operation), place), _Sum(step.operation, place))
        row.executions += 1
        first = np.broadcast_to(values[:1], (1, *step.types[place].shape)).reshape(-1)[:_MOST_SHOWN]
        row.elements = tuple(float(one) for one in first)
        if is_float(values.dtype):
            values = values.astype(np.float64)
            for kind, is_such in _NONFINITE.items():
                holds = is_such(values)
                count = int(holds.sum())
                row.nans += count if kind == "nan" else 0
                row.infinities += count if kind == "infinity" else 0
                if count and kind not in self.nonfinite and step.operation.kind != "constant":
                    self._note_nonfinite(kind, machine, step, frame, place, holds)
            values = values[~np.isnan(values)]
        if values.size:
            low, high = float(values.min()), float(values.max())
            row.minimum = low if row.minimum is None else min(low, row.minimum)
            row.maximum = high if row.maximum is None else max(high, row.maximum)

    def _note_nonfinite(
        self, kind: str, machine: Machine, step: Step, frame: Bindings, place: int, holds: Array
    ) -> None:
        held = [frame.held(value) for value in step.operands]
        operands = [one.astype(np.float64) for one in held if isinstance(one, np.ndarray) and is_float(one.dtype)]
        if any(bool(_NONFINITE[kind](one).any()) for one in operands):
            return
        at = tuple(int(index[0]) for index in np.nonzero(holds))
        inputs: list[float] = []
        for one in operands:
            if one.ndim == len(at):
                inputs.append(float(one[tuple(np.minimum(at, np.array(one.shape) - 1))]))
        line = step.operation.first_line
        self.nonfinite[kind] = Nonfinite(
            kind, line, self._place_at(line), step.results[place].name, step.operation.name,
            machine.program_at(frame, min(at[0], frame.count - 1)), at[1:], tuple(inputs),
            step.operation.info is not None and step.operation.info.has_effect("reads", "global"),
        )  # fmt: skip

    def _place_at(self, line: int) -> str:
        return line_text(place_of(self._locations.chain_at(line), self._file))

    def values(self) -> list[ObservedValue]:
        found: list[ObservedValue] = []
        for row in sorted(self._sums.values(), key=lambda one: (one.operation.first_line, one.place)):
            operation, line = row.operation, row.operation.first_line
            kind, value = operation.result_types[row.place], operation.results[row.place]
            # tensor<64xf32, #blocked> is shown as tensor<64xf32>
            shown, comma, _ = kind.text.partition(", #")
            found.append(
                ObservedValue(
                    line, self._place_at(line), value.name, operation.name, f"{shown}>" if comma else shown, kind.shape,
                    row.executions, row.minimum, row.maximum, row.nans, row.infinities, row.elements,
                )
            )  # fmt: skip
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value

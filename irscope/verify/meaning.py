"""Whether passes, or two compiles of a kernel, mean the same: the IR before and after runs in ring arithmetic.

`irscope.machine.ring` says what is equal there. Where two texts differ, ordinary arithmetic is asked by how much: what
it explains by rounding is not decided, what it does not is changed.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import prod
from typing import Any, Literal

import numpy as np

from irscope.device.measurement import Agreement
from irscope.errors import LimitExceeded, NotRun, UsageError, WaitsForOthers, WrongProgram
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.agreement import agreement_of, moved_runs
from irscope.machine.arithmetic import is_float
from irscope.machine.captured import Inputs, captured_inputs, run_text, sampled_programs
from irscope.machine.launch import NO_LIMITS, HostDescriptor, Pointer, RunLimits, run
from irscope.machine.ptx_registers import StuckThreads
from irscope.machine.ring import PRIME, RingArithmetic, RingDifference, RingMemory, first_difference
from irscope.machine.values import Array
from irscope.memory.addresses.parts import program_at
from irscope.model.capture import Capture
from irscope.model.launch_record import LaunchRecord
from irscope.verify.earlier import MOST_WAITING
from irscope.verify.lowering import lowered_run
from irscope.verify.texts import changed_texts

_MeaningAnswer = Literal["same", "changed", "not decided"]
DEFAULT_PROGRAMS = 9
"""Programs that are run unless all are asked for: the corners of the grid, and what lies between."""
_VARIATIONS = 4
"""Inputs on which ordinary arithmetic looks for a difference that ring arithmetic shows."""
LOWERING = "the lowering to PTX"
"""The label of what makes PTX of TTGIR: Triton's lowering and LLVM."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The smallest program and element that show another meaning."""

    program: tuple[int, int, int] | None
    """Along x, y and z; None where it takes several programs."""
    tensor: str
    element: tuple[int, ...]
    before: float | None
    """The element in ordinary arithmetic; None where neither run defines it."""
    after: float | None
    elements: int
    """How many elements of all programs that ran differ."""
    agreement: Agreement | None = None
    """By how much all of them differ in ordinary arithmetic."""
    inputs: str = ""
    """The inputs of the ordinary run."""

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        plain: dict[str, Any] = asdict(self) | {"agreement": self.agreement.as_json() if self.agreement else None}
        for name in ("before", "after"):
            if plain[name] is not None and not np.isfinite(plain[name]):
                plain[name] = None
        return plain


@dataclass(frozen=True, slots=True)
class PassMeaning:
    """What one pass, or one side of a comparison, did to the meaning."""

    label: str
    """`ttgir:pipeline`; of a comparison, what is compared."""
    answer: _MeaningAnswer
    detail: str = ""
    """Why it is not decided, or what is different; of `same`, in which arithmetic."""
    difference: Difference | None = None
    since: str = ""
    """The last pass before it whose IR could be run, where that is not the one right before it."""
    arithmetic: Literal["ring", "ordinary", ""] = "ring"
    """What decided; empty where nothing did."""

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"difference": self.difference.as_json() if self.difference else None}


@dataclass(frozen=True, slots=True)
class MeaningVerdict:
    """The verdict on the passes of one capture, or on two captures."""

    rows: tuple[PassMeaning, ...] = ()
    """Of each pass that changed the text."""
    reason: str = ""
    """Why nothing could be run."""
    programs: int = 0
    all_programs: int = 0
    lowering: PassMeaning | None = None
    """Of the PTX, compared with the TTGIR; None without PTX. The answer does not depend on it if it is not decided."""
    is_exceeded: bool = False
    """Whether it is not decided since that is more work than a limit."""

    @property
    def answer(self) -> _MeaningAnswer:
        """`changed` if any pass or the lowering changed it, `same` if each pass is known not to have."""
        if self.culprit is not None:
            return "changed"
        undecided = self.reason or any(row.answer == "not decided" for row in self.rows)
        return "not decided" if undecided else "same"

    @property
    def culprit(self) -> PassMeaning | None:
        """The first that changed the meaning."""
        rows = (*self.rows, self.lowering) if self.lowering is not None else self.rows
        return next((row for row in rows if row.answer == "changed"), None)

    @property
    def collisions(self) -> float:
        """A bound of the probability that an element differs in meaning and not in the ring, by polynomial degree."""
        return 1 / PRIME

    def as_json(self) -> dict[str, Any]:
        """The form of `irscope verify --passes --json`."""
        culprit = self.culprit
        return {
            "answer": self.answer,
            "reason": self.reason,
            "first_changed": culprit.label if culprit is not None else None,
            "programs": self.programs,
            "all_programs": self.all_programs,
            "collision_probability_by_degree": self.collisions,
            "passes": [row.as_json() for row in self.rows],
            "lowering": self.lowering.as_json() if self.lowering is not None else None,
        }


def verify_passes(
    capture: Capture,
    *,
    programs: int | None = DEFAULT_PROGRAMS,
    values: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> MeaningVerdict:
    """Compare the meaning of the IR before and after each pass of TTIR and TTGIR, and of the PTX of two programs.

    `programs`: how many of the launch are run at the most. `values`: name → the elements of a tensor, or a number,
    for what the capture does not hold. `progress` gets the label of the pass that is being compared.
    """
    steps = list(changed_texts(capture))
    reason = _not_run(capture) or ("" if len(steps) > 1 else "the capture holds no IR after single passes")
    if reason:
        return MeaningVerdict(reason=reason)
    comparison = _Comparison(capture, programs, values)
    rows: list[PassMeaning] = []
    before, since, is_adjacent = steps[0][1], "", True
    for label, after in steps[1:]:
        if progress is not None:
            progress(f"{capture.name}: {label}")
        row = comparison.compare(label, before, after)
        runs = row.arithmetic != ""
        rows.append(row if is_adjacent else replace(row, since=since or steps[0][0]))
        if runs or row.answer == "changed":
            before, since = after, label
        is_adjacent = runs or row.answer == "changed"
    lowering = comparison.lowering() if "ptx" in capture.texts else None
    return MeaningVerdict(tuple(rows), "", comparison.count, comparison.all_programs, lowering)


def verify_lowering(capture: Capture, *, values: Mapping[str, Any] | None = None) -> PassMeaning:
    """Compare the PTX of two programs of a launch with its TTGIR, as `verify_passes` does."""
    reason = _not_run(capture)
    if reason:
        return PassMeaning(LOWERING, "not decided", reason, arithmetic="")
    return _Comparison(capture, DEFAULT_PROGRAMS, values).lowering()


def compare_captures(
    left: Capture, right: Capture, *, programs: int | None = DEFAULT_PROGRAMS, values: Mapping[str, Any] | None = None,
    limits: RunLimits = NO_LIMITS,
) -> MeaningVerdict:  # fmt: skip
    """Compare the meaning of two compiles of one kernel: the last TTIR or TTGIR of each, on the same arguments.

    Their constants and grids may differ; then all programs are run. With more work than the limit of a run, nine
    programs are compared, or one, and nothing if that is too much as well. Raises UsageError for captures whose tensors
    are not the same.
    """
    reason = _not_run(left) or _not_run(right)
    if reason:
        return MeaningVerdict(reason=reason)
    texts = [last_text(one) for one in (left, right)]
    same_tiles = left.launch.grid == right.launch.grid and dict(left.launch.constants) == dict(right.launch.constants)
    label = f"{_named(left)} → {_named(right)}"
    try:
        comparison = _Comparison(left, programs if same_tiles else None, values, right, limits)
        row = comparison.compare(label, *texts)
        for fewer in (DEFAULT_PROGRAMS, 1):
            if comparison.is_exceeded and same_tiles and comparison.count > fewer:
                comparison = _Comparison(left, fewer, values, right, limits)
                row = comparison.compare(label, *texts)
    except LimitExceeded as error:
        return MeaningVerdict(reason=str(error), is_exceeded=True)
    return MeaningVerdict((row,), "", comparison.count, comparison.all_programs, is_exceeded=comparison.is_exceeded)


def compare_texts(capture: Capture, before: str, after: str) -> PassMeaning:
    """Compare the meaning of two texts of TTIR or TTGIR, with the arguments of a capture's launch."""
    reason = _not_run(capture)
    if reason:
        return PassMeaning("", "not decided", reason, arithmetic="")
    return _Comparison(capture, DEFAULT_PROGRAMS, None).compare("", before, after)


def _not_run(capture: Capture) -> str:
    if capture.launch.record is None:
        return "it was compiled without a launch, so its arguments are unknown"
    if capture.launch.grid is None:
        return (
            f"{_named(capture)} ({capture.id[:8]}) was compiled and not launched, so its grid is unknown; a "
            "tl.constexpr of --vs is only compiled: set it in a copy of the script, and compare both FILEs"
        )
    if not prod(capture.launch.grid):
        return f"the launch runs no program: its grid is {'×'.join(map(str, capture.launch.grid))}"
    if not any(stage in capture.stages for stage in ("ttgir", "ttir", "source")):
        return f"its compile begins with {capture.begun_from or 'nothing'}: there is no IR to execute"
    return ""


def last_text(capture: Capture) -> str:
    """The last TTIR or TTGIR of a capture."""
    texts = capture.texts
    return next(texts[stage] for stage in ("ttgir", "ttir", "source") if stage in texts)


def _named(capture: Capture) -> str:
    return f"{capture.name} ({capture.target}{f', {capture.plan}' if capture.plan else ''})"


class _Comparison:
    """Compares texts with the arguments of one launch."""

    def __init__(
        self, capture: Capture, programs: int | None, values: Mapping[str, Any] | None, other: Capture | None = None,
        limits: RunLimits = NO_LIMITS,
    ) -> None:  # fmt: skip
        self._capture, self._values, self._limits = capture, values, limits
        self.is_exceeded = False
        """Whether a run had more work than its limit."""
        self._other = other or capture
        self._grids = [one.launch.grid or (1, 1, 1) for one in (capture, self._other)]
        self._programs = [sampled_programs(grid, programs) or range(prod(grid)) for grid in self._grids]
        self.all_programs, self.count = prod(self._grids[0]), len(self._programs[0])
        self._inputs = captured_inputs(capture, values, limits=limits)
        self._other_inputs = self._inputs
        if other is not None and _arguments_of(other) != _arguments_of(capture):
            self._other_inputs = captured_inputs(other, values, limits=limits)
            _refuse_others(self._inputs, self._other_inputs)
        self._ring: dict[tuple[str, int, int], RingMemory | NotRun | WrongProgram] = {}

    def compare(self, label: str, before: str, after: str) -> PassMeaning:
        left = self._in_ring(before, 0)
        right = left if self.is_exceeded else self._in_ring(after, 1)
        waits = any(isinstance(one, WaitsForOthers) for one in (left, right))
        if waits and self.count < self.all_programs <= MOST_WAITING:
            # All of them, since some wait for those that were left out.
            self._programs, self.count = [range(prod(grid)) for grid in self._grids], self.all_programs
            return self.compare(label, before, after)
        if self.is_exceeded:
            return PassMeaning(label, "not decided", str(right), arithmetic="")
        if isinstance(left, RingMemory) and isinstance(right, RingMemory):
            try:
                difference = first_difference(left, right)
            except NotRun as error:
                return self._ordinary(label, before, after, str(error))
            if difference is None:
                return PassMeaning(label, "same")
            return self._confirmed(label, before, after, difference)
        errors = [one for one in (left, right) if isinstance(one, (NotRun, WrongProgram))]
        return self._ordinary(label, before, after, str(errors[-1]))

    # ── ring arithmetic ───────────────────────────────────────────────────────────────────────────────────────

    def _in_ring(self, text: str, side: int) -> RingMemory | NotRun | WrongProgram:
        key = (text, 0 if self._other is self._capture else side, len(self._programs[side]))
        if key not in self._ring:
            # The text before the last one is not compared any more.
            self._ring = dict(list(self._ring.items())[-1:])
            self._ring[key] = self._run_in_ring(text, side, self._programs[side])
        return self._ring[key]

    def _run_in_ring(self, text: str, side: int, programs: Sequence[int]) -> RingMemory | NotRun | WrongProgram:
        arithmetic = RingArithmetic(1)
        inputs = self._other_inputs if side else self._inputs
        try:
            # It has memory of its own: the arguments stay as they are, and are run with again.
            run(
                parse_mlir(text), self._grids[side], inputs.given, programs=programs, arithmetic=arithmetic,
                limits=self._limits,
            )  # fmt: skip
        except (NotRun, WrongProgram) as error:
            self.is_exceeded |= isinstance(error, LimitExceeded)
            return error
        assert arithmetic.result is not None
        return arithmetic.result

    def _smallest(
        self, before: str, after: str, difference: RingDifference
    ) -> tuple[list[Sequence[int]], tuple[int, int, int] | None, RingDifference]:
        """The programs that show a difference on both sides, the one that does alone, and the difference."""
        if self._programs[0] == self._programs[1]:
            for program in self._programs[0]:
                left, right = (self._run_in_ring(text, side, [program]) for side, text in enumerate((before, after)))
                if not isinstance(left, RingMemory) or not isinstance(right, RingMemory):
                    continue
                try:
                    own = first_difference(left, right)
                except NotRun:
                    continue
                if own is not None:
                    return [[program], [program]], program_at(program, self._grids[0]), own
        return [*self._programs], None, difference

    def _confirmed(self, label: str, before: str, after: str, difference: RingDifference) -> PassMeaning:
        """A difference of the ring, as ordinary arithmetic shows it."""
        programs, place, own = self._smallest(before, after, difference)
        tensor, element = _element_at(self._inputs, own)
        closest: Agreement | None = None
        for number in range(_VARIATIONS):
            try:
                agreement, values = self._agreement(before, after, programs, number, (tensor, element))
            except (NotRun, WrongProgram) as error:
                return PassMeaning(label, "not decided", f"ring arithmetic differs; {error}")
            if agreement.verdict not in ("identical", "close"):
                shown = Difference(
                    place, tensor, element, *values, difference.elements, agreement, _VARIATION_NAMES[number]
                )  # fmt: skip
                return PassMeaning(label, "changed", _in_words(agreement), shown)
            closest = closest or agreement
        shown = Difference(place, tensor, element, None, None, difference.elements, closest)
        return PassMeaning(
            label, "not decided",
            "other operations, whose results differ by no more than rounding in ordinary arithmetic "
            f"({_VARIATIONS} kinds of inputs)",
            shown,
        )  # fmt: skip

    # ── below TTGIR ───────────────────────────────────────────────────────────────────────────────────────────

    def lowering(self) -> PassMeaning:
        """Compare the PTX of the first and the last program with the TTGIR."""
        programs = dict.fromkeys((self._programs[0][0], self._programs[0][-1]))
        words: list[str] = []
        for program in programs:
            try:
                run = lowered_run(self._capture, partial(self._varied, 0, 0), program)
            except StuckThreads as error:
                detail = f"it never ends only after the lowering: {error}"
                return PassMeaning(LOWERING, "changed", detail, arithmetic="ordinary")
            except (NotRun, WrongProgram) as error:
                return PassMeaning(LOWERING, "not decided", str(error), arithmetic="")
            if (place := run.wrong()) is not None:
                tensor, element = place
                shown = Difference(
                    program_at(program, self._grids[0]), tensor, element,
                    _number(run.before, (tensor, element)), _number(run.after, (tensor, element)),
                    run.agreement.differing, run.agreement, _VARIATION_NAMES[0],
                )  # fmt: skip
                return PassMeaning(LOWERING, "changed", _in_words(run.agreement), shown, arithmetic="ordinary")
            if not run.agreement.passes:
                words.append(_in_words(run.agreement))
        if words:
            detail = f"no more than another order of sums may change: {words[0]}"
            return PassMeaning(LOWERING, "not decided", detail, arithmetic="ordinary")
        return PassMeaning(LOWERING, "same", f"within rounding, {len(programs)} programs", arithmetic="ordinary")

    # ── ordinary arithmetic ───────────────────────────────────────────────────────────────────────────────────

    def _ordinary(self, label: str, before: str, after: str, why: str) -> PassMeaning:
        """What ordinary arithmetic says, where the ring's cannot."""
        try:
            self._run(before, 0, self._programs[0], 0)
        except (NotRun, WrongProgram) as error:
            return PassMeaning(label, "not decided", f"the IR before it: {error}", arithmetic="")
        try:
            agreement, values = self._agreement(before, after, self._programs, 0, None)
        except WrongProgram as error:
            return PassMeaning(label, "changed", f"it fails only after the pass: {error}", arithmetic="ordinary")
        except NotRun as error:
            return PassMeaning(label, "not decided", str(error), arithmetic="")
        if agreement.verdict in ("identical", "close"):
            rounding = "bit for bit" if agreement.verdict == "identical" else "within rounding"
            detail = f"{rounding}, by ordinary arithmetic on the recorded inputs: {why}"
            return PassMeaning(label, "same", detail, arithmetic="ordinary")
        shown = Difference(None, agreement.argument, (), *values, agreement.differing, agreement, _VARIATION_NAMES[0])
        return PassMeaning(label, "changed", _in_words(agreement), shown, arithmetic="ordinary")

    def _varied(self, side: int, number: int) -> Inputs:
        """The arguments, with their floats as recorded, negative, large, or drawn anew."""
        inputs = captured_inputs(self._other if side else self._capture, self._values)
        random = np.random.default_rng(number)
        for tensor in inputs.tensors.values():
            if number and is_float(tensor.dtype):
                drawn = random.standard_normal(tensor.shape)
                drawn = -np.abs(drawn) - 1 if number == 1 else drawn * (4 if number == 2 else 1)
                tensor[...] = drawn.astype(tensor.dtype)
        return inputs

    def _run(self, text: str, side: int, programs: Sequence[int], number: int) -> dict[str, Array]:
        return self._run_limited(text, side, self._varied(side, number), programs)

    def _run_limited(self, text: str, side: int, inputs: Inputs, programs: Sequence[int]) -> dict[str, Array]:
        try:
            return run_text(text, self._grids[side], inputs, programs=programs, limits=self._limits)
        except LimitExceeded:
            self.is_exceeded = True
            raise

    def _agreement(
        self, before: str, after: str, programs: Sequence[Sequence[int]], number: int,
        at: tuple[str, tuple[int, ...]] | None,
    ) -> tuple[Agreement, tuple[float | None, float | None]]:  # fmt: skip
        """How the results of two texts agree, and the values of one element, or of the first that is beyond noise."""
        baseline = self._run(before, 0, programs[0], number)
        found = self._run(after, 1, programs[1], number)
        moved = moved_runs(
            lambda inputs, _: self._run_limited(before, 0, inputs, programs[0]),
            partial(self._varied, 0, number), 0, inputs_alone=True,
        )  # fmt: skip
        agreement = agreement_of(
            baseline, baseline, moved, found, "runs on inputs perturbed by one unit in the last place"
        )
        if at is None or at[0] not in baseline:
            return agreement, (None, None)
        return agreement, (_number(baseline, at), _number(found, at))


_VARIATION_NAMES = ("as recorded", "negative floats", "large floats", "floats drawn anew")


def _number(tensors: Mapping[str, Array], at: tuple[str, tuple[int, ...]]) -> float | None:
    tensor, element = at
    return float(tensors[tensor][element]) if len(element) == tensors[tensor].ndim else None


def _in_words(agreement: Agreement) -> str:
    detail = f"{agreement.differing} elements differ"
    if agreement.max_abs_error is not None:
        detail += f", by up to {agreement.max_abs_error:.3g}, where rounding explains {agreement.noise or 0:.2g}"
    return detail + (f" ({agreement.detail})" if agreement.verdict == "nan" else "")


def _arguments_of(capture: Capture) -> tuple[LaunchRecord | None, frozenset[str]]:
    """What the tensors of a run depend on: the record, and the names that the kernel has as constants."""
    launch = capture.launch
    return launch.record, frozenset(name for name, kind in launch.signature if kind == "constexpr")


def _refuse_others(left: Inputs, right: Inputs) -> None:
    shapes = [{name: (one.shape, one.dtype) for name, one in inputs.tensors.items()} for inputs in (left, right)]
    if shapes[0] != shapes[1]:
        names = sorted(name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name))
        raise UsageError(
            f"the captures have different tensors: {', '.join(names)}. Compare two compiles of one launch."
        )


def _element_at(inputs: Inputs, difference: RingDifference) -> tuple[str, tuple[int, ...]]:
    """The tensor and the element of it that a difference is in; no element where none begins there."""
    pointers = [one.base if isinstance(one, HostDescriptor) else one for one in inputs.given]
    storages = list({id(one.storage): one.storage for one in pointers if isinstance(one, Pointer)}.values())
    storage = storages[difference.storage]
    begin = storage.__array_interface__["data"][0]
    for name, tensor in inputs.tensors.items():
        offset = tensor.__array_interface__["data"][0] - begin
        if not 0 <= offset < max(storage.size, 1):
            continue
        rest, element = difference.offset_bytes - offset, [0] * tensor.ndim
        for axis in sorted(range(tensor.ndim), key=lambda axis: -tensor.strides[axis]):
            stride = tensor.strides[axis]
            element[axis] = min(rest // stride, tensor.shape[axis] - 1) if stride else 0
            rest -= element[axis] * stride
        if rest == 0 and difference.offset_bytes >= offset:
            return name, tuple(element)
        return f"{name} + {difference.offset_bytes - offset} bytes", ()
    name = next(one.name for one in pointers if isinstance(one, Pointer) and one.storage is storage)
    return f"memory of {name} + {difference.offset_bytes} bytes", ()

"""The accesses of a launch: of its first, an inner and its last program, and of all programs together.

All programs are counted at once where possible: an access touches as much in each of them, and in each iteration of a
loop, if its mask is known and it begins at the same place within a line. What is left is counted program by program, or
for a sample of them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

import numpy as np

from irscope.ir.mlir.model import MlirModule, Operation
from irscope.layout.maps import ThreadMap
from irscope.machine.loops import evaluate
from irscope.machine.noted import AccessExecution, Evaluation
from irscope.machine.numbers import Source
from irscope.machine.programs import Programs, Weight
from irscope.memory.access import Certainty, GlobalAccess, Span, Traffic
from irscope.memory.addresses.arguments import LaunchArguments, pointer_steps
from irscope.memory.addresses.counter import Counter, Hardware
from irscope.memory.addresses.parts import (
    MOST_PROGRAMS,
    AccessPlace,
    active_parts,
    parts_of,
    place_of,
    program_at,
    spread_evenly,
)
from irscope.memory.machine import ACCESSES

_SAMPLE_WORK = 30_000
"""Work of the evaluation of programs one by one, as `Evaluation.work` counts it."""
_LEAST_SAMPLE, _MOST_SAMPLE = 4, 256
"""How many of them; if the work does not allow the least, the first, an inner and the last one are the sample."""
_CERTAINTIES: tuple[Certainty, ...] = ("range", "sampled", "exact")
"""The least certain first."""


def accesses_of(
    module: MlirModule,
    arguments: LaunchArguments,
    grid: tuple[int, int, int] | None,
    hardware: Hardware,
    threads_of: Callable[[Operation], ThreadMap | None],
    width_of: Callable[[Operation], int],
    made_of: Callable[[Operation], int | None] = lambda operation: None,
) -> list[GlobalAccess]:
    """Every access of a module's kernel to global memory, in the order of the text.

    `threads_of`: the layout of an operation's pointers. `width_of`: bits per lane of its instructions; 0 if they are
    not known. `made_of`: how many instructions the machine code has for it.
    """
    return _Launch(module, arguments, grid, Counter(hardware, threads_of, width_of, made_of)).accesses()


@dataclass(frozen=True, slots=True)
class _Total:
    """The traffic of all programs, for one operation."""

    traffic: Traffic
    certainty: Certainty
    basis: str


class _Launch:
    def __init__(
        self, module: MlirModule, arguments: LaunchArguments, grid: tuple[int, int, int] | None, counter: Counter
    ) -> None:
        self.module = module
        self.arguments = arguments
        self.grid = grid
        self.counter = counter
        self.work = 0
        self.evaluations: list[Evaluation] = []
        self._programs: dict[tuple[int, int, int], dict[int, Traffic]] = {}
        self._steps = pointer_steps(arguments)

    def accesses(self) -> list[GlobalAccess]:
        grid = self.grid or (1, 1, 1)
        if min(grid) < 1:
            return []
        corners = _corners(grid)
        if not self.arguments.is_recorded:
            # Without sizes one program is as good as another.
            corners = corners[:1] * 3
        found = {corner: self._program(corner) for corner in corners}
        first, inner, last = (found[corner] for corner in corners)
        operations = [one for one in self.module.walk() if one.opcode in ACCESSES]
        totals = self._totals([one.first_line for one in operations], first)
        return [self._access(one, first, inner, last, totals[one.first_line]) for one in operations]

    # Evaluations

    def _program(self, index: tuple[int, int, int]) -> dict[int, Traffic]:
        if index not in self._programs:
            arguments = self.arguments
            found = evaluate(self.module, arguments.held, Programs.at(index, self.grid), arguments.contents)
            self._programs[index] = self._counted(found, set())
        return self._programs[index]

    def _counted(self, found: Evaluation, differs: set[int]) -> dict[int, Traffic]:
        """The traffic of each line; `differs` gets those in which programs differ in more than is counted."""
        if not self.arguments.is_recorded:
            found = replace(found, executions=tuple(map(_whole, found.executions)))
        self.evaluations.append(found)
        self.work = max(self.work, found.work)
        traffic: dict[int, list[Traffic]] = {}
        for execution in found.executions:
            parts = [*self._traffic(found.programs, execution)]
            line = execution.operation.first_line
            traffic.setdefault(line, []).extend(parts)
            is_known = found.programs.count == 1 or all(part.is_known for part in parts)
            if not is_known and _differs(found.programs, execution):
                differs.add(line)
        return {line: Traffic.sum(parts) for line, parts in traffic.items()}

    def _traffic(self, programs: Programs, execution: AccessExecution) -> Iterator[Traffic]:
        """What all programs ask for, by the mask and the place within a line that the access begins at."""
        place = place_of(programs, execution)
        for mask, weight in active_parts(programs, execution) or [(execution.mask, execution.weight)]:
            one = replace(execution, mask=mask)
            if place is None:
                yield self.counter.traffic(one).often(weight.span)
                continue
            step = self._steps.get(place.argument, 1)
            for begin, times in self._begins(place, weight).items():
                moved = replace(one.addresses, known=one.addresses.known + begin, step=step)
                yield self.counter.traffic(replace(one, addresses=moved)).often(times)

    def _begins(self, place: AccessPlace, weight: Weight) -> dict[int, Span]:
        """Place within a line of memory → how often the access begins there, in all programs and iterations."""
        size = self.counter.hardware.line_bytes
        shifts = np.broadcast_to(place.shifts % size, weight.count)
        begins = {begin: weight.span_of(shifts == begin) for begin in np.unique(shifts).tolist()}
        for apart, count in place.iterations:
            period = size // gcd(apart, size)
            moved: dict[int, Span] = {}
            for begin, (low, high) in begins.items():
                for first in range(min(period, count)):
                    # The weight has the iterations already.
                    share = len(range(first, count, period))
                    at = (begin + first * apart) % size
                    before = moved.get(at, (0, 0))
                    moved[at] = before[0] + low * share // count, before[1] + high * share // count
            begins = moved
        return begins

    def _totals(self, lines: Sequence[int], one: Mapping[int, Traffic]) -> dict[int, _Total]:
        grid = self.grid
        if not self.arguments.is_recorded or grid is None:
            return {line: self._judged(line, one.get(line), "one program: no launch was recorded") for line in lines}
        if prod(grid) == 1:
            return {line: self._judged(line, one.get(line), "the only program") for line in lines}
        totals = self._at_once(lines, grid) if prod(grid) <= MOST_PROGRAMS else {}
        if len(totals) < len(lines):
            totals |= self._one_by_one([line for line in lines if line not in totals], grid)
        return totals

    def _at_once(self, lines: Sequence[int], grid: tuple[int, int, int]) -> dict[int, _Total]:
        """The lines of which all programs are counted at once."""
        differs: set[int] = set()
        counted = [self._counted(part, differs) for part in parts_of(self.module, self.arguments, grid)]
        if any(found.is_ended for found in self.evaluations):
            return {}
        basis = "programs differ only in where they begin"
        return {
            line: self._judged(line, Traffic.sum(part[line] for part in counted if line in part), basis)
            for line in lines
            if line not in differs
        }

    def _judged(self, line: int, traffic: Traffic | None, basis: str) -> _Total:
        unread = any(line == other for found in self.evaluations for other, _ in found.unread)
        if unread or (traffic is None and any(found.is_ended for found in self.evaluations)):
            return _Total(Traffic.unknown(), "range", "its addresses are not known")
        traffic = traffic or Traffic()
        if any(found.is_ended for found in self.evaluations):
            return _Total(traffic, "sampled", f"{basis}, as far as it was followed")
        return _Total(traffic, "exact" if traffic.is_known else "range", basis)

    def _one_by_one(self, lines: Sequence[int], grid: tuple[int, int, int]) -> dict[int, _Total]:
        count = prod(grid)
        size = min(_SAMPLE_WORK // max(self.work, 1), _MOST_SAMPLE)
        size = count if count <= 2 * size else size
        chosen = [program_at(number, grid) for number in spread_evenly(count, size)]
        if len(chosen) < min(count, _LEAST_SAMPLE):
            chosen = list(dict.fromkeys(_corners(grid)))
        found = [self._program(index) for index in chosen]
        totals: dict[int, _Total] = {}
        for line in lines:
            reached = [part[line] for part in found if line in part]
            traffic = Traffic.sum(reached).scaled(count / len(chosen)) if reached else None
            if len(chosen) == count:
                totals[line] = self._judged(line, traffic, f"each of {count} programs")
                continue
            judged = self._judged(line, traffic, f"{len(chosen)} of {count} programs")
            totals[line] = judged if judged.traffic != traffic else replace(judged, certainty="sampled")
        return totals

    def _access(
        self, operation: Operation, first: dict[int, Traffic], inner: dict[int, Traffic], last: dict[int, Traffic],
        total: _Total,
    ) -> GlobalAccess:  # fmt: skip
        line = operation.first_line
        executions = [one for found in self.evaluations for one in found.executions if one.operation is operation]
        shape = self.counter.shape(operation)
        said = [*self.arguments.stand_ins]
        said += [why for found in self.evaluations for other, why in found.unread if other == line]
        if total.traffic.executions[1] and executions and not shape.strides and executions[0].addresses.shape:
            said.append("the layout has no map")
        if total.certainty != "exact":
            said += [note for found in self.evaluations for note in found.notes]
        programs = [self._judged(line, found.get(line), "") for found in (first, inner, last)]
        return GlobalAccess(
            operation=operation.name,
            line=line,
            action=ACCESSES[operation.opcode],
            argument=next((one.addresses.argument for one in executions), ""),
            bits_per_thread=shape.bits,
            possible_bits=shape.possible_bits,
            strides=shape.strides,
            unit_bytes=self.counter.hardware.unit_bytes,
            line_bytes=self.counter.hardware.line_bytes,
            each=self._judged(line, self.counter.each.get(line), "").traffic,
            first=programs[0].traffic,
            inner=programs[1].traffic,
            last=programs[2].traffic,
            programs=next(one for one in _CERTAINTIES if any(program.certainty == one for program in programs)),
            launch=total.traffic,
            certainty=total.certainty,
            basis=total.basis,
            assumed=(*self._assumed(executions, total.certainty == "exact"), *dict.fromkeys(said)),
            element_bytes=next((one.element_bits // 8 for one in executions), 0),
        )

    def _assumed(self, executions: Iterable[AccessExecution], is_exact: bool) -> tuple[str, ...]:
        sources = dict.fromkeys(source for one in executions for source in one.sources)
        if is_exact:
            # What was loaded is known program by program, or makes no difference.
            sources = {source: None for source in sources if source.kind != "data"}
        said = [self.arguments.assumed.get(one.text, "") if one.kind == "argument" else _words(one) for one in sources]
        if not self.arguments.is_recorded:
            said.append(
                "no launch was recorded: masks are assumed true, and loops of unknown length to have one iteration"
            )
        return tuple(sorted(filter(None, dict.fromkeys(said))))


def _words(source: Source) -> str:
    if source.kind == "data":
        return f"depends on {source.text}"
    return f"{source.text} is not evaluated" if source.kind == "operation" else ""


def _whole(execution: AccessExecution) -> AccessExecution:
    """An execution of a launch that was not recorded: masks that only sizes decide hold, loops have one iteration."""
    mask, weight = execution.mask, execution.weight
    if mask is not None and mask.tokens is not None and not any(one.kind == "data" for one in mask.sources):
        mask = replace(mask, known=np.where(mask.tokens == 0, mask.known, -1), tokens=None)
    is_endless = weight.span[1] >= Weight.most
    return replace(execution, mask=mask, weight=Weight.once(1) if is_endless else weight)


def _corners(grid: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
    x, y, z = grid
    return (0, 0, 0), (x // 2, y // 2, z // 2), (x - 1, y - 1, z - 1)


def _differs(programs: Programs, execution: AccessExecution) -> bool:
    """Whether programs differ in more than what is counted of an access."""
    mask = execution.mask
    if _varies(execution.weight.sources) or (
        _varies(execution.addresses.sources) and not place_of(programs, execution)
    ):
        return True
    return mask is not None and _varies(mask.sources) and active_parts(programs, execution) is None


def _varies(sources: frozenset[Source]) -> bool:
    return any(source.kind == "program" for source in sources)

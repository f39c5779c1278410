"""The accesses of a launch: of its first, an inner and its last program, and of all programs together.

All programs are counted at once where possible: with unknown program ids, evaluated for the inner programs of each axis
and for its last one, an access touches as much in each of them if its mask is known and only the place that it begins
at depends on the ids. What is left is counted program by program, or for a sample of them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

import numpy as np

from irscope.ir.mlir.model import MlirModule, Operation
from irscope.layout.maps import ThreadMap
from irscope.machine.loops import evaluate
from irscope.machine.noted import AccessExecution, Evaluation
from irscope.machine.numbers import FAR, Number, Source
from irscope.machine.symbolic import Programs
from irscope.memory.access import Certainty, GlobalAccess, Traffic
from irscope.memory.addresses.arguments import LaunchArguments
from irscope.memory.addresses.counter import Counter, Hardware
from irscope.memory.machine import ACCESSES

_SAMPLE_WORK = 30_000
"""Work of the evaluation of programs one by one, as `Evaluation.work` counts it."""
_LEAST_SAMPLE, _MOST_SAMPLE = 4, 256
"""How many of them; if the work does not allow the least, the first, an inner and the last one are the sample."""
_CERTAINTIES: tuple[Certainty, ...] = ("range", "sampled", "exact")
"""The least certain first."""
_MOST_PARTS = 32
"""Into how many parts the programs are divided whose accesses begin at different places within a line."""


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

    Args:
        grid: the programs of the launch; None if there was none.
        threads_of: the layout of an operation's pointers; None if there is none.
        width_of: bits per lane of an operation's instructions; 0 if they are not known.
        made_of: the instructions that the machine code has for an operation; None if they are not known.
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
            self._programs[index] = _by_line(self._evaluated(Programs(index, (1, 1, 1), self.grid)), self.counter)
        return self._programs[index]

    def _evaluated(self, programs: Programs) -> Sequence[AccessExecution]:
        found = evaluate(self.module, self.arguments.held, programs, contents=self.arguments.contents)
        if not self.arguments.is_recorded:
            found = replace(found, executions=tuple(map(_whole, found.executions)))
        self.evaluations.append(found)
        self.work = max(self.work, found.work)
        return found.executions

    def _totals(self, lines: Sequence[int], one: Mapping[int, Traffic]) -> dict[int, _Total]:
        grid = self.grid
        if not self.arguments.is_recorded or grid is None:
            return {line: self._judged(line, one.get(line), "one program: no launch was recorded") for line in lines}
        if prod(grid) == 1:
            return {line: self._judged(line, one.get(line), "the only program") for line in lines}
        totals = self._alike(lines, grid)
        if len(totals) < len(lines):
            totals |= self._one_by_one([line for line in lines if line not in totals], grid)
        return totals

    def _judged(self, line: int, traffic: Traffic | None, basis: str) -> _Total:
        unread = any(line == other for found in self.evaluations for other, _ in found.unread)
        if unread or (traffic is None and any(found.is_ended for found in self.evaluations)):
            return _Total(Traffic.unknown(), "range", "its addresses are not known")
        traffic = traffic or Traffic()
        if line in self._sampled():
            return _Total(traffic, "sampled", f"{basis}, some iterations of a loop")
        return _Total(traffic, "exact" if traffic.is_known else "range", basis)

    def _sampled(self) -> set[int]:
        """The lines of which only some executions were evaluated."""
        return {
            one.operation.first_line
            for found in self.evaluations
            for one in found.executions
            if one.share < 1 or found.is_ended
        }

    def _alike(self, lines: Sequence[int], grid: tuple[int, int, int]) -> dict[int, _Total]:
        """The lines whose traffic is the same in all inner programs, and in all last ones, of each axis."""
        found: dict[int, list[Traffic]] = {line: [] for line in lines}
        for programs in _boxes(grid):
            if not (begin := self._count_alike(programs, found)):
                continue
            # Programs of one remainder along each axis begin at one place within a line.
            periods = [self._period(programs.along(axis), begin) for axis in range(3)]
            if prod(periods) > _MOST_PARTS:
                for line in begin:
                    del found[line]
                continue
            others = {line: parts for line, parts in found.items() if line not in begin}
            divided = {line: found[line] for line in begin}
            for part in programs.parts(periods):
                for line in self._count_alike(part, divided):
                    del divided[line]
            found = others | divided
        basis = "programs differ only in where they begin"
        return {line: self._judged(line, Traffic.sum(parts), basis) for line, parts in found.items()}

    def _count_alike(self, programs: Programs, found: dict[int, list[Traffic]]) -> set[int]:
        """Count some programs at once, and give up the lines in which they differ.

        Returns the lines that are not counted because the programs begin at several places within a line of memory.
        """
        executions = self._evaluated(programs)
        if self.evaluations[-1].is_ended:
            found.clear()
        counted: dict[int, list[Traffic]] = {line: [] for line in found}
        begin: set[int] = set()
        for execution in executions:
            line = execution.operation.first_line
            if line not in found:
                continue
            if _differs(execution):
                del found[line]
                continue
            traffic = self.counter.traffic(execution)
            if not traffic.is_known and self._period_of(execution) > 1:
                begin.add(line)
            counted[line].append(traffic.often((programs.count, programs.count)))
        for line in found.keys() - begin:
            found[line] += counted[line]
        return begin & found.keys()

    def _period(self, programs: Programs, lines: set[int]) -> int:
        """After how many programs the places repeat where they begin within a line of memory."""
        if programs.count == 1:
            return 1
        executions = [one for one in self._evaluated(programs) if one.operation.first_line in lines]
        return max(map(self._period_of, executions), default=1)

    def _period_of(self, execution: AccessExecution) -> int:
        line_bytes = self.counter.hardware.line_bytes
        return line_bytes // gcd(execution.addresses.step, line_bytes) if _varies(execution.addresses) else 1

    def _one_by_one(self, lines: Sequence[int], grid: tuple[int, int, int]) -> dict[int, _Total]:
        count = prod(grid)
        size = min(_SAMPLE_WORK // max(self.work, 1), _MOST_SAMPLE)
        size = count if count <= 2 * size else size
        places = sorted({(count - 1) * number // max(size - 1, 1) for number in range(size)})
        chosen = [(at % grid[0], at // grid[0] % grid[1], at // grid[0] // grid[1]) for at in places]
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
        if line in self._sampled():
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
        sources = dict.fromkeys(source for one in executions for source in _sources(one))
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


def _sources(execution: AccessExecution) -> frozenset[Source]:
    mask = execution.mask.sources if execution.mask is not None else frozenset[Source]()
    return execution.addresses.sources | mask | execution.sources


def _whole(execution: AccessExecution) -> AccessExecution:
    """An execution of a launch that was not recorded: masks that only sizes decide hold, loops have one iteration."""
    mask, times = execution.mask, execution.times
    if mask is not None and mask.tokens is not None and not any(one.kind == "data" for one in mask.sources):
        mask = replace(mask, known=np.where(mask.tokens == 0, mask.known, -1), tokens=None)
    return replace(execution, mask=mask, times=(1, 1) if times[1] >= FAR else times)


def _by_line(executions: Iterable[AccessExecution], counter: Counter) -> dict[int, Traffic]:
    found: dict[int, list[Traffic]] = {}
    for execution in executions:
        found.setdefault(execution.operation.first_line, []).append(counter.traffic(execution))
    return {line: Traffic.sum(parts) for line, parts in found.items()}


def _corners(grid: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
    x, y, z = grid
    return (0, 0, 0), (x // 2, y // 2, z // 2), (x - 1, y - 1, z - 1)


def _boxes(grid: tuple[int, int, int]) -> Iterator[Programs]:
    """The programs of a launch in parts: along each axis all but the last one, and the last one."""
    sides = [[(0, size - 1), (size - 1, 1)] if size > 1 else [(0, 1)] for size in grid]
    for x, y, z in product(*sides):
        yield Programs((x[0], y[0], z[0]), (x[1], y[1], z[1]), grid)


def _differs(execution: AccessExecution) -> bool:
    """Whether the programs that it was evaluated for differ in more than where an access begins."""
    if any(source.kind == "program" for source in execution.sources):
        return True
    if execution.mask is not None and _varies(execution.mask):
        return True
    return _varies(execution.addresses) and not execution.addresses.is_rigid


def _varies(number: Number) -> bool:
    return any(source.kind == "program" for source in number.sources)

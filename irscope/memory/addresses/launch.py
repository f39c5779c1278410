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
from dataclasses import dataclass, field, replace
from itertools import product
from math import gcd, prod

import numpy as np

from irscope.ir.mlir.model import MlirModule, Operation
from irscope.layout.thread_map import ThreadMap
from irscope.memory.access import Access, Certainty, Traffic
from irscope.memory.addresses.accesses import ACCESSES, Execution
from irscope.memory.addresses.arguments import Arguments
from irscope.memory.addresses.counting import counted
from irscope.memory.addresses.evaluate import Evaluation, evaluate
from irscope.memory.addresses.held import Programs
from irscope.memory.addresses.lanes import Lanes, box_lanes, lanes_of, scalar_map, strides_of, widest_vector
from irscope.memory.addresses.numbers import FAR, Number, Source, Tokens

__all__ = ["Hardware", "accesses_of"]

_SAMPLE_WORK = 12_000
"""Operations that the evaluation of programs one by one may take."""
_LEAST_SAMPLE, _MOST_SAMPLE = 4, 256
_MOST_PARTS = 32
"""Into how many parts the programs are divided whose accesses begin at different places within a line."""
_WIDEST_BITS = 128


@dataclass(frozen=True, slots=True)
class Hardware:
    """How a target's memory is counted."""

    unit_bytes: int
    line_bytes: int
    warp_size: int


def accesses_of(
    module: MlirModule,
    arguments: Arguments,
    grid: tuple[int, int, int] | None,
    hardware: Hardware,
    threads_of: Callable[[Operation], ThreadMap | None],
    width_of: Callable[[Operation], int],
) -> list[Access]:
    """Every access of a module's kernel to global memory, in the order of the text.

    Args:
        module: a TTGIR module.
        arguments: what its parameters are.
        grid: the programs of the launch; None if there was none.
        hardware: the units that are counted.
        threads_of: the layout of an operation's pointers; None if there is none.
        width_of: bits per lane of an operation's instructions; 0 if they are not known.
    """
    return _Launch(module, arguments, grid, _Counter(hardware, threads_of, width_of)).accesses()


@dataclass(slots=True)
class _Counter:
    """Counts executions; those that touch memory alike only once."""

    hardware: Hardware
    threads_of: Callable[[Operation], ThreadMap | None]
    width_of: Callable[[Operation], int]
    lanes: dict[tuple[int, int], Lanes] = field(default_factory=dict[tuple[int, int], Lanes])
    shapes: dict[tuple[int, int], _Shape] = field(default_factory=dict[tuple[int, int], "_Shape"])
    known: dict[object, Traffic] = field(default_factory=dict[object, Traffic])

    def traffic(self, execution: Execution) -> Traffic:
        """The traffic of all executions that one stands for."""
        addresses, mask = execution.addresses, execution.mask
        begin = int(addresses.known.flat[0])
        key = (
            execution.operation.first_line,
            execution.warps,
            (addresses.known - begin).tobytes(),
            begin % self.hardware.line_bytes,
            addresses.step,
            _pattern(addresses.tokens),
            None if mask is None else (mask.known.shape, mask.known.tobytes(), _open(mask.tokens)),
        )
        if key not in self.known:
            size = max(execution.element_bits // 8, 1)
            lanes = self._lanes(execution)
            units = (self.hardware.unit_bytes, self.hardware.line_bytes)
            self.known[key] = counted(lanes, addresses, mask, size, *units)
        found = self.known[key].often(execution.times)
        return found.scaled(1 / execution.share) if execution.share < 1 else found

    def shape(self, operation: Operation) -> _Shape:
        """How the instructions of an operation are."""
        return next((shape for (line, _), shape in self.shapes.items() if line == operation.first_line), _Shape())

    def _lanes(self, execution: Execution) -> Lanes:
        operation, addresses = execution.operation, execution.addresses
        key = (operation.first_line, execution.warps)
        if key not in self.lanes:
            shape = _Shape(strides=strides_of(addresses))
            if execution.is_box:
                found = box_lanes(prod(addresses.shape))
            else:
                threads = self.threads_of(operation) if addresses.shape else None
                threads = threads or scalar_map(execution.warps, self.hardware.warp_size)
                width, possible = self._widths(execution, threads)
                found = lanes_of(threads, width, once=ACCESSES[operation.name] != "load")
                bits = execution.element_bits
                shape = _Shape(width * bits, possible * bits, shape.strides)
            self.lanes[key], self.shapes[key] = found, shape
        return self.lanes[key]

    def _widths(self, execution: Execution, threads: ThreadMap) -> tuple[int, int]:
        """The elements of a lane's part of an instruction, and those that it could have."""
        bits = max(execution.element_bits, 1)
        given = (threads, execution.addresses, execution.mask, max(bits // 8, 1))
        possible = widest_vector(*given, max(_WIDEST_BITS // bits, 1), aligned=True)
        real = self.width_of(execution.operation) // bits
        if not real:
            return possible, possible
        tokens = execution.addresses.tokens
        if tokens is not None and tokens.size > 1:
            # The compiler knew more of the addresses than can be seen here.
            return min(real, threads.registers), possible
        return widest_vector(*given, real, aligned=False), possible


@dataclass(frozen=True, slots=True)
class _Shape:
    """The instructions of an operation, as its first execution shows them."""

    bits: int = 0
    possible_bits: int = 0
    strides: tuple[int | None, ...] = ()


def _pattern(tokens: Tokens | None) -> bytes:
    """Which elements have one token."""
    if tokens is None or tokens.size == 1:
        return b"" if tokens is None else b"1"
    return np.unique(tokens, return_inverse=True)[1].tobytes()


def _open(tokens: Tokens | None) -> bytes:
    return b"" if tokens is None else (tokens != 0).tobytes()


@dataclass(frozen=True, slots=True)
class _Total:
    """The traffic of all programs, for one operation."""

    traffic: Traffic
    certainty: Certainty
    basis: str


class _Launch:
    def __init__(
        self, module: MlirModule, arguments: Arguments, grid: tuple[int, int, int] | None, counter: _Counter
    ) -> None:
        self.module = module
        self.arguments = arguments
        self.grid = grid
        self.counter = counter
        self.work = 0
        self.evaluations: list[Evaluation] = []

    def accesses(self) -> list[Access]:
        grid = self.grid or (1, 1, 1)
        if min(grid) < 1:
            return []
        x, y, z = grid
        corners = ((0, 0, 0), (x // 2, y // 2, z // 2), (x - 1, y - 1, z - 1))
        if not self.arguments.is_recorded:
            # Without sizes one program is as good as another.
            corners = corners[:1] * 3
        found = {corner: self._program(corner) for corner in corners}
        first, inner, last = (found[corner] for corner in corners)
        operations = [one for one in self.module.walk() if one.name in ACCESSES]
        totals = self._totals([one.first_line for one in operations], first)
        return [self._access(one, first, inner, last, totals[one.first_line]) for one in operations]

    # Evaluations

    def _program(self, index: tuple[int, int, int]) -> dict[int, Traffic]:
        return _by_line(self._evaluated(Programs(index, (1, 1, 1), self.grid)), self.counter)

    def _evaluated(self, programs: Programs) -> Sequence[Execution]:
        found = evaluate(self.module, self.arguments.held, programs)
        if not self.arguments.is_recorded:
            found = replace(found, executions=tuple(map(_whole, found.executions)))
        self.evaluations.append(found)
        self.work = max(self.work, found.work)
        return found.executions

    def _totals(self, lines: Sequence[int], one: Mapping[int, Traffic]) -> dict[int, _Total]:
        grid = self.grid if self.arguments.is_recorded else None
        if grid is None:
            return {
                line: self._judged(one.get(line, Traffic()), "one program: no launch was recorded") for line in lines
            }
        count = prod(grid)
        if count == 1:
            return {line: self._judged(one.get(line, Traffic()), "the only program") for line in lines}
        totals = self._alike(lines, grid)
        if len(totals) < len(lines):
            totals |= self._one_by_one([line for line in lines if line not in totals], grid)
        return totals

    def _judged(self, traffic: Traffic, basis: str) -> _Total:
        sampled = any(found.notes for found in self.evaluations)
        return _Total(traffic, "sampled" if sampled else "exact" if traffic.is_known else "range", basis)

    def _alike(self, lines: Sequence[int], grid: tuple[int, int, int]) -> dict[int, _Total]:
        """The lines whose traffic is the same in all inner programs, and in all last ones, of each axis."""
        found: dict[int, list[Traffic]] = {line: [] for line in lines}
        for programs in _boxes(grid):
            period = self._count_alike(programs, found)
            if period > 1:
                parts = programs.parts(period)
                if len(parts) > _MOST_PARTS:
                    return {}
                for part in parts:
                    self._count_alike(part, found)
        basis = "programs differ only in where they begin"
        return {line: self._judged(Traffic.sum(parts), basis) for line, parts in found.items()}

    def _count_alike(self, programs: Programs, found: dict[int, list[Traffic]]) -> int:
        """Count some programs at once, and give up the lines in which they differ.

        Returns 1, or, where programs begin at different places within a line of memory, after how many of them the
        places repeat; then nothing is counted.
        """
        executions = self._evaluated(programs)
        if self.evaluations[-1].is_ended:
            found.clear()
            return 1
        counted: list[tuple[int, Traffic]] = []
        period = 1
        for execution in executions:
            line = execution.operation.first_line
            if line not in found:
                continue
            traffic = self.counter.traffic(execution)
            if _differs(execution):
                del found[line]
            elif not traffic.is_known and _varies(execution.addresses):
                step = gcd(execution.addresses.step, self.counter.hardware.line_bytes)
                period = max(period, self.counter.hardware.line_bytes // step)
            counted.append((line, traffic.often((programs.count, programs.count))))
        if period > 1 and max(programs.apart) == 1:
            return period
        for line, traffic in counted:
            if line in found:
                found[line].append(traffic)
        return 1

    def _one_by_one(self, lines: Sequence[int], grid: tuple[int, int, int]) -> dict[int, _Total]:
        """All programs one after another, or a sample of them."""
        count = prod(grid)
        size = min(max(_SAMPLE_WORK // max(self.work, 1), _LEAST_SAMPLE), _MOST_SAMPLE)
        size = count if count <= 2 * size else size
        chosen = sorted({(count - 1) * number // max(size - 1, 1) for number in range(size)})
        found = [self._program((at % grid[0], at // grid[0] % grid[1], at // grid[0] // grid[1])) for at in chosen]
        every = len(chosen) == count
        basis = f"each of {count} programs" if every else f"{len(chosen)} of {count} programs"
        totals: dict[int, _Total] = {}
        for line in lines:
            traffic = Traffic.sum(part.get(line, Traffic()) for part in found).scaled(count / len(chosen))
            judged = self._judged(traffic, basis)
            totals[line] = judged if every else _Total(traffic, "sampled", basis)
        return totals

    def _access(
        self, operation: Operation, first: dict[int, Traffic], inner: dict[int, Traffic], last: dict[int, Traffic],
        total: _Total,
    ) -> Access:  # fmt: skip
        line = operation.first_line
        executions = [one for found in self.evaluations for one in found.executions if one.operation is operation]
        shape = self.counter.shape(operation)
        notes = dict.fromkeys(note for found in self.evaluations for note in found.notes)
        none = Traffic()
        return Access(
            operation=operation.name,
            line=line,
            action=ACCESSES[operation.name],
            argument=next((one.addresses.argument for one in executions), ""),
            bits_a_lane=shape.bits,
            possible_bits=shape.possible_bits,
            strides=shape.strides,
            unit_bytes=self.counter.hardware.unit_bytes,
            line_bytes=self.counter.hardware.line_bytes,
            first=first.get(line, none),
            inner=inner.get(line, none),
            last=last.get(line, none),
            launch=total.traffic,
            certainty=total.certainty,
            basis=total.basis,
            assumed=(*self._assumed(executions), *notes),
        )

    def _assumed(self, executions: Iterable[Execution]) -> tuple[str, ...]:
        sources = dict.fromkeys(source for one in executions for source in _sources(one))
        said = [self.arguments.assumed.get(one.text, "") if one.kind == "argument" else _words(one) for one in sources]
        if not self.arguments.is_recorded:
            said.append("no launch was recorded: masks are taken to hold, loops of an unknown length to have one turn")
        return tuple(sorted(filter(None, dict.fromkeys(said))))


def _words(source: Source) -> str:
    if source.kind == "data":
        return f"depends on {source.text}"
    return f"{source.text} is not evaluated" if source.kind == "operation" else ""


def _sources(execution: Execution) -> frozenset[Source]:
    mask = execution.mask.sources if execution.mask is not None else frozenset[Source]()
    return execution.addresses.sources | mask | execution.sources


def _whole(execution: Execution) -> Execution:
    """An execution of a launch that was not recorded: masks that only sizes decide hold, its loops have one turn."""
    mask, times = execution.mask, execution.times
    if mask is not None and mask.tokens is not None and not any(one.kind == "data" for one in mask.sources):
        mask = replace(mask, known=np.where(mask.tokens == 0, mask.known, -1), tokens=None)
    return replace(execution, mask=mask, times=(1, 1) if times[1] >= FAR else times)


def _by_line(executions: Iterable[Execution], counter: _Counter) -> dict[int, Traffic]:
    found: dict[int, list[Traffic]] = {}
    for execution in executions:
        found.setdefault(execution.operation.first_line, []).append(counter.traffic(execution))
    return {line: Traffic.sum(parts) for line, parts in found.items()}


def _boxes(grid: tuple[int, int, int]) -> Iterator[Programs]:
    """The programs of a launch in parts: along each axis all but the last one, and the last one."""
    sides = [[(0, size - 1), (size - 1, 1)] if size > 1 else [(0, 1)] for size in grid]
    for x, y, z in product(*sides):
        yield Programs((x[0], y[0], z[0]), (x[1], y[1], z[1]), grid)


def _differs(execution: Execution) -> bool:
    """Whether the programs that it was evaluated for differ in more than where an access begins."""
    if any(source.kind == "program" for source in execution.sources):
        return True
    if execution.mask is not None and _varies(execution.mask):
        return True
    tokens = execution.addresses.tokens
    return _varies(execution.addresses) and tokens is not None and tokens.size > 1


def _varies(number: Number) -> bool:
    return any(source.kind == "program" for source in number.sources)

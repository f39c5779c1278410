"""Sums the counters of a launch by operation of the TTGIR, or where these are not known by line of Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from irscope.device.occupancy import warps_of
from irscope.errors import UsageError
from irscope.ir.asm.control_flow import UNKNOWN, ControlFlow, read_control_flow
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.operands import register_names
from irscope.ir.asm.sass import SassFunction, parse_sass, parse_sass_instruction
from irscope.ir.locations.model import chain_texts, line_text, place_of
from irscope.ir.locations.stages import capture_locations
from irscope.ir.logs.source_page import CountedInstruction, CountedKernel, Counters, read_source_page
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.reach import reached
from irscope.memory.access import MOST, Cost, GlobalAccess, Span
from irscope.memory.costs import costs_of
from irscope.memory.machine import Action, MemoryInstructions, read_machine
from irscope.model.capture import Capture

_PADDING = frozenset({"NOP", "BRA"})


@dataclass(frozen=True, slots=True)
class MatchedInstruction:
    """One instruction of a capture's SASS with its counters."""

    line: int
    """In the capture's SASS, 1-based."""
    offset: int
    text: str
    """As the capture's SASS has it."""
    opcode: str
    """Without suffixes: `LDG`."""
    access_bits: int
    """Bits per lane of a memory access; 0 for other instructions."""
    counters: Counters


def kernel_of_page(capture: Capture, page: str) -> CountedKernel:
    """The launch of an export that is of a capture's own code; raises UsageError if none is.

    Of several launches of that code it is the first.
    """
    kernels = read_source_page(page)
    if not kernels:
        raise UsageError(
            "it is not a source page of Nsight Compute: write it with 'ncu -i REPORT.ncu-rep --page source --csv "
            "--print-source sass'."
        )
    function = _function(capture)
    reasons: list[str] = []
    for kernel in kernels:
        if not (why := _difference(function, kernel.instructions)):
            return kernel
        reasons.append(f"{kernel.name}: {why}")
    # Of the kernel that bears the name, the reason tells more.
    reasons.sort(key=lambda reason: not reason.startswith(capture.name))
    raise UsageError(f"it profiled code that differs from {capture.name} ({capture.id[:8]}): {reasons[0]}.")


def matched_instructions(capture: Capture) -> tuple[MatchedInstruction, ...]:
    """The instructions of a capture that has a profile; raises UsageError if it is of other code."""
    if capture.profile is None:
        raise UsageError(f"{capture!r} has no profile: 'irscope profile' makes one.")
    counted = kernel_of_page(capture, capture.profile.page).instructions
    return tuple(
        MatchedInstruction(
            own.line, own.offset, own.text, own.opcode.partition(".")[0], other.access_bits, other.counters
        )
        for own, other in zip(_function(capture).instructions, counted, strict=False)
    )


def _function(capture: Capture) -> SassFunction:
    functions = parse_sass(capture.text("sass"))
    if not functions:
        raise UsageError(f"{capture!r} has no machine code to join a profile to.")
    return next((one for one in functions if one.name == capture.name), functions[0])


def _difference(function: SassFunction, counted: Sequence[CountedInstruction]) -> str:
    """The first difference of code, in words; empty if there is none.

    Other versions of the disassembler write suffixes and the order of operands otherwise: offsets, predicates, opcodes
    without suffixes and the registers that they name are compared.
    """
    own = function.instructions
    if len(counted) < len(own):
        return f"it has {len(counted)} instructions, the capture {len(own)}"
    for instruction, other in zip(own, counted, strict=False):
        if instruction.offset - own[0].offset != other.offset or _key(instruction.text) != _key(other.text):
            return f"at {instruction.offset:04x} it has {other.text!r}, the capture {instruction.text!r}"
    more = next((one for one in counted[len(own) :] if _key(one.text)[1] not in _PADDING), None)
    return "" if more is None else f"at {more.offset:04x} it has {more.text!r}, the capture nothing"


def _key(text: str) -> tuple[str, str, tuple[str, ...]]:
    item = parse_sass_instruction(text.partition(";")[0])
    if item is None:
        return "", text, ()
    registers = [name for name in register_names(", ".join(item.operands), "sass") if name.startswith("R")]
    return item.predicate, item.opcode.partition(".")[0], tuple(sorted(registers))


Quantity = Literal["instructions", "sectors", "lines", "ways", "wavefronts"]
"""Of global memory: instructions of warps, sectors, lines of L1; of shared memory: wavefronts, also over the least."""
Verdict = Literal["equal", "within 1 %", "in range", "differs"]

_CLOSE = 0.01
_GLOBAL_OPCODES = frozenset({"LDG", "STG", "LDGSTS", "ATOMG", "ATOM", "RED", "REDG", "LD", "ST"})
_SHARED = frozenset({"LDS", "STS", "LDSM", "STSM"})
"""Without LDGSTS, whose wavefronts differ from run to run."""
_WARP_LANES = 32
_OF_COPIES = "the hardware's count of the sectors of asynchronous copies varies from run to run"
_GLOBAL_ACTIONS: tuple[Action, ...] = ("global load", "global store", "async copy", "atomic")


@dataclass(frozen=True, slots=True)
class CounterComparison:
    """One figure of one operation, predicted for the whole launch and measured."""

    quantity: Quantity
    least: float
    most: float
    """Predicted; the same as `least` where it is not a range."""
    measured: float
    reason: str = ""
    """Why the prediction is no exact one; empty if it is exact."""

    @property
    def verdict(self) -> Verdict:
        if self.least == self.measured == self.most:
            return "equal"
        if self.least < self.most and self.least <= self.measured <= self.most:
            return "in range"
        distance = max(self.least - self.measured, self.measured - self.most)
        return "within 1 %" if distance <= _CLOSE * self.measured else "differs"


def _comparisons_of(
    costs: Sequence[Cost],
    own: Sequence[MatchedInstruction],
    kernel: Sequence[MatchedInstruction],
    machine: MemoryInstructions,
    programs: int,
) -> tuple[CounterComparison, ...]:
    found: list[CounterComparison] = []
    for cost in costs:
        access = cost.access
        # A block of a descriptor is asked for by one thread, and its sectors are counted at no instruction.
        if access is not None and access.bits_per_thread:
            in_ptx = machine.count(access.line, *_GLOBAL_ACTIONS) if machine.by_operation else 0
            found += _global(access, own, kernel, in_ptx)
        elif access is None:
            found += _shared(cost, own, programs)
    return tuple(found)


def _global(
    access: GlobalAccess, own: Sequence[MatchedInstruction], kernel: Sequence[MatchedInstruction], in_ptx: int
) -> Iterator[CounterComparison]:
    launch = access.launch
    accesses = [one for one in own if one.opcode in _GLOBAL_OPCODES]
    measured = Counters.sum([one.counters for one in accesses])
    reason = "" if access.certainty == "exact" else access.mark
    reason = _joined(reason, *access.assumed)
    fewer = _joined(_left_out(accesses, in_ptx), _skipped(accesses, own, kernel))
    if measured.executed is not None and not _is_unknown(launch.instructions):
        least, most = launch.instructions
        why = fewer if measured.executed < most else _repeated(accesses, in_ptx) if measured.executed > most else ""
        yield CounterComparison(
            "instructions",
            launch.active_instructions[0] if fewer and measured.executed < most else least,
            most,
            measured.executed,
            _joined(why, reason),
        )
    figures: tuple[tuple[Quantity, Span, int | None], ...] = (
        ("sectors", launch.units, measured.sectors),
        ("lines", launch.lines, measured.lines),
    )
    for quantity, (least, most), counted in figures:
        if counted is not None and not _is_unknown((least, most)):
            unsteady = _OF_COPIES if access.action == "copy" and quantity == "sectors" else ""
            why = _joined(fewer, unsteady) if counted < least else unsteady if counted > most else ""
            yield CounterComparison(quantity, least, most, counted, _joined(why, reason))


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _is_unknown(span: Span) -> bool:
    return span[0] == 0 and span[1] >= MOST


def _left_out(accesses: Sequence[MatchedInstruction], in_ptx: int) -> str:
    """That the assembler left accesses out: those that are never made, and all but one of equal ones."""
    count = len(accesses)
    return f"the SASS has {count} of the {in_ptx} instructions of the PTX" if 0 < count < in_ptx else ""


def _skipped(
    accesses: Sequence[MatchedInstruction], own: Sequence[MatchedInstruction], kernel: Sequence[MatchedInstruction]
) -> str:
    """The instruction by which warps may leave before an access: those that have all lanes masked off, for instance."""
    last = max((one.offset for one in accesses), default=0)
    ways = [one for one in kernel if one.opcode == "EXIT"] + [one for one in own if one.opcode == "BRA"]
    leaving = next((one for one in ways if one.offset < last and _is_predicated(one)), None)
    return f"warps may leave before it, at {leaving.text!r} ({leaving.offset:04x})" if leaving is not None else ""


def _repeated(accesses: Sequence[MatchedInstruction], in_ptx: int) -> str:
    """That the assembler unrolled or peeled a loop around an access, and predicated what is made too often."""
    count = len(accesses)
    if count <= in_ptx or not any(map(_is_predicated, accesses)):
        return ""
    return f"the SASS has {count} instructions for {in_ptx} of the PTX, some of which execute with their predicate off"


def _is_predicated(instruction: MatchedInstruction) -> bool:
    return instruction.text.startswith("@")


def _shared(cost: Cost, instructions: Sequence[MatchedInstruction], programs: int) -> Iterator[CounterComparison]:
    """Wavefronts, or these over the least: by the bits that are moved, for instructions may be narrower than layouts
    allow."""
    figures = cost.figures
    # Some loads are there for their side effect alone: @!PT LDS RZ, [RZ].
    own = [one for one in instructions if one.opcode in _SHARED and not one.text.startswith("@!PT")]
    moved = sum(_bits_per_thread(one) * (one.counters.executed or 0) for one in own)
    total = Counters.sum([one.counters for one in own])
    if not moved or total.wavefronts is None:
        return
    if "cta_wavefronts" in figures and not cost.loops:
        predicted = figures["cta_wavefronts"] * programs
        yield CounterComparison("wavefronts", predicted, predicted, total.wavefronts)
    if "minimum_wavefronts" not in figures:
        return
    least = figures["minimum_wavefronts"] / (figures["instructions"] * figures["bits_per_thread"])
    left = next((one for one in own if one.counters.threads != _WARP_LANES * (one.counters.executed or 0)), None)
    why = f"lanes had left before {left.text!r} ({left.offset:04x})" if left is not None else ""
    ways = total.wavefronts / moved / least
    yield CounterComparison("ways", figures["ways"], figures["ways"], ways, why if ways < figures["ways"] else "")


def _bits_per_thread(one: MatchedInstruction) -> int:
    """As the access has it; of ldmatrix and stmatrix, for which Nsight Compute says 128, by the number of matrices."""
    if one.opcode not in ("LDSM", "STSM"):
        return one.access_bits
    # LDSM.16.M88.4    STSM.16.MT88.2    LDSM.16.M88
    matrices = next(word for word in one.text.split() if word.startswith(one.opcode)).rpartition(".")[2]
    return 32 * int(matrices) if matrices in ("2", "4") else 32


# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.


_MOST_BLOCKS = 400
_EXACT = 1e-6


def executed_instructions(
    capture: Capture, graph: ControlFlow, costs: Sequence[Cost], operations: Sequence[int]
) -> int | None:
    """The instructions that all warps of a launch execute; None if that does not follow from what is known.

    What enters a basic block leaves it: with the warps that begin, and the accesses whose number is known exactly,
    these are linear equations.

    `operations`: the TTGIR line of the operation of each line of SASS.
    """
    grid, warps = capture.launch.grid, _warps_of_all(capture)
    specialized = "warp_specialize" in capture.text("ttgir")
    if grid is None or not warps or specialized or len(graph.blocks) > _MOST_BLOCKS:
        return None
    if any(block.calls for block in graph.blocks) or any(jump.target == UNKNOWN for jump in graph.jumps):
        return None
    equations = _Equations(graph, warps)
    accesses = [cost.access for cost in costs if cost.access is not None and cost.access.bits_per_thread]
    # Warps that have nothing to store may end before they load what the others store.
    leaving = any(one.action in ("store", "atomic") and not _is_of_all_warps(one) for one in accesses)
    for access in accesses:
        if access.certainty == "exact" and not (leaving and access.action in ("load", "copy")):
            equations.add(access, prod(grid), operations)
    return equations.total()


def _warps_of_all(capture: Capture) -> int | None:
    launch = capture.launch
    each = (warps_of(capture) or 4) * int(launch.option("num_ctas", 1) or 1)
    return None if launch.grid is None else prod(launch.grid) * each


class _Equations:
    """What is known of how often the ways between the blocks of a graph are taken; an end is a way too."""

    def __init__(self, graph: ControlFlow, warps: int) -> None:
        self.graph = graph
        self.warps = warps
        following: dict[int, list[int]] = {}
        for jump in graph.jumps:
            following.setdefault(jump.source, []).append(jump.target)
        self.reached = sorted(reached([0], lambda number: following.get(number, ())))
        self.ways = [(jump.source, jump.target) for jump in graph.jumps if jump.source in self.reached]
        self.ways += [(number, UNKNOWN) for number in self.reached if graph.blocks[number].ending]
        self.rows: list[list[int]] = []
        self.values: list[int] = []
        for number in self.reached:
            row = [(source == number) - (target == number) for source, target in self.ways]
            self._put(row, warps if number == 0 else 0)

    def _put(self, row: list[int], value: int) -> None:
        self.rows.append(row)
        self.values.append(value)

    def add(self, access: GlobalAccess, programs: int, operations: Sequence[int]) -> None:
        counts = {
            number: count
            for number in self.reached
            if (count := _access_count(self.graph.blocks[number].instructions, operations, access.line))
        }
        loops = [loop.body for loop in self.graph.loops if counts.keys() <= loop.body]
        launch = access.launch
        # Nothing branches around what is in a loop of one block; a warp may branch around what it has masked off.
        if counts and ([*map(len, loops)] == [1] or _is_of_all_warps(access)):
            self._put([counts.get(source, 0) for source, _ in self.ways], launch.instructions[0])
        each = launch.executions[0] // programs
        alike = {access.first.executions, access.inner.executions, access.last.executions} == {(each, each)}
        if counts and len(loops) == 1 and alike and launch.executions[0] == each * programs > 0:
            # All that a warp does of it is in this one loop, so each warp gets there, once.
            self._put([target in loops[0] and source not in loops[0] for source, target in self.ways], self.warps)

    def total(self) -> int | None:
        """The instructions that are executed; None if they do not follow, or if what is known does not fit together."""
        import numpy as np

        matrix, values = np.array(self.rows, dtype=float), np.array(self.values, dtype=float)
        sizes = np.array([len(self.graph.blocks[source].instructions) for source, _ in self.ways], dtype=float)
        weights = np.linalg.lstsq(matrix.T, sizes, rcond=None)[0]
        taken = np.linalg.lstsq(matrix, values, rcond=None)[0]
        follows = np.abs(matrix.T @ weights - sizes).max() < _EXACT
        fits = np.abs(matrix @ taken - values).max() < _EXACT * values.max()
        return round(float(sizes @ taken)) if follows and fits else None


def _is_of_all_warps(access: GlobalAccess) -> bool:
    return access.launch.instructions == access.launch.active_instructions


def _access_count(instructions: Sequence[Instruction], operations: Sequence[int], line: int) -> int:
    return sum(
        one.opcode.partition(".")[0] in _GLOBAL_OPCODES and operations[one.line - 1] == line for one in instructions
    )


class Scoreboards:
    """The scoreboards of one function: which instructions an instruction of SASS waits for.

    A scoreboard counts what is under way; an instruction that waits for one waits for all that set it since it was last
    waited for. Source: see `irscope.ir.asm.control`.
    """

    def __init__(self, graph: ControlFlow) -> None:
        self._code = [list(block.instructions) for block in graph.blocks]
        self._places = {one.line: (number, at) for number, code in enumerate(self._code) for at, one in enumerate(code)}
        self._before: dict[int, list[int]] = {}
        for jump in graph.jumps:
            if jump.target != UNKNOWN:
                self._before.setdefault(jump.target, []).append(jump.source)

    def awaited(self, line: int) -> tuple[Instruction, ...]:
        """The instructions whose results the one on a line of the text may wait for, on any way there."""
        number, at = self._places.get(line, (UNKNOWN, 0))
        if number == UNKNOWN or (control := self._code[number][at].control) is None:
            return ()
        found: dict[int, Instruction] = {}
        for board in control.waits_for:
            found |= {one.line: one for one in self._setters(board, number, at)}
        return tuple(found[line] for line in sorted(found))

    def _setters(self, board: int, number: int, at: int) -> list[Instruction]:
        found: list[Instruction] = []
        seen: set[int] = set()
        waiting = [(number, at)]
        while waiting:
            number, at = waiting.pop()
            for one in reversed(self._code[number][:at]):
                control = one.control
                if control is not None and control.write_barrier == board:
                    found.append(one)
                if control is not None and board in control.waits_for:
                    break
            else:
                before = [block for block in self._before.get(number, ()) if block not in seen]
                seen.update(before)
                waiting += [(block, len(self._code[block])) for block in before]
        return found


_GLOBAL_STALL = "long_sb"


@dataclass(frozen=True, slots=True)
class CountedOperation:
    """One operation of the TTGIR, or one line of Python, with the counters of its instructions."""

    line: int
    """In the TTGIR, 1-based; 0 for what is no operation's own."""
    operation: str
    """`tt.load`; empty for what is no operation's own."""
    place: str
    """`file:line` of the Python source; empty if it is not known."""
    chain: tuple[str, ...]
    """`file:line` of every frame, innermost first."""
    layouts: tuple[str, ...]
    loops: int
    """The number of loops around it in the TTGIR."""
    instructions: tuple[MatchedInstruction, ...]
    counters: Counters
    comparisons: tuple[CounterComparison, ...] = ()
    awaited: tuple[int, ...] = ()
    """The TTGIR lines of other operations whose global memory its instructions were found waiting for, most first."""


@dataclass(frozen=True, slots=True)
class CountedLaunch:
    """The counters of a launch, joined to its code."""

    operations: tuple[CountedOperation, ...]
    """The ones where warps waited most first."""
    counters: Counters
    predicted_executed: int | None
    """The instructions of warps that irscope computed; None if they do not follow from what is known."""
    by_operation: bool
    """Whether the instructions are the operations' own; otherwise the rows are lines of Python, without predictions."""
    why_not: str = ""
    """Why they are not, for people; or an empty string."""
    uncompared: str = ""
    """Why accesses to global memory have no predictions, for people; or an empty string."""


def counted_launch(capture: Capture) -> CountedLaunch:
    """Join a capture's profile to its operations; raises UsageError if it is of other code."""
    return _Join(capture).launch()


class _Join:
    """One capture, and what its rows are made of."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.instructions = matched_instructions(capture)
        known = next((row for row in capture.operations if row.stage == "sass"), None)
        self.operation_of = known.by_line if known is not None else ()
        self.why_not = known.reason if known is not None else "which ones they are is not known"
        self.uncompared = _why_uncompared(capture, self.instructions)
        self.chains = capture_locations(capture, capture.text("sass"), "sass")
        self.operations = {one.first_line: one for one in parse_mlir(capture.texts.get("ttgir", "")).walk()}
        costs = costs_of(capture) if self.operation_of else []
        self.costs = [cost for cost in costs if cost.access is None or not self.uncompared]
        self.machine = read_machine(capture)
        graphs = read_control_flow(capture.text("sass"), "sass")
        self.graph = next((one for one in graphs if one.function == capture.name), graphs[0])
        self.boards = Scoreboards(self.graph)

    def launch(self) -> CountedLaunch:
        groups: dict[Hashable, list[MatchedInstruction]] = {}
        for one in self.instructions:
            operation = self.operation_of[one.line - 1] if self.operation_of else 0
            groups.setdefault(operation or self.chains.chain_at(one.line), []).append(one)
        rows = [self._row(key, found) for key, found in groups.items()]
        rows.sort(key=lambda row: (-row.counters.stalled, -(row.counters.executed or 0), row.line))
        total = Counters.sum([one.counters for one in self.instructions])
        if not self.operation_of:
            return CountedLaunch(tuple(rows), total, None, False, self.why_not)
        predicted = None
        if not self.uncompared:
            predicted = executed_instructions(self.capture, self.graph, self.costs, self.operation_of)
        return CountedLaunch(tuple(rows), total, predicted, True, uncompared=self.uncompared)

    def _row(self, key: Hashable, instructions: Sequence[MatchedInstruction]) -> CountedOperation:
        chain = self.chains.chain_at(instructions[0].line)
        # An operation that the TTGIR's reader does not know has a place all the same.
        operation = self.operations.get(key) if isinstance(key, int) else None
        kinds = operation.layout_types if operation is not None else ()
        own = [cost for cost in self.costs if cost.line == key]
        return CountedOperation(
            operation.first_line if operation is not None else 0,
            operation.name if operation is not None else "",
            line_text(place_of(chain, self.capture.launch.kernel.file)),
            chain_texts(chain),
            tuple(dict.fromkeys(kind.encoding for kind in kinds)),
            operation.loops if operation is not None else 0,
            tuple(instructions),
            Counters.sum([one.counters for one in instructions]),
            _comparisons_of(own, instructions, self.instructions, self.machine, prod(self.capture.launch.grid or (0,))),
            self._awaited(key, instructions),
        )

    def _awaited(self, key: Hashable, instructions: Sequence[MatchedInstruction]) -> tuple[int, ...]:
        found = Counter[int]()
        for one in instructions if self.operation_of else ():
            stalls = dict(one.counters.stalls).get(_GLOBAL_STALL, 0)
            for setter in self.boards.awaited(one.line) if stalls else ():
                operation = self.operation_of[setter.line - 1]
                if operation and operation != key and setter.opcode.partition(".")[0] in _GLOBAL_OPCODES:
                    found[operation] += stalls
        return tuple(sorted(found, key=lambda line: (-found[line], line)))


def _why_uncompared(capture: Capture, instructions: Sequence[MatchedInstruction]) -> str:
    launch = capture.launch
    warps = _warps_of_all(capture)
    if launch.record is None or warps is None:
        return "the capture holds no record of a launch"
    counted = instructions[0].counters.executed if instructions else None
    if counted is None or counted == warps or "warp_specialize" in capture.texts.get("ttgir", ""):
        return ""
    # Every warp executes the first instruction once.
    return f"the profile is of a launch of {counted} warps, the capture's has {warps}"

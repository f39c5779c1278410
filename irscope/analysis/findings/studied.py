"""The data that findings read of a capture, each computed once: models, costs, traffic and the compiler's log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from irscope.analysis.findings.model import Cause, Evidence, Finding, Suggestion
from irscope.ir.asm.instructions import Instruction
from irscope.ir.locations.model import Chain, Place, TextLocations, columns_of, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.edits import sites_of
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import element_bits
from irscope.ir.mlir.uses import ModuleUses, read_uses
from irscope.memory.machine import ACCESSES, MemoryInstructions, by_origin, places_by_line, read_machine
from irscope.model.capture import Capture
from irscope.model.evidence import CompilerLog

if TYPE_CHECKING:
    from irscope.ir.logs.decisions import LogDecision
    from irscope.layout.described import CaptureLayouts, DescribedLayout
    from irscope.memory.access import Cost
    from irscope.memory.addresses.narrow import Limits

# Imported where they are needed: a summary needs none of them, and they bring numpy.


_Read = TypeVar("_Read")
_Decision = TypeVar("_Decision", bound="LogDecision")


class Studied:
    """A capture with the data that findings read of it."""

    def __init__(
        self, capture: Capture, costs: Sequence[Cost] | None = None, *, follows_operations: bool = True
    ) -> None:
        """`costs`: those of the capture, if they are known. `follows_operations`: whether through the passes."""
        self.capture = capture
        self.follows_operations = follows_operations
        if costs is not None:
            self.__dict__["global_costs"] = [one for one in costs if one.kind == "global"]
            self.__dict__["costs_on_chip"] = [one for one in costs if one.kind != "global"]
        self.ttgir = capture.texts.get("ttgir", "")
        self._kept: dict[Callable[[Studied], Any], Any] = {}

    def with_log(self, capture: Capture) -> Studied:
        """The same capture, now with the compiler's log; what was read of it is kept."""
        other = copy(self)
        other.capture = capture
        other.__dict__.pop("decisions", None)
        return other

    def kept(self, read: Callable[[Studied], _Read]) -> _Read:
        """The result of a function of it, computed once."""
        if read not in self._kept:
            self._kept[read] = read(self)
        return self._kept[read]

    @property
    def module(self) -> MlirModule:
        return self.uses.module

    @property
    def written(self) -> MlirModule:
        """The TTIR: operations as the kernel has them, before any layout."""
        return parse_mlir(self.capture.texts.get("ttir", ""))

    @cached_property
    def uses(self) -> ModuleUses:
        """The operations of the TTGIR, with the types of their values."""
        return read_uses(self.ttgir)

    @cached_property
    def operations(self) -> dict[int, Operation]:
        """Line of the TTGIR → the operation that begins there."""
        return {one.first_line: one for one in self.module.walk()}

    @cached_property
    def global_costs(self) -> Sequence[Cost]:
        """The costs of its accesses to global memory, for which the addresses of the launch are evaluated."""
        from irscope.memory.global_costs import global_costs

        return [*global_costs(self.capture, self.uses, self.machine)]

    @cached_property
    def executed(self) -> frozenset[int]:
        """The lines of the accesses that a program of the launch may come to, all programs evaluated at once."""
        from irscope.machine.loops import evaluate
        from irscope.machine.programs import Programs
        from irscope.memory.addresses.arguments import read_arguments
        from irscope.memory.addresses.parts import MOST_PROGRAMS

        module, grid = self.module, self.capture.launch.grid
        if module.kernel is None or (grid is not None and min(grid) < 1):
            return frozenset()
        programs = Programs() if grid is None or prod(grid) > MOST_PROGRAMS else Programs.all(grid)
        found = evaluate(module, read_arguments(module.kernel, self.capture.launch).held, programs)
        if found.is_ended:
            return frozenset(self.operations)
        lines = (one.operation.first_line for one in found.executions if one.weight.span[1])
        return frozenset(lines) | {line for line, _ in found.unread}

    @cached_property
    def costs_on_chip(self) -> Sequence[Cost]:
        """The costs of its conversions and of its accesses to shared memory, the worst first."""
        from irscope.memory.costs import costs_on_chip

        return costs_on_chip(self.capture, self.uses, self.machine)

    def global_cost(self, line: int) -> Cost | None:
        """The cost of the access to global memory that begins on a line of the TTGIR."""
        return next((one for one in self.global_costs if one.line == line), None)

    @cached_property
    def traffic(self) -> GlobalTraffic:
        return GlobalTraffic(self.uses)

    @cached_property
    def machine(self) -> MemoryInstructions:
        return read_machine(self.capture)

    @cached_property
    def decisions(self) -> Decisions:
        return decisions_of(self.capture)

    @cached_property
    def limits(self) -> Limits:
        from irscope.memory.addresses.narrow import Limits

        return Limits(self.module)

    @cached_property
    def _source(self) -> tuple[MlirModule, TextLocations]:
        texts = self.capture.texts
        text = texts.get("source", texts.get("ttir", ""))
        return parse_mlir(text), read_locations(text, "mlir")

    def sites_of(self, argument: str) -> tuple[Place, Place]:
        """(file, line) of the products with an argument of the kernel, without `%`, and of the remainders by it.

        As the source has them, so those in the functions that it calls too.
        """
        (source, locations), kernel = self._source, self.module.kernel
        names = [value.name.removeprefix("%") for value, _, _ in kernel.parameters] if kernel is not None else []
        given = source.kernel.parameters if source.kernel is not None else ()
        if names.count(argument) != 1 or len(names) != len(given):
            return (), ()
        sites = sites_of(source, given[names.index(argument)][0])

        def places(operations: Iterable[Operation]) -> Place:
            chains = [place_of(locations.chain_at(one.first_line)) for one in operations]
            return tuple(dict.fromkeys(place[0] for place in chains if place))

        return places(sites.products), places(sites.remainders)

    @cached_property
    def _layouts(self) -> CaptureLayouts:
        from irscope.layout.described import CaptureLayouts

        return CaptureLayouts(self.capture)

    def layout_of(self, operation: Operation) -> DescribedLayout | None:
        return self._layouts.of_access(operation)

    def described(self, encoding: str, shape: tuple[int, ...]) -> DescribedLayout | None:
        """A layout that some value of the TTGIR has, for a shape."""
        return self._layouts.known.get((encoding, shape))

    def chain_at(self, line: int) -> Chain:
        """Where an operation of the TTGIR comes from."""
        return self.uses.locations.chain_at(line)

    def chain_as_written(self, line: int) -> Chain:
        """Where an operation of the TTIR comes from."""
        return read_locations(self.capture.texts.get("ttir", ""), "mlir").chain_at(line)

    def lines_from(self, chains: Iterable[Chain]) -> list[int]:
        """The lines of the TTGIR's operations that come from some places."""
        wanted = {*chains} - {()}
        return [line for line in self.operations if self.chain_at(line) in wanted]

    def place_at(self, line: int) -> Place:
        """The chain of an operation of the TTGIR, without the frames of Triton's own library."""
        return self.uses.place_at(line)

    @cached_property
    def _instructions(self) -> dict[int, list[Instruction]]:
        stage = self.machine.text_stage
        rows = next((row.by_line for row in self.capture.operations if row.stage == stage), None)
        if rows is None:
            return self._instructions_by_place(stage) if stage else {}
        return by_origin(self.capture.texts[stage], stage, rows)

    def _instructions_by_place(self, stage: str) -> dict[int, list[Instruction]]:
        """Those at an operation's place in Python, of the operations that are the only ones of their name there."""
        texts = self.capture.texts
        origins, at = places_by_line(texts, stage)
        lines = by_origin(texts[stage], stage, origins)
        places = {line: (one.name, at[line]) for line, one in self.operations.items() if at.get(line) in lines}
        named = Counter(places.values())
        return {line: lines[own[1]] for line, own in places.items() if named[own] == 1}

    def instructions_of(self, line: int) -> list[Instruction]:
        """The instructions of PTX or AMDGCN that an operation of the TTGIR became; none if they are not known.

        If `machine.by_operation` is false they are those of its place in Python, others' too that have another name.
        """
        return self._instructions.get(line, [])

    def dot_as_written(self, operation: Operation) -> Operation | None:
        """A dot in the TTIR, where its operands have the types that the kernel gave them; None if it is not certain."""
        chain = self.chain_at(operation.first_line)
        dots = (one for one in self.written.walk() if one.opcode == "dot" and chain)
        found = [one for one in dots if self.chain_as_written(one.first_line) == chain]
        return found[0] if len(found) == 1 else None

    def logged(self, decision: LogDecision) -> Cause:
        labels = (one.label for one in self.capture.passes() if one.index == decision.index)
        return Cause(
            decision.said, "log", f"{next(labels, f'stage {decision.stage}')}, line {decision.line} of its log"
        )

    def said(self, line: int, kind: type[_Decision]) -> list[_Decision]:
        """The log's entries of one kind about the operation on a line of the TTGIR."""
        return [one for one in self.decisions.about(self.chain_at(line)) if isinstance(one, kind)]

    def about_kernel(
        self,
        code: str,
        text: str,
        cost: str,
        weight: int,
        causes: Iterable[Cause],
        suggestions: Iterable[Suggestion] = (),
        *,
        chain: Chain = (),
        place: Place = (),
        seconds: float | None = None,
    ) -> Finding:
        """A finding about the whole kernel; `chain`, `place`: what of it is to blame, if that is known."""
        place = place or place_of(chain, self.capture.launch.kernel.file)
        parts = tuple(causes), tuple(suggestions)
        return Finding(code, "", 0, (), chain, place, text, cost, weight, *parts, seconds=seconds)

    def in_ir(self, text: str, line: int, evidence: Evidence = "ir", *, stage: str = "ttgir") -> Cause:
        """A cause whose evidence is an operation of the TTGIR, or of another stage or pass."""
        return Cause(text, evidence, f"line {line} of {stage}")

    def finding(
        self,
        code: str,
        line: int,
        text: str,
        cost: str,
        weight: int,
        causes: Sequence[Cause],
        suggestions: Sequence[Suggestion] = (),
        *,
        factor: float = 1.0,
        lines: Iterable[int] = (),
    ) -> Finding:
        """A finding about an operation of the TTGIR; what is in a loop weighs more, as in the table of costs."""
        operation = self.operations[line]
        values = tuple(value.name for value in operation.results or operation.operands[:1])
        return Finding(
            code,
            operation.name,
            line,
            values,
            self.chain_at(line),
            self.place_at(line),
            text,
            cost,
            weight << min(4 * operation.loops, 16),
            tuple(causes),
            tuple(suggestions),
            factor,
            lines=tuple(lines),
        )


_ITERATIONS_BITS = 4
_MOST_BITS = 16


_MOST_MAKERS = 64


def makers(module: MlirModule, value: Value) -> Iterator[Operation]:
    """The operation whose result a value is, that of the first operand of that one, and so on."""
    for _ in range(_MOST_MAKERS):
        made = module.maker_of(value)
        if made is None:
            return
        yield made
        if not made.operands:
            return
        value = made.operands[0]


class GlobalTraffic:
    """The bytes of a kernel's accesses to global memory, by the loops around them.

    How often a loop runs is not known: each counts 16 times, as it does for the order of findings.
    """

    def __init__(self, uses: ModuleUses) -> None:
        loops = [one for one in uses.module.walk() if one.kind == "loop"]
        self._loops = {one.first_line: loop.first_line for loop in loops for one in loop.walk() if one is not loop}
        """Line → that of the innermost loop around it: an inner loop comes after those around it."""
        self._sizes = {
            operation.first_line: (_bytes_of(operation), operation.loops)
            for operation in uses.operations
            if operation.opcode in ACCESSES
        }
        self._all = sum(_repeated(*row) for row in self._sizes.values())

    def bytes_at(self, line: int) -> int:
        """The bytes that the access on a line of the TTGIR requests, each time; 0 without one."""
        return self._sizes.get(line, (0, 0))[0]

    def share(self, size_bytes: int, loops: int) -> float:
        """The fraction of all traffic that some bytes within so many loops are; 1 if the kernel asks for none."""
        return _repeated(size_bytes, loops) / self._all if self._all else 1.0

    def told(self, line: int) -> str:
        """The bytes of all accesses within the loop around a line of the TTGIR, or outside of loops, in words.

        Of whole tiles, masked-off elements included.
        """
        loop = self._loops.get(line)
        size = sum(size for at, (size, _) in self._sizes.items() if self._loops.get(at) == loop)
        inside = {at for at, around in self._loops.items() if around == loop}
        where = "in all" if not any(self._loops.get(at) for at in self._sizes) else "outside of loops"
        if loop is not None:
            has_inner = any(self._loops.get(at) in inside for at in self._sizes)
            where = f"in an iteration{', besides those of its inner loops' if has_inner else ''}"
        return f"global accesses move tiles of {size} bytes {where}"


def _repeated(size: int, loops: int) -> int:
    return size << min(_ITERATIONS_BITS * loops, _MOST_BITS)


def _bytes_of(operation: Operation) -> int:
    """The bytes of an access: of its pointers' elements, of its result, or of the tile in shared memory."""
    pointees = [prod(kind.shape) * element_bits(kind.pointee) for kind in operation.layout_types if kind.pointee]
    tiles = [prod(kind.shape) * kind.element_bits for kind in (*operation.result_types, *operation.layout_types)]
    return max(pointees or tiles, default=0) // 8


@dataclass(frozen=True, slots=True)
class Decisions:
    all: tuple[LogDecision, ...]
    """In the order of the passes."""

    def about(self, chain: Chain) -> tuple[LogDecision, ...]:
        """Those about the operations with a location, its callers included; an operation keeps it from pass to pass.

        Of several operations with one location (`tl.load` makes a load, and a conversion of what it loads), each
        decision names its own.
        """
        places = columns_of(chain)
        return tuple(decision for decision in self.all if places and columns_of(decision.chain) == places)


def decisions_of(capture: Capture) -> Decisions:
    """The decisions in a capture's log; none if it holds no log."""
    return _decisions(capture.log) if capture.log is not None else Decisions(())


@lru_cache(maxsize=8)
def _decisions(log: CompilerLog) -> Decisions:
    # Few captures hold a log.
    from irscope.ir.logs.reasons import read_decisions

    return Decisions(tuple(decision for item in log.passes for decision in read_decisions(item)))

"""Runs of the IR of a launch, and what is wrong by itself: accesses out of bounds, unwritten memory, endless waits."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import TypeVar

from irscope.errors import NeverEnds, NotRun, OutOfBounds, UsageError, WaitsForOthers, WrongProgram
from irscope.ir.mlir.model import Operation
from irscope.machine.captured import Inputs
from irscope.machine.launch import run
from irscope.machine.values import Array
from irscope.memory.addresses.parts import program_at
from irscope.model.capture import Capture
from irscope.target import Target, architecture_rank
from irscope.verify.bounds import Arguments, Bounds
from irscope.verify.earlier import MOST_WAITING, EmptyMemory
from irscope.verify.slices import address_slice
from irscope.verify.texts import ExecutedText, Listeners, argument_paths, first_text
from irscope.verify.trace import Listener, OfPrograms, Tracer, UnwrittenReads, reaches_output
from irscope.verify.verdict import KERNEL, AccessWitness, Violation, ViolationKind

_Listener = TypeVar("_Listener", bound=Listener)


class LaunchRuns:
    """Executes texts of a launch, and notes what they do wrong by themselves."""

    def __init__(
        self, capture: Capture, grid: tuple[int, int, int], elements: int | None, values: dict[str, Array],
        earlier: Sequence[Capture], *, assumes: bool = False,
    ) -> None:  # fmt: skip
        self.capture, self.grid, self.elements, self.values = capture, grid, elements, values
        self._text = partial(ExecutedText, capture, assumes=assumes)
        self.unknown: set[str] = set()
        """Tensors that the capture does not hold, and whose elements decide accesses."""
        self._empty = EmptyMemory(capture, earlier, elements)
        self.all_programs = prod(grid)
        self.violations: list[Violation] = []
        self.undecided: list[str] = []
        self.notes: list[str] = []
        self.programs: Sequence[int] = ()
        self.shared = ""
        self.proved = False
        self._waits: set[int] = set()
        """Programs that wait for others, where they run alone or last of a few."""
        self._drawn: dict[str, Array] = {}
        """Name → the elements of a tensor that the capture does not hold."""
        self._ran: tuple[Inputs, Bounds]  # of the last run
        self._each = 1  # access of an element by the first program
        self._own: set[int] = set()
        """Programs that read places which they write themselves."""
        self._raced: dict[int, Collection[frozenset[str]] | str] = {}
        """Program → the pairs of lines whose threads race in the assembly, or why that is not known."""
        self._told: set[tuple[str, ...]] = set()  # pairs of lines whose threads conflict

    @cached_property
    def _front(self) -> ExecutedText:
        return self._text(first_text(self.capture))

    def _inputs(self, text: ExecutedText, *, recorded: bool = False) -> Inputs:
        inputs = text.inputs(self._drawn | self.values, recorded=recorded)
        if not text.needs_values:
            return inputs
        # Drawn once: each run writes into memory of its own.
        self._drawn |= {name: inputs.tensors[name].copy() for name in inputs.made_up}
        return replace(inputs, made_up=tuple(self._drawn))

    def _run(self, text: ExecutedText, make: Callable[[], _Listener], programs: Sequence[int]) -> _Listener:
        """Execute programs, and return the listener that was told of them.

        With programs that wait for others, all are executed, and only these are told of. What goes wrong by itself is a
        violation, and ends the run.
        """
        listener = make()
        if not self._waits:
            try:
                self._run_once(text, listener, programs)
                return listener
            except WaitsForOthers:
                if self.all_programs > MOST_WAITING:
                    raise
                self._waits.update(programs[-1:])
                listener = make()
        self._run_once(text, OfPrograms(listener, programs), self._together(programs))
        return listener

    def _together(self, programs: Sequence[int]) -> Sequence[int]:
        """The programs that are executed for some: all, where one waits for others."""
        return range(self.all_programs) if self._waits else programs

    def _run_once(self, text: ExecutedText, listener: Listener, programs: Sequence[int]) -> None:
        inputs = self._inputs(text)
        arguments = Arguments(text.module, inputs, argument_paths(self.capture))
        bounds = Bounds(text.module, arguments)
        unwritten = UnwrittenReads(self._empty.rows(arguments) if text is self._front else ())
        tile_bytes = _tile_bytes(self.capture.target) if text is self._front else 1
        tracer = Tracer(text.module, text.slices, Listeners(bounds, listener, unwritten), tile_bytes)
        kind: ViolationKind = "misaligned"
        ended: WrongProgram | None = None
        try:
            self._execute(text, inputs, tracer, programs)
        except OutOfBounds as error:
            kind, ended = "out-of-bounds", error
        except NeverEnds as error:
            kind, ended = "never-ends", error
        except WrongProgram as error:
            kind = "failed-assertion" if tracer.step is not None and tracer.step.kind == "debug" else "misaligned"
            ended = error
        except (NotRun, UsageError):
            raise
        except (ValueError, TypeError, IndexError) as error:
            line = tracer.step.first_line if tracer.step else 0
            raise NotRun(f"the machine fails at line {line} of the IR: {error}") from error
        is_known = self._tell_data(text, inputs, bounds)
        if ended is not None and is_known and (kind != "out-of-bounds" or not bounds.found):
            operations = ended.operations if isinstance(ended, NeverEnds) else ()
            address = ""
            if kind == "never-ends" and not operations and tracer.last is not None:
                # A loop that waits for what another program writes.
                operations, address = (tracer.last.operation,), bounds.named(tracer.last)
            self._add(text, Violation(kind, sentence(ended), self._steps_of(text, tracer, operations), address))
        for outside in bounds.found.values():
            if self._is_random(text, outside.operation):
                continue
            witness = self._witness(text, outside.operation, outside.program, outside.element)
            self._add(text, Violation("out-of-bounds", outside.detail, (witness,), outside.path))
        self._tell_unwritten(text, unwritten, bounds)

    def _tell_unwritten(self, text: ExecutedText, unwritten: UnwrittenReads, bounds: Bounds) -> None:
        for read in (one for key, one in unwritten.found.items() if key not in bounds.found):
            stores = [one for one in text.module.walk() if one.kind in ("store", "atomic")]
            writers = [one for one in stores if read.path in {tensor.path for tensor in bounds.origins(one)}]
            if self._is_random(text, read.operation, *writers):
                continue
            reaches = reaches_output(text.module, read.operation)
            if reaches is None:
                self.undecided.append(
                    f"{read.path}, which torch.empty made, is read at {text.place(read.operation)} before it is "
                    "written, and whether that reaches an output depends on values"
                )
            elif reaches:
                detail = f"torch.empty made {read.path}, and nothing wrote the memory read: undefined value"
                witness = self._witness(text, read.operation, read.program, read.element)
                self._add(text, Violation("uninitialised-read", detail, (witness,), read.path))

    def _add(self, text: ExecutedText, violation: Violation) -> None:
        self.violations.append(replace(violation, made_by=KERNEL if text is self._front else "a pass"))

    def _tell_data(self, text: ExecutedText, inputs: Inputs, bounds: Bounds) -> bool:
        """Say where accesses depend on elements that the capture does not hold; returns whether none does."""
        self._ran = inputs, bounds
        unknown = bounds.made_up_behind(text.slices, inputs.made_up)
        self.unknown.update(unknown)
        if unknown:
            named = ", ".join(unknown)
            self.undecided.append(
                f"accesses, or assertions, depend on the elements of {named}, which the capture does not hold "
                "(record --values)"
            )
        if bounds.unknown:
            self.undecided.append(f"the pointer of {', '.join(sorted(bounds.unknown))} comes from no argument")
        if text.module.unknown:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(text.module.unknown.items()))
            self.undecided.append(f"operations of unknown form: {names}")
        return not unknown

    def _is_random(self, text: ExecutedText, *operations: Operation) -> bool:
        """Whether accesses depend on elements that were drawn: what these show is no fault of the kernel."""
        inputs, bounds = self._ran
        if not text.needs_values or not inputs.made_up:
            return False
        slices = address_slice(text.module, operations, assumes=bool(text.slices.assumed))
        return bool(bounds.made_up_behind(slices, inputs.made_up))

    def _execute(self, text: ExecutedText, inputs: Inputs, tracer: Tracer, programs: Sequence[int]) -> None:
        run(
            text.module, self.grid, inputs.given, programs=programs, on_access=tracer.on_access,
            executors=tracer.executors, limits=text.limits,
        )  # fmt: skip

    def _witness(
        self, text: ExecutedText, operation: Operation, program: int, element: tuple[int, ...]
    ) -> AccessWitness:
        return AccessWitness(
            operation.name, text.place(operation), operation.first_line,
            program_at(program, self.grid) if program >= 0 else None, element,
        )  # fmt: skip

    def _steps_of(
        self, text: ExecutedText, tracer: Tracer, operations: tuple[Operation, ...]
    ) -> tuple[AccessWitness, ...]:
        """Where a run ended: at these operations, or the last one."""
        program = int(tracer.last.programs[0]) if tracer.last is not None and tracer.last.programs.size else -1
        ends = operations or ((tracer.step,) if tracer.step is not None else ())
        return tuple(self._witness(text, operation, program, ()) for operation in ends)


def _tile_bytes(target: Target) -> int:
    """At multiples of how many bytes tiles begin: of TMA 16, else it is an illegal instruction (triton #8657)."""
    return 16 if target.backend == "cuda" and architecture_rank(target.arch) >= architecture_rank("90") else 1


def sentence(error: Exception) -> str:
    """The message of an error, without its full stop."""
    return str(error).rstrip(".")

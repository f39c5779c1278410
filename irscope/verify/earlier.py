"""What earlier launches of a recording left unwritten in memory that `torch.empty` made.

The record of a launch numbers such memory, and says how many launches wrote to it before. Where the captures of all of
them are there, their accesses are executed one after another; else nothing is known of the memory.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from irscope.errors import IrscopeError, NotRun, WaitsForOthers
from irscope.machine.launch import run
from irscope.machine.values import Array
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument
from irscope.verify.bounds import Arguments
from irscope.verify.texts import ExecutedText, argument_paths, first_text
from irscope.verify.trace import Tracer, UnwrittenMemory, UnwrittenReads

MOST_WAITING = 256
"""Programs that are executed together where one waits for others."""


class EmptyMemory:
    """The memory of `torch.empty` among the arguments of a launch."""

    def __init__(self, capture: Capture, earlier: Sequence[Capture], elements: int | None) -> None:
        """`earlier`: captures of the same program; `elements`: at most so many accesses of each are followed."""
        self._capture, self._earlier, self._elements = capture, earlier, elements
        record = capture.launch.record
        arguments = record.arguments if record is not None else ()
        self._fresh = {one.path: one for one in arguments if one.is_unwritten or one.launches_before}
        self._written: dict[str, Array | None] = {}

    def rows(self, arguments: Arguments) -> list[UnwrittenMemory]:
        """Each of the storages, with nothing marked as written."""
        tensors = {one.storage: one for one in arguments.tensors if one.path in self._fresh}
        return [
            (one.path, one.storage, np.zeros(one.storage_bytes, np.bool_), partial(self._written_before, one.path))
            for one in tensors.values()
        ]

    def _written_before(self, path: str) -> Array | None:
        """Which bytes earlier launches wrote; None where that is not known."""
        if path not in self._written:
            try:
                self._written[path] = self._follow_all(self._fresh[path])
            except IrscopeError:
                self._written[path] = None
        return self._written[path]

    def _follow_all(self, argument: Argument) -> Array:
        written = np.zeros(argument.storage_bytes or 0, np.bool_)
        writers = {
            own.launches_before: (one, own)
            for one in self._earlier
            if _recording_of(one) == _recording_of(self._capture) and one.launch.record is not None
            for own in one.launch.record.arguments
            if own.empty_storage == argument.empty_storage and own.storage_bytes == argument.storage_bytes
        }
        for number in range(argument.launches_before):
            if number not in writers:
                raise NotRun("a launch that wrote to it is not among the captures")
            _follow(*writers[number], written, self._elements)
        return written


def _recording_of(capture: Capture) -> tuple[object, ...]:
    """Equal for captures of one program that ran once."""
    environment = capture.environment
    processes = tuple(row for row in environment.origin if row[0] == "process")
    return str(capture.target), environment.command, processes, environment.gpu


def _follow(capture: Capture, argument: Argument, written: Array, elements: int | None) -> None:
    grid = capture.launch.grid
    if grid is None or capture.failure is not None:
        raise NotRun("it was not launched")
    text = ExecutedText(capture, first_text(capture))

    def execute(programs: Sequence[int]) -> int:
        inputs = text.inputs({})
        if text.needs_values and inputs.made_up:
            raise NotRun("what is accessed depends on elements that the capture does not hold")
        arguments = Arguments(text.module, inputs, argument_paths(capture))
        storage = next(one.storage for one in arguments.tensors if one.path == argument.path)
        listener = UnwrittenReads([(argument.path, storage, written, lambda: None)])
        tracer = Tracer(text.module, text.slices, listener)
        run(
            text.module, grid, inputs.given, programs=programs, on_access=tracer.on_access, executors=tracer.executors,
            limits=text.limits,
        )  # fmt: skip
        return listener.elements

    programs = prod(grid)
    try:
        each = execute([0])
    except WaitsForOthers:
        each = 0 if programs <= MOST_WAITING else programs
    if elements is not None and each * programs > elements:
        raise NotRun("its programs are too many to follow")
    if programs > 1:
        execute(range(programs))

"""A text of the IR that is ready to be executed, and what listens while it is."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from irscope.ir.locations.mlir import read_mlir
from irscope.ir.locations.model import line_text, place_of
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.captured import UNREAD, Inputs, captured_inputs
from irscope.machine.launch import NO_LIMITS, RunLimits, check_memory
from irscope.machine.memory import GlobalMemory
from irscope.machine.values import Array
from irscope.model.capture import Capture
from irscope.verify.bounds import Arguments, Bounds
from irscope.verify.slices import AddressSlice, address_slice
from irscope.verify.trace import Listener, Observed, granule_bytes

_FEW_ELEMENTS = 4096
"""Of a tensor that is drawn, whoever looks at it."""
_UNREAD_LIMITS = RunLimits(memory_bytes=1 << 40)
"""Where no element is looked at: the system has no page of memory that nothing touches."""


def first_text(capture: Capture) -> str:
    texts = capture.texts
    return next((texts[stage] for stage in ("source", "ttir", "ttgir") if texts.get(stage)), "")


_STAGES = ("ttir", "ttgir")


def changed_texts(capture: Capture) -> Iterator[tuple[str, str]]:
    """The label of each pass of TTIR and TTGIR that changed the text, with that text; first the front end's."""
    text = capture.begun_text if capture.begun_from in ("source", *_STAGES) else None
    if text is None:
        return
    yield capture.begun_from, text
    for snapshot in capture.passes():
        after = capture.text_after(snapshot) if snapshot.stage in _STAGES else None
        if after is not None and after != text:
            yield snapshot.label, after
            text = after


def argument_paths(capture: Capture) -> list[str]:
    """The names of a launch's arguments that are no constants."""
    record = capture.launch.record
    constants = {name for name, kind in capture.launch.signature if kind == "constexpr"}
    return [one.path for one in record.arguments if one.path not in constants] if record is not None else []


def _inputs_without_elements(capture: Capture) -> Inputs:
    """The arguments of a launch of which no element is looked at."""
    record = capture.launch.record
    tensors = [one.path for one in record.arguments if one.kind != "scalar"] if record is not None else []
    return captured_inputs(capture, dict.fromkeys(tensors, UNREAD), limits=_UNREAD_LIMITS)


class Listeners(Listener):
    def __init__(self, *each: Listener) -> None:
        self._each = each

    def begin(self, memory: GlobalMemory) -> None:
        for one in self._each:
            one.begin(memory)

    def order(self, programs: Array) -> None:
        for one in self._each:
            one.order(programs)

    def observe(self, observed: Observed) -> None:
        for one in self._each:
            one.observe(observed)

    def synchronise(self, programs: Array, addresses: Array, operation: Operation, ordering: str) -> None:
        for one in self._each:
            one.synchronise(programs, addresses, operation, ordering)


class AddressWatch(Listener):
    """Notes who accesses one address, and which argument it is in."""

    def __init__(self, address: int, arguments: Arguments) -> None:
        self._address, self._arguments = address, arguments
        self.seen: list[tuple[Operation, int, tuple[int, ...]]] = []
        """(operation, program, element) of each access."""
        self.text = ""

    def begin(self, memory: GlobalMemory) -> None:
        self.text = self._arguments.named(memory, self._address)

    def observe(self, observed: Observed) -> None:
        distance = self._address - observed.addresses
        for at in np.flatnonzero((distance >= 0) & (distance < observed.element_bytes)):
            self.seen.append((observed.operation, int(observed.programs[at]), observed.element(int(at))))


class ExecutedText:
    """One text of the IR, ready to be executed."""

    def __init__(self, capture: Capture, text: str, *, assumes: bool = False) -> None:
        """`assumes`: as of `address_slice`."""
        self.capture = capture
        self.module: MlirModule = parse_mlir(text)
        self.slices: AddressSlice = address_slice(self.module, assumes=assumes)
        self._decisive: frozenset[str] | None = frozenset()
        """Names of the tensors whose elements decide what is accessed; None if any may."""
        if self.needs_values:
            self._follow_memory(assumes)
        self.granule = granule_bytes(self.module)
        self._locations = read_mlir(text)

    @property
    def needs_values(self) -> bool:
        """Whether the elements of tensors decide what is accessed."""
        return bool(self.slices.loads) or self.slices.reads_shared

    @property
    def limits(self) -> RunLimits:
        return NO_LIMITS if self._decisive is None else _UNREAD_LIMITS

    def inputs(self, values: Mapping[str, Array], *, recorded: bool = False) -> Inputs:
        """The arguments of a launch; of tensors of which no element decides an access, none has to be drawn.

        `recorded`: with the elements that the capture holds, of these too.
        """
        record, decisive = self.capture.launch.record, self._decisive
        given: dict[str, object] = dict(values)
        read = 0
        for one in record.arguments if record is not None and decisive is not None else ():
            if one.kind == "scalar" or one.path in given:
                continue
            if one.path in (decisive or ()) or (recorded and one.data):
                read += one.storage_bytes or 0
            elif prod(one.shape) > _FEW_ELEMENTS:
                given[one.path] = UNREAD
        check_memory(read, NO_LIMITS)
        return captured_inputs(self.capture, given, limits=self.limits)

    def _follow_memory(self, assumes: bool) -> None:
        """Find out which tensors hold elements that decide accesses, and what decides these."""
        arguments = Arguments(self.module, _inputs_without_elements(self.capture), argument_paths(self.capture))
        bounds = Bounds(self.module, arguments)
        stores = {
            one: {tensor.storage for tensor in bounds.origins(one)}
            for one in self.module.walk()
            if any(effect.space == "global" and effect.kind == "writes" for effect in one.effects)
        }
        read: dict[Operation, set[int]] = {}
        followed: set[Operation] = set()

        def writers(loads: Collection[Operation]) -> Collection[Operation]:
            read.update((one, {tensor.storage for tensor in bounds.origins(one)}) for one in loads)
            storages = set[int]().union(*read.values())
            followed.update(one for one, written in stores.items() if not written or written & storages)
            return followed

        slices = address_slice(self.module, assumes=assumes, writers=writers)
        copies = any(effect.space == "shared" for one in followed for effect in one.effects)
        if slices.reads_shared or copies or not all(read.values()):
            # Shared memory, or an address that was loaded: all of it has to be right.
            self.slices, self._decisive = replace(self.slices, skipped=frozenset()), None
            return
        self.slices = slices
        storages = set[int]().union(*read.values())
        self._decisive = frozenset(one.path for one in arguments.tensors if one.storage in storages)

    def place(self, operation: Operation) -> str:
        """`FILE:LINE` of the user's Python."""
        return line_text(self.origin(operation))

    def origin(self, operation: Operation) -> tuple[tuple[str, int], ...]:
        """The frames of Python, under which an operation's counterpart in another text is found."""
        chain = self._locations.chain_at(operation.lines[-1]) or self._locations.chain_at(operation.first_line)
        return place_of(chain, self.capture.launch.kernel.file)

"""A text of the IR that is ready to be executed, and what listens while it is."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import numpy as np

from irscope.ir.locations.mlir import read_mlir
from irscope.ir.locations.model import line_text, place_of
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.memory import GlobalMemory
from irscope.machine.values import Array
from irscope.model.capture import Capture
from irscope.verify.bounds import Arguments
from irscope.verify.slices import AddressSlice, address_slice
from irscope.verify.trace import Listener, Observed, granule_bytes


class Listeners(Listener):
    """Several listeners as one."""

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

    def synchronise(self, programs: Array, addresses: Array, ordering: str) -> None:
        for one in self._each:
            one.synchronise(programs, addresses, ordering)


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

    def __init__(self, capture: Capture, text: str) -> None:
        self.capture = capture
        self.module: MlirModule = parse_mlir(text)
        self.slices: AddressSlice = address_slice(self.module)
        if self.slices.loads:
            # What is loaded decides: all of it has to be right.
            self.slices = AddressSlice(frozenset(), self.slices.loads, self.slices.reads_shared)
        self.granule = granule_bytes(self.module)
        self._locations = read_mlir(text)

    @property
    def needs_values(self) -> bool:
        """Whether the elements of tensors decide what is accessed."""
        return bool(self.slices.loads) or self.slices.reads_shared

    def place(self, operation: Operation) -> str:
        """`FILE:LINE` of the user's Python."""
        return line_text(self._frames(operation))

    def origin(self, operation: Operation) -> tuple[tuple[str, int], ...]:
        """The frames of Python, under which an operation's counterpart in another text is found."""
        return self._frames(operation)

    def _frames(self, operation: Operation) -> tuple[tuple[str, int], ...]:
        chain = self._locations.chain_at(operation.lines[-1]) or self._locations.chain_at(operation.first_line)
        return place_of(chain, self.capture.launch.kernel.file)

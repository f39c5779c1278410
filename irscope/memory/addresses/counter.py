"""Counter: the traffic of executions; those that touch memory alike are counted once."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import numpy as np

from irscope.ir.mlir.model import Operation
from irscope.layout.thread_map import ThreadMap
from irscope.memory.access import Traffic
from irscope.memory.addresses.accesses import Execution
from irscope.memory.addresses.counting import counted
from irscope.memory.addresses.lanes import (
    Lanes,
    box_lanes,
    distinct_instructions,
    lanes_of,
    scalar_map,
    strides_of,
    widest_vector,
)
from irscope.memory.addresses.numbers import Tokens
from irscope.memory.machine import ACCESSES

__all__ = ["Counter", "Hardware", "Shape"]

_WIDEST_BITS = 128
_PAST_L1_BYTES = 16
"""Of a lane's asynchronous copy that does not go through NVIDIA's L1: cp.async.cg."""
_MOST_BITS = 22
"""Of the inputs of a layout whose places are written out."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """How a target's memory is counted."""

    unit_bytes: int
    line_bytes: int
    warp_size: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The instructions of an operation, as its first execution shows them."""

    bits: int = 0
    possible_bits: int = 0
    strides: tuple[int | None, ...] = ()


@dataclass(slots=True)
class Counter:
    """Counts executions; those that touch memory alike only once."""

    hardware: Hardware
    threads_of: Callable[[Operation], ThreadMap | None]
    width_of: Callable[[Operation], int]
    made_of: Callable[[Operation], int | None] = lambda operation: None
    """How many instructions the machine code has for an access; None where that is not known."""
    lanes: dict[tuple[int, int], Lanes] = field(default_factory=dict[tuple[int, int], Lanes])
    shapes: dict[tuple[int, int], Shape] = field(default_factory=dict[tuple[int, int], Shape])
    known: dict[object, Traffic] = field(default_factory=dict[object, Traffic])
    each: dict[int, Traffic] = field(default_factory=dict[int, Traffic])
    """Line → the traffic of its first execution."""

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
            lanes = self._lanes(execution)
            if lanes is None:
                return Traffic.unknown()
            size = max(execution.element_bits // 8, 1)
            units = (self.hardware.unit_bytes, self.hardware.line_bytes)
            pairs = self._by_pairs(execution, lanes)
            least = most = counted(lanes, addresses, mask, size, *units, by_pairs=pairs)
            # Of loads of the same addresses the assembler may make one.
            is_load = ACCESSES[execution.operation.name] == "load" and not execution.is_box
            distinct = distinct_instructions(lanes, addresses, mask) if is_load else lanes
            if len(distinct.warps) < len(lanes.warps):
                least = counted(distinct, addresses, mask, size, *units, by_pairs=pairs)
                each = len(lanes.warps) // execution.warps, len(distinct.warps) // execution.warps
                made = self.made_of(execution.operation)
                if made is not None and made <= each[1]:
                    most = least
                elif made is not None and made >= each[0]:
                    least = most
            self.known[key] = Traffic.between(least, most)
            self.each.setdefault(execution.operation.first_line, self.known[key])
        found = self.known[key].often(execution.times)
        return found.scaled(1 / execution.share) if execution.share < 1 else found

    def shape(self, operation: Operation) -> Shape:
        """How the instructions of an operation are."""
        return next((shape for (line, _), shape in self.shapes.items() if line == operation.first_line), Shape())

    def _lanes(self, execution: Execution) -> Lanes | None:
        operation, addresses = execution.operation, execution.addresses
        key = (operation.first_line, execution.warps)
        if key not in self.lanes:
            shape = Shape(strides=strides_of(addresses))
            if execution.is_box:
                found = box_lanes(prod(addresses.shape))
            else:
                scalar = scalar_map(execution.warps, self.hardware.warp_size)
                threads = self.threads_of(operation) if addresses.shape else scalar
                if threads is None or threads.shape != addresses.shape or threads.layout.in_bits > _MOST_BITS:
                    return None
                width, possible = self._widths(execution, threads)
                found = lanes_of(threads, width, once=ACCESSES[operation.name] != "load")
                bits = execution.element_bits
                shape = Shape(width * bits, possible * bits, shape.strides)
            self.lanes[key], self.shapes[key] = found, shape
        return self.lanes[key]

    def _by_pairs(self, execution: Execution, lanes: Lanes) -> bool:
        is_copy = ACCESSES[execution.operation.name] == "copy" and not execution.is_box
        size = lanes.width * execution.element_bits // 8
        return is_copy and size == _PAST_L1_BYTES and self.hardware.unit_bytes == 2 * _PAST_L1_BYTES

    def _widths(self, execution: Execution, threads: ThreadMap) -> tuple[int, int]:
        """The elements of a lane's part of an instruction, and those that it could have."""
        bits = max(execution.element_bits, 1)
        given = (threads, execution.addresses, execution.mask, max(bits // 8, 1))
        possible = widest_vector(*given, max(_WIDEST_BITS // bits, 1), aligned=True)
        real = self.width_of(execution.operation) // bits
        if not real:
            return possible, possible
        if not execution.addresses.is_rigid:
            # The compiler knew more of the addresses than can be seen here.
            return min(real, threads.registers), possible
        return widest_vector(*given, real, aligned=False), possible


def _pattern(tokens: Tokens | None) -> bytes:
    """Which elements have one token."""
    if tokens is None or tokens.size == 1:
        return b"" if tokens is None else b"1"
    return np.unique(tokens, return_inverse=True)[1].tobytes()


def _open(tokens: Tokens | None) -> bytes:
    return b"" if tokens is None else (tokens != 0).tobytes()

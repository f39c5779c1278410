"""Counts the wavefronts of shared accesses from their addresses in the PTX, which depend on the thread's number alone.

What an operation does through scratch memory (a reduction, a scan, a gather, a conversion) is the compiler's choice,
and another one in each version: its addresses are computed for every thread of a CTA, and no lowering is modelled.
Source of the instructions' meaning: "PTX ISA", chapter 9. `irscope.memory.conflicts` says which lanes are served
together.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irscope.ir.asm.instructions import Function, Instruction
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.asm.operands import parse_operand
from irscope.ir.asm.readers import parse_ptx
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.uses import ModuleUses
from irscope.layout.maps import BANK_BYTES
from irscope.machine.ptx_arithmetic import computed
from irscope.memory.conflicts import lane_groups
from irscope.memory.machine import Action, MemoryInstructions, read_action, users_of_shared
from irscope.model.capture import Capture
from irscope.target import Target

_Integers = NDArray[np.int64]
_SHARED_ACTIONS: tuple[Action, ...] = ("shared load", "shared store", "matrix load", "matrix store")
_WARP = 32
_ROW_BYTES = 16
"""A row of a matrix that ldmatrix or stmatrix moves; eight rows are one matrix."""


@dataclass(frozen=True, slots=True)
class _SharedInstruction:
    line: int
    is_store: bool
    bits_per_thread: int
    wavefronts: int | None
    """Of all warps of a CTA, each time it is executed; None where the addresses are not known."""
    minimum_wavefronts: int
    """For the same words without bank conflicts."""


@dataclass(frozen=True, slots=True)
class _SharedWork:
    """The shared accesses of one operation, in all warps of a CTA."""

    instructions: int
    wavefronts: int
    minimum_wavefronts: int
    warps: int

    @property
    def excess(self) -> int:
        """Wavefronts of one warp above the minimum, on average."""
        return -(-(self.wavefronts - self.minimum_wavefronts) // self.warps)

    @property
    def ways(self) -> float:
        return self.wavefronts / max(self.minimum_wavefronts, 1)

    def __str__(self) -> str:
        conflicts = f"{self.ways:.3g}-way conflicts" if self.ways > 1 else "no conflicts"
        return f"{self.wavefronts} wavefronts per CTA (minimum {self.minimum_wavefronts}): {conflicts}"


class SharedWorks:
    """What the operations of a capture do in shared memory, by the addresses in its PTX."""

    def __init__(self, capture: Capture, uses: ModuleUses, machine: MemoryInstructions) -> None:
        self._machine = machine
        self._instructions: dict[int, _SharedInstruction] = {}
        self._threads = int(capture.launch.option("num_warps", 4) or 4) * _WARP
        # Without the operation of each instruction it is known by its place in Python, where no other one is there.
        self._users = users_of_shared(uses)
        self._uses = uses
        has_shared = any(machine.count(use.first_line, *_SHARED_ACTIONS) for use in uses.operations)
        if machine.text_stage == "ptx" and has_shared:
            functions = [one for one in parse_ptx(capture.text("ptx")) if one.name == capture.name]
            for function in functions[:1]:
                values = _Registers(function, function.threads or self._threads)
                rows = (_counted(instruction, values, capture.target) for instruction in function.instructions)
                self._instructions = {row.line: row for row in rows if row is not None}

    def of(self, use: Operation) -> _SharedWork | None:
        """What an operation does; None where that is not known."""
        if not self._machine.by_operation and self._users[self._uses.locations.chain_at(use.first_line)] != 1:
            return None
        lines = [row.line for row in self._machine.instructions_at(use.first_line) if row.action in _SHARED_ACTIONS]
        rows = [self._instructions[line] for line in lines if line in self._instructions]
        known = [row.wavefronts for row in rows if row.wavefronts is not None]
        if not lines or len(known) < len(lines):
            return None
        least = sum(row.minimum_wavefronts for row in rows)
        return _SharedWork(len(rows), sum(known), least, max(self._threads // _WARP, 1))


def _counted(instruction: Instruction, values: _Registers, target: Target) -> _SharedInstruction | None:
    found = read_action(instruction)
    if found is None or found[0] not in _SHARED_ACTIONS:
        return None
    action, bits = found
    is_store = action.endswith("store")
    at = next((operand for operand in instruction.arguments if operand.kind == "address"), None)
    base = values.value(at.name) if at is not None else None
    active = values.predicate(instruction.predicate)
    if at is None or base is None or active is None:
        return _SharedInstruction(instruction.line, is_store, bits, None, 0)
    addresses = base + at.value
    wavefronts = least = 0
    for warp in range(0, values.threads, _WARP):
        lanes, on = addresses[warp : warp + _WARP], active[warp : warp + _WARP]
        if "matrix" in action:
            matrices = [part[1:] for part in ptx_opcode(instruction.opcode).modifiers if part in ("x1", "x2", "x4")]
            for matrix in range(int(matrices[0]) if matrices else 1):
                rows = lanes[8 * matrix : 8 * matrix + 8]
                counts = _wavefronts(rows, np.ones(len(rows), np.bool_), _ROW_BYTES, 32)
                wavefronts, least = wavefronts + counts[0], least + counts[1]
            continue
        alike = any(bool((lanes == lanes[np.arange(len(lanes)) ^ step]).all()) for step in (1, 2)) and len(lanes) > 2
        banks, groups = lane_groups(target, bits, len(lanes), store=is_store, alike=alike)
        for group in groups:
            counts = _wavefronts(lanes[list(group)], on[list(group)], max(bits // 8, 1), banks)
            wavefronts, least = wavefronts + counts[0], least + counts[1]
    return _SharedInstruction(instruction.line, is_store, bits, wavefronts, least)


def _wavefronts(addresses: _Integers, active: NDArray[np.bool_], size: int, banks: int) -> tuple[int, int]:
    starts = addresses[active]
    if not starts.size:
        return 0, 0
    first, last = starts // BANK_BYTES, (starts + size - 1) // BANK_BYTES
    words = np.unique(np.concatenate([np.minimum(first + step, last) for step in range(int((last - first).max()) + 1)]))
    return int(np.bincount(words % banks).max()), -(-len(words) // banks)


class _Registers:
    """The values of registers in every thread of a CTA, computed where they are asked for."""

    def __init__(self, function: Function, threads: int) -> None:
        self.threads = threads
        self._known: dict[str, _Integers | None] = {
            "%tid.x": np.arange(threads, dtype=np.int64),
            "%tid.y": np.zeros(threads, np.int64),
            "%tid.z": np.zeros(threads, np.int64),
            "%laneid": np.arange(threads, dtype=np.int64) % _WARP,
            "%ntid.x": np.full(threads, threads, np.int64),
        }
        self._makers: dict[str, Instruction | None] = {}
        for instruction in function.instructions:
            for name in instruction.writes:
                # What has several definitions, such as a value that a loop hands on, is not followed.
                self._makers[name] = None if name in self._makers else instruction

    def value(self, name: str) -> _Integers | None:
        """The value of a register, a number or a variable of shared memory in each thread; None if it is not known."""
        operand = parse_operand(name)
        if operand.kind == "number":
            return np.full(self.threads, operand.value, np.int64)
        if not name.startswith("%"):
            # The beginning of the CTA's shared memory, or of the one variable in it.
            return np.zeros(self.threads, np.int64)
        # Without recursion: chains of additions are as long as the kernel.
        waiting = [name]
        while waiting:
            current = waiting[-1]
            maker = self._makers.get(current)
            if current in self._known or maker is None:
                self._known.setdefault(current, None)
                waiting.pop()
                continue
            known = maker.effect.reads or maker.opcode.startswith("elect")
            used = () if known else maker.operands[1:]
            open_ = [item for item in used if item.startswith("%") and item not in self._known]
            if open_ and not set(open_) & set(waiting):
                waiting += open_
                continue
            self._known[current] = None if open_ else self._made(maker)
            waiting.pop()
        return self._known[name]

    def predicate(self, text: str) -> NDArray[np.bool_] | None:
        """The threads that a predicate such as `@!%p1` leaves on; None if that is not known."""
        if not text:
            return np.ones(self.threads, np.bool_)
        value = self.value(text.lstrip("@!"))
        if value is None:
            return None
        return (value == 0) if text.startswith("@!") else (value != 0)

    def _made(self, maker: Instruction) -> _Integers | None:
        """What an instruction makes of known operands; None where it is not one of those that addresses are made by."""
        name, *suffixes = maker.opcode.split(".")
        if maker.predicate:
            return None
        if name == "elect":
            return (np.arange(self.threads, dtype=np.int64) % _WARP == 0).astype(np.int64)
        operands = [self.value(operand) for operand in maker.operands[1:]]
        if not operands or any(operand is None for operand in operands):
            return None
        return computed(name, suffixes, [operand for operand in operands if operand is not None])

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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irscope.ir.asm.instructions import Function, Instruction
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.asm.operands import parse_operand
from irscope.ir.asm.readers import parse_ptx
from irscope.ir.mlir.uses import ModuleUses, OperationUse
from irscope.layout.maps import BANK_BYTES
from irscope.memory.conflicts import lane_groups
from irscope.memory.machine import Action, Machine, read_action, users_of_shared
from irscope.model.capture import Capture
from irscope.target import Target

__all__ = ["SharedInstruction", "SharedWork", "SharedWorks", "read_shared_instructions", "shared_work"]

_Integers = NDArray[np.int64]
_SHARED_ACTIONS: tuple[Action, ...] = ("shared load", "shared store", "matrix load", "matrix store")
_WARP = 32
_ROW_BYTES = 16
"""A row of a matrix that ldmatrix or stmatrix moves; eight rows are one matrix."""


@dataclass(frozen=True, slots=True)
class SharedInstruction:
    """One shared access of the PTX."""

    line: int
    """In the PTX, 1-based."""
    is_store: bool
    bits_per_thread: int
    wavefronts: int | None
    """Of all warps of a CTA, each time it is executed; None where the addresses are not known."""
    minimum_wavefronts: int
    """For the same words without bank conflicts."""


@dataclass(frozen=True, slots=True)
class SharedWork:
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
        """1.0 without conflicts; 2.0 for two-way conflicts."""
        return self.wavefronts / max(self.minimum_wavefronts, 1)

    def __str__(self) -> str:
        conflicts = f"{self.ways:.3g}-way conflicts" if self.ways > 1 else "no conflicts"
        return f"{self.wavefronts} wavefronts per CTA (minimum {self.minimum_wavefronts}): {conflicts}"


class SharedWorks:
    """What the operations of a capture do in shared memory, by the addresses in its PTX."""

    def __init__(self, capture: Capture, uses: ModuleUses, machine: Machine) -> None:
        self._machine = machine
        self._instructions: dict[int, SharedInstruction] = {}
        self._threads = int(capture.launch.option("num_warps", 4) or 4) * _WARP
        # Without the operation of each instruction it is known by its place in Python, where no other one is there.
        self._users = users_of_shared(uses)
        self._uses = uses
        has_shared = any(machine.count(use.line, *_SHARED_ACTIONS) for use in uses.operations)
        if machine.text_stage == "ptx" and has_shared:
            ptx = capture.text("ptx")
            self._instructions = read_shared_instructions(ptx, capture.name, self._threads, capture.target)

    def of(self, use: OperationUse) -> SharedWork | None:
        """What an operation does; None where that is not known."""
        if not self._machine.by_operation and self._users[self._uses.chain_of(use)] != 1:
            return None
        lines = [row.line for row in self._machine.instructions_at(use.line) if row.action in _SHARED_ACTIONS]
        if any(line not in self._instructions for line in lines):
            return None
        return shared_work([self._instructions[line] for line in lines], self._threads)


def read_shared_instructions(ptx: str, kernel: str, threads: int, target: Target) -> dict[int, SharedInstruction]:
    """The shared accesses of a kernel, by their line in the PTX.

    Args:
        threads: of a CTA, where the PTX does not have them.
        target: whose lanes and banks.
    """
    function = next((item for item in parse_ptx(ptx) if item.name == kernel), None)
    if function is None:
        return {}
    values = _Registers(function, function.threads or threads)
    rows = (_counted(instruction, values, target) for instruction in function.instructions)
    return {row.line: row for row in rows if row is not None}


def shared_work(instructions: Iterable[SharedInstruction], threads: int) -> SharedWork | None:
    """The sum of some accesses; None if there is none, or the addresses of one are not known."""
    rows = list(instructions)
    known = [row.wavefronts for row in rows if row.wavefronts is not None]
    if not rows or len(known) < len(rows):
        return None
    return SharedWork(len(rows), sum(known), sum(row.minimum_wavefronts for row in rows), max(threads // _WARP, 1))


def _counted(instruction: Instruction, values: _Registers, target: Target) -> SharedInstruction | None:
    found = read_action(instruction)
    if found is None or found[0] not in _SHARED_ACTIONS:
        return None
    action, bits = found
    is_store = action.endswith("store")
    at = next((operand for operand in instruction.arguments if operand.kind == "address"), None)
    base = values.value(at.name) if at is not None else None
    active = values.predicate(instruction.predicate)
    if at is None or base is None or active is None:
        return SharedInstruction(instruction.line, is_store, bits, None, 0)
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
    return SharedInstruction(instruction.line, is_store, bits, wavefronts, least)


def _wavefronts(addresses: _Integers, active: NDArray[np.bool_], size: int, banks: int) -> tuple[int, int]:
    """The wavefronts of lanes that are served together, and the fewest for as many words."""
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
        function = _FUNCTIONS.get(name)
        operands = [self.value(operand) for operand in maker.operands[1:]]
        if function is None or not operands or any(operand is None for operand in operands):
            return None
        try:
            made = function(suffixes, [operand for operand in operands if operand is not None])
        except (IndexError, ValueError, KeyError):
            return None
        if made is None:
            return None
        if name in ("setp", "elect") or suffixes[-1] == "pred":
            return (made != 0).astype(np.int64)
        return _cut(made, suffixes[0] if name == "cvt" else suffixes[-1], wide="wide" in suffixes)


def _cut(values: _Integers, kind: str, *, wide: bool) -> _Integers:
    """Values as a register of a type holds them: signed where the type is."""
    bits = int("".join(filter(str.isdigit, kind)) or 64) * (2 if wide else 1)
    if bits >= 64:
        return values
    cut = values & ((1 << bits) - 1)
    if kind.startswith("s"):
        return cut - ((cut >> (bits - 1)) << bits)
    return cut


def _unsigned(values: _Integers, bits: int) -> _Integers:
    return values if bits >= 64 else values & ((1 << bits) - 1)


def _bits(suffixes: list[str]) -> int:
    return int("".join(filter(str.isdigit, suffixes[-1])) or 64)


def _signed(values: _Integers, suffixes: list[str]) -> _Integers:
    return _cut(values, suffixes[-1], wide=False)


def _multiplied(suffixes: list[str], parts: list[_Integers]) -> _Integers | None:
    if "hi" in suffixes:
        return None
    return _signed(parts[0], suffixes) * _signed(parts[1], suffixes)


def _multiplied_and_added(suffixes: list[str], parts: list[_Integers]) -> _Integers | None:
    product = _multiplied(suffixes, parts)
    return None if product is None else product + parts[2]


def _shifted_right(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    by = np.minimum(parts[1], 63)
    is_signed = suffixes[-1].startswith("s")
    return (_signed(parts[0], suffixes) if is_signed else _unsigned(parts[0], _bits(suffixes))) >> by


def _looked_up(_: list[str], parts: list[_Integers]) -> _Integers:
    """lop3: any function of three bits, by its table of truth."""
    one, two, three, table = parts
    result = np.zeros_like(one)
    for row in range(8):
        if int(table[0]) >> row & 1:
            terms = (one if row & 4 else ~one, two if row & 2 else ~two, three if row & 1 else ~three)
            result |= terms[0] & terms[1] & terms[2]
    return result


def _extracted(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    length = np.minimum(parts[2], 62)
    field = (_unsigned(parts[0], _bits(suffixes)) >> parts[1]) & ((1 << length) - 1)
    if suffixes[-1].startswith("s"):
        return field - ((field >> np.maximum(length - 1, 0) & 1) << length)
    return field


_COMPARED: Mapping[str, Callable[[_Integers, _Integers], NDArray[np.bool_]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _comparison(suffixes: list[str], parts: list[_Integers]) -> _Integers | None:
    if len(suffixes) > 2 or suffixes[-1].startswith("f"):
        return None
    one, two = (_signed(part, suffixes) for part in parts[:2])
    return _COMPARED[suffixes[0]](one, two).astype(np.int64)


def _shuffled(suffixes: list[str], parts: list[_Integers]) -> _Integers | None:
    """shfl.sync.idx: the value of one lane of each warp."""
    value, lane = parts[0], parts[1]
    if "idx" not in suffixes or len(value) % _WARP:
        return None
    threads = np.arange(len(value))
    return value[threads // _WARP * _WARP + lane % _WARP]


_FUNCTIONS: Mapping[str, Callable[[list[str], list[_Integers]], _Integers | None]] = {
    "mov": lambda _, parts: parts[0],
    "cvt": lambda suffixes, parts: _cut(parts[0], suffixes[-1], wide=False),
    "cvta": lambda _, parts: parts[0],
    "add": lambda _, parts: parts[0] + parts[1],
    "sub": lambda _, parts: parts[0] - parts[1],
    "neg": lambda _, parts: -parts[0],
    "mul": _multiplied,
    "mad": _multiplied_and_added,
    "min": lambda suffixes, parts: np.minimum(*(_signed(part, suffixes) for part in parts)),
    "max": lambda suffixes, parts: np.maximum(*(_signed(part, suffixes) for part in parts)),
    "shl": lambda _, parts: np.where(parts[1] < 64, parts[0] << np.minimum(parts[1], 63), 0),
    "shr": _shifted_right,
    "and": lambda _, parts: parts[0] & parts[1],
    "or": lambda _, parts: parts[0] | parts[1],
    "xor": lambda _, parts: parts[0] ^ parts[1],
    "not": lambda suffixes, parts: (parts[0] == 0).astype(np.int64) if suffixes[-1] == "pred" else ~parts[0],
    "lop3": _looked_up,
    "bfe": _extracted,
    "setp": _comparison,
    "selp": lambda _, parts: np.where(parts[2] != 0, parts[0], parts[1]),
    "shfl": _shuffled,
}
"""Instruction → what it makes of its operands, before that is cut to its type."""

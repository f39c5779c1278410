"""Loads and stores of local and of shared memory, through which integers go on their way to addresses."""

from __future__ import annotations

import numpy as np

from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.operands import SASS_ADDRESS
from irscope.timing.arithmetic import put, unknown
from irscope.timing.scalars import ZERO, Array, SharedWords, State, Step, Value, address_of, next_register, predicate

__all__ = ["matrices_step", "shared_step", "spilled_step", "spilled_words"]


def spilled_words(item: Instruction) -> tuple[tuple[str, str], ...]:
    """(register, place) of each word that an instruction stores to local memory or loads from it.

    A place is named by its text, as the stack stays where it is. None where the address is computed, and where less
    than a word is accessed.
    """
    match = SASS_ADDRESS.search(next((one for one in item.operands if "[" in one), ""))
    if match is None or "." in match["inside"] or any(one in item.opcode for one in (".U8", ".S8", ".U16", ".S16")):
        return ()
    register = item.operands[1 if item.opcode.startswith("STL") else 0]
    base, _, offset = match["inside"].partition("+")
    start = int(offset, 16) if offset.lstrip("-").startswith("0x") else 0
    words = 4 if ".128" in item.opcode else 2 if ".64" in item.opcode else 1
    return tuple(
        (next_register(register, number) if number else register, f"[{base}+{start + 4 * number}]")
        for number in range(words)
    )


def spilled_step(item: Instruction) -> Step:
    """A store to local memory, or a load of it."""
    is_store = item.opcode.startswith("STL")
    words = spilled_words(item)
    if not words:
        return unknown(item)

    def run(state: State) -> None:
        for name, place in words:
            if is_store:
                state.registers[place] = ZERO if name == "RZ" else state.registers.get(name)
            else:
                put(state, name, state.registers.get(place))

    return run


def shared_step(item: Instruction) -> Step:
    """A store to shared memory, or a load of it."""
    is_store = item.opcode.startswith("STS")
    place, register = item.operands if is_store else item.operands[::-1]
    address = address_of(place)
    words = 4 if ".128" in item.opcode else 2 if ".64" in item.opcode else 1
    names = [next_register(register, number) if number else register for number in range(words)]
    is_whole = not any(one in item.opcode for one in (".U8", ".S8", ".U16", ".S16", ".TRANS"))
    active = predicate(item.predicate) if item.predicate else None

    def run(state: State) -> None:
        shared, workers = state.shared, state.workers
        is_followed = shared is not None or workers is not None
        where = address.value(state) if address is not None and is_followed else None
        if is_store:
            values: list[Value] = [ZERO if name == "RZ" else state.registers.get(name) for name in names]
            if workers is not None and is_whole:
                workers.store(where, values)
            if shared is not None:
                loaded = [state.data[name] for name in names if name in state.data]
                origins = frozenset().union(*loaded) if loaded else None
                mask = active(state) if active is not None else None
                shared.store(
                    state.special["SHARED"], where, values if is_whole else [None for _ in names], mask, origins
                )
            return
        for number, name in enumerate(names):
            value = shared.load(state.special["SHARED"], where, number) if shared is not None and is_whole else None
            if workers is not None and value is None and where is not None and is_whole:
                value = workers.load(where + 4 * number, state.turn)
            put(state, name, value)
        if workers is not None and ".U8" in item.opcode:
            told = workers.partitions(where, state.turn + 1)
            if told is not None:
                state.turn, state.partition = state.turn + 1, told
                put(state, register, told)

    return run


_LANE = np.arange(32)


def matrices_step(item: Instruction) -> Step:
    """A load of 8 × 8 matrices of 16 bits, of which lanes 8m to 8m + 7 hold the addresses of matrix m's rows."""
    register, place = item.operands
    address = address_of(place)
    count = int(parts[-1]) if (parts := item.opcode.split("."))[-1] in ("2", "4") else 1
    is_transposed = ".MT88" in item.opcode

    def element(shared: SharedWords, begin: Array, where: Array, matrix: int, row: Array, column: Array) -> Value:
        at = where[:, 8 * matrix + row] + 2 * column
        word = shared.load(begin, at, 0)
        return None if word is None else word >> 8 * (at & 2) & 0xFFFF

    def run(state: State) -> None:
        shared, begin = state.shared, state.special["SHARED"]
        where = address.value(state) if address is not None and shared is not None else None
        for number in range(count):
            value: Value = None
            if shared is not None and where is not None and state.lanes == 1:
                value = shared.load(begin, where, number)
            elif shared is not None and where is not None and where.shape[1] == 32:
                row, pair = (_LANE % 4 * 2, _LANE // 4) if is_transposed else (_LANE // 4, _LANE % 4 * 2)
                down, right = (1, 0) if is_transposed else (0, 1)
                low = element(shared, begin, where, number, row, pair)
                high = element(shared, begin, where, number, row + down, pair + right)
                value = None if low is None or high is None else low | high << 16
            put(state, next_register(register, number) if number else register, value)

    return run

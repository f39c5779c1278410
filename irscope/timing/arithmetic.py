"""The integer instructions of SASS on NumPy: what addresses, predicates and trip counts come from.

Sources: NVIDIA, "CUDA Binary Utilities" (the names of the instructions); their meaning by the compiler's own use of
them. Hardware's counters of the same launches are the oracle (`tests/timing/test_execution.py`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irscope.ir.asm.instructions import Instruction
from irscope.timing.scalars import (
    MASK,
    TRUE,
    ZERO,
    State,
    Step,
    Value,
    guess_of,
    mixed,
    next_register,
    operand,
    predicate,
    signed32,
    wide,
)

__all__ = ["ARITHMETIC", "guessed", "is_predicate", "put", "unknown"]


def _known(*values: Value) -> bool:
    return all(value is not None for value in values)


def put(state: State, name: str, value: Value) -> None:
    if name not in ("RZ", "URZ", "PT", "UPT"):
        state.registers[name] = value


def is_predicate(text: str) -> bool:
    return text.lstrip("!").rstrip("0123456789T") in ("P", "UP")


def unknown(item: Instruction) -> Step:
    """Whatever it writes is not known."""
    names = item.writes

    def run(state: State) -> None:
        for name in names:
            state.registers[name] = None

    return run


def _sum(item: Instruction) -> Step:
    """IADD3 and its kin: up to two carries out, and with .X two carries in."""
    target, *rest = item.operands
    carries: list[str] = []
    while rest and is_predicate(rest[0]):
        carries.append(rest.pop(0))
    values = [operand(one) for one in rest if not is_predicate(one)]
    extended = ".X" in item.opcode
    carried = [predicate(one) for one in rest if is_predicate(one)] if extended else []
    negated = [one.startswith(("-", "~")) for one in rest if not is_predicate(one)]

    def run(state: State) -> None:
        parts = [read(state) for read in values]
        ins = [read(state) for read in carried]
        if not _known(*parts, *ins):
            put(state, target, None)
            for name in carries:
                put(state, name, None)
            return
        total: Any = sum(part for part in parts if part is not None)
        total = total + sum(one.astype(np.int64) for one in ins if one is not None)
        if carries:
            # The negative of a value is its complement and one: of zero that is a carry by itself.
            extra: Any = 0
            for part, is_negated in zip(parts, negated, strict=True):
                if is_negated and not extended and part is not None:
                    extra = extra + (part == 0)
            count = (total >> 32) + extra
            put(state, carries[0], count > 0)
            for name in carries[1:]:
                put(state, name, count > 1)
        put(state, target, total & MASK)

    return run


def _multiply(item: Instruction) -> Step:
    opcode, operands = item.opcode, list(item.operands)
    target = operands.pop(0)
    carry_out = operands.pop(0) if operands and is_predicate(operands[0]) else None
    carry = predicate(operands.pop()) if ".X" in opcode and is_predicate(operands[-1]) else None
    if len(operands) < 3 or (carry_out and ".WIDE.U32" not in opcode and ".HI.U32" not in opcode):
        return unknown(item)
    left, right = operand(operands[0]), operand(operands[1])
    is_wide, is_high = ".WIDE" in opcode, ".HI" in opcode
    addend = wide(operands[2]) if is_wide or is_high else operand(operands[2])
    is_unsigned = ".U32" in opcode

    def run(state: State) -> None:
        a, b, c = left(state), right(state), addend(state)
        more = carry(state) if carry is not None else ZERO
        if (a is not None and not a.any() and a.size == 1) or (b is not None and not b.any() and b.size == 1):
            a = b = ZERO
        if a is None or b is None or c is None or more is None:
            put(state, target, None)
            if is_wide:
                put(state, next_register(target), None)
            if carry_out:
                put(state, carry_out, None)
            return
        if is_wide or is_high:
            if is_unsigned:
                product = (a.astype(np.uint64) * b.astype(np.uint64)).astype(np.int64)
            else:
                product = signed32(a) * signed32(b)
            total = product + c + more
            if carry_out:
                wrapped, added = total.astype(np.uint64), product.astype(np.uint64)
                put(state, carry_out, (wrapped < added) | ((wrapped == added) & (more > 0)))
            if is_high:
                put(state, target, total >> 32 & MASK)
                return
            put(state, target, total & MASK)
            put(state, next_register(target), total >> 32 & MASK)
            return
        put(state, target, (a * b + c + more) & MASK)

    return run


def _lea(item: Instruction) -> Step:
    opcode, operands = item.opcode, list(item.operands)
    target = operands.pop(0)
    carry_out = operands.pop(0) if operands and is_predicate(operands[0]) else None
    carry = predicate(operands.pop()) if operands and is_predicate(operands[-1]) and ".X" in opcode else None
    while operands and is_predicate(operands[-1]):
        operands.pop()
    is_high, is_signed = ".HI" in opcode, ".SX32" in opcode
    try:
        shift = int(operands.pop(), 16)
    except (ValueError, IndexError):
        return unknown(item)
    reads = [operand(one) for one in operands]
    if len(reads) < 2:
        return unknown(item)

    def run(state: State) -> None:
        values = [read(state) for read in reads]
        more = carry(state) if carry is not None else ZERO
        if more is None or any(value is None for value in values):
            put(state, target, None)
            if carry_out:
                put(state, carry_out, None)
            return
        low, base = values[0], values[1]
        assert low is not None
        assert base is not None
        if is_signed:
            shifted = signed32(low) >> (32 - shift) & MASK
        elif is_high:
            high = values[2] if len(values) > 2 else ZERO
            assert high is not None
            shifted = (high << shift | low >> (32 - shift)) & MASK
        else:
            shifted = low << shift & MASK
        total = shifted + base + more
        put(state, target, total & MASK)
        if carry_out:
            put(state, carry_out, total >> 32 > 0)

    return run


def _shift(item: Instruction) -> Step:
    opcode = item.opcode
    target, *rest = item.operands
    if len(rest) < 3:
        return unknown(item)
    low, by, high = (operand(one) for one in rest[:3])
    left, takes_high = ".L" in opcode, ".HI" in opcode
    is_signed = ".S32" in opcode or ".S64" in opcode

    def run(state: State) -> None:
        a, n, b = low(state), by(state), high(state)
        if n is None or (a is None and b is None):
            put(state, target, None)
            return
        count = np.minimum(n, 63)
        if not left and takes_high and b is not None and ".64" not in opcode and "64" not in opcode:
            # Of 32 bits: the value is the upper one.
            result = (signed32(b) if is_signed else b) >> np.minimum(count, 32 if not is_signed else 31)
            put(state, target, result & MASK)
            return
        if a is None or b is None:
            put(state, target, None)
            return
        if left:
            whole = b << 32 | a
            shifted = whole.astype(np.uint64) << count.astype(np.uint64)
        else:
            whole = (signed32(b) if is_signed else b) << 32 | a
            shifted = whole >> count if is_signed else whole.astype(np.uint64) >> count.astype(np.uint64)
        shifted = shifted.astype(np.int64)
        put(state, target, (shifted >> 32 if takes_high else shifted) & MASK)

    return run


def _logic(item: Instruction) -> Step:
    operands = list(item.operands)
    before = operands.pop(0) if is_predicate(operands[0]) else None
    target = operands.pop(0)
    table = next((int(one, 16) for one in reversed(operands) if one.startswith("0x")), None)
    reads = [operand(one) for one in operands[:3]]
    is_updated = target in [one.removesuffix(".reuse") for one in operands[:3]]
    if table is None or len(reads) < 3:
        return unknown(item)

    def run(state: State) -> None:
        if is_updated:
            # Predicates are packed, bit by bit, into a register that holds nothing before: LOP3 R0, R0, 0xfffffffd, …
            state.registers.setdefault(target, ZERO)
        a, b, c = (read(state) for read in reads)
        result = _looked_up(table, a, b, c)
        put(state, target, result)
        if before:
            put(state, before, None if result is None else result != 0)

    return run


def _looked_up(table: int, a: Value, b: Value, c: Value) -> Value:
    # An operand that the table does not depend on need not be known.
    if table & 0x0F == table >> 4:
        a = ZERO
    if table & 0x33 == table >> 2 & 0x33:
        b = ZERO
    if table & 0x55 == table >> 1 & 0x55:
        c = ZERO
    # A constant zero may decide the result.
    for value, zeros in ((a, table & 0x0F), (b, table & 0x33), (c, table & 0x55)):
        if value is not None and value.size == 1 and not value.any() and not zeros:
            return ZERO
    if a is None or b is None or c is None:
        return None
    result: Any = 0
    for index in range(8):
        if table >> index & 1:
            term: Any = a if index & 4 else a ^ MASK
            term = term & (b if index & 2 else b ^ MASK)
            result = result | term & (c if index & 1 else c ^ MASK)
    return np.asarray(result, np.int64) if not isinstance(result, int) else ZERO


def _predicate_logic(item: Instruction) -> Step:
    operands = list(item.operands)
    first, second = operands.pop(0), operands.pop(0)
    tables = [int(one, 16) for one in operands if one.startswith("0x")]
    reads = [predicate(one) for one in operands if not one.startswith("0x")]
    if not tables or len(reads) < 3:
        return unknown(item)

    def run(state: State) -> None:
        values = [None if (value := read(state)) is None else value * np.int64(MASK) for read in reads[:3]]
        for name, table in zip((first, second), tables, strict=False):
            result = _looked_up(table, *values)
            put(state, name, None if result is None else result != 0)

    return run


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
    "F": lambda a, b: np.zeros_like(a, np.bool_), "T": lambda a, b: np.ones_like(a, np.bool_),
}  # fmt: skip


def _compare(item: Instruction) -> Step:
    parts = item.opcode.split(".")
    operands = list(item.operands)
    first, second = operands.pop(0), operands.pop(0)
    left, right = operand(operands[0]), operand(operands[1])
    preds = [predicate(one) for one in operands[2:] if is_predicate(one)]
    name = next((one for one in parts[1:] if one in _COMPARE), None)
    combine = next((one for one in parts[1:] if one in ("AND", "OR", "XOR")), "AND")
    if name is None or not preds:
        return unknown(item)
    compare, is_unsigned, is_extended = _COMPARE[name], "U32" in parts, "EX" in parts

    def run(state: State) -> None:
        a, b = left(state), right(state)
        other = preds[0](state)
        if a is None or b is None:
            put(state, first, without_first(combine, other))
            put(state, second, None)
            return
        if not is_unsigned:
            a, b = signed32(a), signed32(b)
        result = compare(a, b)
        if is_extended:
            low = preds[1](state) if len(preds) > 1 else TRUE
            if low is None:
                result = None
            elif name == "NE":
                result = (a != b) | low
            elif name == "EQ":
                result = (a == b) & low
            else:
                strict = np.greater if name in ("GT", "GE") else np.less
                result = strict(a, b) | (a == b) & low
        put(state, first, _combined(combine, result, other))
        put(state, second, _combined(combine, None if result is None else ~result, other))

    return run


_EITHER = "comparisons of data that indices depend on are assumed to hold at random"


def guessed(item: Instruction, step: Step) -> Step:
    """A comparison whose result, where data decide it, is taken to hold in half of the lanes: for what it selects."""
    first, second = item.operands[:2]

    def run(state: State) -> None:
        step(state)
        if state.registers.get(first) is not None:
            for name in (first, second):
                state.guesses.pop(name, None)
            return
        lanes = state.special["CTA"] * 2048 + state.special["WARP"] * 32 + state.special["SR_LANEID"]
        # In each iteration of a loop another guess.
        state.guessed += 1
        holds = mixed(lanes * 4096 + state.guessed) & 1 != 0
        state.assumed.origins[item.offset] = _EITHER
        for name, value in ((first, holds), (second, ~holds)):
            if name not in ("PT", "UPT"):
                state.guesses[name] = value
                state.data[name] = frozenset((item.offset,))

    return run


def without_first(how: str, other: Value) -> Value:
    """What is known of an unknown comparison and a condition: lanes that the condition turns off stay off.

    The other lanes are assumed to execute, as those of a branch on data are.
    """
    if other is None:
        return None
    is_known = not other.all() if how == "AND" else how == "OR" and bool(other.all())
    return other if is_known else None


def _combined(how: str, result: Value, other: Value) -> Value:
    if result is None or other is None:
        return None
    return result & other if how == "AND" else result | other if how == "OR" else result ^ other


def _select(item: Instruction) -> Step:
    target, *rest = item.operands
    if len(rest) < 3:
        return unknown(item)
    left, right, chosen, guess = operand(rest[0]), operand(rest[1]), predicate(rest[2]), guess_of(rest[2])

    def run(state: State) -> None:
        a, b, which = left(state), right(state), chosen(state)
        which = guess(state) if which is None else which
        put(state, target, None if a is None or b is None or which is None else np.where(which, a, b))

    return run


def _extreme(item: Instruction) -> Step:
    target, *rest = item.operands
    which = predicate(rest[-1])
    reads = [operand(one) for one in rest if not is_predicate(one)]
    is_unsigned = ".U32" in item.opcode
    added, least = item.opcode.startswith("VIADDMNMX"), 0 if ".RELU" in item.opcode else None
    if "16x2" in item.opcode:
        return unknown(item)

    def run(state: State) -> None:
        values = [read(state) for read in reads]
        chosen = which(state)
        if chosen is None or any(value is None for value in values):
            put(state, target, None)
            return
        known = [value for value in values if value is not None]
        if added:
            known = [(known[0] + known[1]) & MASK, *known[2:]]
        known = known if is_unsigned else [signed32(value) for value in known]
        low, high = np.minimum(known[0], known[1]), np.maximum(known[0], known[1])
        result = np.where(chosen, low, high)
        put(state, target, (result if least is None else np.maximum(result, least)) & MASK)

    return run


ARITHMETIC: dict[str, Callable[[Instruction], Step]] = {
    **dict.fromkeys(("IADD3", "UIADD3", "VIADD", "IADD"), _sum),
    **dict.fromkeys(("IMAD", "UIMAD"), _multiply),
    **dict.fromkeys(("LEA", "ULEA"), _lea),
    **dict.fromkeys(("SHF", "USHF"), _shift),
    **dict.fromkeys(("LOP3", "ULOP3"), _logic),
    **dict.fromkeys(("PLOP3", "UPLOP3"), _predicate_logic),
    **dict.fromkeys(("ISETP", "UISETP"), _compare),
    **dict.fromkeys(("SEL", "USEL"), _select),
    **dict.fromkeys(("VIMNMX", "IMNMX", "VIADDMNMX", "UIMNMX", "UVIMNMX"), _extreme),
}
"""Opcode → how what it does is made of an instruction."""

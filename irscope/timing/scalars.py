"""The integer instructions of SASS on NumPy: what addresses, predicates and trip counts come from.

A register holds an array of rows (warps) by lanes, each dimension of size 1 where all have one value, as integers from
0 to 2**32; a predicate an array of bools. None stands for a value that is not known: data, and floating point.

Sources: NVIDIA, "CUDA Binary Utilities" (the names of the instructions); their meaning by the compiler's own use of
them, against the values that the same kernels' Python gives (`tests/timing/test_scalars.py`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.ir.asm.instructions import Instruction

__all__ = ["Address", "Registers", "State", "address_of", "compiled", "predicate"]

Array = NDArray[Any]
Value = Array | None
Registers = dict[str, Value]

_MASK = 0xFFFFFFFF
_ZERO = np.zeros((1, 1), np.int64)
_TRUE = np.ones((1, 1), np.bool_)
_FALSE = np.zeros((1, 1), np.bool_)

# c[0x0][0x210]   c[0x0][UR4+0x210]
_CONSTANT = re.compile(r"c\[0x(?P<bank>[0-9a-f]+)\]\[0x(?P<offset>[0-9a-f]+)\]")
# desc[UR14][R2.64+0x80]   [R159+URZ+0x34000]   [R4.X4+UR6+0x10]   desc[UR6][R2.U32+UR4+-0x10]
_ADDRESS = re.compile(r"\[(?P<inside>[^\[\]]*)\]$")
# R7.H1_H1   -R8   |R9|   ~R3   R11.reuse   R4.X16
_REGISTER = re.compile(r"^(?P<sign>-?)(?P<bar>\|?)(?P<inverted>~?)(?P<name>U?R(?:\d+|Z)|SRZ)(?P<rest>(?:\.\w+)*)\|?$")


@dataclass(slots=True)
class State:
    """The registers of some warps that take the same way, and what they are launched with."""

    rows: int
    lanes: int
    registers: Registers
    constants: Mapping[int, int]
    """Offset in the bank of parameters → the 32 bits there."""
    special: Mapping[str, Array]
    """SR_TID.X, SR_CTAID.X, … → their values."""
    assumed: set[str] = field(default_factory=set[str])


Step = Callable[[State], None]
Read = Callable[[State], Value]


def _constant(offset: int) -> Read:
    def read(state: State) -> Value:
        value = state.constants.get(offset)
        return None if value is None else np.full((1, 1), value, np.int64)

    return read


@lru_cache(1 << 14)
def _operand(text: str) -> Read:
    """How an operand of 32 bits is read."""
    if match := _CONSTANT.search(text):
        return _signed(_constant(int(match["offset"], 16)), text)
    if match := _REGISTER.match(text):
        name = match["name"]
        if name in ("RZ", "URZ", "SRZ"):
            value = np.full((1, 1), _MASK, np.int64) if match["inverted"] else _ZERO
            return lambda state: value
        plain: Read = lambda state: state.registers.get(name)  # noqa: E731
        if "H" in match["rest"].replace(".reuse", ""):
            return lambda state: None
        return _signed(plain, text)
    try:
        number = np.full((1, 1), int(text, 16) & _MASK, np.int64)
    except ValueError:
        return lambda state: None
    return lambda state: number


def _signed(read: Read, text: str) -> Read:
    if "|" in text:
        inner = read
        read = lambda state: _absolute(inner(state))  # noqa: E731
    if text.startswith("-"):
        return lambda state: None if (value := read(state)) is None else -value & _MASK
    if text.startswith("~"):
        return lambda state: None if (value := read(state)) is None else value ^ _MASK
    return read


def _absolute(value: Value) -> Value:
    return None if value is None else np.abs(_signed32(value))


def _signed32(value: Array) -> Array:
    return (value ^ 0x80000000) - 0x80000000


@lru_cache(1 << 12)
def predicate(text: str) -> Read:
    """How a predicate operand is read: `P0`, `!UP1`, `PT`."""
    text = text.lstrip("@")
    inverted, name = text.startswith("!"), text.lstrip("!")
    if name in ("PT", "UPT"):
        value = _FALSE if inverted else _TRUE
        return lambda state: value
    if not inverted:
        return lambda state: state.registers.get(name)
    return lambda state: None if (value := state.registers.get(name)) is None else ~value


def _next(name: str, step: int = 1) -> str:
    """`R5` behind `R4`."""
    head = name.rstrip("0123456789")
    return name if head == name else f"{head}{int(name[len(head) :]) + step}"


def _wide(text: str) -> Read:
    """How an operand of 64 bits is read."""
    if match := _CONSTANT.search(text):
        low, high = _constant(int(match["offset"], 16)), _constant(int(match["offset"], 16) + 4)
    elif (match := _REGISTER.match(text)) and match["name"] not in ("RZ", "URZ"):
        low, high = _operand(match["name"]), _operand(_next(match["name"]))
    else:
        return _operand(text)
    return lambda state: None if (a := low(state)) is None or (b := high(state)) is None else a | b << 32


@dataclass(frozen=True, slots=True)
class Address:
    """An address operand: what is added up to it."""

    parts: tuple[Read, ...]
    offset: int

    def value(self, state: State) -> Value:
        """The address in each lane; None if it is not known."""
        total: Array = np.full((1, 1), self.offset, np.int64)
        for part in self.parts:
            if (value := part(state)) is None:
                return None
            total = total + value
        return total


@lru_cache(1 << 12)
def address_of(text: str) -> Address | None:
    """Read an address operand; None if the text is none."""
    match = _ADDRESS.search(text)
    if match is None:
        return None
    parts: list[Read] = []
    offset = 0
    for piece in match["inside"].replace("+-", "+~-").split("+"):
        piece = piece.replace("~-", "-")
        if piece.lstrip("-").startswith("0x"):
            offset += int(piece, 16)
            continue
        name, *rest = piece.split(".")
        if name in ("RZ", "URZ"):
            continue
        if "64" in rest:
            parts.append(_wide(name))
        elif scale := next((int(one[1:]) for one in rest if one.startswith("X") and one[1:].isdecimal()), 0):
            parts.append(_scaled(_operand(name), scale))
        else:
            # A uniform register beside a descriptor is 64 bits wide where the vector register is absent or narrow.
            parts.append(_operand(name))
    return Address(tuple(parts), offset)


def _scaled(read: Read, scale: int) -> Read:
    return lambda state: None if (value := read(state)) is None else value * scale


# ── What each instruction computes ──────────────────────────────────────────────────────────────────────────────────


def _known(*values: Value) -> bool:
    return all(value is not None for value in values)


def _put(state: State, name: str, value: Value) -> None:
    if name not in ("RZ", "URZ", "PT", "UPT"):
        state.registers[name] = value


def _is_predicate(text: str) -> bool:
    return text.lstrip("!").rstrip("0123456789T") in ("P", "UP")


def _sum(item: Instruction) -> Step:
    """IADD3 and its kin: up to two carries out, and with .X two carries in."""
    target, *rest = item.operands
    carries: list[str] = []
    while rest and _is_predicate(rest[0]):
        carries.append(rest.pop(0))
    values = [_operand(one) for one in rest if not _is_predicate(one)]
    extended = ".X" in item.opcode
    carried = [predicate(one) for one in rest if _is_predicate(one)] if extended else []
    negated = [one.startswith(("-", "~")) for one in rest if not _is_predicate(one)]

    def run(state: State) -> None:
        parts = [read(state) for read in values]
        ins = [read(state) for read in carried]
        if not _known(*parts, *ins):
            _put(state, target, None)
            for name in carries:
                _put(state, name, None)
            return
        total = sum(part for part in parts if part is not None)
        total = total + sum(one.astype(np.int64) for one in ins if one is not None)
        if carries:
            # The negative of a value is its complement and one: of zero that is a carry by itself.
            extra = 0
            for part, is_negated in zip(parts, negated, strict=True):
                if is_negated and not extended and part is not None:
                    extra = extra + (part == 0)
            count = (total >> 32) + extra
            _put(state, carries[0], count > 0)
            for name in carries[1:]:
                _put(state, name, count > 1)
        _put(state, target, total & _MASK)

    return run


def _multiply(item: Instruction) -> Step:
    opcode, operands = item.opcode, list(item.operands)
    target = operands.pop(0)
    if operands and _is_predicate(operands[0]):
        return _unknown(item)
    carry = predicate(operands.pop()) if ".X" in opcode and _is_predicate(operands[-1]) else None
    if len(operands) < 3:
        return _unknown(item)
    left, right = _operand(operands[0]), _operand(operands[1])
    is_wide, is_high = ".WIDE" in opcode, ".HI" in opcode
    addend = _wide(operands[2]) if is_wide or is_high else _operand(operands[2])
    is_unsigned = ".U32" in opcode

    def run(state: State) -> None:
        a, b, c = left(state), right(state), addend(state)
        more = carry(state) if carry is not None else _ZERO
        if (a is not None and not a.any() and a.size == 1) or (b is not None and not b.any() and b.size == 1):
            a = b = _ZERO
        if a is None or b is None or c is None or more is None:
            _put(state, target, None)
            if is_wide:
                _put(state, _next(target), None)
            return
        if is_wide or is_high:
            if is_unsigned:
                product = (a.astype(np.uint64) * b.astype(np.uint64)).astype(np.int64)
            else:
                product = _signed32(a) * _signed32(b)
            total = product + c
            if is_high:
                _put(state, target, total >> 32 & _MASK)
                return
            _put(state, target, total & _MASK)
            _put(state, _next(target), total >> 32 & _MASK)
            return
        _put(state, target, (a * b + c + more) & _MASK)

    return run


def _lea(item: Instruction) -> Step:
    opcode, operands = item.opcode, list(item.operands)
    target = operands.pop(0)
    carry_out = operands.pop(0) if operands and _is_predicate(operands[0]) else None
    carry = predicate(operands.pop()) if operands and _is_predicate(operands[-1]) and ".X" in opcode else None
    while operands and _is_predicate(operands[-1]):
        operands.pop()
    is_high, is_signed = ".HI" in opcode, ".SX32" in opcode
    try:
        shift = int(operands.pop(), 16)
    except (ValueError, IndexError):
        return _unknown(item)
    reads = [_operand(one) for one in operands]
    if len(reads) < 2:
        return _unknown(item)

    def run(state: State) -> None:
        values = [read(state) for read in reads]
        more = carry(state) if carry is not None else _ZERO
        if more is None or any(value is None for value in values):
            _put(state, target, None)
            if carry_out:
                _put(state, carry_out, None)
            return
        low, base = values[0], values[1]
        assert low is not None
        assert base is not None
        if is_signed:
            shifted = _signed32(low) >> (32 - shift) & _MASK
        elif is_high:
            high = values[2] if len(values) > 2 else _ZERO
            assert high is not None
            shifted = (high << shift | low >> (32 - shift)) & _MASK
        else:
            shifted = low << shift & _MASK
        total = shifted + base + more
        _put(state, target, total & _MASK)
        if carry_out:
            _put(state, carry_out, total >> 32 > 0)

    return run


def _shift(item: Instruction) -> Step:
    opcode = item.opcode
    target, *rest = item.operands
    if len(rest) < 3:
        return _unknown(item)
    low, by, high = (_operand(one) for one in rest[:3])
    left, takes_high = ".L" in opcode, ".HI" in opcode
    is_signed = ".S32" in opcode or ".S64" in opcode

    def run(state: State) -> None:
        a, n, b = low(state), by(state), high(state)
        if n is None or (a is None and b is None):
            _put(state, target, None)
            return
        count = np.minimum(n, 63)
        if not left and takes_high and b is not None and ".64" not in opcode and "64" not in opcode:
            # Of 32 bits: the value is the upper one.
            result = (_signed32(b) if is_signed else b) >> np.minimum(count, 32 if not is_signed else 31)
            _put(state, target, result & _MASK)
            return
        if a is None or b is None:
            _put(state, target, None)
            return
        if left:
            whole = b << 32 | a
            shifted = whole.astype(np.uint64) << count.astype(np.uint64)
        else:
            whole = (_signed32(b) if is_signed else b) << 32 | a
            shifted = whole >> count if is_signed else whole.astype(np.uint64) >> count.astype(np.uint64)
        shifted = shifted.astype(np.int64)
        _put(state, target, (shifted >> 32 if takes_high else shifted) & _MASK)

    return run


def _logic(item: Instruction) -> Step:
    operands = list(item.operands)
    before = operands.pop(0) if _is_predicate(operands[0]) else None
    target = operands.pop(0)
    table = next((int(one, 16) for one in reversed(operands) if one.startswith("0x")), None)
    reads = [_operand(one) for one in operands[:3]]
    if table is None or len(reads) < 3:
        return _unknown(item)

    def run(state: State) -> None:
        a, b, c = (read(state) for read in reads)
        result = _looked_up(table, a, b, c)
        _put(state, target, result)
        if before:
            _put(state, before, None if result is None else result != 0)

    return run


def _looked_up(table: int, a: Value, b: Value, c: Value) -> Value:
    # An operand that the table does not depend on need not be known.
    if table & 0x0F == table >> 4:
        a = _ZERO
    if table & 0x33 == table >> 2 & 0x33:
        b = _ZERO
    if table & 0x55 == table >> 1 & 0x55:
        c = _ZERO
    # A constant zero may decide the result.
    for value, zeros in ((a, table & 0x0F), (b, table & 0x33), (c, table & 0x55)):
        if value is not None and value.size == 1 and not value.any() and not zeros:
            return _ZERO
    if a is None or b is None or c is None:
        return None
    result: Any = 0
    for index in range(8):
        if table >> index & 1:
            term: Any = a if index & 4 else a ^ _MASK
            term = term & (b if index & 2 else b ^ _MASK)
            result = result | term & (c if index & 1 else c ^ _MASK)
    return np.asarray(result, np.int64) if not isinstance(result, int) else _ZERO


def _predicate_logic(item: Instruction) -> Step:
    operands = list(item.operands)
    first, second = operands.pop(0), operands.pop(0)
    tables = [int(one, 16) for one in operands if one.startswith("0x")]
    reads = [predicate(one) for one in operands if not one.startswith("0x")]
    if not tables or len(reads) < 3:
        return _unknown(item)

    def run(state: State) -> None:
        values = [None if (value := read(state)) is None else value * np.int64(_MASK) for read in reads[:3]]
        for name, table in zip((first, second), tables, strict=False):
            result = _looked_up(table, *values)
            _put(state, name, None if result is None else result != 0)

    return run


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
    "F": lambda a, b: np.zeros_like(a, np.bool_), "T": lambda a, b: np.ones_like(a, np.bool_),
}  # fmt: skip


def _compare(item: Instruction) -> Step:
    parts = item.opcode.split(".")
    operands = list(item.operands)
    first, second = operands.pop(0), operands.pop(0)
    left, right = _operand(operands[0]), _operand(operands[1])
    preds = [predicate(one) for one in operands[2:] if _is_predicate(one)]
    name = next((one for one in parts[1:] if one in _COMPARE), None)
    combine = next((one for one in parts[1:] if one in ("AND", "OR", "XOR")), "AND")
    if name is None or not preds:
        return _unknown(item)
    compare, is_unsigned, is_extended = _COMPARE[name], "U32" in parts, "EX" in parts

    def run(state: State) -> None:
        a, b = left(state), right(state)
        other = preds[0](state)
        if a is None or b is None:
            decided = other is not None and other.size == 1
            is_off = decided and ((combine == "AND" and not other.any()) or (combine == "OR" and other.all()))
            _put(state, first, other if is_off else None)
            _put(state, second, None)
            return
        if not is_unsigned:
            a, b = _signed32(a), _signed32(b)
        result = compare(a, b)
        if is_extended:
            low = preds[1](state) if len(preds) > 1 else _TRUE
            if low is None:
                result = None
            elif name == "NE":
                result = (a != b) | low
            elif name == "EQ":
                result = (a == b) & low
            else:
                strict = np.greater if name in ("GT", "GE") else np.less
                result = strict(a, b) | (a == b) & low
        _put(state, first, _combined(combine, result, other))
        _put(state, second, _combined(combine, None if result is None else ~result, other))

    return run


def _combined(how: str, result: Value, other: Value) -> Value:
    if result is None or other is None:
        return None
    return result & other if how == "AND" else result | other if how == "OR" else result ^ other


def _select(item: Instruction) -> Step:
    target, *rest = item.operands
    if len(rest) < 3:
        return _unknown(item)
    left, right, chosen = _operand(rest[0]), _operand(rest[1]), predicate(rest[2])

    def run(state: State) -> None:
        a, b, which = left(state), right(state), chosen(state)
        known = a is not None and b is not None and which is not None
        _put(state, target, np.where(which, a, b) if known else None)

    return run


def _extreme(item: Instruction) -> Step:
    target, *rest = item.operands
    which = predicate(rest[-1])
    reads = [_operand(one) for one in rest if not _is_predicate(one)]
    is_unsigned = ".U32" in item.opcode
    added = item.opcode.startswith("VIADDMNMX")

    def run(state: State) -> None:
        values = [read(state) for read in reads]
        chosen = which(state)
        if chosen is None or any(value is None for value in values):
            _put(state, target, None)
            return
        known = [value for value in values if value is not None]
        if added:
            known = [(known[0] + known[1]) & _MASK, *known[2:]]
        known = known if is_unsigned else [_signed32(value) for value in known]
        low, high = np.minimum(known[0], known[1]), np.maximum(known[0], known[1])
        _put(state, target, np.where(chosen, low, high) & _MASK)

    return run


def _moved(item: Instruction) -> Step:
    target, *rest = item.operands
    names = [one for one in rest if not _is_predicate(one)]
    read = _operand(names[0]) if names else None
    if read is None:
        return _unknown(item)
    return lambda state: _put(state, target, read(state))


def _zeros(item: Instruction) -> Step:
    target, source = item.operands[0], item.operands[-1]
    if source != "SRZ":
        return _unknown(item)

    def run(state: State) -> None:
        _put(state, target, _ZERO)
        if ".32" not in item.opcode:
            _put(state, _next(target), _ZERO)

    return run


def _stored(_: Instruction) -> Step:
    """Nothing is written to a register."""
    return lambda state: None


def _half_constants(item: Instruction) -> Step:
    """`HFMA2.MMA R10, -RZ, RZ, 0, -2`: a constant of two halves, made on the floating-point pipe."""
    target, *rest = item.operands
    if len(rest) != 4 or any(one.lstrip("-") != "RZ" for one in rest[:2]):
        return _unknown(item)
    try:
        high, low = (int(np.float16(float(one)).view(np.uint16)) for one in rest[2:])
    except ValueError:
        return _unknown(item)
    value = np.full((1, 1), high << 16 | low, np.int64)
    return lambda state: _put(state, target, value)


def _special(item: Instruction) -> Step:
    target, source = item.operands[0], item.operands[-1]
    return lambda state: _put(state, target, state.special.get(source))


def _loaded_constant(item: Instruction) -> Step:
    target, source = item.operands[0], item.operands[-1]
    match = _CONSTANT.search(source)
    if match is None:
        return _unknown(item)
    offset = int(match["offset"], 16)
    words = 4 if ".128" in item.opcode else 2 if ".64" in item.opcode else 1
    reads = [_constant(offset + 4 * number) for number in range(words)]
    width = next((int(one[1:]) for one in item.opcode.split(".") if one in ("U8", "U16")), 0)
    reads = [_constant(offset & ~3)] if width else reads

    def run(state: State) -> None:
        for number, read in enumerate(reads):
            value = read(state)
            if value is not None and width:
                value = value >> 8 * (offset & 3) & (1 << width) - 1
            _put(state, _next(target, number) if number else target, value)

    return run


def _extended(item: Instruction) -> Step:
    target, source, by = item.operands[:3]
    read, is_unsigned = _operand(source), ".U32" in item.opcode
    try:
        bits = int(by, 16)
    except ValueError:
        return _unknown(item)

    def run(state: State) -> None:
        value = read(state)
        if value is not None:
            value = value & (1 << bits) - 1
            value = value if is_unsigned else ((value ^ 1 << bits - 1) - (1 << bits - 1)) & _MASK
        _put(state, target, value)

    return run


def _permuted(item: Instruction) -> Step:
    target, first, chosen, second = item.operands[:4]
    reads = [_operand(first), _operand(second)]
    if "." in item.opcode:
        return _unknown(item)
    try:
        selector = int(chosen, 16)
    except ValueError:
        return _unknown(item)
    wanted = [selector >> 4 * place & 15 for place in range(4)]

    def run(state: State) -> None:
        sources = [read(state) for read in reads]
        if any(one & 8 or sources[one >> 2] is None for one in wanted):
            _put(state, target, None)
            return
        result: Any = 0
        for place, one in enumerate(wanted):
            value = sources[one >> 2]
            if value is not None:
                result = result | (value >> 8 * (one & 3) & 255) << 8 * place
        _put(state, target, result)

    return run


def _unary(item: Instruction) -> Step:
    target, source = item.operands[0], item.operands[-1]
    name, *how = item.opcode.split(".")
    read = _operand(source)

    def run(state: State) -> None:
        value = read(state)
        _put(state, target, None if value is None else _UNARY[name](value, how))

    return run


def _reciprocal(value: Array, how: list[str]) -> Value:
    if "RCP" not in how:
        return None
    number = value.astype(np.uint32).view(np.float32).astype(np.float64)
    with np.errstate(divide="ignore"):
        return (1 / number).astype(np.float32).view(np.uint32).astype(np.int64)


def _to_float(value: Array, how: list[str]) -> Value:
    if any(one in how for one in ("F64", "F16", "S64", "U64", "U16", "S16", "U8", "S8")):
        return None
    exact = (value if "U32" in how or "RP" in how else _signed32(value)).astype(np.float64)
    rounded = exact.astype(np.float32)
    if "RP" in how:
        rounded = np.where(rounded.astype(np.float64) < exact, np.nextafter(rounded, np.float32(np.inf)), rounded)
    return rounded.astype(np.float32).view(np.uint32).astype(np.int64)


def _to_integer(value: Array, how: list[str]) -> Value:
    if any(one in how for one in ("F64", "F16", "S64", "U64")):
        return None
    number = np.nan_to_num(value.astype(np.uint32).view(np.float32).astype(np.float64))
    limits = (0, _MASK) if "U32" in how else (-(1 << 31), (1 << 31) - 1)
    return np.clip(np.trunc(number), *limits).astype(np.int64) & _MASK


_UNARY: dict[str, Callable[[Array, list[str]], Value]] = {
    "IABS": lambda value, _: np.abs(_signed32(value)) & _MASK,
    "MUFU": _reciprocal,
    "I2F": _to_float,
    "I2FP": _to_float,
    "F2I": _to_integer,
}


def _from_lane(item: Instruction) -> Step:
    """R2UR, and SHFL.IDX from a lane that all share."""
    if item.opcode.startswith("R2UR"):
        target, read, _lane = item.operands[-2], _operand(item.operands[-1]), _ZERO
        names: list[str] = []
    else:
        operands = list(item.operands)
        names = [operands.pop(0)] if _is_predicate(operands[0]) else []
        target, read = operands[0], _operand(operands[1])
        if ".IDX" not in item.opcode or operands[2] not in ("RZ", "0x0"):
            return _unknown(item)

    def run(state: State) -> None:
        value = read(state)
        _put(state, target, None if value is None else value[:, :1])
        for name in names:
            _put(state, name, _TRUE)

    return run


def _elected(item: Instruction) -> Step:
    def run(state: State) -> None:
        lanes = np.arange(state.lanes)[None, :] == 0
        for name in item.operands:
            if _is_predicate(name) and name not in ("PT", "UPT"):
                state.registers[name] = lanes
                break

    return run


def _voted(item: Instruction) -> Step:
    """Whether any lane, or all lanes, hold a predicate."""
    outs = [one for one in item.operands if _is_predicate(one)]
    numbers = [one for one in item.operands if not _is_predicate(one)]
    if len(outs) < 2:
        return _unknown(item)
    target, source = outs[0], predicate(outs[-1])
    how = np.all if ".ALL" in item.opcode else np.any

    def run(state: State) -> None:
        value = source(state)
        _put(state, target, None if value is None else how(value, axis=1, keepdims=True))
        for name in numbers:
            _put(state, name, None)

    return run


def _packed_predicates(item: Instruction) -> Step:
    operands = item.operands
    mask = next((int(one, 16) for one in operands if one.startswith("0x")), None)
    if mask is None:
        return _unknown(item)
    if item.opcode.startswith("P2R"):
        place = 8 * int(item.opcode[-1]) if ".B" in item.opcode else 0
        target, rest = operands[0], _operand(operands[2])

        def pack(state: State) -> None:
            value = rest(state)
            chosen = [(n, state.registers.get(f"P{n}")) for n in range(7) if mask >> n & 1]
            if value is None or any(one is None for _, one in chosen):
                _put(state, target, None)
                return
            value = value & ~(mask << place) & _MASK
            for number, one in chosen:
                if one is not None:
                    value = value | one.astype(np.int64) << (number + place)
            _put(state, target, value)

        return pack
    source, _, part = operands[1].removesuffix(".reuse").partition(".B")
    read, shift = _operand(source), 8 * int(part) if part.isdecimal() else 0

    def unpack(state: State) -> None:
        value = read(state)
        for number in range(7):
            if mask >> number & 1:
                _put(state, f"P{number}", None if value is None else value >> (number + shift) & 1 != 0)

    return unpack


def _loaded(item: Instruction) -> Step:
    """A load of data: a small number that its address decides, in place of what is not known.

    So lanes that read one index get one, and what they address by it lies together. The walker marks what comes of it:
    it decides no branch.
    """
    names = [name for name in item.writes if not name.startswith("P")]
    address = next((found for one in item.operands if (found := address_of(one)) is not None), None)
    if address is None or not names:
        return _unknown(item)
    is_wide = ".64" in item.opcode

    def run(state: State) -> None:
        value = address.value(state)
        for number, name in enumerate(names):
            if value is None:
                state.registers[name] = None
            elif is_wide and number % 2:
                state.registers[name] = _ZERO
            else:
                state.registers[name] = ((value >> 2) + number) * 40503 >> 5 & 1023

    return run


def _spilled(item: Instruction) -> Step:
    """A store to local memory, or a load of it: the places are named by their text, as the stack stays where it is."""
    is_store = item.opcode.startswith("STL")
    operands = item.operands if is_store else item.operands[::-1]
    match = _ADDRESS.search(operands[0])
    words = 4 if ".128" in item.opcode else 2 if ".64" in item.opcode else 1
    if match is None or "." in match["inside"] or any(one in item.opcode for one in (".U8", ".S8", ".U16", ".S16")):
        return _unknown(item)
    base, _, offset = match["inside"].partition("+")
    start = int(offset, 16) if offset.lstrip("-").startswith("0x") else 0
    names = [_next(operands[1], number) if number else operands[1] for number in range(words)]
    places = [f"[{base}+{start + 4 * number}]" for number in range(words)]

    def run(state: State) -> None:
        for name, place in zip(names, places, strict=True):
            if is_store:
                state.registers[place] = _ZERO if name == "RZ" else state.registers.get(name)
            else:
                _put(state, name, state.registers.get(place))

    return run


def _unknown(item: Instruction) -> Step:
    """Whatever it writes is not known."""
    names = item.writes

    def run(state: State) -> None:
        for name in names:
            state.registers[name] = None

    return run


def _waited(item: Instruction) -> Step:
    """A wait for a phase, which ends here at once: how long it takes is the clock's matter."""
    target = item.operands[0]
    return lambda state: _put(state, target, _TRUE)


_STEPS: dict[str, Callable[[Instruction], Step]] = {
    **dict.fromkeys(("IADD3", "UIADD3", "VIADD", "IADD"), _sum),
    **dict.fromkeys(("IMAD", "UIMAD"), _multiply),
    **dict.fromkeys(("LEA", "ULEA"), _lea),
    **dict.fromkeys(("SHF", "USHF"), _shift),
    **dict.fromkeys(("LOP3", "ULOP3"), _logic),
    **dict.fromkeys(("PLOP3", "UPLOP3"), _predicate_logic),
    **dict.fromkeys(("ISETP", "UISETP"), _compare),
    **dict.fromkeys(("SEL", "USEL"), _select),
    **dict.fromkeys(("VIMNMX", "IMNMX", "VIADDMNMX", "UIMNMX", "UVIMNMX"), _extreme),
    **dict.fromkeys(("MOV", "UMOV"), _moved),
    "CS2R": _zeros,
    **dict.fromkeys(("LDG", "LD"), _loaded),
    **dict.fromkeys(("LDGSTS", "STG", "ST", "STS", "STSM", "RED", "BAR", "UTMALDG", "UTMASTG", "LDGDEPBAR"), _stored),
    "HFMA2": _half_constants,
    **dict.fromkeys(("S2R", "S2UR"), _special),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), _loaded_constant),
    **dict.fromkeys(("SGXT", "USGXT"), _extended),
    **dict.fromkeys(("PRMT", "UPRMT"), _permuted),
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(("R2UR", "SHFL"), _from_lane),
    "ELECT": _elected,
    **dict.fromkeys(("VOTE", "VOTEU"), _voted),
    **dict.fromkeys(("P2R", "R2P"), _packed_predicates),
    **dict.fromkeys(("STL", "LDL"), _spilled),
}


def compiled(item: Instruction) -> Step:
    """What an instruction does to the registers, its own predicate included. Never raises for a form not known."""
    base = item.opcode.partition(".")[0]
    if base == "SYNCS" and "TRYWAIT" in item.opcode:
        return _waited(item)
    try:
        step = _STEPS[base](item) if base in _STEPS else _unknown(item)
    except (IndexError, ValueError):
        step = _unknown(item)
    if item.predicate in ("", "@PT", "@UPT"):
        return step
    return _predicated(step, predicate(item.predicate), item)


def _predicated(step: Step, holds: Read, item: Instruction) -> Step:
    names = item.writes

    def run(state: State) -> None:
        condition = holds(state)
        if condition is not None and condition.all():
            step(state)
            return
        if condition is not None and not condition.any():
            return
        before = [state.registers.get(name) for name in names]
        step(state)
        for name, old in zip(names, before, strict=True):
            new = state.registers.get(name)
            if condition is None or new is None:
                state.registers[name] = None
            elif old is not None:
                state.registers[name] = np.where(condition, new, old)
            # Else nothing is known of the other lanes, and they take this value too: an elected lane's is read alone.

    return run

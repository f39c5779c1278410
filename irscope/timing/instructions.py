"""What each instruction of SASS does to the registers: moves, conversions, lanes, loads; arithmetic stands apart."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.operands import SASS_CONSTANT
from irscope.timing.arithmetic import ARITHMETIC, is_predicate, put, unknown
from irscope.timing.floats import FLOATS, compared_with_limits, float_bits, float_value, rounding
from irscope.timing.local_and_shared import matrices_step, shared_step, spilled_step, spilled_words
from irscope.timing.scalars import (
    ARRAY_BITS,
    MASK,
    TRUE,
    ZERO,
    Array,
    Read,
    State,
    Step,
    Value,
    address_of,
    constant,
    guess_of,
    mixed,
    next_register,
    operand,
    predicate,
    signed32,
    wide,
    width_of,
)  # fmt: skip

__all__ = ["compiled"]


def _moved(item: Instruction) -> Step:
    target, *rest = item.operands
    names = [one for one in rest if not is_predicate(one)]
    read = operand(names[0]) if names else None
    if read is None:
        return unknown(item)
    return lambda state: put(state, target, read(state))


def _zeros(item: Instruction) -> Step:
    target, source = item.operands[0], item.operands[-1]
    if source != "SRZ":
        return unknown(item)

    def run(state: State) -> None:
        put(state, target, ZERO)
        if ".32" not in item.opcode:
            put(state, next_register(target), ZERO)

    return run


def _stored(_: Instruction) -> Step:
    """Nothing is written to a register."""
    return lambda state: None


def _half_constants(item: Instruction) -> Step:
    """`HFMA2.MMA R10, -RZ, RZ, 0, -2`: a constant of two halves, made on the floating-point pipe."""
    target, *rest = item.operands
    if len(rest) != 4 or any(one.lstrip("-") != "RZ" for one in rest[:2]):
        return unknown(item)
    try:
        high, low = (int(np.float16(float(one)).view(np.uint16)) for one in rest[2:])
    except ValueError:
        return unknown(item)
    value = np.full((1, 1), high << 16 | low, np.int64)
    return lambda state: put(state, target, value)


def _special(item: Instruction) -> Step:
    target, source = item.operands[0], item.operands[-1]
    return lambda state: put(state, target, state.special.get(source))


_TABLES = "c[0x2]["
"""The constant bank of jump tables: `c[0x2][UR4]`, `c[0x2][R2+0x18]`."""


def _loaded_constant(item: Instruction) -> Step:
    target, source = item.operands[0], item.operands[-1]
    match = SASS_CONSTANT.search(source)
    if match is None and source.startswith(_TABLES):
        return _numbered(target, operand(source.removeprefix(_TABLES).rstrip("]").partition("+")[0]))
    if match is None or int(match["bank"], 16):
        return unknown(item)
    offset = int(match["offset"], 16)
    words = 4 if ".128" in item.opcode else 2 if ".64" in item.opcode else 1
    reads = [constant(offset + 4 * number) for number in range(words)]
    width = next((int(one[1:]) for one in item.opcode.split(".") if one in ("U8", "U16")), 0)
    reads = [constant(offset & ~3)] if width else reads

    def run(state: State) -> None:
        for number, read in enumerate(reads):
            value = read(state)
            if value is not None and width:
                value = value >> 8 * (offset & 3) & (1 << width) - 1
            put(state, next_register(target, number) if number else target, value)

    return run


def _numbered(target: str, read: Read) -> Step:
    """An entry of a jump table: its number stands for the distance that it holds."""

    def run(state: State) -> None:
        value = read(state)
        put(state, target, None if value is None else value >> 2)

    return run


def _extended(item: Instruction) -> Step:
    target, source, by = item.operands[:3]
    read, is_unsigned = operand(source), ".U32" in item.opcode
    try:
        bits = int(by, 16)
    except ValueError:
        return unknown(item)

    def run(state: State) -> None:
        value = read(state)
        if value is not None:
            value = value & (1 << bits) - 1
            value = value if is_unsigned else ((value ^ 1 << bits - 1) - (1 << bits - 1)) & MASK
        put(state, target, value)

    return run


def _permuted(item: Instruction) -> Step:
    target, first, chosen, second = item.operands[:4]
    reads = [operand(first), operand(second)]
    if "." in item.opcode:
        return unknown(item)
    try:
        selector = int(chosen, 16)
    except ValueError:
        return unknown(item)
    wanted = [selector >> 4 * place & 15 for place in range(4)]

    def run(state: State) -> None:
        sources = [read(state) for read in reads]
        if any(sources[one >> 2 & 1] is None for one in wanted):
            put(state, target, None)
            return
        result: Any = 0
        for place, one in enumerate(wanted):
            value = sources[one >> 2 & 1]
            if value is not None:
                byte = value >> 8 * (one & 3) & 255
                # The highest bit of a selector asks for copies of the byte's sign.
                result = result | ((byte >> 7) * 255 if one & 8 else byte) << 8 * place
        put(state, target, result)

    return run


def _unary(item: Instruction) -> Step:
    target, source = item.operands[0], item.operands[-1]
    name, *how = item.opcode.split(".")
    read = operand(source)

    def run(state: State) -> None:
        value = read(state)
        put(state, target, None if value is None else _UNARY[name](value, how))

    return run


def _reciprocal(value: Array, how: list[str]) -> Value:
    if "RCP" not in how:
        return None
    with np.errstate(divide="ignore"):
        return float_bits(1 / float_value(value))


def _to_float(value: Array, how: list[str]) -> Value:
    if any(one in how for one in ("F64", "F16", "S64", "U64", "U16", "S16", "U8", "S8")):
        return None
    exact = (value if "U32" in how or "RP" in how else signed32(value)).astype(np.float64)
    rounded = exact.astype(np.float32)
    if "RP" in how:
        rounded = np.where(rounded.astype(np.float64) < exact, np.nextafter(rounded, np.float32(np.inf)), rounded)
    return float_bits(rounded)


def _to_integer(value: Array, how: list[str]) -> Value:
    if any(one in how for one in ("F64", "F16", "S64", "U64")):
        return None
    number = np.nan_to_num(float_value(value))
    limits = (0, MASK) if "U32" in how else (-(1 << 31), (1 << 31) - 1)
    return np.clip(rounding(how)(number), *limits).astype(np.int64) & MASK


_UNARY: dict[str, Callable[[Array, list[str]], Value]] = {
    "IABS": lambda value, _: np.abs(signed32(value)) & MASK,
    "MUFU": _reciprocal,
    **dict.fromkeys(("I2F", "I2FP"), _to_float),
    "F2I": _to_integer,
}


def _from_integer(item: Instruction) -> Step:
    """I2F, of one register or, `.U64`, of two: the estimate that a division in 64 bits begins with."""
    if ".U64" not in item.opcode:
        return _unary(item)
    target, source = item.operands
    read = wide(source)

    def run(state: State) -> None:
        value = read(state)
        if value is not None:
            exact = value.astype(np.uint64)
            rounded = exact.astype(np.float32)
            is_less = rounded.astype(np.float64).clip(0, _MOST_OF_64).astype(np.uint64) < exact
            rounded = np.where(is_less & (".RP" in item.opcode), np.nextafter(rounded, np.float32(np.inf)), rounded)
            value = float_bits(rounded)
        put(state, target, value)

    return run


def _from_float(item: Instruction) -> Step:
    """F2I, to one register or, `.U64`, to two."""
    if ".U64" not in item.opcode:
        return _unary(item)
    target, read = item.operands[0], operand(item.operands[1])
    rounded = rounding(item.opcode.split("."))

    def run(state: State) -> None:
        bits = read(state)
        value = None
        if bits is not None:
            value = rounded(np.nan_to_num(float_value(bits))).clip(0, _MOST_OF_64).astype(np.uint64)
        put(state, target, None if value is None else (value & np.uint64(MASK)).astype(np.int64))
        put(state, next_register(target), None if value is None else (value >> np.uint64(32)).astype(np.int64))

    return run


_MOST_OF_64 = float((1 << 64) - (1 << 11))
"""The largest float64 below 2**64."""


def _from_lane(item: Instruction) -> Step:
    """R2UR, and SHFL.IDX from a lane that all share."""
    if item.opcode.startswith("R2UR"):
        target, read, _lane = item.operands[-2], operand(item.operands[-1]), ZERO
        names: list[str] = []
    else:
        operands = list(item.operands)
        names = [operands.pop(0)] if is_predicate(operands[0]) else []
        target, read = operands[0], operand(operands[1])
        if ".IDX" not in item.opcode or operands[2] not in ("RZ", "0x0"):
            return unknown(item)

    def run(state: State) -> None:
        value = read(state)
        put(state, target, None if value is None else value[:, :1])
        for name in names:
            put(state, name, TRUE)

    return run


def _elected(item: Instruction) -> Step:
    def run(state: State) -> None:
        lanes = np.arange(state.lanes)[None, :] == 0
        for name in item.operands:
            if is_predicate(name) and name not in ("PT", "UPT"):
                state.registers[name] = lanes
                break

    return run


def _voted(item: Instruction) -> Step:
    """Whether any lane, or all lanes, hold a predicate."""
    outs = [one for one in item.operands if is_predicate(one)]
    numbers = [one for one in item.operands if not is_predicate(one)]
    if len(outs) < 2:
        return unknown(item)
    target, source = outs[0], predicate(outs[-1])
    how = np.all if ".ALL" in item.opcode else np.any

    def run(state: State) -> None:
        value = source(state)
        put(state, target, None if value is None else how(value, axis=1, keepdims=True))
        for name in numbers:
            put(state, name, None)

    return run


def _packed_predicates(item: Instruction) -> Step:
    operands = item.operands
    mask = next((int(one, 16) for one in operands if one.startswith("0x")), None)
    if mask is None:
        return unknown(item)
    # Those of all lanes at once are `UP0` to `UP6`.
    kind = "UP" if item.opcode.startswith(("UP2UR", "UR2UP")) else "P"
    if item.opcode.startswith(("P2R", "UP2UR")):
        place = 8 * int(item.opcode[-1]) if ".B" in item.opcode else 0
        target, rest = operands[0], operand(operands[2])

        def pack(state: State) -> None:
            value = rest(state)
            chosen = [(n, state.registers.get(f"{kind}{n}")) for n in range(7) if mask >> n & 1]
            if value is None or any(one is None for _, one in chosen):
                put(state, target, None)
                return
            value = value & ~(mask << place) & MASK
            for number, one in chosen:
                if one is not None:
                    value = value | one.astype(np.int64) << (number + place)
            put(state, target, value)

        return pack
    source, _, part = operands[1].removesuffix(".reuse").partition(".B")
    read, shift = operand(source), 8 * int(part) if part.isdecimal() else 0

    def unpack(state: State) -> None:
        value = read(state)
        for number in range(7):
            if mask >> number & 1:
                put(state, f"{kind}{number}", None if value is None else value >> (number + shift) & 1 != 0)

    return unpack


_VALUES = 1024
"""Different values of a load whose use does not tell more."""


_UNIFORM = "loaded numbers that indices are computed of are assumed uniform between 0 and 1"


def _loaded(item: Instruction) -> Step:
    """A load of data: what the capture holds, or a random number that its address decides.

    So lanes that read one index get one. What comes of such a number is marked: it decides no branch.
    """
    names = [name for name in item.writes if not name.startswith("P")]
    address = next((found for one in item.operands if (found := address_of(one)) is not None), None)
    if address is None or not names:
        return unknown(item)
    width = width_of(item.opcode)
    sign = 1 << 8 * width - 1 if ".S8" in item.opcode or ".S16" in item.opcode else 0

    def run(state: State) -> None:
        value, assumed = address.value(state), state.assumed
        if value is not None and (words := assumed.held(value, width)) is not None:
            for name, word in zip(names, words, strict=False):
                state.registers[name] = (word ^ sign) - sign & MASK
                state.data[name] = address.origins(state)
            return
        origins = frozenset((item.offset,))
        values = assumed.ranges.get(item.offset, _VALUES)
        array = int(value.flat[0] >> ARRAY_BITS) if value is not None else -1
        is_wide, is_float = array in assumed.wide, array in assumed.floats
        size = 8 if is_wide else 4
        for number, name in enumerate(names):
            if value is None:
                state.registers[name] = None
            elif is_wide and number % 2:
                state.registers[name] = ZERO
            elif is_float:
                state.registers[name] = float_bits(mixed((value >> 2) + number) / (1 << 31))
                assumed.origins[item.offset] = _UNIFORM
            elif assumed.value is not None:
                state.registers[name] = np.full_like(value, assumed.value)
            elif assumed.rises(item.offset, value, size, state.lanes):
                first = value & (1 << ARRAY_BITS) - 1
                rows = max(assumed.array_bytes[array] // size - (item.offset in assumed.adjacent), 1)
                state.registers[name] = first // size * values // rows
            else:
                state.registers[name] = mixed((value >> 2) + number) % values
        for name in names:
            if item.offset in assumed.rising:
                state.data.pop(name, None)
            else:
                state.data[name] = origins

    return run


def _granted(item: Instruction) -> Step:
    """A request for registers or for tensor memory, which is granted at once."""
    names = item.writes

    def run(state: State) -> None:
        for name in names:
            put(state, name, TRUE if is_predicate(name) else ZERO)

    return run


def _waited(item: Instruction) -> Step:
    """A wait for a phase, which ends here at once: how long it takes is the clock's matter."""
    target = item.operands[0]
    return lambda state: put(state, target, TRUE)


def _copied(item: Instruction) -> Step:
    """An asynchronous copy to shared memory of integers that the capture holds."""
    places = [address_of(one) for one in item.operands if "[" in one]
    masks = [predicate(one) for one in (item.predicate, item.operands[-1]) if one.lstrip("@!").startswith(("P", "UP"))]
    width = width_of(item.opcode)

    def run(state: State) -> None:
        target, source = (place.value(state) if place is not None else None for place in (places[0], places[-1]))
        if state.shared is None or target is None or source is None:
            return
        words = state.assumed.held(source, width)
        mask: Value = TRUE
        for read in masks:
            mask = None if mask is None or (value := read(state)) is None else mask & value
        if words is not None:
            state.shared.store(state.special["SHARED"], target, words, mask, frozenset())

    return run


_STEPS: dict[str, Callable[[Instruction], Step]] = {
    **ARITHMETIC,
    **dict.fromkeys(("MOV", "UMOV"), _moved),
    "CS2R": _zeros,
    **dict.fromkeys(("LDG", "LD"), _loaded),
    **dict.fromkeys(("STS", "LDS"), shared_step),
    "LDSM": matrices_step,
    "LDGSTS": _copied,
    **dict.fromkeys(("STG", "ST", "STSM", "RED", "BAR", "UTMALDG", "UTMASTG", "LDGDEPBAR"), _stored),
    "HFMA2": _half_constants,
    **dict.fromkeys(("S2R", "S2UR"), _special),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), _loaded_constant),
    **dict.fromkeys(("SGXT", "USGXT"), _extended),
    **dict.fromkeys(("PRMT", "UPRMT"), _permuted),
    **dict.fromkeys(_UNARY, _unary),
    "FSETP": compared_with_limits,
    "I2F": _from_integer,
    "F2I": _from_float,
    **dict.fromkeys(("R2UR", "SHFL"), _from_lane),
    "ELECT": _elected,
    **dict.fromkeys(("VOTE", "VOTEU"), _voted),
    **dict.fromkeys(("P2R", "R2P", "UP2UR", "UR2UP"), _packed_predicates),
    **dict.fromkeys(("STL", "LDL"), spilled_step),
    **dict.fromkeys(("USETMAXREG", "UTCATOMSWS"), _granted),
}


def compiled(item: Instruction, is_index: bool = False) -> Step:
    """What an instruction does to the registers, its own predicate included. Never raises for a form not known.

    `is_index`: whether a float that it gives becomes an index.
    """
    base = item.opcode.partition(".")[0]
    if base == "SYNCS" and "TRYWAIT" in item.opcode:
        return _waited(item)
    try:
        made = FLOATS.get(base) if is_index else None
        made = made or _STEPS.get(base, unknown)
        step = made(item)
    except (IndexError, ValueError):
        step = unknown(item)
    if item.predicate in ("", "@PT", "@UPT"):
        return step
    return _predicated(step, predicate(item.predicate), item)


def _predicated(step: Step, holds: Read, item: Instruction) -> Step:
    names = [*item.writes, *(place for _, place in (spilled_words(item) if item.opcode.startswith("STL") else ()))]
    # A predicated move selects, as SEL does: IMAD.MOV is one.
    is_moved, guess = item.opcode.partition(".")[0] in ("SEL", "MOV", "IMAD"), guess_of(item.predicate)

    def run(state: State) -> None:
        condition = holds(state)
        if condition is None and is_moved:
            condition = guess(state)
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

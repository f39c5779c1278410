"""What PTX instructions on integers compute, for all threads of a CTA at once.

Registers are 64-bit integers: signed where the last instruction that wrote one was of a signed type. Source: "PTX ISA",
chapter 9.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from irscope.machine.elementwise import high_product_signed, high_product_unsigned, set_bits
from irscope.machine.values import COMPARISONS

_Integers = NDArray[np.int64]
_WARP, _WAVE = 32, 64


def computed(name: str, suffixes: list[str], operands: Sequence[_Integers]) -> _Integers | None:
    """What an instruction makes of its operands; None for one that is not computed, such as those on floats.

    An operand is a value for each thread, or a single one for all of them.
    """
    function = _FUNCTIONS.get(name)
    if function is None or (name not in ("mov", "selp") and any(_is_float(suffix) for suffix in suffixes)):
        return None
    try:
        made = function(suffixes, list(operands))
    except (IndexError, ValueError, KeyError):
        return None
    if made is None:
        return None
    if name == "setp" or suffixes[-1] == "pred":
        return (made != 0).astype(np.int64)
    return cut(made, suffixes[0] if name == "cvt" else suffixes[-1], wide="wide" in suffixes)


def _is_float(suffix: str) -> bool:
    return suffix.startswith(("f16", "f32", "f64", "bf16", "tf32", "e4m3", "e5m2", "ue8m0"))


def cut(values: _Integers, kind: str, *, wide: bool) -> _Integers:
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
    return cut(values, suffixes[-1], wide=False)


def _multiplied(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    one, two = (_signed(part, suffixes) for part in parts[:2])
    if "hi" not in suffixes:
        return one * two
    bits = _bits(suffixes)
    if bits <= 32:
        return one * two >> bits
    return high_product_signed(one, two) if suffixes[-1].startswith("s") else high_product_unsigned(one, two)


def _shifted_right(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    by = np.minimum(parts[1], 63)
    if suffixes[-1].startswith("s"):
        return _signed(parts[0], suffixes) >> by
    return (_unsigned(parts[0], _bits(suffixes)).astype(np.uint64) >> by.astype(np.uint64)).astype(np.int64)


def _looked_up(_: list[str], parts: list[_Integers]) -> _Integers:
    """lop3: any function of three bits, by its table of truth."""
    one, two, three, table = parts
    result = np.zeros_like(one)
    for row in range(8):
        if int(table[0]) >> row & 1:
            terms = (one if row & 4 else ~one, two if row & 2 else ~two, three if row & 1 else ~three)
            result |= terms[0] & terms[1] & terms[2]
    return result


def _reversed(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    """brev: the bits in the other order."""
    last = _bits(suffixes) - 1
    made = np.zeros_like(parts[0])
    for bit in range(last + 1):
        made |= (parts[0] >> bit & 1) << (last - bit)
    return made


def _extracted(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    length = np.minimum(parts[2], 62)
    field = (_unsigned(parts[0], _bits(suffixes)) >> parts[1]) & ((1 << length) - 1)
    if suffixes[-1].startswith("s"):
        return field - ((field >> np.maximum(length - 1, 0) & 1) << length)
    return field


def _inserted(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    """bfi: the low bits of the first operand in place of a field of the second."""
    field = ((1 << np.minimum(parts[3], 62)) - 1) << np.minimum(parts[2], 62)
    return (parts[1] & ~field) | ((parts[0] << np.minimum(parts[2], 62)) & field)


def _divided(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    one, two = (_signed(part, suffixes) for part in parts)
    two = np.where(two == 0, 1, two)
    quotient = np.abs(one) // np.abs(two)
    return np.where((one < 0) != (two < 0), -quotient, quotient)


def _remainder(suffixes: list[str], parts: list[_Integers]) -> _Integers:
    return _signed(parts[0], suffixes) - _divided(suffixes, parts) * _signed(parts[1], suffixes)


def _permuted(suffixes: list[str], parts: list[_Integers]) -> _Integers | None:
    """prmt.b32: four bytes, chosen of the eight of two operands; the fourth bit of a choice takes the sign for all."""
    if suffixes != ["b32"]:
        return None
    both = _unsigned(parts[0], 32) | (_unsigned(parts[1], 32) << 32)
    result = np.zeros_like(both)
    for byte in range(4):
        chosen = (both >> 8 * (parts[2] >> 4 * byte & 7)) & 255
        is_sign = (parts[2] >> 4 * byte & 8) != 0
        result |= np.where(is_sign, (chosen >> 7) * 255, chosen) << 8 * byte
    return result


_COMPARED: Mapping[str, Callable[[_Integers, _Integers], NDArray[np.bool_]]] = {
    **COMPARISONS, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _comparison(suffixes: list[str], parts: list[_Integers]) -> _Integers | None:
    if len(suffixes) > 2 or suffixes[-1].startswith("f"):
        return None
    one, two = (_signed(part, suffixes) for part in parts[:2])
    return _COMPARED[suffixes[0]](one, two).astype(np.int64)


def _shuffled(suffixes: list[str], parts: list[_Integers]) -> _Integers | None:
    """shfl.sync: the value of another lane of the warp."""
    value, by = parts[0], parts[1]
    if len(value) % _WARP:
        return None
    threads = np.arange(len(value))
    lane, warp = threads % _WARP, threads // _WARP * _WARP
    sources = {"idx": by % _WARP, "bfly": lane ^ by, "up": lane - by, "down": lane + by}
    source = next((lanes for mode, lanes in sources.items() if mode in suffixes), lane)
    return value[warp + np.where((source >= 0) & (source < _WARP), source, lane)]


def _read_of_lane(_: list[str], parts: list[_Integers]) -> _Integers:
    """`readlane`, as AMD GPUs have it: the value of one lane, in all threads of a wave of 64."""
    threads = np.arange(len(parts[0]))
    return parts[0][np.minimum(threads // _WAVE * _WAVE + parts[1], len(threads) - 1)]


_FUNCTIONS: Mapping[str, Callable[[list[str], list[_Integers]], _Integers | None]] = {
    "mov": lambda _, parts: parts[0],
    "cvt": lambda suffixes, parts: cut(parts[0], suffixes[-1], wide=False),
    "cvta": lambda _, parts: parts[0],
    "add": lambda _, parts: parts[0] + parts[1],
    "sub": lambda _, parts: parts[0] - parts[1],
    "neg": lambda _, parts: -parts[0],
    "mul": _multiplied,
    "mad": lambda suffixes, parts: _multiplied(suffixes, parts) + parts[2],
    "min": lambda suffixes, parts: np.minimum(*(_signed(part, suffixes) for part in parts)),
    "max": lambda suffixes, parts: np.maximum(*(_signed(part, suffixes) for part in parts)),
    "shl": lambda _, parts: np.where(parts[1] < 64, parts[0] << np.minimum(parts[1], 63), 0),
    "shr": _shifted_right,
    "and": lambda _, parts: parts[0] & parts[1],
    "or": lambda _, parts: parts[0] | parts[1],
    "xor": lambda _, parts: parts[0] ^ parts[1],
    "not": lambda suffixes, parts: (parts[0] == 0).astype(np.int64) if suffixes[-1] == "pred" else ~parts[0],
    "lop3": _looked_up,
    "popc": lambda suffixes, parts: set_bits(_unsigned(parts[0], _bits(suffixes))),
    "brev": _reversed,
    "bfe": _extracted,
    "setp": _comparison,
    "div": _divided,
    "rem": _remainder,
    "bfi": _inserted,
    "prmt": _permuted,
    "abs": lambda suffixes, parts: np.abs(_signed(parts[0], suffixes)),
    "selp": lambda _, parts: np.where(parts[2] != 0, parts[0], parts[1]),
    "shfl": _shuffled,
    "readlane": _read_of_lane,
}
"""Instruction → what it makes of its operands, before that is cut to its type."""


ATOMICS: Mapping[str, Callable[..., int]] = {
    "add": operator.add, "exch": lambda old, value: value, "max": max, "min": min, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor, "cas": lambda old, expected, value: value if old == expected else old,
}  # fmt: skip

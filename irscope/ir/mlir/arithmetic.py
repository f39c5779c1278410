"""What the IR of a kernel says of its precision: whether inputs are read as TF32, and whether it rounds between."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from irscope.ir.mlir.model import Operation, Value
from irscope.ir.mlir.reader import parse_mlir

__all__ = ["Arithmetic", "read_arithmetic"]

_MOVES = frozenset({
    "tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.trans", "tt.splat", "tt.join", "tt.split", "tt.cat",
    "ttg.convert_layout", "ttg.local_alloc", "ttg.local_load", "ttg.memdesc_trans", "arith.extf",
})  # fmt: skip
"""What hands values on without rounding them."""
_LOADS = ("tt.load", "tt.descriptor_load", "ttng.async_tma_copy_global_to_local")
_STORES = ("tt.store", "tt.descriptor_store")
_DOTS = ("tt.dot", "ttng.warp_group_dot")
_SMOOTH = frozenset({
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.maximumf", "arith.minimumf",
    "arith.maxnumf", "arith.minnumf", "arith.sitofp", "arith.uitofp", "math.exp", "math.exp2", "math.log", "math.log2",
    "math.sqrt", "math.rsqrt", "math.sin", "math.cos", "math.erf", "math.tanh", "math.absf", "math.fma",
    "tt.precise_sqrt", "tt.precise_divf", "tt.approx_divf", "tt.clampf",
})  # fmt: skip
"""Functions of floats whose result moves little where their operands do."""
_OTHER = frozenset({
    "builtin.module", "module", "tt.func", "tt.return", "tt.reduce", "tt.reduce.return", "tt.make_range", "tt.addptr",
    "tt.get_program_id", "tt.get_num_programs", "tt.make_tensor_descriptor", "scf.for", "scf.if", "scf.yield",
    "arith.select", "tt.int_to_ptr", "tt.ptr_to_int",
})  # fmt: skip
# arith.addi   arith.cmpi   arith.extsi   arith.index_cast   arith.constant, but not arith.cmpf or arith.fptosi
_OF_INTEGERS = re.compile(r"arith\.(?:\w+i|\w+[su]i|index_castu?|trunci|constant)$")
# : tensor<64x64xbf16   : f16
_NARROW = re.compile(r"(?:x|: )(?:bf16|f16|f8\w*|f4\w*)\b")
# tensor<64x32xf32> * !ttg.memdesc<32x64xf32, #shared, …
_ELEMENTS = re.compile(r"<(?:\d{1,9}x){1,8}(\w+)[,>]")
_TF32 = re.compile(r"inputPrecision = tf32\b")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The precision of a kernel's arithmetic."""

    reads_tf32: bool = False
    """Whether a dot reads float32 as TF32, which drops the last 13 bits."""
    rounds_between: bool = True
    """Whether a result may jump where a sum is done in another order: something between the inputs and the stores is
    rounded to a narrow format, compared, or not known."""


def read_arithmetic(text: str) -> Arithmetic:
    """The arithmetic of a TTIR or TTGIR module; never raises: of what cannot be read nothing is known."""
    operations = list(parse_mlir(text).walk())
    users: dict[Value, list[Operation]] = defaultdict(list)
    makers: dict[Value, Operation] = {}
    for operation in operations:
        makers.update(dict.fromkeys(operation.results, operation))
        for operand in operation.operands:
            users[operand].append(operation)
    dots = [operation for operation in operations if operation.name in _DOTS]
    tf32 = [dot for dot in dots if _TF32.search(dot.text) and _reads_float32(dot)]
    from_memory = all(_is_loaded(operand, makers) for dot in tf32 for operand in dot.operands[:2])
    smooth = bool(operations) and all(_is_smooth(operation, users) for operation in operations)
    return Arithmetic(bool(tf32), not (from_memory and smooth))


def _is_smooth(operation: Operation, users: Mapping[Value, Sequence[Operation]]) -> bool:
    """Whether what an operation makes moves little where what it reads does."""
    name = operation.name
    if name == "arith.truncf":
        return _is_stored(operation.results, users)
    if name in _SMOOTH:
        # Arithmetic in a narrow format rounds each result to it.
        return not _NARROW.search(operation.text)
    if name in _DOTS:
        return not _NARROW.search(operation.types.rpartition("->")[2])
    is_moved = name in _MOVES or name in _LOADS or name in _STORES or name in _OTHER
    return is_moved or bool(_OF_INTEGERS.match(name))


def _reads_float32(dot: Operation) -> bool:
    """Whether its operands are float32; the precision of its input is written of others too."""
    return _ELEMENTS.findall(dot.types)[:2] == ["f32", "f32"]


def _is_stored(values: Iterable[Value], users: Mapping[Value, Sequence[Operation]]) -> bool:
    """Whether values are stored, and used for nothing else."""
    for value in values:
        for user in users.get(value, ()):
            if user.name in _STORES:
                continue
            if user.name not in _MOVES or user.name == "arith.extf" or not _is_stored(user.results, users):
                return False
    return True


def _is_loaded(value: Value, makers: Mapping[Value, Operation]) -> bool:
    """Whether a value is as it was in memory."""
    maker = makers.get(value)
    if maker is None:
        return False
    if maker.name in _LOADS:
        return True
    return maker.name in _MOVES and bool(maker.operands) and all(_is_loaded(one, makers) for one in maker.operands)

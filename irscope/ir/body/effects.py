"""The side effects of an operation that fix its place in a block: none, reads of memory, or anything else.

An unknown operation keeps its place. Sources: the operation table for MLIR; "LLVM Language Reference Manual"; "PTX
ISA", of which only arithmetic and moves have none.
"""

from __future__ import annotations

from functools import lru_cache

from irscope.ir.body.tokens import Shape
from irscope.ir.tables.operations import operation_info
from irscope.model.capture import StageKind

NONE, READS, ANY = 0, 1, 2

_STRUCTURED = ("loop", "conditional", "yield")
"""Operations of MLIR that have the effects of what stands in them, and no others."""
_LLVM = frozenset((
    "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "ashr", "lshr", "fadd",
    "fsub", "fmul", "fdiv", "frem", "fneg", "icmp", "fcmp", "select", "sext", "zext", "trunc", "fpext", "fptrunc",
    "sitofp", "uitofp", "fptosi", "fptoui", "bitcast", "addrspacecast", "inttoptr", "ptrtoint", "getelementptr",
    "insertvalue", "extractvalue", "insertelement", "extractelement", "shufflevector", "freeze", "phi",
))  # fmt: skip
_LLVM_CALLS = (
    "fma", "fmuladd", "exp", "exp2", "log", "log2", "sqrt", "fabs", "floor", "ceil", "maxnum", "minnum",
    "maximum", "minimum", "smax", "smin", "umax", "umin", "abs", "ctpop", "nvvm.read.ptx.sreg.tid",
    "nvvm.read.ptx.sreg.ntid", "nvvm.read.ptx.sreg.ctaid", "nvvm.read.ptx.sreg.nctaid",
    "nvvm.read.ptx.sreg.laneid", "nvvm.read.ptx.sreg.warpid", "amdgcn.workitem.id", "amdgcn.workgroup.id",
)  # fmt: skip
"""Intrinsics that compute of their operands alone, without `llvm.`."""
_PTX = frozenset((
    "add", "sub", "mul", "mad", "fma", "div", "rem", "abs", "neg", "min", "max", "and", "or", "xor", "not", "shl",
    "shr", "cvt", "cvta", "setp", "selp", "set", "slct", "ex2", "lg2", "rcp", "sqrt",
    "rsqrt", "sin", "cos", "tanh", "prmt", "bfe", "bfi", "bfind", "lop3", "shf", "popc", "clz", "brev", "mul24",
    "mad24", "copysign", "mov",
))  # fmt: skip
_CARRY = "cc"
"""The modifier of an addition that writes the carry flag."""
_LOAD_MODIFIERS = frozenset({"global", "shared", "shared::cta", "param", "const", "local", "nc", "weak"})
_ORDERED = ("volatile", "atomic", "isVolatile = true")
_CLOCKS = ("%clock", "%globaltimer", "%pm", "%reserved")


@lru_cache(maxsize=1 << 14)
def effect_of(shape: Shape, kind: StageKind) -> int:
    """The effect of an operation itself, without its regions; labels and ends of regions keep their places."""
    name = shape.name
    if not name or name in ("^", "}"):
        return ANY
    if shape.is_function:
        return NONE
    if kind == "mlir":
        return _of_mlir(name, shape.template)
    if kind == "llvm":
        return _of_llvm(name, shape.template)
    return _of_ptx(name, shape.template) if kind == "ptx" else ANY


def _of_mlir(name: str, template: str) -> int:
    info = operation_info(name)
    if info is None:
        return ANY
    if info.kind in _STRUCTURED or (info.is_pure and info.kind != "module"):
        return NONE
    if info.kind == "load" and all(effect.kind == "reads" for effect in info.effects):
        return ANY if _is_ordered(template) else READS
    # An immutable copy.
    is_copy = info.kind == "allocation" and info.has_effect("allocates", "shared")
    return NONE if is_copy and "mutable" not in template else ANY


def _of_llvm(name: str, template: str) -> int:
    if name in _LLVM:
        return NONE
    if name == "load":
        return ANY if _is_ordered(template) else READS
    if name != "call":
        return ANY
    if " asm " in template:
        return ANY if "sideeffect" in template else NONE
    called = template.partition("@llvm.")[2]
    return NONE if any(called.startswith((f"{one}.", f"{one}(")) for one in _LLVM_CALLS) else ANY


def _of_ptx(name: str, template: str) -> int:
    base, *modifiers = name.split(".")
    if base in _PTX and _CARRY not in modifiers:
        return ANY if any(clock in template for clock in _CLOCKS) else NONE
    is_plain = base == "ld" and all(map(_is_plain_modifier, modifiers))
    return READS if is_plain else ANY


def _is_plain_modifier(word: str) -> bool:
    is_type = word[:1] in ("v", "b", "u", "s", "f") and word[1:].isdecimal()
    return is_type or word in _LOAD_MODIFIERS or word.startswith(("L1::", "L2::"))


def _is_ordered(template: str) -> bool:
    return any(word in template for word in _ORDERED)

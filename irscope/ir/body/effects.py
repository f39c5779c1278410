"""The side effects of an operation that fix its place in a block: none, reads of memory, or anything else.

An unknown operation keeps its place. Sources: the traits `Pure` and `MemoryEffects` of the operations of
MLIR's and Triton's dialects; "LLVM Language Reference Manual"; "PTX ISA", of which only arithmetic and moves have none.
"""

from __future__ import annotations

import re
from functools import lru_cache

from irscope.ir.body.tokens import Shape
from irscope.model.capture import StageKind

NONE, READS, ANY = 0, 1, 2

# The viewer has the same regular expressions: src/structure/effects.ts.
_PURE: dict[StageKind, re.Pattern[str]] = {
    # arith.addi   tt.splat   llvm.getelementptr   nvvm.read.ptx.sreg.tid.x   scf.for (except for its body)
    "mlir": re.compile(
        r"(?:arith|math|index|ub)\.|scf\.(?:for|if|while|yield|condition)$|tt\.(?:splat|unsplat|broadcast|expand_dims"
        r"|make_range|addptr|reshape|trans|cat|join|split|bitcast|fp_to_fp|int_to_ptr|ptr_to_int|dot|dot_scaled|reduce"
        r"|reduce\.return|scan|scan\.return|get_program_id|get_num_programs|histogram|gather|mulhiui|clampf"
        r"|precise_sqrt|precise_divf|make_tensor_ptr|advance)$|ttg\.(?:convert_layout|memdesc_\w+|warp_id)$"
        r"|gpu\.(?:thread_id|block_id|block_dim|grid_dim|lane_id)$|nvvm\.read\.ptx\.sreg\.(?:n?tid|n?ctaid|laneid|warpid)"
        r"|rocdl\.work(?:item|group)\.id\.|llvm\.(?:mlir\.(?:constant|undef|poison|zero|addressof)|add|sub|mul|[su]div"
        r"|[su]rem|and|or|xor|shl|[al]shr|f(?:add|sub|mul|div|rem|neg)|[if]cmp|select|[sz]ext|trunc|fpext|fptrunc"
        r"|[su]itofp|fpto[su]i|bitcast|addrspacecast|inttoptr|ptrtoint|getelementptr|(?:insert|extract)(?:value|element)"
        r"|shufflevector|freeze|intr\.(?:fma|fmuladd|exp2?|log2?|sqrt|fabs|floor|ceil|(?:max|min)\w*|[su](?:max|min)|abs))$"
    ),
    # %3 = add i32 %1, %2   %4 = call float @llvm.fma.f32(…)   %5 = call i32 asm "…" without side effects
    "llvm": re.compile(
        r"(?:add|sub|mul|[su]div|[su]rem|and|or|xor|shl|[al]shr|f(?:add|sub|mul|div|rem|neg)|[if]cmp|select|[sz]ext|trunc"
        r"|fpext|fptrunc|[su]itofp|fpto[su]i|bitcast|addrspacecast|inttoptr|ptrtoint|getelementptr"
        r"|(?:insert|extract)(?:value|element)|shufflevector|freeze|phi)$"
    ),
    "ptx": re.compile(
        r"(?:add|sub|mul|mad|fma|div|rem|abs|neg|min|max|and|or|xor|not|shl|shr|cvt|cvta|setp|selp|set|slct|ex2|lg2|rcp"
        r"|sqrt|rsqrt|sin|cos|tanh|prmt|bfe|bfi|bfind|lop3|shf|popc|clz|brev|mul24|mad24|copysign|mov)(?:\.(?!cc\b)\w+)*$"
    ),
}
_READS: dict[StageKind, re.Pattern[str]] = {
    "mlir": re.compile(r"(?:tt\.(?:load|descriptor_load|descriptor_gather)|ttg\.local_load|llvm\.load)$"),
    "llvm": re.compile(r"load$"),
    "ptx": re.compile(r"ld(?:\.(?:global|shared|param|const|local|nc|weak|v\d|[busf]\d+|L[12]::\w+|shared::cta))*$"),
}
# "llvm.load volatile \1"   "tt.load \1 {isVolatile = true}"   "\1 = load atomic i32, ptr \1"
_ORDERED = re.compile(r"\b(?:volatile|atomic|isVolatile = true)\b")
# "@llvm.fma.f32("   "@llvm.nvvm.read.ptx.sreg.tid.x("
_PURE_CALL = re.compile(
    r"@llvm\.(?:fma|fmuladd|exp2?|log2?|sqrt|fabs|floor|ceil|maxnum|minnum|maximum|minimum|[su](?:max|min)|abs|ctpop"
    r"|nvvm\.read\.ptx\.sreg\.(?:n?tid|n?ctaid|laneid|warpid)|amdgcn\.work(?:item|group)\.id)\b"
)
# "mov.u64 \1, %clock64;"
_CLOCK = re.compile(r"%(?:clock|globaltimer|pm\d|reserved)")


@lru_cache(maxsize=1 << 14)
def effect_of(shape: Shape, kind: StageKind) -> int:
    """The effect of an operation itself, without its regions; labels and ends of regions keep their places."""
    pure = _PURE.get(kind)
    name, template = shape.name, shape.template
    if pure is None or not name or name in ("^", "}"):
        return ANY
    if shape.is_function:
        return NONE
    if pure.match(name):
        return ANY if kind == "ptx" and _CLOCK.search(template) else NONE
    if _READS[kind].match(name):
        return ANY if _ORDERED.search(template) else READS
    if name == "call" and kind == "llvm":
        is_pure = _PURE_CALL.search(template) or (" asm " in template and "sideeffect" not in template)
        return NONE if is_pure else ANY
    if name == "ttg.local_alloc":
        # An immutable copy.
        return ANY if "mutable" in template else NONE
    return ANY

"""Which family an opcode belongs to: matrix multiply, global load by width, shuffle, …, the same names on every target.

Sources: NVIDIA's "CUDA Binary Utilities" (instruction set reference) and "PTX ISA"; AMD's instruction set architecture
manuals of CDNA 2–4 and RDNA 3–4, and LLVM's list of AMDGPU instructions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_Table = tuple[tuple[re.Pattern[str], str], ...]


def _table(*rows: tuple[str, str]) -> _Table:
    return tuple((re.compile(pattern), family) for pattern, family in rows)


# The first row that matches decides. `{}` stands for the width in bits.
_SASS = _table(
    (r"UTC[A-Z]*MMA", "tcgen05.mma"),
    (r"UTCCP", "tcgen05.cp"),
    (r"(?:UTCBAR|UTCATOMSWS|UTCSHIFT|UVIRTCOUNT)", "tcgen05.control"),
    (r"LDTM", "tcgen05.ld"),
    (r"STTM", "tcgen05.st"),
    (r"[A-Z]GMMA", "wgmma"),
    (r"WARPGROUP", "wgmma.control"),
    (r"[A-Z]MMA", "mma"),
    (r"LDSM", "ldmatrix"),
    (r"STSM", "stmatrix"),
    (r"LDGSTS", "cp.async.{}"),
    (r"(?:LDGDEPBAR|DEPBAR|ARRIVES)", "cp.async.wait"),
    (r"UTMALDG", "tma.load"),
    (r"UTMASTG", "tma.store"),
    (r"(?:UTMAREDG|UBLKRED)", "tma.reduce"),
    (r"(?:UTMAPF|UBLKPF)", "tma.prefetch"),
    (r"UBLKCP", "tma.copy"),
    (r"(?:UTMACMDFLUSH|UTMACCTL)", "tma.control"),
    (r"LDG\b", "ld.global.{}"),
    (r"STG\b", "st.global.{}"),
    (r"LDS\b", "ld.shared.{}"),
    (r"STS\b", "st.shared.{}"),
    (r"LDL\b", "ld.local.{}"),
    (r"STL\b", "st.local.{}"),
    (r"(?:LDC|ULDC|LDCU)\b", "ld.constant.{}"),
    (r"LD\b", "ld.generic.{}"),
    (r"ST\b", "st.generic.{}"),
    (r"(?:ATOMS|REDS)\b", "atomic.shared"),
    (r"(?:ATOM|ATOMG|RED|REDG|UREDGR)\b", "atomic.global"),
    (r"(?:SHFL|MOVM)\b", "shuffle"),
    (r"C?REDUX\b", "warp.reduce"),
    (r"(?:VOTE|VOTEU|MATCH|ELECT)\b", "warp.vote"),
    (r"(?:BAR|B2R|UCGABAR\w*)\b", "barrier"),
    (r"(?:SYNCS|UCGABAR_WAIT)\b", "mbarrier"),
    (r"(?:MEMBAR|FENCE|ERRBAR|CCTL|CCTLL)\b", "fence"),
    (r"U?MUFU\b", "special"),
    (r"(?:F2FP|F2F|F2I|I2F|I2FP|F2IP|I2I|I2IP|FRND)\b", "convert"),
    (r"D(?:ADD|MUL|FMA|SETP|MNMX)\b", "fp64"),
    (r"H(?:ADD2|MUL2|FMA2|SETP2|SET2|MNMX2)\b", "fp16"),
    (r"U?F(?:ADD|MUL|FMA|SETP|MNMX|SEL|SET|CHK|ADD2|MUL2|FMA2|MNMX3|ADD32I|MUL32I|FMA32I|SWZADD)\b", "fp32"),
    (r"(?:BRA|BRX|JMP|JMX|CALL|RET|EXIT|BSSY|BSYNC|BREAK|BMOV|WARPSYNC|YIELD|BPT|NANOSLEEP|KILL|RPCMOV)\b", "control"),
    (r"IMAD\.MOV\b", "move"),
    (r"U?(?:MOV|SEL|PRMT|CS2R|S2R|S2UR|R2UR|P2R|R2P|MOV32I|UR2R|PLOP3|PSETP)\b", "move"),
    (r"U?(?:IMAD|IADD3?|VIADD|VIADDMNMX|VIMNMX\d?|IMNMX|IABS|ISETP|ISCADD|LEA|IDP|IDP4A|IMUL|IADD32I)\b", "integer"),
    (r"U?(?:LOP3|LOP|LOP32I|SHF|SHL|SHR|SGXT|BMSK|FLO|POPC|BREV)\b", "integer"),
)

_PTX = _table(
    (r"tcgen05\.mma", "tcgen05.mma"),
    (r"tcgen05\.ld", "tcgen05.ld"),
    (r"tcgen05\.st", "tcgen05.st"),
    (r"tcgen05\.cp", "tcgen05.cp"),
    (r"tcgen05\.", "tcgen05.control"),
    (r"wgmma\.mma_async", "wgmma"),
    (r"wgmma\.", "wgmma.control"),
    (r"w?mma\.", "mma"),
    (r"ldmatrix", "ldmatrix"),
    (r"stmatrix", "stmatrix"),
    (r"cp\.async\.bulk\.(?:wait|commit)_group", "tma.control"),
    (r"cp\.async\.bulk\.prefetch", "tma.prefetch"),
    (r"cp\.reduce\.async\.bulk", "tma.reduce"),
    (r"cp\.async\.bulk\.tensor\.\dd\.shared", "tma.load"),
    (r"cp\.async\.bulk\.tensor\.\dd\.global", "tma.store"),
    (r"cp\.async\.bulk", "tma.copy"),
    (r"cp\.async\.(?:wait|commit|mbarrier)", "cp.async.wait"),
    (r"cp\.async\.", "cp.async.{}"),
    (r"ldu?\..*\bglobal\b", "ld.global.{}"),
    (r"st\..*\bglobal\b", "st.global.{}"),
    (r"ld\..*\bshared\b", "ld.shared.{}"),
    (r"st\..*\bshared\b", "st.shared.{}"),
    (r"ld\..*\blocal\b", "ld.local.{}"),
    (r"st\..*\blocal\b", "st.local.{}"),
    (r"ld\..*\bparam\b", "ld.param.{}"),
    (r"st\..*\bparam\b", "st.param.{}"),
    (r"ld\..*\bconst\b", "ld.constant.{}"),
    (r"ld\.", "ld.generic.{}"),
    (r"st\.", "st.generic.{}"),
    (r"(?:atom|red)\..*\bshared\b", "atomic.shared"),
    (r"(?:atom|red|multimem)\.", "atomic.global"),
    (r"(?:shfl|movmatrix)\.", "shuffle"),
    (r"redux\.", "warp.reduce"),
    (r"(?:vote|match|activemask|elect)\b", "warp.vote"),
    (r"(?:mbarrier)\.", "mbarrier"),
    (r"(?:bar|barrier)\.", "barrier"),
    (r"(?:membar|fence)\b", "fence"),
    (r"(?:ex2|lg2|sin|cos|tanh|rcp|rsqrt|sqrt)\.", "special"),
    (r"cvt\.", "convert"),
    (r"(?:bra|brx|call|ret|exit|trap|brkpt|nanosleep|griddepcontrol|setmaxnreg)\b", "control"),
    (r"(?:mov|selp|prmt|cvta|mapa|getctarank|isspacep)\b", "move"),
    (r"\w+\.pred\b", "move"),
    (r"\w+\..*\bf64\b", "fp64"),
    (r"\w+\..*\b(?:f16|bf16|f16x2|bf16x2)\b", "fp16"),
    (r"\w+\..*\b(?:f32|f32x2)\b", "fp32"),
    (r"\w+\..*\b[usb](?:8|16|32|64)\b", "integer"),
)

_AMDGCN = _table(
    (r"v_s?mfma", "mfma"),
    (r"v_s?wmma|v_swmmac", "wmma"),
    (r"v_accvgpr", "move"),
    (r"(?:global|buffer)_load_(?:async_)?(?:to_)?lds", "cp.async.{}"),
    (r"global_load_async_to_lds", "cp.async.{}"),
    (r"(?:global|buffer)_load_tr", "ld.global.tr.{}"),
    (r"(?:global|buffer|tbuffer|image)_(?:load|sample)", "ld.global.{}"),
    (r"(?:global|buffer|tbuffer|image)_store", "st.global.{}"),
    (r"(?:global|buffer|flat|image)_atomic", "atomic.global"),
    (r"(?:global|buffer)_(?:inv|wb|gl\d_inv|wbinvl1|wbl2)|s_(?:dcache|gl1)_inv", "fence"),
    (r"flat_load", "ld.generic.{}"),
    (r"flat_store", "st.generic.{}"),
    (r"scratch_load", "ld.local.{}"),
    (r"scratch_store", "st.local.{}"),
    (r"s_(?:buffer_)?load", "ld.constant.{}"),
    (r"ds_(?:bpermute|permute|swizzle)|v_permlane|.*_dpp\d*$", "shuffle"),
    (r"ds_(?:read|load)(?:_\w+)?_tr", "ld.shared.tr.{}"),
    (r"ds_(?:read|load)", "ld.shared.{}"),
    (r"ds_(?:write|store)", "st.shared.{}"),
    (
        r"ds_(?:add|sub|rsub|inc|dec|min|max|and|or|xor|cmpst|cmpstore|wrxchg|storexchg|pk_add|cond_sub)",
        "atomic.shared",
    ),
    (r"v_(?:readlane|readfirstlane|writelane)", "readlane"),
    (r"s_barrier", "barrier"),
    (r"s_wait|s_delay_alu", "wait"),
    (r"v_(?:dual_)?(?:exp|log|rcp|rsq|sqrt|sin|cos|tanh)_|v_s_(?:exp|log|rcp|rsq|sqrt)", "special"),
    (r"v_cvt|s_cvt", "convert"),
    (
        r"s_(?:branch|cbranch|endpgm|setpc|swappc|call|trap|sleep|sendmsg|setprio|nop|clause|sethalt|code_end)",
        "control",
    ),
    (r"[sv]_\w*(?:_f64)", "fp64"),
    (r"[sv]_(?:dual_)?(?:mov|cndmask|perm|swap|cselect|cmov|pack|movk|alignb)", "move"),
    (r"[sv]_\w*_(?:bf16|f16)", "fp16"),
    (r"[sv]_\w*_f32", "fp32"),
    (r"[sv]_\w*_[iub](?:16|24|32|64)", "integer"),
)

FAMILIES = tuple(sorted({family.removesuffix(".{}") for table in (_SASS, _PTX, _AMDGCN) for _, family in table}))
"""Every family, without the widths."""

# v4 of ld.global.v4.b32      b32, f16x2
_PTX_VECTOR = re.compile(r"v(?P<count>2|4|8)$")
_PTX_TYPE = re.compile(r"[bsuf]f?(?P<bits>\d{1,4})(?:x(?P<many>\d))?$")
_TABLES = {"sass": _SASS, "amdgcn": _AMDGCN, "ptx": _PTX}
_MOST_REMEMBERED = 4096

# dwordx4, b128, ubyte, u16 and, in the _2addr forms, two of them
_AMD_DWORDS = re.compile(r"_dword(?:x(?P<count>\d{1,4}))?\b")
_AMD_BITS = re.compile(r"_[biu](?P<bits>8|16|32|64|96|128|256|512)(?![0-9])")


def classify(opcode: str, operands: Sequence[str] = ()) -> str | None:
    """The family of an opcode of SASS, PTX or AMDGCN; None for one that belongs to no family.

    Args:
        opcode: with its suffixes: `LDG.E.128`, `ld.global.v4.b32`, `buffer_load_dwordx4`.
        operands: read if the opcode does not state the width: `cp.async` of PTX, loads to LDS of AMDGCN.

    Returns a family such as `mma`, `wgmma`, `shuffle`, or with the bits that one thread moves `ld.global.128`. Loads
    and stores of a thread's own memory are `ld.local` and `st.local`: with Triton, these are spills.
    """
    if opcode[:1].isupper():
        family, width = _first("sass", opcode), _sass_bits
    elif "_" in opcode and "." not in opcode:
        family, width = _first("amdgcn", opcode), _amdgcn_bits
        if family and family.startswith("ld.global") and operands and operands[-1].split()[-1:] == ["lds"]:
            family = "cp.async.{}"
    else:
        family, width = _first("ptx", opcode), _ptx_bits
        if family == "cp.async.{}":
            return _ptx_copy(operands)
    if family is None or "{}" not in family:
        return family
    return family.format(width(opcode))


@lru_cache(_MOST_REMEMBERED)
def _first(language: str, opcode: str) -> str | None:
    return next((family for pattern, family in _TABLES[language] if pattern.match(opcode)), None)


def _sass_bits(opcode: str) -> int:
    for part in opcode.split(".")[1:]:
        bits = part.lstrip("US")
        if bits in ("8", "16", "64", "96", "128", "256"):
            return int(bits)
    return 32


def _ptx_bits(opcode: str) -> int:
    count, bits = 1, 32
    for part in opcode.split("."):
        vector, kind = _PTX_VECTOR.match(part), _PTX_TYPE.match(part)
        if vector is not None:
            count = int(vector["count"])
        elif kind is not None:
            bits = int(kind["bits"]) * int(kind["many"] or 1)
    return count * bits


def _ptx_copy(operands: Sequence[str]) -> str:
    """`cp.async.cg.shared.global [%r1], [%rd2], 16` moves 128 bits."""
    size = operands[2] if len(operands) > 2 else ""
    return f"cp.async.{8 * int(size, 0)}" if re.fullmatch(r"0x[0-9a-f]{1,2}|[1-9]\d?", size) else "cp.async"


def _amdgcn_bits(opcode: str) -> int:
    pair = 2 if re.search(r"_2addr|(?:read|write)2", opcode) else 1
    dwords = _AMD_DWORDS.search(opcode)
    if dwords is not None:
        return 32 * int(dwords["count"] or 1)
    if re.search(r"_[su]?byte|_[iu]8\b", opcode):
        return 8
    if re.search(r"_[su]?short|_d16", opcode):
        return 16
    widths = _AMD_BITS.findall(opcode)
    return pair * int(widths[0]) if widths else 32

"""Which registers an AMD GPU instruction reads and writes: destinations, what is modified in place, implicit registers.

The text states the width of each operand (`s[20:23]`); which operands are written, and what is used without being
named (SCC, VCC, EXEC, M0), is the instruction's. Sources: AMD's instruction set documents of CDNA 3 and 4 and RDNA 3
and 4, and LLVM's AMDGPU backend: the definitions, tied operands and implicit registers of each opcode, with which the
rows were compared (LLVM 19's descriptions, on the listings of the examples).
"""

from __future__ import annotations

import re

from irscope.ir.asm.instructions import split_operands
from irscope.ir.asm.registers import Access, ExecChange, Flow, Mode

# "v_add_f32_e32 \x01v, \x01s, \x01v"   "s_endpgm"
_LINE = re.compile(r"(?P<opcode>[a-z]\w*)(?:\s+(?P<operands>.*))?$")
# "\x01v", "\x01s4" for s[20:23], "vcc", "exec_lo"
_TOKEN = re.compile(r"\x01(?P<file>[vas])(?P<width>\d{0,4})|\x02|\b(?P<fixed>(?:vcc|exec)(?:_lo|_hi)?|m0|scc)\b")
# an operand that can be written
_PLAIN = re.compile(r"(?:\x01[vas]\d*|(?:vcc|exec)(?:_lo|_hi)?|m0|scc|null|off|flat_scratch\w*|ttmp\w*)(?:\.[lh])?$")

# What the words of the tables mean: the beginnings of opcodes behind their family's letter, up to an underline.


def _beginnings(family: str, words: str) -> re.Pattern[str]:
    return re.compile(rf"{family}(?:{'|'.join(words.split())})(?=_|$)")


_KNOWN = (
    _beginnings(
        "v_",
        "accvgpr add add3 addc alignbit alignbyte and ashr ashrrev bcnt bfe bfi bfm bfrev bitop3 ceil cls clz cmp "
        "cmpx cndmask cos ctz cubeid cubema cubesc cubetc cvt div dot\\w+ dual exp ffbh ffbl floor fma fmaak fmac "
        "fmamk fract frexp ldexp lerp log lshl lshlrev lshr lshrrev mac mad madak madmk max max3 maximum maximum3 "
        "maximumminimum maxmin mbcnt med3 mfma min min3 minimum minimum3 minimummaximum minmax mov mqsad msad mul "
        "mullit nop not or or3 pack perm permlane16 permlane32 permlane64 permlanex16 pk prng qsad rcp "
        "readfirstlane readlane rndne rsq s sad sat sin smfmac sqrt sub subb subbrev subrev swap swmmac trig "
        "trunc wmma writelane xad xnor xor xor3",
    ),
    _beginnings(
        "s_",
        "abs absdiff add addc addk and andn1 andn2 ashr barrier bcnt0 bcnt1 bfe bfm bitcmp0 bitcmp1 bitreplicate "
        "bitset0 bitset1 branch brev buffer_load buffer_prefetch buffer_store cbranch ceil clause clz cls cmov "
        "cmovk cmp cmpk code cselect ctz cvt dcache delay denorm endpgm ff0 ff1 flbit floor fmaak fmac fmamk get "
        "getpc getreg gl1 icache inst load lshl lshl1 lshl2 lshl3 lshl4 lshr max maximum memrealtime memtime min "
        "minimum mov movk mul mulk nand nop nor not or orn1 orn2 pack prefetch quadmask rndne round scratch "
        "sendmsg sendmsghalt set sethalt setkill setpc setprio setreg sext singleuse sleep store sub subb trap "
        "trunc ttracedata version wait waitcnt wakeup wqm xnor xor",
    ),
    re.compile(r"(?:ds|buffer|tbuffer|global|flat|scratch)_"),
)
# What chooses its registers by number.
_INDIRECT = re.compile(r"[vs]_(?:movrel|swaprel|set_gpr_idx)|s_cbranch_(?:g_fork|i_fork|join)")
_NO_RESULT = re.compile(
    r"s_(?:cmpk?|bitcmp[01]|c?branch|barrier(?!_get)|waitcnt|wait|endpgm|nop|set\w*|sleep|sendmsg(?!_rtn)|sendmsghalt"
    r"|store|buffer_store|scratch_store|dcache|icache|gl1|prefetch|buffer_prefetch|clause|code|delay|denorm|round|trap"
    r"|ttracedata|version|wakeup|inst|singleuse)(?=_|$)"
    r"|v_(?:nop|clrexcp|pipeflush)$|(?!v_).*_(?:store|write)(?=_|\d|$)|ds_(?!.*rtn)(?!read|load|b?permute|swizzle|consume|append|ordered)"
    r"|buffer_(?:inv|wb|gl)|global_(?:inv|wb)|(?:global|flat|scratch|buffer)_load_lds_"
)
_ATOMIC = re.compile(r"(?P<space>buffer|tbuffer|global|flat)_atomic_")
_RETURNS = re.compile(r"\b(?:glc|sc0|th:TH_ATOMIC\w*RETURN)\b")
_TO_SHARED = re.compile(r"(?:buffer|global|scratch)_load_(?:(?!_load_).)*(?:_lds\b|\blds\b)|_load_lds_")
# A second destination: the carry, or the flag of a division.
_TWO_RESULTS = re.compile(r"v_(?:\w+_co_|div_scale|mad_[iu]64_[iu]32|mad_co_)")
_OLD_CARRY = re.compile(r"v_(?:add|sub|subrev|addc|subb|subbrev)_u32(?:_|$)")
# Read and written, or written in part.
_MODIFIED = re.compile(
    r"v_(?:mac|fmac|madmix|mad_mix(?:lo|hi)|fma_mix(?:lo|hi)|pk_fmac|smfmac|swmmac|swap|permlane\w*|writelane|dot\w+c_|dot2acc"
    r"|cvt_sr|cvt_scalef32|cvt_pk_(?:fp8|bf8)|dual_fmac|dual_dot2acc|dual_dot2c|ashr_pk)"
    r"|s_(?:addk|mulk|fmac|bitset[01]|cmovk?)(?=_|$)|\w+_d16(?=_|$)"
)
# Parts of a register: instructions that leave other lanes, bytes or halves unchanged.
_PART = re.compile(
    r"\w*_dpp8?\b|.*dst_unused:UNUSED_PRESERVE|(?!v_(?:pk|dot|fma_mix|mad_mix|mfma|wmma))\w+ .*\bop_sel:\[(?:\d,)+1\]"
)
_BOTH_MODIFIED = re.compile(r"v_(?:swap_b|permlane\d+_swap)")

_SCC_WRITTEN = re.compile(
    r"s_(?:absdiff|abs|addc|addk|add|subb|sub|andn[12]|and|nand|nor|not|orn[12]|or|xnor|xor|ashr|lshr|lshl|lshl[1-4]_add"
    r"|bcnt[01]|bfe|bitcmp[01]|cmpk?|max|min|wqm|setvskip|barrier_leave|barrier_signal_isfirst)(?=_|$)"
)
# s_add_f32, s_add_nc_u64: no carry
_SCC_KEPT = re.compile(r"s_(?:add|sub|max|min)_(?:f16|f32|nc_u64|u64|num_f\d+)$")
_SCC_READ = re.compile(r"s_(?:addc|subb|add_co_ci|sub_co_ci|cselect|cmovk?|cbranch_scc[01])(?=_|$)")
_VCC_READ = re.compile(r"v_div_fmas|v_dual_cndmask|s_cbranch_vcc")
_M0_READ = re.compile(r"s_sendmsg|s_ttracedata|ds_(?!b?permute|swizzle)|\w+_load_lds_|.*\blds\b")
_EXEC_READ = re.compile(r"v_(?!readlane|writelane)|(?:ds|buffer|tbuffer|global|flat|scratch)_|s_cbranch_exec|s_sendmsg")
_EXEC_SAVED = re.compile(r"s_\w+_(?:save|wr)exec_b(?:32|64)$")
_SHRINKS = re.compile(r"s_(?:and_(?:save|wr)exec|and_b|andn2_b|and_not1_b)")

_WIDEST = 512
"""The most registers that a thread can have."""
_PAIRS = {"vcc": ("vcc_lo", "vcc_hi"), "exec": ("exec_lo", "exec_hi")}


def read_amdgcn(template: str) -> Access | None:
    """What a line does with registers; None if it is not an instruction."""
    if " :: " not in template:
        return _single(template)
    # Two operations issued as one read their operands before either writes.
    parts = [_single(part) for part in template.split(" :: ")]
    halves = [part for part in parts if part is not None]
    if len(halves) < len(parts):
        return _unknown(template)
    return Access(
        tuple([hole for half in halves for hole in half.holes]),
        tuple([one for half in halves for one in half.implicit]),
        any(half.is_partial for half in halves),
        any(half.is_vector for half in halves),
        is_unknown=any(half.is_unknown for half in halves),
    )


def _single(template: str) -> Access | None:
    match = _LINE.match(template)
    if match is None:
        return None
    opcode = match["opcode"]
    operands = split_operands(match["operands"] or "")
    if not any(known.match(opcode) for known in _KNOWN) or _INDIRECT.match(opcode):
        return _unknown(template)
    modes = _modes(opcode, operands, template)
    holes: list[tuple[int, Mode]] = []
    implicit: list[tuple[str, Mode]] = []
    written_files: set[str] = set()
    for index, operand in enumerate(operands):
        mode = modes.get(index, "r")
        for token in _TOKEN.finditer(operand):
            if token["fixed"]:
                for name in _PAIRS.get(token["fixed"], (token["fixed"],)):
                    implicit.append((name, mode))
            elif token["file"]:
                part = operand.endswith((".l", ".h")) and mode == "w"
                holes.append((min(int(token["width"] or 1), _WIDEST), "m" if part else mode))
            else:
                holes.append((0, "r"))
            if mode != "r":
                written_files.add(token["file"] or "")
    implicit += _implicit(opcode, template, implicit)
    return Access(
        tuple(holes),
        tuple(implicit),
        is_vector=bool(written_files & {"v", "a"}),
        exec_change=_exec_change(opcode, operands, modes),
        flow=_flow(opcode),
    )


def _unknown(template: str) -> Access:
    holes: list[tuple[int, Mode]] = [
        (min(int(token["width"] or 1), _WIDEST), "m") if token["file"] else (0, "r")
        for token in _TOKEN.finditer(template)
        if not token["fixed"]
    ]
    return Access(tuple(holes), is_partial=True, exec_change="any", is_unknown=True)


def _modes(opcode: str, operands: tuple[str, ...], template: str) -> dict[int, Mode]:
    """How each operand is used that is not only read."""
    if not operands or not _PLAIN.match(operands[0]):
        return {}
    atomic = _ATOMIC.match(opcode)
    if atomic is not None:
        if not _RETURNS.search(template):
            return {}
        return {0: "m" if "buffer" in atomic["space"] else "w"}
    if _NO_RESULT.match(opcode) or _TO_SHARED.search(template):
        return {}
    if opcode.startswith("v_cmpx") and len(operands) < 3:
        return {}
    if _BOTH_MODIFIED.match(opcode):
        return {0: "m", 1: "m"}
    modes: dict[int, Mode] = {0: "m" if _MODIFIED.match(opcode) or _PART.match(template) else "w"}
    is_old_carry = _OLD_CARRY.match(opcode) and len(operands) > 3 and operands[1].startswith("vcc")
    if _TWO_RESULTS.match(opcode) or is_old_carry:
        modes[1] = "w"
    return modes


def _implicit(opcode: str, template: str, named: list[tuple[str, Mode]]) -> list[tuple[str, Mode]]:
    found: list[tuple[str, Mode]] = []
    if _SCC_READ.match(opcode):
        found.append(("scc", "r"))
    if _SCC_WRITTEN.match(opcode) and (not _SCC_KEPT.match(opcode) or opcode.startswith("s_cmp")):
        found.append(("scc", "w"))
    if _VCC_READ.match(opcode):
        found.extend([("vcc_lo", "r"), ("vcc_hi", "r")])
    if _M0_READ.match(template) and ("m0", "r") not in named:
        found.append(("m0", "r"))
    if _EXEC_SAVED.match(opcode) or opcode.startswith("v_cmpx"):
        found.extend([("exec_lo", "m"), ("exec_hi", "m")])
    elif _EXEC_READ.match(opcode):
        found.extend([("exec_lo", "r"), ("exec_hi", "r")])
    return found


def _exec_change(opcode: str, operands: tuple[str, ...], modes: dict[int, Mode]) -> ExecChange:
    if opcode.startswith("v_cmpx"):
        return "shrinks"
    if _EXEC_SAVED.match(opcode):
        return "shrinks" if _SHRINKS.match(opcode) else "any"
    if 0 not in modes or not operands[0].startswith("exec"):
        return ""
    if operands[0] in operands[1:]:
        if _SHRINKS.match(opcode):
            return "shrinks"
        if opcode.startswith("s_or_b"):
            return "grows"
    return "fills" if opcode.startswith("s_mov_b") and operands[1:] == ("-1",) else "any"


def _flow(opcode: str) -> Flow:
    if opcode == "s_branch":
        return "jump"
    if opcode.startswith("s_cbranch"):
        return "branch"
    return "end" if opcode.startswith(("s_endpgm", "s_setpc", "s_rfe")) else "next"

"""The table of AMD GPU opcodes: kinds, operands written or modified in place, implicit registers, branches.

The text states the width of each operand (`s[20:23]`); which operands are written, and what is used without being
named (SCC, VCC, EXEC, M0), is the instruction's. Sources: AMD's instruction set documents of CDNA 2 to 4 and RDNA 3
and 4, and LLVM's AMDGPU backend: the definitions, tied operands and implicit registers of each opcode, with which the
rows were compared (LLVM 19's descriptions, on the listings of the examples).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from irscope.ir.asm.operands import ExecChange, Flow, Mode, RegisterAccess, opcode_rows, split_operands, word_set

_MOVES = ("mov", "cndmask", "perm", "swap", "cselect", "cmov", "pack", "alignb")
# What the arithmetic of the rest is in, by a word of the opcode: the first that is there decides.
_TYPES = (
    ("fp64", ("f64",)),
    ("move", ()),
    ("fp16", ("bf16", "f16")),
    ("fp32", ("f32",)),
    ("integer", ("i16", "i24", "i32", "i64", "u16", "u24", "u32", "u64", "b16", "b24", "b32", "b64")),
)


@lru_cache(4096)
def _family(opcode: str) -> str | None:
    unit, _, rest = opcode.partition("_")
    rest = rest.removeprefix("dual_")
    if opcode.endswith(("_dpp", "_dpp8", "_dpp16")):
        return "shuffle"
    for family, units, beginnings in opcode_rows("amdgcn"):
        if unit in units.split() and rest.startswith(tuple(beginnings.split())):
            return "ld.shared.tr.{}" if family == "ld.shared.{}" and "_tr" in rest else family
    if unit not in ("s", "v"):
        return None
    for family, types in _TYPES:
        words = [f"_{name}" for name in types]
        if rest.startswith(_MOVES) if family == "move" else any(word in opcode for word in words):
            return family
    return None


def amdgcn_family(opcode: str, operands: Sequence[str] = ()) -> str | None:
    """The family of an opcode; a load is a copy where its operands say that it loads to LDS."""
    family = _family(opcode)
    if family == "ld.global.{}" and operands and operands[-1].split()[-1:] == ["lds"]:
        family = "cp.async.{}"
    return family.format(_moved_bits(opcode)) if family is not None and "{}" in family else family


@lru_cache(1024)
def _moved_bits(opcode: str) -> int:
    """dwordx4, b128, ubyte, u16 and, in the _2addr forms, two of them."""
    words = opcode.split("_")
    for word in words:
        count = word.removeprefix("dword").removeprefix("x")
        if word.startswith("dword") and (not count or (count.isdecimal() and len(count) < 5)):
            return 32 * int(count or 1)
    if any(word in ("byte", "sbyte", "ubyte", "i8", "u8") for word in words):
        return 8
    if any(word in ("short", "sshort", "ushort", "d16") for word in words):
        return 16
    pair = 2 if "2addr" in words or words[1].startswith(("read2", "write2")) else 1
    widths = [word[1:] for word in words if word[:1] in ("b", "i", "u") and word[1:].isdecimal()]
    known = [int(width) for width in widths if width in ("8", "16", "32", "64", "96", "128", "256", "512")]
    return pair * known[0] if known else 32


def amdgcn_flow(opcode: str) -> Flow:
    if opcode == "s_branch":
        return "jump"
    if opcode.startswith("s_cbranch"):
        return "branch"
    return "end" if opcode.startswith(("s_endpgm", "s_setpc", "s_rfe")) else "next"


# "v_add_f32_e32 \x01v, \x01s, \x01v"   "s_endpgm"
_LINE = re.compile(r"(?P<opcode>[a-z]\w*)(?:\s+(?P<operands>.*))?$")
# "\x01v", "\x01s4" for s[20:23], "vcc", "exec_lo"
_TOKEN = re.compile(r"\x01(?P<file>[vas])(?P<width>\d{0,4})|\x02|\b(?P<fixed>(?:vcc|exec)(?:_lo|_hi)?|m0|scc)\b")
# an operand that can be written
_PLAIN = re.compile(r"(?:\x01[vas]\d*|(?:vcc|exec)(?:_lo|_hi)?|m0|scc|null|off|flat_scratch\w*|ttmp\w*)(?:\.[lh])?$")
# op_sel:[0,0,1]: the result goes to the upper half of the register
_UPPER_HALF = re.compile(r"\bop_sel:\[(?:\d,)+1\]")

_KNOWN = {unit: word_set(words) for unit, words in opcode_rows("amdgcn-known")}
"""The first word, or the first two, behind the unit of every opcode whose registers are known."""
_MEMORY_UNITS = ("ds", "buffer", "tbuffer", "global", "flat", "scratch")
# What chooses its registers by number.
_INDIRECT = ("v_movrel", "s_movrel", "v_swaprel", "s_swaprel", "v_set_gpr_idx", "s_set_gpr_idx")
_INDIRECT_BRANCHES = ("s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join")
_SCALAR_WITHOUT_RESULT = word_set(
    "cmp cmpk bitcmp0 bitcmp1 branch cbranch barrier waitcnt wait endpgm nop sleep sendmsg sendmsghalt "
    "store buffer_store scratch_store dcache icache gl1 prefetch buffer_prefetch clause code delay denorm "
    "round trap ttracedata version wakeup inst singleuse"
)
_OTHER_WITHOUT_RESULT = (
    "buffer_inv", "buffer_wb", "buffer_gl", "global_inv", "global_wb", "global_load_lds_", "flat_load_lds_",
    "scratch_load_lds_", "buffer_load_lds_",
)  # fmt: skip
_DS_WITH_RESULT = ("read", "load", "bpermute", "permute", "swizzle", "consume", "append", "ordered")
# Read and written, or written in part: beginnings behind `v_`, and words behind `s_`.
_MODIFIED = tuple(
    word_set(
        "mac fmac madmix mad_mixlo mad_mixhi fma_mixlo fma_mixhi pk_fmac smfmac swmmac swap permlane writelane dot2acc "
        "cvt_sr cvt_scalef32 cvt_pk_fp8 cvt_pk_bf8 dual_fmac dual_dot2acc dual_dot2c ashr_pk"
    )
)
_SCALAR_MODIFIED = frozenset(("addk", "mulk", "fmac", "bitset0", "bitset1", "cmov", "cmovk"))
_PACKED = ("v_pk", "v_dot", "v_fma_mix", "v_mad_mix", "v_mfma", "v_wmma")
"""Where `op_sel` chooses parts of what is read."""

_SCC_WRITTEN = word_set(
    "absdiff abs addc addk add subb sub andn1 andn2 and nand nor not orn1 orn2 or xnor xor ashr lshr lshl "
    "lshl1_add lshl2_add lshl3_add lshl4_add bcnt0 bcnt1 bfe bitcmp0 bitcmp1 cmp cmpk max min wqm "
    "setvskip barrier_leave barrier_signal_isfirst"
)
_SCC_READ = word_set("addc subb add_co_ci sub_co_ci cselect cmov cmovk cbranch_scc0 cbranch_scc1")
_CARRIES = frozenset(["add", "sub", "subrev", "addc", "subb", "subbrev"])

_WIDEST = 512
"""The most registers that a thread can have."""
_PAIRS = {"vcc": ("vcc_lo", "vcc_hi"), "exec": ("exec_lo", "exec_hi")}


def _begins(words: list[str], stems: frozenset[str]) -> bool:
    """Whether the first words behind the unit of an opcode are one of some stems."""
    return any("_".join(words[1:end]) in stems for end in (2, 3, 4))


def amdgcn_access(template: str) -> RegisterAccess | None:
    """The register accesses of a line; None if it is not an instruction."""
    if " :: " not in template:
        return _single(template)
    # Two operations issued as one read their operands before either writes.
    parts = [_single(part) for part in template.split(" :: ")]
    halves = [part for part in parts if part is not None]
    if len(halves) < len(parts):
        return _unknown(template)
    return RegisterAccess(
        tuple([hole for half in halves for hole in half.holes]),
        tuple([register for half in halves for register in half.implicit]),
        any(half.is_partial for half in halves),
        any(half.is_vector for half in halves),
        is_unknown=any(half.is_unknown for half in halves),
    )


def _is_known(opcode: str, words: list[str]) -> bool:
    if words[0] in _MEMORY_UNITS:
        return len(words) > 1
    if opcode.startswith((*_INDIRECT, *_INDIRECT_BRANCHES)) or words[0] not in _KNOWN or len(words) < 2:
        return False
    return _begins(words, _KNOWN[words[0]]) or (words[0] == "v" and words[1].startswith("dot") and words[1] != "dot")


def _single(template: str) -> RegisterAccess | None:
    match = _LINE.match(template)
    if match is None:
        return None
    opcode = match["opcode"]
    words = opcode.split("_")
    operands = split_operands(match["operands"] or "")
    if not _is_known(opcode, words):
        return _unknown(template)
    modes = _modes(opcode, words, operands, template)
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
    implicit += _implicit(opcode, words, template, implicit)
    return RegisterAccess(
        tuple(holes),
        tuple(implicit),
        is_vector=bool(written_files & {"v", "a"}),
        exec_change=_exec_change(opcode, operands, modes),
        flow=amdgcn_flow(opcode),
    )


def _unknown(template: str) -> RegisterAccess:
    holes: list[tuple[int, Mode]] = [
        (min(int(token["width"] or 1), _WIDEST), "m") if token["file"] else (0, "r")
        for token in _TOKEN.finditer(template)
        if not token["fixed"]
    ]
    return RegisterAccess(tuple(holes), is_partial=True, exec_change="any", is_unknown=True)


def _modes(opcode: str, words: list[str], operands: tuple[str, ...], template: str) -> dict[int, Mode]:
    """How each operand is used that is not only read."""
    if not operands or not _PLAIN.match(operands[0]):
        return {}
    if words[1] == "atomic" and words[0] in ("buffer", "tbuffer", "global", "flat") and len(words) > 2:
        if not _returns(template):
            return {}
        return {0: "m" if "buffer" in words[0] else "w"}
    if _has_no_result(opcode, words) or _is_to_shared(words, template):
        return {}
    if opcode.startswith("v_cmpx") and len(operands) < 3:
        return {}
    if opcode.startswith("v_swap_b") or (words[1].startswith("permlane") and words[2:3] == ["swap"]):
        return {0: "m", 1: "m"}
    modes: dict[int, Mode] = {0: "m" if _is_modified(words) or _is_part(opcode, template) else "w"}
    is_old_carry = words[0] == "v" and words[1] in _CARRIES and words[2:3] == ["u32"]
    if _has_two_results(words) or (is_old_carry and len(operands) > 3 and operands[1].startswith("vcc")):
        modes[1] = "w"
    return modes


def _returns(template: str) -> bool:
    tokens = template.replace(",", " ").split()
    return any(
        token in ("glc", "sc0") or (token.startswith("th:TH_ATOMIC") and token.endswith("RETURN")) for token in tokens
    )


def _is_to_shared(words: list[str], template: str) -> bool:
    """Whether a load goes to LDS, as its opcode or its last word says."""
    if words[1] != "load":
        return False
    is_named = words[0] in ("buffer", "global", "scratch") and ("lds" in template.split() or words[-1] == "lds")
    return is_named or words[2:3] == ["lds"]


def _has_no_result(opcode: str, words: list[str]) -> bool:
    unit = words[0]
    if unit == "s":
        if words[1].startswith("set"):
            return True
        is_with_result = words[1:3] in (["barrier", "get"], ["sendmsg", "rtn"])
        return _begins(words, _SCALAR_WITHOUT_RESULT) and not is_with_result
    if unit == "v":
        return opcode in ("v_nop", "v_clrexcp", "v_pipeflush")
    if any(word[5:6].isdecimal() or len(word) == 5 for word in words[1:] if word.startswith(("store", "write"))):
        return True
    if unit == "ds":
        return "rtn" not in opcode and not words[1].startswith(_DS_WITH_RESULT)
    return opcode.startswith(_OTHER_WITHOUT_RESULT)


def _has_two_results(words: list[str]) -> bool:
    """A second destination: the carry, or the flag of a division."""
    if words[0] != "v":
        return False
    has_carry = "co" in words[2:-1] or words[1:3] == ["mad", "co"]
    is_wide = words[1] == "mad" and words[2:4] in (["i64", "i32"], ["u64", "u32"], ["i64", "u32"], ["u64", "i32"])
    return has_carry or is_wide or words[1:3] == ["div", "scale"]


def _is_modified(words: list[str]) -> bool:
    if "d16" in words[1:]:
        return True
    if words[0] == "s":
        return words[1] in _SCALAR_MODIFIED
    rest = "_".join(words[1:])
    adds_to_result = words[1].startswith("dot") and words[1].endswith("c") and len(words) > 2
    return words[0] == "v" and (rest.startswith(_MODIFIED) or adds_to_result)


def _is_part(opcode: str, template: str) -> bool:
    """Whether other lanes, bytes or halves of the register stay as they were."""
    if opcode.endswith(("_dpp", "_dpp8")) or "dst_unused:UNUSED_PRESERVE" in template:
        return True
    return not opcode.startswith(_PACKED) and _UPPER_HALF.search(template) is not None


def _implicit(opcode: str, words: list[str], template: str, named: list[tuple[str, Mode]]) -> list[tuple[str, Mode]]:
    found: list[tuple[str, Mode]] = []
    is_scalar = words[0] == "s"
    if is_scalar and _begins(words, _SCC_READ):
        found.append(("scc", "r"))
    if is_scalar and _begins(words, _SCC_WRITTEN) and not _keeps_scc(words):
        found.append(("scc", "w"))
    if opcode.startswith(("v_div_fmas", "v_dual_cndmask", "s_cbranch_vcc")):
        found.extend([("vcc_lo", "r"), ("vcc_hi", "r")])
    if _reads_m0(opcode, words, template) and ("m0", "r") not in named:
        found.append(("m0", "r"))
    if _saves_exec(words) or opcode.startswith("v_cmpx"):
        found.extend([("exec_lo", "m"), ("exec_hi", "m")])
    elif _reads_exec(opcode, words):
        found.extend([("exec_lo", "r"), ("exec_hi", "r")])
    return found


def _keeps_scc(words: list[str]) -> bool:
    """s_add_f32, s_add_nc_u64: no carry."""
    kind = "_".join(words[2:])
    is_number = kind in ("f16", "f32", "nc_u64", "u64") or (kind.startswith("num_f") and kind[5:].isdecimal())
    return words[1] in ("add", "sub", "max", "min") and is_number


def _reads_m0(opcode: str, words: list[str], template: str) -> bool:
    if opcode.startswith(("s_sendmsg", "s_ttracedata")) or "_load_lds_" in opcode:
        return True
    is_addressed = words[0] == "ds" and not words[1].startswith(("bpermute", "permute", "swizzle"))
    return is_addressed or "lds" in template.split()


def _reads_exec(opcode: str, words: list[str]) -> bool:
    if words[0] == "v":
        return not opcode.startswith(("v_readlane", "v_writelane"))
    return words[0] in _MEMORY_UNITS or opcode.startswith(("s_cbranch_exec", "s_sendmsg"))


def _saves_exec(words: list[str]) -> bool:
    """s_and_saveexec_b64, s_andn1_wrexec_b32."""
    return words[0] == "s" and words[-2] in ("saveexec", "wrexec") and words[-1] in ("b32", "b64") and len(words) > 3


def _exec_change(opcode: str, operands: tuple[str, ...], modes: dict[int, Mode]) -> ExecChange:
    if opcode.startswith("v_cmpx"):
        return "shrinks"
    shrinks = opcode.startswith(("s_and_saveexec", "s_and_wrexec", "s_and_b", "s_andn2_b", "s_and_not1_b"))
    if _saves_exec(opcode.split("_")):
        return "shrinks" if shrinks else "any"
    if 0 not in modes or not operands[0].startswith("exec"):
        return ""
    if operands[0] in operands[1:]:
        if shrinks:
            return "shrinks"
        if opcode.startswith("s_or_b"):
            return "grows"
    return "fills" if opcode.startswith("s_mov_b") and operands[1:] == ("-1",) else "any"

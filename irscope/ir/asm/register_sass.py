"""Which registers a SASS instruction reads and writes: operand widths, destinations, implicit predicates, control flow.

Sources: the instruction set tables of NVIDIA's "CUDA Binary Utilities" (the opcodes of Turing to Blackwell), the PTX
ISA's fragment sizes for matrix instructions (an M by K fragment of b-bit elements takes M·K·b / 1024 registers per
lane), and, as the oracle for every row, the live registers that `nvdisasm -plr` prints (`tests/ir/live_ranges.py`).
"""

from __future__ import annotations

import re

from irscope.ir.asm.instructions import split_operands
from irscope.ir.asm.registers import Access, Flow, Mode

# "@\x01P LDG.E.128 \x01R, desc[\x01UR][\x01R.64+0x10]": guard, opcode, operands
_LINE = re.compile(r"(?:(?P<guard>@!?(?:\x01U?P|U?PT))\s+)?(?P<opcode>[A-Z][\w.]*)(?:\s+(?P<operands>.*)|;)?$")
# "\x01UR" of "desc[\x01UR]"; its file, and what stands before and behind
_HOLE = re.compile(r"(?P<before>\w{0,12}\[?)(?:\x01(?P<file>UR|UP|R|P|B)|\x02)(?P<after>(?:\.\w+)*)")
# a destination: "\x01R", "\x01P", "RZ", "PT", "\x01R.64", but neither "-\x01R" nor "[\x01R]"
_PLAIN = re.compile(r"(?:\x01(?P<hole>UR|UP|R|P|B)|(?P<zero>URZ|UPT|RZ|PT))(?:\.\w+)*$")
_ZERO = {"URZ": "UR", "UPT": "UP", "RZ": "R", "PT": "P"}

_DESCRIPTORS: tuple[tuple[str, Mode], ...] = tuple([(f"UR{number}", "r") for number in range(63)])
_WIDEST = 256
"""The most registers that a thread can have."""
# the mask of P2R
_MASK = re.compile(r"0x[0-9a-f]{1,4}$")


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_NO_RESULT = _words(
    "ST STG STS STL STSM STTM RED REDG REDAS BRA BRX BRXU JMP JMX JMXU EXIT RET BAR MEMBAR NOP DEPBAR LDGDEPBAR",
    "LDGSTS WARPSYNC BSYNC BREAK ERRBAR CCTL CCTLL CCTLT UTMASTG UTMALDG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH",
    "UBLKCP UBLKPF UBLKRED UBLKSUM WARPGROUP WARPGROUPSET FENCE CALL KILL NANOSLEEP BPT CGAERRBAR UCGABAR_ARV",
    "UCGABAR_WAIT ARRIVES YIELD PREEXIT ACQBULK ENDCOLLECTIVE USETMAXREG SETCTAID SETLMEMBASE UTCBAR UTCCP",
    "UTCSHIFT UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA UVIRTCOUNT RTT PMTRIG CSMTEST SUST SURED UMEMSETS",
    "UTMEMBAR LDGMC RPCMOV",
)
# The first operand is the only destination, although another register may follow it.
_ONE_RESULT = _words("FCHK QSPC SYNCS P2R UP2UR R2P CSMTEST USETSHMSZ")
_TWO_PREDICATES = re.compile(r"U?(?:[FIDH]SETP2?|HSETP2|PLOP3|PSETP|ISETP|FSETP|DSETP)$")
# Every operand has one register, but for what the rules below say.
_KNOWN = _words(
    "FADD FADD32I FCHK FFMA FFMA32I FMNMX FMNMX3 FMUL FMUL32I FSEL FSET FSETP FSWZADD MUFU FADD2 FMUL2 FFMA2",
    "FHADD FHFMA HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2 DADD DFMA DMUL DMNMX DSETP",
    "DSET BMSK BREV FLO IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP",
    "LOP3 LOP32I POPC SHF SHL SHR VABSDIFF VABSDIFF4 VHMNMX VIADD VIADDMNMX VIMNMX VIMNMX3 F2F F2I I2F I2I I2IP",
    "I2FP F2FP F2IP FRND MOV MOV32I MOVM PRMT SEL SGXT SHFL PLOP3 PSETP P2R R2P LD LDC LDG LDL LDS LDSM LDTM ST",
    "STG STL STS STSM STTM MATCH QSPC ATOM ATOMS ATOMG ATOMGAS RED REDG REDAS CCTL CCTLL ERRBAR MEMBAR CCTLT",
    "LDGSTS LDGDEPBAR LDGMC R2UR REDUX CREDUX S2UR UBMSK UBREV UCLEA UF2FP UFLO UIADD3 UIMAD UIMNMX UISETP ULDC",
    "LDCU ULEA ULOP ULOP3 ULOP32I UMOV UP2UR UPLOP3 UPOPC UPRMT UPSETP UR2UP USEL USGXT USHF USHL USHR VOTE VOTEU",
    "UVIADD UVIMNMX UFADD UFMUL UFFMA UFMNMX UFSEL UFSET UFSETP UI2F UF2I UI2FP UF2F UFRND UF2IP UI2I UI2IP UIABS",
    "USETMAXREG BMOV BPT BRA BREAK BRX BRXU BSSY BSYNC CALL EXIT JMP JMX JMXU KILL NANOSLEEP RET RPCMOV RTT",
    "WARPSYNC YIELD B2R BAR CS2R CS2UR DEPBAR GETLMEMBASE LEPC NOP PMTRIG R2B S2R SETCTAID SETLMEMBASE FENCE",
    "WARPGROUP WARPGROUPSET UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKPF UBLKRED SYNCS",
    "ELECT ARRIVES CGAERRBAR PREEXIT UCGABAR_ARV UCGABAR_WAIT ACQBULK ENDCOLLECTIVE UTCBAR UTCCP UTCHMMA UTCIMMA",
    "UTCQMMA UTCOMMA UTCMXQMMA UTCSHIFT UTCATOMSWS UVIRTCOUNT UGETNEXTWORKID",
)
# HMMA.16816.F32   IMMA.16832.S8.S8   DMMA.8x8x4   QMMA.SF.16832   HGMMA.64x128x16.F16
_MATRIX = re.compile(
    r"[A-Z]*?(?P<kind>HMMA|IMMA|BMMA|DMMA|QMMA|OMMA|[HIQB]GMMA)(?:\.(?!\d)\w+)*"
    r"\.(?P<shape>\d{1,3}x\d{1,3}x\d{1,3}|16816|1688|1684|16832|16864|168128|168256|884|8816|8832|88128)(?P<types>(?:\.\w+)*)"
)
_SHAPES = {
    "16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "16832": (16, 8, 32), "16864": (16, 8, 64),
    "168128": (16, 8, 128), "168256": (16, 8, 256), "884": (8, 8, 4), "8816": (8, 8, 16), "8832": (8, 8, 32),
    "88128": (8, 8, 128),
}  # fmt: skip
_BITS = {"D": 64, "H": 16, "I": 8, "Q": 8, "O": 4, "B": 1}


def read_sass(template: str) -> Access | None:
    """What a line does with registers; None if it is not an instruction."""
    match = _LINE.match(template)
    if match is None:
        return None
    guard, opcode = match["guard"] or "", match["opcode"]
    operands = split_operands((match["operands"] or "").removesuffix(";").rstrip())
    base = opcode.partition(".")[0]
    is_guarded = bool(guard) and guard != "@PT" and guard != "@UPT"
    if not (base in _KNOWN or _MATRIX.match(opcode)) or opcode.startswith(("CALL.ABS", "CALL.ICALL")):
        return _unknown(template)
    results = _results(base, operands)
    widths = _Widths(opcode, base, operands, results)
    holes: list[tuple[int, Mode]] = [(1, "r")] * guard.count("\x01")
    for index, operand in enumerate(operands):
        for hole in _HOLE.finditer(operand):
            if hole["file"] is None:
                holes.append((0, "r"))
                continue
            width = min(widths.of(index, hole["before"], hole["file"], hole["after"]), _WIDEST)
            mode: Mode = "w" if index in results else "m" if base == "LDGSTS" and hole["file"] == "P" else "r"
            holes.append((width, mode))
    implicit = _implicit(base, operands)
    if base in _GLOBAL and "desc[" not in template and "\x01R.64" in template:
        # Before sm_90 the text does not name the pair of uniform registers that holds the memory descriptor.
        implicit += _DESCRIPTORS
    return Access(tuple(holes), implicit, is_guarded, flow=_flow(base, opcode, operands, is_guarded))


def _unknown(template: str) -> Access:
    # It may write what it names, and as many registers behind it as the widest plain operand has.
    files = [hole["file"] for hole in _HOLE.finditer(template)]
    holes: list[tuple[int, Mode]] = [(0, "r") if not file else (8 if "R" in file else 1, "m") for file in files]
    return Access(tuple(holes), is_partial=True, is_unknown=True)


def _results(base: str, operands: tuple[str, ...]) -> frozenset[int]:
    """Which operands are destinations."""
    if base in _NO_RESULT or not operands:
        return frozenset()
    files = [_file(operand) for operand in operands]
    if _TWO_PREDICATES.match(base):
        return frozenset(index for index in (0, 1) if index < len(files) and files[index] in ("P", "UP"))
    if base in ("IMNMX", "VIMNMX", "UIMNMX") and files[:2] == ["P", "P"]:
        return frozenset({0, 1, 2})  # IMNMX.S64 PT, PT, R22, R14, R10, PT, !PT
    if base in _ONE_RESULT:
        return frozenset({0}) if files[0] else frozenset()
    if base in ("VOTE", "VOTEU"):
        second = files[0] in ("R", "UR") and len(files) > 1 and files[1] in ("P", "UP")
        return frozenset({0, 1} if second else {0})
    if files[0] in ("P", "UP"):
        # A predicate, then the register: SHFL, ATOMG, LOP3, ELECT.
        return frozenset({0, 1} if len(files) > 1 and files[1] in ("R", "UR") else {0})
    if files[0] is None:
        return frozenset()
    # A register, then its carries: IADD3 R2, P0, P1, R4, R5, R6.
    end = 1
    while end < len(files) and end < 3 and files[end] in ("P", "UP"):
        end += 1
    if base == "LDG" and end < len(files) and files[end] in ("R", "UR"):
        end += 1  # LDG.E.ENL2.256 R4, R8, [...]: the halves of 256 bits
    return frozenset(range(end))


def _file(operand: str) -> str | None:
    match = _PLAIN.match(operand)
    if match is None:
        return None
    return match["hole"] or _ZERO[match["zero"]]


def _implicit(base: str, operands: tuple[str, ...]) -> tuple[tuple[str, Mode], ...]:
    """P2R R4, PR, RZ, 0x7f: the predicates that the mask names."""
    if base not in ("P2R", "UP2UR", "R2P", "UR2UP"):
        return ()
    mask = int(operands[-1], 16) if _MASK.match(operands[-1]) else 0x7F
    file = "UP" if base.startswith("U") else "P"
    mode: Mode = "m" if base in ("R2P", "UR2UP") else "r"
    return tuple([(f"{file}{number}", mode) for number in range(7) if mask >> number & 1])


def _flow(base: str, opcode: str, operands: tuple[str, ...], is_guarded: bool) -> Flow:
    if base in ("EXIT", "KILL"):
        return "next" if is_guarded or operands else "end"
    if base == "RET":
        return "return"
    if base == "CALL":
        return "call"
    if base in ("BRX", "BRXU", "JMX", "JMXU"):
        return "anywhere"
    if base in ("BRA", "JMP"):
        return "branch" if is_guarded or opcode != base or len(operands) > 1 else "jump"
    return "next"


# The width that an opcode states: LDG.E.128, STS.64, ATOMG.E.ADD.F32x4
_STATED = re.compile(
    r"\.(?:(?P<bits>64|128|256)|[USF](?P<number>64)|(?:B?F(?P<element>16|32)x(?P<count>\d{1,2})))(?![\w])"
)
# LDSM.16.M88.4: matrices
_COUNT = re.compile(r"\.(?P<count>[24])$")
# LDTM.16dp256bit.x4: tensor memory; one register per lane for 32dp32bit.x1
_TENSOR = re.compile(r"\.x(?P<count>\d{1,3})(?!\d)")
_TENSOR_ROW = {"64": 1, "128": 2, "256": 4, "32": 1}
_ACROSS = re.compile(r"\.\d+dp(?P<bits>\d{1,3})bit")
_DIMENSIONS = re.compile(r"\.(?P<count>[1-5])D")
_GLOBAL = frozenset({"LD", "ST", "LDG", "STG", "ATOM", "ATOMG", "RED", "REDG", "CCTL", "LDGSTS", "QSPC"})
_TYPE = re.compile(r"\.(?P<type>[USF]64|[USF]32|[USBF]+16|[US]8|F16)(?=\.|$)")
# IADD.64   SEL.64   ISETP.GE.S64.AND: the whole operation has 64 bits
_WIDE = re.compile(r"(?:U?(?:IADD|IADD3|MOV|SEL|LOP3|VIADD))\.64\b|U?ISETP\.\w+\.[US]64\b|U?V?IMNMX\.[US]64\b")


class _Widths:
    """How many registers each operand of one instruction has."""

    def __init__(self, opcode: str, base: str, operands: tuple[str, ...], results: frozenset[int]) -> None:
        self.opcode, self.base = opcode, base
        self.results = results
        self.first_source = max(results, default=-1) + 1
        self.operands = operands
        self.matrix = _MATRIX.match(opcode)

    def of(self, index: int, before: str, file: str, after: str) -> int:
        """The registers of a hole in operand `index`."""
        if file in ("P", "UP", "B"):
            return 1
        if before.endswith("[") or "[" in self.operands[index]:
            return self._address(index, before, file, after)
        if self.matrix is not None:
            return self._fragment(self.matrix, index)
        return self._plain(index, after)

    def _address(self, index: int, before: str, file: str, after: str) -> int:
        if before.startswith("gdesc"):
            return 4 if "GMMA" in self.base else 2
        if before.startswith(("desc", "cx")):
            return 2
        if self.base.startswith("UTMA"):
            return self._tensor_map(index)
        if self.base in ("UBLKCP", "UBLKPF", "UBLKRED"):
            return 2
        if ".64" in after:
            return 2
        if self.base == "CCTL" and ".E" in self.opcode:
            return 2
        if self.base in _GLOBAL and ".E" in self.opcode and not after and before == "[" and index in self._global():
            # [R2] of an ATOMG.E is a pair of registers although only LDG writes [R2.64].
            return 2
        return 2 if file == "UR" and self.base in _GLOBAL and index in self._global() else 1

    def _global(self) -> tuple[int, ...]:
        # LDGSTS writes to shared memory, its first operand, from global memory, its second.
        return (1,) if self.base == "LDGSTS" else tuple(range(len(self.operands)))

    def _tensor_map(self, index: int) -> int:
        # [UR8]: place in shared memory, barrier (for loads) and coordinates; [UR4]: address of the descriptor.
        if index or self.base == "UTMACCTL":
            return 2
        dimensions = _DIMENSIONS.search(self.opcode)
        count = int(dimensions["count"]) if dimensions else 5
        return count + (2 if self.base == "UTMALDG" else 1)

    def _fragment(self, matrix: re.Match[str], index: int) -> int:
        shape = matrix["shape"]
        m, n, k = tuple(map(int, shape.split("x"))) if "x" in shape else _SHAPES[shape]
        types = matrix["types"].split(".")
        lanes = 128 if "GMMA" in matrix["kind"] else 32
        bits = _bits(matrix["kind"][0], types)
        place = index - self.first_source
        if "gdesc" in self.operands[self.first_source]:
            place += 1  # one descriptor for both matrices
        if index in self.results or place == 2:
            size = 64 if matrix["kind"] == "DMMA" else 16 if len(types) > 1 and types[1] == "F16" else 32
            return max(1, m * n * size // 32 // lanes)
        if ".SP" in self.opcode and place < 2:
            return max(1, m * k * bits // 64 // lanes) if place == 0 else max(1, n * k * bits // 32 // lanes)
        if place == 0:
            return max(1, m * k * bits // 32 // lanes)
        return max(1, n * k * bits // 32 // lanes) if place == 1 else 1

    def _plain(self, index: int, after: str) -> int:
        base, opcode = self.base, self.opcode
        is_result, place = index in self.results, index - self.first_source
        if _WIDE.match(opcode):
            return 2
        if base in ("DADD", "DMUL", "DFMA", "DMNMX", "DSETP", "DSET"):
            return 1 if base == "DSET" and is_result else 2
        if base in ("FADD2", "FMUL2", "FFMA2"):
            return 2 if is_result or ".F32x2" in after else 1
        if base in ("IMAD", "UIMAD", "IMUL") and ".WIDE" in opcode:
            return 2 if is_result or place == 2 else 1
        if base in ("IMAD", "UIMAD") and ".HI" in opcode and place == 2:
            # With a carry out, IMAD.HI adds to 64 bits.
            return 2 if len(self.results) > 1 else 1
        if base in ("F2F", "F2I", "I2F", "FRND", "UF2F", "UF2I", "UI2F"):
            return self._conversion(base.removeprefix("U"), is_result)
        if base in ("CS2R", "CS2UR"):
            return 1 if ".32" in opcode else 2
        if base in ("LEPC", "GETLMEMBASE"):
            return 2
        if base in ("RET", "BRX", "BRXU", "JMX", "JMXU", "CALL", "SETLMEMBASE"):
            return 2
        if base in ("LDSM", "STSM"):
            count = _COUNT.search(opcode)
            return int(count["count"]) if count else 1
        if base in ("LDTM", "STTM"):
            return self._tensor_memory()
        if base == "SYNCS":
            return 2 if (".64" in opcode and ".EXCH" in opcode) or ".CAS" in opcode else 1
        if base in ("UTCATOMSWS", "UBLKCP", "UBLKRED"):
            return 1
        if base in ("ULDC", "LDC", "LDCU") or (base.startswith(("LD", "ST", "ATOM", "RED")) and base != "REDUX"):
            return self._stated()
        return 1

    def _stated(self) -> int:
        if ".ENL2" in self.opcode:
            return 4
        match = _STATED.search(self.opcode)
        if match is None:
            return 1
        if match["element"]:
            return max(1, int(match["element"]) * int(match["count"]) // 32)
        return int(match["bits"] or match["number"]) // 32

    def _conversion(self, base: str, is_result: bool) -> int:
        types = [match["type"] for match in _TYPE.finditer(self.opcode)]
        if base in ("F2F", "FRND"):
            types = types or ["F32"]
            own = types[0] if is_result else types[-1]
            return 2 if own.endswith("64") else 1
        floats = [name for name in types if name.startswith("F")]
        integers = [name for name in types if name[0] in "US"]
        own = (floats if (base == "I2F") == is_result else integers)[:1]
        return 2 if own and own[0].endswith("64") else 1

    def _tensor_memory(self) -> int:
        count, across = _TENSOR.search(self.opcode), _ACROSS.search(self.opcode)
        each = _TENSOR_ROW.get(across["bits"], 1) if across else 1
        # Packed: two elements of 16 bits in a register.
        return max(1, (int(count["count"]) if count else 1) * each)


def _bits(kind: str, types: list[str]) -> int:
    """The bits of an element of the multiplied matrices."""
    for name in types[1:]:
        if name == "TF32":
            return 32
        if name in ("S8", "U8", "E4M3", "E5M2"):
            return 8
        if name in ("S4", "U4", "E2M1"):
            return 4 if kind in "IO" else 8
    return _BITS[kind]

"""The table of SASS: what each opcode is, which operands it writes, how many registers each has, where it goes on.

Sources: the instruction set tables of NVIDIA's "CUDA Binary Utilities" (the opcodes of Turing to Blackwell), the PTX
ISA's fragment sizes for matrix instructions (an M by K fragment of b-bit elements takes M·K·b / 1024 registers per
lane), and, as the oracle for every row, the live registers that `nvdisasm -plr` prints (`tests/ir/live_ranges.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from irscope.ir.asm.operands import Flow, Mode, RegisterAccess, opcode_rows, split_operands, word_set

_ROWS = {opcode: (family, results) for family, results, opcodes in opcode_rows("sass") for opcode in opcodes.split()}
_FLOWS: dict[str, Flow] = {
    "BRA": "branch", "JMP": "branch", "BRX": "anywhere", "BRXU": "anywhere", "JMX": "anywhere", "JMXU": "anywhere",
    "EXIT": "end", "KILL": "end", "RET": "return", "CALL": "call",
}  # fmt: skip
"""Where those opcodes go that do not always go on to the next instruction."""

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
_MASKED = ("P2R", "UP2UR", "R2P", "UR2UP")

_MATRICES = frozenset({"HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA"})
_SHAPES = {
    "16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "16832": (16, 8, 32), "16864": (16, 8, 64),
    "168128": (16, 8, 128), "168256": (16, 8, 256), "884": (8, 8, 4), "8816": (8, 8, 16), "8832": (8, 8, 32),
    "88128": (8, 8, 128),
}  # fmt: skip
_BITS = {"D": 64, "H": 16, "I": 8, "Q": 8, "O": 4, "B": 1}


@lru_cache(4096)
def sass_family(opcode: str) -> str | None:
    """The family of an opcode with its modifiers; None for one that has none, or that the table does not know."""
    base, *modifiers = opcode.split(".")
    family, _ = _ROWS.get(base, ("", ""))
    if opcode.startswith("IMAD.MOV"):
        return "move"
    return family.format(_moved_bits(modifiers)) if "{}" in family else family or None


def _moved_bits(modifiers: list[str]) -> int:
    """The bits that a thread moves: `LDG.E.128`, `STS.U8`."""
    for part in modifiers:
        bits = part.lstrip("US")
        if bits in ("8", "16", "64", "96", "128", "256"):
            return int(bits)
    return 32


def sass_flow(opcode: str) -> Flow:
    """Where an opcode goes on, if no predicate switches it off: a `branch` may be unconditional."""
    return _FLOWS.get(opcode.partition(".")[0], "next")


@lru_cache(1 << 12)
def sass_access(template: str) -> RegisterAccess | None:
    """The register accesses of a line; None if it is not an instruction."""
    match = _LINE.match(template)
    if match is None:
        return None
    guard, opcode = match["guard"] or "", match["opcode"]
    operands = split_operands((match["operands"] or "").removesuffix(";").rstrip())
    parts = opcode.split(".")
    matrix = _matrix(parts)
    is_guarded = bool(guard) and guard not in ("@PT", "@UPT")
    is_known = matrix is not None if parts[0] in _MATRICES else parts[0] in _ROWS
    if not is_known or opcode.startswith(("CALL.ABS", "CALL.ICALL")):
        return _unknown(template)
    results = _results(parts[0], operands)
    widths = _Widths(parts, operands, results, matrix)
    holes: list[tuple[int, Mode]] = [(1, "r")] * guard.count("\x01")
    for index, operand in enumerate(operands):
        for hole in _HOLE.finditer(operand):
            if hole["file"] is None:
                holes.append((0, "r"))
                continue
            width = min(widths.of(index, hole["before"], hole["file"], hole["after"]), _WIDEST)
            mode: Mode = "w" if index in results else "m" if parts[0] == "LDGSTS" and hole["file"] == "P" else "r"
            holes.append((width, mode))
    implicit = _implicit(parts[0], operands)
    if parts[0] in _GLOBAL and "desc[" not in template and "\x01R.64" in template:
        # Before sm_90 the text does not name the pair of uniform registers that holds the memory descriptor.
        implicit += _DESCRIPTORS
    return RegisterAccess(tuple(holes), implicit, is_guarded, flow=_flow(opcode, operands, is_guarded))


def _unknown(template: str) -> RegisterAccess:
    # It may write what it names, and as many registers behind it as the widest plain operand has.
    files = [hole["file"] for hole in _HOLE.finditer(template)]
    holes: list[tuple[int, Mode]] = [(0, "r") if not file else (8 if "R" in file else 1, "m") for file in files]
    return RegisterAccess(tuple(holes), is_partial=True, is_unknown=True)


def _results(base: str, operands: tuple[str, ...]) -> frozenset[int]:
    rule = _ROWS[base][1]
    if rule == "none" or not operands:
        return frozenset()
    files = [_file(operand) for operand in operands]
    if rule == "predicates":
        return frozenset(index for index in (0, 1) if index < len(files) and files[index] in ("P", "UP"))
    if base in ("IMNMX", "VIMNMX", "UIMNMX") and files[:2] == ["P", "P"]:
        return frozenset({0, 1, 2})  # IMNMX.S64 PT, PT, R22, R14, R10, PT, !PT
    if rule == "first":
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
    if base not in _MASKED or not operands:
        return ()
    digits = operands[-1].removeprefix("0x")
    is_mask = digits != operands[-1] and len(digits) < 5 and set(digits) <= set("0123456789abcdef")
    mask = int(digits or "0", 16) if is_mask else 0x7F
    file = "UP" if base.startswith("U") else "P"
    mode: Mode = "m" if base in ("R2P", "UR2UP") else "r"
    return tuple([(f"{file}{number}", mode) for number in range(7) if mask >> number & 1])


def _flow(opcode: str, operands: tuple[str, ...], is_guarded: bool) -> Flow:
    flow = sass_flow(opcode)
    if flow == "end":
        return "next" if is_guarded or operands else "end"
    if flow == "branch":
        return "branch" if is_guarded or "." in opcode or len(operands) > 1 else "jump"
    return flow


_GLOBAL = frozenset({"LD", "ST", "LDG", "STG", "ATOM", "ATOMG", "RED", "REDG", "CCTL", "LDGSTS", "QSPC"})
_NUMBER_TYPES = word_set("U64 S64 F64 U32 S32 F32 U16 S16 F16 BF16 B16 U8 S8")
_WIDE_WITH_64 = (
    "IADD", "IADD3", "MOV", "SEL", "LOP3", "VIADD", "UIADD", "UIADD3", "UMOV", "USEL", "ULOP3", "UVIADD",
)  # fmt: skip
_CONVERSIONS = ("F2F", "F2I", "I2F", "FRND", "UF2F", "UF2I", "UI2F", "UFRND")
_TENSOR_ROW = {"64": 1, "128": 2, "256": 4, "32": 1}


@lru_cache(256)
def _matrix_shape(text: str) -> tuple[int, int, int] | None:
    """The rows, columns and depth of `16816` or `64x128x16`."""
    sizes = text.split("x")
    if len(sizes) == 1:
        return _SHAPES.get(text)
    if len(sizes) != 3 or not all(size.isdecimal() and len(size) < 4 for size in sizes):
        return None
    return int(sizes[0]), int(sizes[1]), int(sizes[2])


def _matrix(parts: list[str]) -> tuple[tuple[int, int, int], list[str]] | None:
    """The shape and the types of a matrix multiplication: `HMMA.16816.F32`; None for anything else."""
    if parts[0] not in _MATRICES:
        return None
    place = next((place for place, part in enumerate(parts) if part[:1].isdigit()), 0)
    shape = _matrix_shape(parts[place])
    return None if shape is None else (shape, parts[place + 1 :])


class _Widths:
    """How many registers each operand of one instruction has."""

    def __init__(
        self,
        parts: list[str],
        operands: tuple[str, ...],
        results: frozenset[int],
        matrix: tuple[tuple[int, int, int], list[str]] | None,
    ) -> None:
        self.base, *self.modifiers = parts
        self.results = results
        self.first_source = max(results, default=-1) + 1
        self.operands = operands
        self.matrix = matrix

    def of(self, index: int, before: str, file: str, after: str) -> int:
        if file in ("P", "UP", "B"):
            return 1
        if before.endswith("[") or "[" in self.operands[index]:
            return self._address(index, before, file, after)
        if self.matrix is not None:
            return self._fragment(*self.matrix, index)
        return self._plain(index, after)

    def _address(self, index: int, before: str, file: str, after: str) -> int:
        if before.startswith("gdesc"):
            return 4 if "GMMA" in self.base else 2
        if before.startswith(("desc", "cx")):
            return 2
        if self.base.startswith("UTMA"):
            # [UR8]: place in shared memory, barrier (for loads) and coordinates; [UR4]: address of the descriptor.
            if index or self.base == "UTMACCTL":
                return 2
            dimensions = [part[0] for part in self.modifiers if part[:1] in "12345" and part[1:2] == "D"]
            count = int(dimensions[0]) if dimensions else 5
            return count + (2 if self.base == "UTMALDG" else 1)
        if self.base in ("UBLKCP", "UBLKPF", "UBLKRED"):
            return 2
        if ".64" in after:
            return 2
        is_extended = any(part.startswith("E") for part in self.modifiers)
        if self.base == "CCTL" and is_extended:
            return 2
        if self.base in _GLOBAL and is_extended and not after and before == "[" and index in self._global():
            # [R2] of an ATOMG.E is a pair of registers although only LDG writes [R2.64].
            return 2
        return 2 if file == "UR" and self.base in _GLOBAL and index in self._global() else 1

    def _global(self) -> tuple[int, ...]:
        # LDGSTS writes to shared memory, its first operand, from global memory, its second.
        return (1,) if self.base == "LDGSTS" else tuple(range(len(self.operands)))

    def _fragment(self, shape: tuple[int, int, int], types: list[str], index: int) -> int:
        m, n, k = shape
        lanes = 128 if self.base.endswith("GMMA") else 32
        bits = _bits(self.base[0], types)
        place = index - self.first_source
        if "gdesc" in self.operands[self.first_source]:
            place += 1  # one descriptor for both matrices
        if index in self.results or place == 2:
            size = 64 if self.base == "DMMA" else 16 if types[:1] == ["F16"] else 32
            return max(1, m * n * size // 32 // lanes)
        if "SP" in self.modifiers and place < 2:
            return max(1, m * k * bits // 64 // lanes) if place == 0 else max(1, n * k * bits // 32 // lanes)
        if place == 0:
            return max(1, m * k * bits // 32 // lanes)
        return max(1, n * k * bits // 32 // lanes) if place == 1 else 1

    def _plain(self, index: int, after: str) -> int:
        base, modifiers = self.base, self.modifiers
        is_result, place = index in self.results, index - self.first_source
        if self._is_wide():
            return 2
        if base in ("DADD", "DMUL", "DFMA", "DMNMX", "DSETP", "DSET"):
            return 1 if base == "DSET" and is_result else 2
        if base in ("FADD2", "FMUL2", "FFMA2"):
            return 2 if is_result or ".F32x2" in after else 1
        if base in ("IMAD", "UIMAD", "IMUL") and "WIDE" in modifiers:
            return 2 if is_result or place == 2 else 1
        if base in ("IMAD", "UIMAD") and "HI" in modifiers and place == 2:
            # With a carry out, IMAD.HI adds to 64 bits.
            return 2 if len(self.results) > 1 else 1
        if base in _CONVERSIONS:
            return self._conversion(base.removeprefix("U"), is_result)
        if base in ("CS2R", "CS2UR"):
            return 1 if "32" in modifiers else 2
        if base in ("LEPC", "GETLMEMBASE", "RET", "BRX", "BRXU", "JMX", "JMXU", "CALL", "SETLMEMBASE"):
            return 2
        if base in ("LDSM", "STSM"):
            return int(modifiers[-1]) if modifiers and modifiers[-1] in ("2", "4") else 1
        if base in ("LDTM", "STTM"):
            # LDTM.16dp256bit.x4; one register per lane for 32dp32bit.x1.
            across = next((part.partition("dp")[2].partition("bit")[0] for part in self.modifiers if "dp" in part), "")
            counts = [part[1:] for part in self.modifiers if part.startswith("x") and part[1:].isdecimal()]
            count = int(counts[0][:3]) if counts else 1
            # Packed: two elements of 16 bits in a register.
            return max(1, count * _TENSOR_ROW.get(across, 1))
        if base == "SYNCS":
            return 2 if ("64" in modifiers and "EXCH" in modifiers) or "CAS" in modifiers else 1
        if base in ("UTCATOMSWS", "UBLKCP", "UBLKRED"):
            return 1
        if base in ("ULDC", "LDC", "LDCU") or (base.startswith(("LD", "ST", "ATOM", "RED")) and base != "REDUX"):
            return self._stated()
        return 1

    def _is_wide(self) -> bool:
        """Whether the whole operation has 64 bits: IADD.64, ISETP.GE.S64.AND, VIMNMX.U64."""
        first, second = (*self.modifiers, "", "")[:2]
        if self.base in _WIDE_WITH_64:
            return first == "64"
        if self.base in ("ISETP", "UISETP"):
            return second in ("U64", "S64")
        return self.base in ("IMNMX", "VIMNMX", "UIMNMX", "UVIMNMX") and first in ("U64", "S64")

    def _stated(self) -> int:
        """As the opcode states: LDG.E.128, STS.64, ATOMG.E.ADD.F32x4."""
        if "ENL2" in self.modifiers:
            return 4
        for part in self.modifiers:
            if part in ("64", "128", "256", "U64", "S64", "F64"):
                return int(part.lstrip("USF")) // 32
            element, _, count = part.removeprefix("B").partition("x")
            if element in ("F16", "F32") and count.isdecimal() and len(count) < 3:
                return max(1, int(element[1:]) * int(count) // 32)
        return 1

    def _conversion(self, base: str, is_result: bool) -> int:
        types = [part for part in self.modifiers if part in _NUMBER_TYPES]
        if base in ("F2F", "FRND"):
            types = types or ["F32"]
            own = types[0] if is_result else types[-1]
            return 2 if own.endswith("64") else 1
        floats = [name for name in types if name.startswith("F")]
        integers = [name for name in types if name[0] in "US"]
        own = (floats if (base == "I2F") == is_result else integers)[:1]
        return 2 if own and own[0].endswith("64") else 1


def _bits(kind: str, types: list[str]) -> int:
    for name in types:
        if name == "TF32":
            return 32
        if name in ("S8", "U8", "E4M3", "E5M2"):
            return 8
        if name in ("S4", "U4", "E2M1"):
            return 4 if kind in "IO" else 8
    return _BITS[kind]

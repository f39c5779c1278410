"""Changes one register, immediate or modifier of a text at random, and proves by other means where that says the same.

`python mutations.py COUNT SEED FILE...` makes COUNT changes a format in all files and prints those that the comparison
calls identical without proof. A `.plr` file (`nvdisasm -c -plr`) stands for its SASS and says what is live in it.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from irscope.analysis.diff.texts import diff_texts
from irscope.model.capture import StageKind
from tests.ir.live_ranges import Row, read_live_ranges

_REGISTERS: dict[str, re.Pattern[str]] = {
    "sass": re.compile(r"\b(?P<file>U?[RP])(?P<number>\d+)\b"),
    "amdgcn": re.compile(
        r"\b(?P<file>[vas])(?:(?P<number>\d+)\b|\[(?P<first>\d+):(?P<last>\d+)\])|\b(?:vcc|exec)(?:_lo)?\b"
    ),
    "ptx": re.compile(r"%(?P<file>r|rd|rs|f|fd|p|rh|b|h|hh)(?P<number>\d+)\b(?!\.)"),
    "llvm": re.compile(r"%(?P<number>[\w.]+)"),
    "mlir": re.compile(r"%(?P<number>[\w$-]+)(?![\w$.-])"),
}
# 0x10   128   1.5e-03   but no part of a name or register
_NUMBER = re.compile(r"(?<![\w.%#@$:\[])-?(?:0x[0-9a-f]+|\d+)(?![\w.:\]])")
# .F32   .E   _e64: modifiers of an opcode; eq, slt: conditions; nsw: flags
_MODIFIER: dict[str, re.Pattern[str]] = {
    "sass": re.compile(r"(?<=[A-Z0-9])\.[A-Z][A-Z0-9]+\b"),
    "amdgcn": re.compile(r"(?<=[a-z0-9])_(?:[uif](?:16|32|64)|b32|b64|lo|hi|gt|lt|eq|ne)\b"),
    "ptx": re.compile(r"(?<=[a-z0-9])\.(?:[usfb](?:16|32|64)|global|shared|rn|ftz|approx|lo|hi|wide|v[24])\b"),
    "llvm": re.compile(r"\b(?:slt|sgt|sge|sle|ult|eq|ne|olt|ogt|nsw|nuw|i32|i64|float|addrspace|tail|exact)\b"),
    "mlir": re.compile(r"\b(?:slt|sgt|sge|sle|ult|eq|ne|olt|ogt|i32|i64|f32|f16|i1)\b"),
}
_LABEL = re.compile(r"(?:\.LBB\d+_|\.L_x_|\$L__BB\d+_)\d+\b")


@dataclass(frozen=True)
class Change:
    """One changed text."""

    text: str
    line: int
    """0-based."""
    before: str
    after: str
    column: int


def changeable(lines: list[str], kind: StageKind) -> list[int]:
    """The lines that hold an operation: no declaration, comment, location or debug information."""
    found: list[int] = []
    in_code = kind in ("mlir", "llvm", "sass")
    for number, line in enumerate(lines):
        stripped = line.strip()
        if kind == "ptx":
            in_code = (in_code or stripped.startswith("{")) and not stripped.startswith("}") and ".section" not in line
            if in_code and re.match(r"(?:@!?%p\d+\s+)?[a-z][\w.]*\s", stripped) and stripped.endswith(";"):
                found.append(number)
        elif kind == "amdgcn":
            in_code = (in_code or re.match(r"[\w$]+:", line) is not None) and ".section" not in line
            if in_code and re.match(r"\s+[a-z]\w*(?:\s|$)", line):
                found.append(number)
        elif kind == "sass":
            if re.match(r"\s*(?:/\*[0-9a-f]{4,}\*/|[0-9a-f]{4,}  )", line) and "NOP" not in line:
                found.append(number)
        elif kind == "llvm":
            if line.startswith("  ") and "#dbg" not in line and "@llvm.dbg" not in line:
                found.append(number)
        elif " = " in line and not re.match(r"#loc|//", stripped):
            found.append(number)
    return found


def changed(text: str, kind: StageKind, rng: random.Random, lines: list[int], names: list[str]) -> Change | None:
    """The text with one change in one of the lines; None where the dice fell on nothing."""
    all_lines = text.split("\n")
    number = rng.choice(lines)
    line = all_lines[number]
    end = len(line)
    for mark in {"mlir": (" loc(",), "llvm": (", !dbg",), "amdgcn": (";",), "sass": ("/* 0x", " ;"), "ptx": ("//",)}[
        kind
    ]:
        place = line.find(mark)
        end = min(end, place) if place >= 0 else end
    start = line.index("*/") + 2 if kind == "sass" and "*/" in line[:40] else 0
    patterns: list[re.Pattern[str]] = [_REGISTERS[kind], _NUMBER, _MODIFIER[kind], _LABEL]
    pattern = rng.choices(patterns, (6, 2, 2, 1))[0]
    found = list(pattern.finditer(line, start, end))
    if not found:
        return None
    match = rng.choice(found)
    if pattern is _REGISTERS[kind]:
        after = _other_register(match, kind, rng, names)
    elif pattern is _NUMBER:
        after = str(int(match[0], 16) + 1) if "0x" not in match[0] else hex(abs(int(match[0], 16)) + 1)
    else:
        after = rng.choice(sorted({one[0] for other in all_lines for one in pattern.finditer(other)}))
    if after == match[0]:
        return None
    all_lines[number] = line[: match.start()] + after + line[match.end() :]
    return Change("\n".join(all_lines), number, match[0], after, match.start())


def _other_register(match: re.Match[str], kind: StageKind, rng: random.Random, names: list[str]) -> str:
    if kind in ("mlir", "llvm"):
        return rng.choice(names)
    groups = match.groupdict()
    if groups.get("first"):
        width = int(groups["last"]) - int(groups["first"])
        first = rng.choice([n for n in range(0, 96, 2) if n != int(groups["first"])])
        return f"{groups['file']}[{first}:{first + width}]"
    if not groups.get("number"):
        return "s[90:91]" if not match[0].endswith("_lo") else "s90"
    limit = 7 if groups["file"] in ("P", "UP") else 60 if groups["file"] == "UR" else 100
    sign = "%" if kind == "ptx" else ""
    return f"{sign}{groups['file']}{rng.randrange(limit)}"


def is_identical(left: str, right: str, kind: StageKind) -> bool:
    return diff_texts(left, right, kind).is_empty


# ── proofs that a change says the same ────────────────────────────────────────────────────────────────────────────


def dead_by_name(text: str, change: Change, kind: StageKind) -> bool:
    """The old name stands nowhere else and neither does the new one: nobody reads what was renamed."""
    pattern = _REGISTERS[kind]
    body = "\n".join(line for line in text.split("\n") if not line.strip().startswith((".reg", "//")))
    counts = [match[0] for match in pattern.finditer(body)]
    if counts.count(change.before) != 1:
        return False
    if kind != "mlir":
        return counts.count(change.after) == 0
    # A result that takes a name which is defined anew before anybody reads it; MLIR reuses names so.
    behind = "\n".join(text.split("\n")[change.line + 1 :])
    following = re.search(rf"{re.escape(change.after)}(?![\w$.-])(?P<defines>(?::\d+)? = )?", behind)
    return following is None or following["defines"] is not None


def dead_by_ranges(rows: dict[int, tuple[Row, set[str]]], change: Change, line: str) -> bool:
    """nvdisasm's live ranges: what is written there is dead behind it, under the old name and under the new one."""
    offset = int(re.findall(r"/\*([0-9a-f]{4,})\*/", line)[0], 16)
    row, behind = rows[offset]
    old, new = _split(change.before), _split(change.after)
    width = 0
    while f"{old[0]}{old[1] + width}" in row.written:
        width += 1
        if f"{old[0]}{old[1] + width}" in _named(row.text):
            break
    olds = {f"{old[0]}{old[1] + n}" for n in range(width)}
    news = {f"{new[0]}{new[1] + n}" for n in range(width)}
    if sum(bool(re.search(r"\bR1\b", other.text)) for other, _ in rows.values()) == 1:
        behind = behind - {"R1"}  # nvdisasm calls the stack pointer live everywhere, also where nobody reads it
    return bool(olds) and not olds & behind and not news & behind


def _named(text: str) -> set[str]:
    return {match[0] for match in _REGISTERS["sass"].finditer(text)}


def _split(name: str) -> tuple[str, int]:
    match = re.match(r"([A-Z]+)(\d+)", name)
    return (match[1], int(match[2])) if match else (name, 0)


def rows_by_offset(rows: list[Row]) -> dict[int, tuple[Row, set[str]]]:
    """Offset -> its row and the registers that are live behind it: before any instruction that may follow."""
    labels: dict[str, int] = {}
    code = [row for row in rows if row.text]
    waiting: list[str] = []
    for row in rows:
        if row.label:
            waiting.append(row.label)
        else:
            labels |= dict.fromkeys(waiting, row.offset)
            waiting = []
    by_offset = {row.offset: row for row in code}
    alive = {row.offset: {r for r, m in (row.marks or {}).items() if m in "vx:"} for row in code}
    found: dict[int, tuple[Row, set[str]]] = {}
    for row, after in zip(code, [*code[1:], None], strict=True):
        behind = set(alive[after.offset]) if after is not None else set()
        target = re.search(r"`\(([^)]+)\)", row.text)
        if target and target[1] in labels:
            behind |= alive[labels[target[1]]]
        found[row.offset] = (by_offset[row.offset], behind)
    return found


# An instruction that writes its first operand and nothing else, whole: v_mov_b32_e32 v5, ...
_PLAIN_WRITE = re.compile(
    r"(?:v|s)_(?:mov|add|sub|mul|and|andn2|or|xor|lshl|lshr|ashr|lshlrev|lshrrev|ashrrev|cndmask|cselect|max|min|fma|exp|rcp"
    r"|cvt_f|cvt_i|cvt_u|cmp_\w+|div_scale|mad|readfirstlane|perm|bfe|not)_?\w*?(?:_e32|_e64|_[ubif]\d+)$"
    r"|s_load_\w+|ds_read2?(?:st64)?_b\d+|(?:global|buffer)_load_(?:dword\w*|b\d+)"
)


_TWO_RESULTS = re.compile(r"v_(?:div_scale|mad_[iu]64|mad_co|\w+_co_)")


def dead_by_paths(lines: list[str], change: Change) -> bool:
    """On every path from the line no text mentions the register, old or new, before a plain instruction overwrites it.

    For AMDGCN, whose texts state every register with its width. Reads the text by itself: labels, branches, names.
    """
    first = lines[change.line].split(";")[0]
    operands = first.strip().split(None, 1)[1] if len(first.split(None, 1)) > 1 else ""
    place = first[: change.column].count(",")
    has_two = _TWO_RESULTS.match(first.strip()) is not None
    if (
        change.column < first.index(operands)
        or place > has_two
        or re.match(r"\s*\w*(?:store|write|atomic|cmpx|fmac|mac_|swap)", first)
    ):
        return False  # only the first operand, or the first two, can be destinations
    old, new = _units(change.before), _units(change.after)
    writes_exec = any(re.search(r"\bexec|saveexec|cmpx", line.split(";")[0]) for line in lines)
    return all(_dead_behind(lines, change.line, unit, writes_exec) for unit in old | new)


def _units(text: str) -> set[str]:
    found: set[str] = set()
    for match in _REGISTERS["amdgcn"].finditer(text):
        if match["file"] is None:
            found |= {"vcc_lo", "vcc_hi"} if "vcc" in match[0] else {"exec"}
        elif match["first"]:
            found |= {f"{match['file']}{n}" for n in range(int(match["first"]), int(match["last"]) + 1)}
        else:
            found.add(f"{match['file']}{match['number']}")
    return found


def _dead_behind(lines: list[str], start: int, unit: str, writes_exec: bool) -> bool:
    labels = {match[1]: number for number, line in enumerate(lines) if (match := re.match(r"(\.?[\w$.]+):", line))}
    waiting, seen = [start + 1], set[int]()
    while waiting:
        number = waiting.pop()
        is_straight = number == start + 1
        while number < len(lines) and number not in seen:
            seen.add(number)
            words = lines[number].split(";")[0].split(None, 1)
            opcode = words[0] if words and lines[number][:1] in " \t" else ""
            operands = words[1] if opcode and len(words) > 1 else ""
            if opcode == "s_endpgm":
                break
            if unit in _units(operands) or (unit.startswith("vcc") and ("vcc" in opcode or "div_fmas" in opcode)):
                parts = operands.split(",")
                count = 2 if _TWO_RESULTS.match(opcode) else 1
                head, rest = ",".join(parts[:count]), ",".join(parts[count:])
                # Under another mask other lanes would be written.
                same_lanes = unit[0] not in "va" or not writes_exec or is_straight
                whole = _PLAIN_WRITE.match(opcode) and same_lanes and "dpp" not in opcode
                if whole and unit in _units(head) and unit not in _units(rest) and "sdwa" not in opcode:
                    break
                return False
            is_straight = is_straight and not re.search(r"exec|cmpx|branch", lines[number].split(";")[0])
            if opcode.startswith(("s_branch", "s_cbranch")):
                waiting.append(labels[operands.strip()])
                if opcode == "s_branch":
                    break
            elif opcode.startswith(("s_setpc", "s_swappc", "s_call")):
                return False
            number += 1
    return True


def survivors(
    text: str, kind: StageKind, count: int, rng: random.Random, proof: Callable[[Change], bool]
) -> tuple[int, int, list[Change]]:
    """(changes made, called identical and proved so, called identical without proof)."""
    all_lines = text.split("\n")
    lines = changeable(all_lines, kind)
    names = sorted({match[0] for number in lines for match in _REGISTERS[kind].finditer(all_lines[number])})
    made = proved = 0
    wrong: list[Change] = []
    while made < count and lines:
        change = changed(text, kind, rng, lines, names)
        if change is None:
            continue
        made += 1
        if is_identical(text, change.text, kind):
            if proof(change):
                proved += 1
            else:
                wrong.append(change)
    return made, proved, wrong


def proof_for(text: str, kind: StageKind, listing: str = "") -> Callable[[Change], bool]:
    """What proves for a format that a change touched only what nobody reads."""
    lines = text.split("\n")
    if kind == "amdgcn":
        return lambda change: dead_by_paths(lines, change)
    if kind == "sass":
        rows: dict[int, tuple[Row, set[str]]] = {}
        for function in read_live_ranges(listing):
            rows |= rows_by_offset(function)
        return lambda change: dead_by_ranges(rows, change, lines[change.line])
    return lambda change: dead_by_name(text, change, kind)


def without_live_ranges(listing: str) -> str:
    """The SASS of a listing of `nvdisasm -plr`."""
    return "\n".join(re.sub(r"\s*// [|+].*$", "", line) for line in listing.split("\n"))


_KINDS: dict[str, StageKind] = {
    ".plr": "sass", ".amdgcn": "amdgcn", ".ptx": "ptx", ".llir": "llvm", ".ttgir": "mlir", ".ttir": "mlir"
}  # fmt: skip

if __name__ == "__main__":
    wanted, seed = int(sys.argv[1]), int(sys.argv[2])
    by_kind: dict[StageKind, list[Path]] = {}
    for name in sys.argv[3:]:
        by_kind.setdefault(_KINDS[Path(name).suffix], []).append(Path(name))
    bad = 0
    for kind, paths in by_kind.items():
        totals = [0, 0, 0]
        for index, path in enumerate(paths):
            read = path.read_text()
            source = without_live_ranges(read) if kind == "sass" else read
            share = wanted // len(paths) + (index < wanted % len(paths))
            made, proved, wrong = survivors(
                source, kind, share, random.Random(seed + index), proof_for(source, kind, read)
            )
            totals = [totals[0] + made, totals[1] + proved, totals[2] + len(wrong)]
            for change in wrong:
                shown = source.splitlines()[change.line]
                print(f"{path.name}:{change.line + 1}: {change.before} -> {change.after}: {shown}")
        words = f"{totals[0]} changes in {len(paths)} texts, {totals[1]} called the same and dead, {totals[2]} wrong"
        print(f"{kind}: {words}", flush=True)
        bad += totals[2]
    sys.exit(bad > 0)

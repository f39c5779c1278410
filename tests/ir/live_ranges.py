"""Reads the live registers that `nvdisasm -plr` prints beside each instruction, and the liveness of our own model.

`python live_ranges.py FILE.plr...` compares both and prints what disagrees.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from irscope.ir.asm.control_flow import BasicBlock, ControlFlow
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.operands import register_templates
from irscope.ir.asm.sass_opcodes import sass_access
from irscope.ir.registers import line_access, successors

#         /*0010*/                   S2R R3, SR_TID.X ;        // |  2   :   ^     |
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s*([^;]*?)\s*;")
_COLUMNS = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
_REGISTER = re.compile(r"\b(?:U?[RP]|B)\d+\b|\.L_\w+")


@dataclass
class Row:
    """A label, or an instruction with the mark of each register: `^` written, `v` read, `x` both, `:` live."""

    label: str = ""
    offset: int = 0
    text: str = ""
    marks: dict[str, str] | None = None

    @property
    def written(self) -> set[str]:
        return {register for register, mark in (self.marks or {}).items() if mark in "^x"}


def read_live_ranges(text: str) -> list[list[Row]]:
    """The functions of a listing."""
    functions: list[list[Row]] = []
    columns: dict[int, str] = {}
    heads: list[tuple[int, int, str]] = []
    for line in text.split("\n"):
        start = line.find("// |")
        code, cells = (line[:start], line[start:]) if start >= 0 else (line, "")
        if "//" in code:
            code = code[: code.find("//")]
        if code.strip().startswith(".section"):
            if ".text." in code:
                functions.append([])
            columns = {}
        elif "GPR" in cells and "#" not in cells:
            bars = [match.start() for match in re.finditer(r"\|", cells)]
            heads = [(a, b, cells[a + 1 : b].strip()) for a, b in pairwise(bars)]
        elif "#" in cells and not columns:
            for first, last, name in heads:
                for match in re.finditer(r"\d+", cells[first:last]):
                    for place in range(match.start(), match.end()):
                        columns[first + place] = f"{_COLUMNS[name]}{int(match[0])}"
        elif functions and (match := _INSTRUCTION.match(code)):
            marks = {columns[place]: mark for place, mark in enumerate(cells) if mark in "^vx:" and place in columns}
            text = " ".join(match[2].split())
            functions[-1].append(Row(offset=int(match[1], 16), text=text, marks=marks))
        elif functions and (label := re.match(r"\s*([.\w$]+):\s*$", code)):
            functions[-1].append(Row(label=label[1]))
    return functions


@dataclass
class Liveness:
    """Per row what it reads and writes, and what is live before and behind it, by the model."""

    reads: list[set[str]]
    writes: list[set[str]]
    before: list[frozenset[str]]
    behind: list[frozenset[str]]
    is_opaque: list[bool]
    """Calls, and what no rule knows."""


def model_liveness(rows: list[Row], *, guards_keep: bool = True, counts_masks: bool = False) -> Liveness:
    """The liveness by backward iteration; `guards_keep`: a write under a guard leaves the older value live.

    nvdisasm does not count P2R's and R2P's use of the predicates that their mask names; with `counts_masks` we do.
    """
    labels = {row.label: number for number, row in enumerate(rows) if row.label}
    accesses, targets, reads, writes = [], [], [], []
    for row in rows:
        text = row.text.replace(".reuse", "")
        template = re.sub(r"\.L_\w+", "\x02", register_templates(text, "sass"))
        access = sass_access(template) if row.text else None
        own = line_access(access, _REGISTER.findall(text), ()) if access is not None else None
        accesses.append(access)
        called = re.search(r"`\(([^)]+)\)", row.text)
        targets.append(labels.get(called[1]) if called and access and access.flow != "return" else None)
        named = list(zip(own.shown + own.more, own.is_write, strict=True)) if own else []
        if row.text and not counts_masks and re.search(r"\bU?(?:P2U?R|R2U?P)\b", row.text):
            named = [one for one in named if "P" not in one[0]]
        reads.append({register for register, is_write in named if not is_write})
        writes.append({register for register, is_write in named if is_write})
    following = successors(accesses, targets, sorted(labels.values()))
    before, behind = [frozenset[str]()] * len(rows), [frozenset[str]()] * len(rows)
    changed = True
    while changed:
        changed = False
        for number in range(len(rows) - 1, -1, -1):
            out = frozenset[str]().union(*[before[after] for after in following[number]])
            access = accesses[number]
            keeps = guards_keep and access is not None and access.is_partial
            into = (out if keeps else out - writes[number]) | reads[number]
            changed = changed or into != before[number]
            before[number], behind[number] = frozenset(into), out
    opaque = [one is not None and (one.is_unknown or one.flow == "call") for one in accesses]
    return Liveness(reads, writes, before, behind, opaque)


def disagreements(rows: list[Row]) -> tuple[int, Counter[tuple[str, str, str]], dict[tuple[str, str, str], str]]:
    """(registers compared, {(ours, theirs, opcode): times}, an example of each).

    Left out is what nvdisasm shows otherwise by convention: R1, the stack pointer, is live everywhere in its tables; it
    has no columns from UR63 on; it does not count P2R's and R2P's use of the predicates; and calls are summarised.
    Whether a value lives on through a write under a guard is a matter of proof (`@P0` and `@!P0` together end it): its
    live ranges must lie between ours with such writes ending a range and ours with such writes keeping it.
    """
    wide, narrow = model_liveness(rows), model_liveness(rows, guards_keep=False)
    found: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], str] = {}
    compared = 0
    has_calls = any(wide.is_opaque)
    for number, row in enumerate(rows):
        if row.marks is None or wide.is_opaque[number]:
            continue
        opcode = next(word for word in row.text.split() if word[0] != "@")
        reads, writes = wide.reads[number], wide.writes[number]
        through = wide.before[number] & wide.behind[number]
        for register in {*reads, *writes, *through, *row.marks}:
            if register in ("R1",) or register[0] == "B" or (register[:2] == "UR" and int(register[2:]) >= 63):
                continue
            if opcode in ("P2R", "R2P", "UP2UR", "UR2UP") and "P" in register:
                continue
            compared += 1
            theirs = row.marks.get(register, " ")
            touched = "x" if register in reads & writes else "v" if register in reads else "^"
            if register in reads | writes:
                ours = touched
                agree = ours == theirs
            else:
                ours = ":" if register in through else " "
                surely = register in narrow.before[number] & narrow.behind[number]
                agree = theirs == ours or (ours == ":" and theirs == " " and not surely) or has_calls
            if not agree:
                key = (ours, theirs, opcode if ours in "vx^" or theirs in "vx^" else "")
                found[key] += 1
                examples.setdefault(key, f"{register} at {row.offset:#x} {row.text}")
    return compared, found, examples


def live_registers(graph: ControlFlow) -> tuple[frozenset[str], ...]:
    """The registers whose values are still read behind each instruction, in the order of the blocks.

    A value is live from where it is written to where it is last read, on any way there; a write under a predicate or
    to some of the lanes ends none. What is written and never read is not live.
    """
    after: dict[int, list[int]] = {}
    returns = [block.number for block in graph.blocks if block.ending == "return"]
    for jump in graph.jumps:
        after.setdefault(jump.source, []).append(jump.target)
        if jump.kind == "calls":
            for number in returns:
                after.setdefault(number, []).append(jump.source + 1)
    number_of = {block.number: place for place, block in enumerate(graph.blocks)}
    used = [_used(block) for block in graph.blocks]
    before = [frozenset[str]() for _ in graph.blocks]
    is_settled = False
    while not is_settled:
        is_settled = True
        for place in reversed(range(len(graph.blocks))):
            behind = _behind(after.get(graph.blocks[place].number, ()), before, number_of)
            reads, writes = used[place]
            found = reads | (behind - writes)
            is_settled = is_settled and found == before[place]
            before[place] = found
    live: list[frozenset[str]] = []
    for block in graph.blocks:
        behind = _behind(after.get(block.number, ()), before, number_of)
        rows: list[frozenset[str]] = []
        for item in reversed(block.instructions):
            rows.append(behind)
            behind = (behind if _keeps_old(item) else behind - frozenset(item.writes)) | frozenset(item.reads)
        live += reversed(rows)
    return tuple(live)


def _keeps_old(item: Instruction) -> bool:
    """Whether what stood in a register that it writes may remain: under a predicate, in lanes that are off."""
    access = item.access if item.kind in ("sass", "amdgcn") else None
    return bool(item.predicate) or (access is not None and (access.is_partial or access.is_vector))


def _behind(targets: Iterable[int], before: list[frozenset[str]], number_of: dict[int, int]) -> frozenset[str]:
    return frozenset[str]().union(*[before[number_of[target]] for target in targets if target in number_of])


def _used(block: BasicBlock) -> tuple[frozenset[str], frozenset[str]]:
    """What a block reads before it writes it, and what it writes whatever its predicates are."""
    reads: set[str] = set()
    writes: set[str] = set()
    for item in block.instructions:
        reads.update(name for name in item.reads if name not in writes)
        writes.update(() if _keeps_old(item) else item.writes)
    return frozenset(reads), frozenset(writes)


if __name__ == "__main__":
    total, wrong, samples = 0, Counter[tuple[str, str, str]](), {}
    for path in sys.argv[1:]:
        for function in read_live_ranges(Path(path).read_text()):
            count, found, shown = disagreements(function)
            total += count
            wrong += found
            samples |= {key: f"{path}: {text}" for key, text in shown.items() if key not in samples}
    print(f"{total} registers at instructions of {len(sys.argv) - 1} listings, {sum(wrong.values())} disagree")
    for key, count in wrong.most_common():
        print(count, key, samples[key])

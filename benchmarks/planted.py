"""Whether `irscope verify` finds planted faults: `python -m benchmarks.planted FILE.irscope...`.

The TTIR of each recorded launch is edited by each row of the table below: a mask that is left out, a bound that is one
too large, a tile that two programs write. An oracle of its own judges each edit: every program runs alone, with all its
values, and every byte that it accesses is put in a set. Edits that do nothing wrong by that are twins, which may not be
accused. Launches of more than 64 programs, and those with locks, are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from irscope.errors import IrscopeError, NeverEnds, OutOfBounds
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.captured import captured_inputs
from irscope.machine.launch import run
from irscope.machine.memory import ObservedAccess
from irscope.model.capture import Artifact, Capture
from irscope.store.collection import PackedCollection
from irscope.verify.safety import verify_launch

# %x = tt.load %p, %mask, %other : tensor<…> loc(#loc1)
EDITS: dict[str, tuple[str, str | None]] = {
    "load without its mask": (r"(tt\.load %\w+), %\w+(?:, %\w+)?( :| \{)", r"\1\2"),
    "store without its mask": (r"(tt\.store %\w+, %\w+), %\w+( :| \{)", r"\1\2"),
    "bound one too large": (r"arith\.cmpi slt,", "arith.cmpi sle,"),
    "bound the wrong way": (r"arith\.cmpi slt,", "arith.cmpi sge,"),
    "same tile of all programs": (r"tt\.get_program_id ([xyz]) : i32", "arith.constant 0 : i32"),
    "program of the other axis": (r"tt\.get_program_id x", "tt.get_program_id y"),
    "negative offset": (r"arith\.addi (%\w+), (%\w+) : (tensor<\d+xi\d\d>)", r"arith.subi \1, \2 : \3"),
    "stride added, not multiplied": (r"arith\.muli (%\w+), (%\w+) : (i32|tensor<\S*i32>)", r"arith.addi \1, \2 : \3"),
    "range that begins too late": (r"\{end = (\d+) : i32, start = 0 : i32\}", None),
    "condition of an or": (r"arith\.andi (%\w+), (%\w+) : (i1|tensor<\S*i1>)", r"arith.ori \1, \2 : \3"),
    "loop with one more iteration": (r"scf\.for (%\w+) = %c0_i32 to (%\w+) step", None),
    "atomic made a plain store": (
        r"%\w+ = tt\.atomic_rmw f?add, \w+, \w+, (%\w+), (%\w+), (%\w+) : \((\S+), .*\) -> \S+",
        r"tt.store \1, \2, \3 : \4",
    ),
}


def edited(text: str) -> Iterator[tuple[str, str]]:
    """(edit, text) of each single place that an edit of the table matches."""
    for name, (pattern, replacement) in EDITS.items():
        for match in re.finditer(pattern, text):
            if replacement is not None:
                new = match.expand(replacement)
            elif name.startswith("range"):
                end = int(match[1])
                new = f"{{end = {end + end} : i32, start = {end} : i32}}"
            else:
                begin = text.rfind("\n", 0, match.start()) + 1
                added = (
                    f"    %planted1 = arith.constant 1 : i32\n    %planted = arith.addi {match[2]}, %planted1 : i32\n"
                )
                line = text[begin : match.end()].replace(f"to {match[2]} step", "to %planted step")
                yield name, text[:begin] + added + line + text[match.end() :]
                continue
            yield name, text[: match.start()] + new + text[match.end() :]


def is_wrong(capture: Capture, text: str, grid: tuple[int, int, int]) -> bool:
    """Whether some program is out of bounds, or two meet at a byte that one stores to."""
    module = parse_mlir(text)
    stored: dict[int, int] = {}
    read: defaultdict[int, set[int]] = defaultdict(set)
    for program in range(prod(grid)):

        def note(access: ObservedAccess, program: int = program) -> None:
            mask = True if access.mask is None else access.mask
            shape = np.broadcast_shapes(access.addresses.shape, np.shape(mask))
            chosen = np.broadcast_to(access.addresses, shape)[np.broadcast_to(mask, shape)]
            for address in np.unique(chosen).tolist():
                for byte in range(address, address + access.element_bytes):
                    if access.kind == "load":
                        read[byte].add(program)
                    elif stored.setdefault(byte, program) != program:
                        raise OutOfBounds("two programs store to a byte")

        try:
            run(module, grid, captured_inputs(capture).given, programs=[program], on_access=note)
        except (OutOfBounds, NeverEnds):
            return True
    return any(read[byte] - {program} for byte, program in stored.items() if byte in read)


def launches(paths: list[str], most: int) -> Iterator[tuple[Capture, tuple[int, int, int], str]]:
    """Captures of small launches, the first two of each kernel."""
    seen: Counter[tuple[str, str]] = Counter()
    for path in paths:
        collection = PackedCollection(path)
        for capture in collection.captures(collection.entries()):
            grid, record, text = capture.launch.grid, capture.launch.record, capture.texts.get("ttir", "")
            if grid is None or record is None or not text or capture.failure is not None or prod(grid) > 64:
                continue
            if sum(one.storage_bytes or 0 for one in record.arguments) > most or "tt.atomic_cas" in text:
                continue
            seen[path, capture.name] += 1
            if seen[path, capture.name] <= 1:
                # The oracle knows nothing of memory that nobody wrote.
                arguments = tuple(replace(one, is_unwritten=False) for one in record.arguments)
                launch = replace(capture.launch, record=replace(record, arguments=arguments))
                yield replace(capture, launch=launch), grid, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captures", nargs="+", metavar="FILE.irscope")
    parser.add_argument("--bytes", type=int, default=1 << 20, help="of all tensors of a launch")
    parser.add_argument("--each", type=int, default=2, help="places of a launch that an edit is tried at")
    given = parser.parse_args()
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for capture, grid, text in launches(given.captures, given.bytes):
        tried: Counter[str] = Counter()
        for name, changed in [("none", text), *edited(text)]:
            tried[name] += 1
            if tried[name] > given.each:
                continue
            variant = capture.with_(artifacts=(Artifact("ttir", changed),), snapshots=())
            try:
                expected = "fault" if is_wrong(capture, changed, grid) else "twin"
            except (IrscopeError, ValueError, TypeError, IndexError):
                table[name]["not run"] += 1
                continue
            verdict = verify_launch(variant, elements=None)
            # Of one element, as if the launch were too large to be executed: what is proved then has to be right.
            proved = verify_launch(variant, elements=1)
            if proved.proved:
                table["proved by z3"][expected] += 1
                if expected == "fault" and "atomic" not in text:
                    print(f"{name}: {capture.name} {capture.id[:8]}: a fault is proved {proved.summary}", flush=True)
            if expected == "fault" and "atomic" in text and verdict.answer == "safe":
                expected = "ordered"
            if expected == "fault" and any("the same value" in note for note in verdict.notes):
                expected = "equal values"
            table[name][f"{expected}: {verdict.answer}"] += 1
            if (expected, verdict.answer) in (("fault", "safe"), ("twin", "wrong")):
                print(f"{name}: {capture.name} {capture.id[:8]}: a {expected} is {verdict.summary}", flush=True)
    for name, counts in table.items():
        print(f"{name:32} {', '.join(f'{what} {count}' for what, count in sorted(counts.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

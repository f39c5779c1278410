"""How much the source map covers, how long it takes and how large it is: `python benchmarks/source_map.py [CAPTURE…]`.

Records the examples (or takes the captures that are named), for cuda:90 and hip:gfx942, and prints for each stage: the
operations and instructions, those whose text carries a location, and those of them that the map leads to a line of
the kernel's Python. The figure to keep is 99 %. What carries a location is counted here, by simpler means.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import irscope
from irscope.analysis.source.map import SourceMap, StageMap, source_map
from irscope.ir.locations.model import is_library
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture, stage_named
from irscope.render.report.facts import stage_locations

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("softmax.py", "flash_attention.py", "matmul.py", "layer_norm.py", "cross_entropy.py")
TARGETS = ("cuda:90", "hip:gfx942")
ROUNDS = 5

# #loc5 = loc(unknown)
_UNKNOWN = re.compile(r"^(#loc\w*) = loc\(unknown\)$", re.MULTILINE)


def carrying(capture: Capture, stage: StageMap) -> set[int]:
    """The operations (as indices) whose own text, or the directive before it, names a line."""
    lines = capture.text(stage.stage).split("\n")
    kind = stage_named(stage.stage).kind
    found: set[int] = set()
    if kind in ("mlir", "llvm"):
        unknown = {f"loc({name})" for name in _UNKNOWN.findall("\n".join(lines))} | {"loc(unknown)"}
        for index, number in enumerate(stage.operations.lines):
            line = lines[number - 1]
            named = "!dbg !" in line if kind == "llvm" else " loc(" in line or line.endswith(("{", "("))
            if named and not any(line.endswith(one) for one in unknown):
                found.add(index)
        return found
    starts = {number: index for index, number in enumerate(stage.operations.lines)}
    known = False
    for number, line in enumerate(lines, 1):
        directive = re.match(r"\s*\.loc\s+\d+\s+(\d+)", line) or re.match(r'\s*//## File "[^"]*", line (\d+)', line)
        if directive is not None:
            known = int(directive[1]) > 0
        elif re.match(r"\s*\.section|\s*\.(?:visible|entry|func)|\.Lfunc_end|\}", line):
            known = False
        elif known and number in starts:
            found.add(starts[number])
    return found


def mapped(found: SourceMap, stage: StageMap, capture: Capture) -> set[int]:
    """The operations that the map leads to a line that is there, in a file outside of Triton's library."""
    texts = {source.path: source.text.count("\n") + 1 for source in capture.sources}
    good: set[int] = set()
    for index, number in enumerate(stage.operations.lines):
        places = [found.places[place] for place in stage.places_at(number)]
        if places and all(
            not is_library(file) and 1 <= line <= texts.get(file, 0) for place in places for file, line in place
        ):
            good.add(index)
    return good


def measure(capture: Capture) -> tuple[float, int, int]:
    """Milliseconds of the map (the best of some), its size as JSON, and the size of the locations in the texts."""
    best = min(_time(capture) for _ in range(ROUNDS))
    size = len(json.dumps(stage_locations(capture), separators=(",", ":")))
    texts = [one for one in capture.artifacts if isinstance(one.data, str)]
    bare = (strip_locations(one.text, stage_named(one.stage).kind) for one in texts)
    return best * 1e3, size, sum(len(one.text) for one in texts) - sum(map(len, bare))


def _time(capture: Capture) -> float:
    started = time.perf_counter()
    source_map(capture)
    return time.perf_counter() - started


def captures(arguments: list[str]) -> list[Capture]:
    """The captures that are named, or those of the examples, one a kernel and target."""
    if arguments:
        return [irscope.load(argument) for argument in arguments]
    found: dict[tuple[str, str], Capture] = {}
    for name in NAMES:
        for capture in irscope.record_all(EXAMPLES / name, target=TARGETS, virtual=True, snapshots="none"):
            found.setdefault((capture.name, str(capture.target)), capture)
    return list(found.values())


def main() -> None:
    """Measure and print; ends with 1 where a stage is covered to less than 99 %."""
    worst = 1.0
    for capture in captures(sys.argv[1:]):
        found = source_map(capture)
        milliseconds, size, locations = measure(capture)
        print(f"{capture.name} {capture.target}: {milliseconds:.0f} ms, {size} bytes as JSON,", end=" ")
        print(f"{size / locations:.2f} of the {locations} bytes of locations")
        for stage in found.stages:
            carry = carrying(capture, stage)
            good = mapped(found, stage, capture) & carry
            share = len(good) / len(carry) if carry else 1.0
            worst = min(worst, share)
            counts = f"{len(stage.operations.lines):6} operations, {len(carry):6} with a location"
            print(f"  {stage.stage:8} {counts}, {share:8.2%} mapped")
    print(f"the least covered stage: {worst:.2%}")
    sys.exit(worst < 0.99)


if __name__ == "__main__":
    main()

"""Plants changes in a compiler and counts what is blamed rightly: `python -m tests.analysis.upgrade CAPTURE…`.

The captures are such as `irscope collect examples/*.py -o FOLDER` keeps. Changes without effect do not count.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from irscope.analysis.upgrade.compare import compiled
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.pool import Compiler
from irscope.store.file import load
from tests.analysis.upgrade.planted import Judged, Plant, judged, plants_of

_PTXAS = "TRITON_PTXAS_PATH"
_LEAST_STAGES, _LEAST_PASSES = 0.95, 0.9


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.analysis.upgrade", description=__doc__)
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=100, help="how many changes with an effect are wanted")
    parser.add_argument("--python", help="the interpreter whose Triton compiles; default: this one")
    parser.add_argument("--ptxas", help="another ptxas, which is planted too")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    options = RecordingOptions(snapshots="none", disassemble=False, layouts=False)
    rows: list[Judged] = []
    with Compiler(asked.python, options, 1) as compiler:
        bases = [load(path) for path in asked.captures]
        owns = [compiled([base], compiler)[0] for base in bases]
        for one in _effective(_planted(bases, owns, compiler, asked.ptxas, asked.seed)):
            rows.append(one)
            said = "ok" if one.right_pass else "pass" if one.right_stage else "STAGE"
            capture = one.row.capture
            print(said, capture.name, capture.target, one.plant.name, "|", one.told, flush=True)
            if len(rows) == asked.count:
                break
    stages, passes = sum(one.right_stage for one in rows), sum(one.right_pass for one in rows)
    print(f"{len(rows)} changes with an effect: stage right in {stages}, pass in {passes}")
    return int(stages < _LEAST_STAGES * len(rows) or passes < _LEAST_PASSES * len(rows))


def _effective(rows: Iterable[Judged]) -> Iterator[Judged]:
    return (one for one in rows if one.has_effect)


def _planted(
    bases: Sequence[Capture], owns: Sequence[Capture], compiler: Compiler, ptxas: str | None, seed: int
) -> Iterator[Judged]:
    """Every change in every capture, in an order that a seed decides."""
    if ptxas:
        # In processes of its own: the variable is read there.
        os.environ[_PTXAS] = ptxas
        with Compiler(compiler.interpreter, compiler.asked, 1) as after:
            for base, own in zip(bases, owns, strict=True):
                if own.target.backend == "cuda":
                    yield judged(base, compiler, Plant(f"ptxas={ptxas}", ("cubin",), ("ptxas",)), own, after)
        del os.environ[_PTXAS]
    tasks = [(index, plant) for index, own in enumerate(owns) for plant in plants_of(own)]
    random.Random(seed).shuffle(tasks)
    for index, plant in tasks:
        yield judged(bases[index], compiler, plant, owns[index])


if __name__ == "__main__":
    sys.exit(_main())

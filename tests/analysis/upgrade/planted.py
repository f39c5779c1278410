"""Planted changes of a compiler, each with the stage and the passes that are to blame for it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from irscope.analysis.upgrade.compare import blamed, compiled, rows_of
from irscope.analysis.upgrade.model import UpgradeRow
from irscope.model.capture import Capture
from irscope.plan import PassPlan
from irscope.record.variants.pool import Compiler

__all__ = ["Judged", "Plant", "judged", "plants_of"]


@dataclass(frozen=True, slots=True)
class Plant:
    """One change, and what is to blame."""

    name: str
    stages: tuple[str, ...]
    """Any of these is right."""
    passes: tuple[str, ...]
    """Labels, any of which is right; empty for those whose options the two compilers give other values, `none` for
    none: what it changes is no pass."""
    plan: str = ""
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one on a kernel."""

    plant: Plant
    row: UpgradeRow
    has_effect: bool
    """Whether the code is other code, without which nothing is to blame."""
    right_stage: bool
    right_pass: bool
    told: str


def plants_of(base: Capture) -> Iterator[Plant]:
    """The changes to plant in the compiler of a capture: each pass that may go, the optimisers, options."""
    backend = base.target.backend
    assembly, binary = ("ptx", "cubin") if backend == "cuda" else ("amdgcn", "hsaco")
    for one in base.passes():
        if one.stage in ("ttir", "ttgir", "llir") and one.argument:
            yield Plant(f"-{one.label}", (one.stage,), (one.label,), plan=f"-{one.label}")
    # It acts in both stages of LLVM's.
    yield Plant("-llvm-opt", ("llir", assembly), ("llir:llvm-opt#1",), plan="-llvm-opt")
    if backend == "cuda":
        yield Plant("-ptxas-opt", (binary,), ("cubin:ptxas-opt#1",), plan="-ptxas-opt")
        yield Plant("maxnreg=32", ("ttgir",), ("none",), options=(("maxnreg", 32),))
    # ptxas is told too.
    fusion = (assembly, binary)
    yield Plant("enable_fp_fusion=False", fusion, ("none",), options=(("enable_fp_fusion", False),))
    warps = base.launch.option("num_warps")
    for number in (1, 2, 4, 8, 16):
        if number != warps:
            yield Plant(f"num_warps={number}", ("ttgir",), (), options=(("num_warps", number),))
    stages = base.launch.option("num_stages")
    for number in (1, 2, 3, 4, 5):
        if number != stages:
            yield Plant(f"num_stages={number}", ("ttgir",), (), options=(("num_stages", number),))


def judged(base: Capture, before: Compiler, plant: Plant, own: Capture, after: Compiler | None = None) -> Judged:
    """Plant a change in the compiler of the after side, and judge what is blamed; `own`: the compile without it."""
    if after is None:
        # The same workers, asked for something else.
        after = copy(before)
        after.asked = replace(before.asked, plan=PassPlan.parse(plant.plan), options=plant.options)
    (theirs,) = compiled([base], after)
    (row,) = rows_of([(own, theirs)])
    if row.verdict not in ("worse", "better", "other"):
        return Judged(plant, row, False, False, False, "no effect")
    ((row,), _) = blamed([row], before, after)
    blame = row.blame
    if blame is None:
        return Judged(plant, row, True, False, False, "no blame")
    label = blame.guilty.label if blame.guilty else ""
    passes = plant.passes or _with_other_options(own, theirs)
    right_pass = passes == ("none",) or label in passes
    right_stage = len(blame.stages) == 1 and blame.stages[0] in plant.stages
    sure = "" if blame.is_sure else " (uncertain)"
    told = f"{blame.change.text}: {' … '.join(blame.stages)}, {label or 'no pass'}{sure}"
    return Judged(plant, row, True, right_stage, right_stage and right_pass, told)


def _with_other_options(before: Capture, after: Capture) -> tuple[str, ...]:
    """The passes that are given other options on the two sides, in which MLIR prints what a launch's options decide."""
    theirs = {one.label: one.options for one in after.passes()}
    labels = {one.label for one in before.passes()} ^ theirs.keys()
    return (*labels, *(one.label for one in before.passes() if theirs.get(one.label, one.options) != one.options))

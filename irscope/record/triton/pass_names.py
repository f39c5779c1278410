"""The names of passes that the installed Triton has, read without importing it: a wrong one is refused at once."""

from __future__ import annotations

import ast
import mmap
import os
import re
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from irscope.errors import PlanError, did_you_mean
from irscope.model.capture import STAGE_NAMES
from irscope.plan import PassPlan, PassRule, folded

__all__ = ["refuse_unknown_passes"]

_BACKENDS = {"cuda": "nvidia", "hip": "amd"}
_OPTIMISERS = ("llvm-opt", "ptxas-opt")
"""Passes by names of irscope's own: whole optimisers, which are no pass of MLIR's."""
_PLUGINS = ("TRITON_PASS_PLUGIN_PATH", "TRITON_PLUGIN_PATHS")
"""Variables that add passes that are in no file of Triton's."""


def refuse_unknown_passes(plan: PassPlan, backends: Iterable[str] = ()) -> None:
    """Raise PlanError for a rule that no pass of this Triton can match; what cannot be decided is left to the compile.

    `backends`: those that are compiled for, where they are known.
    """
    rules = [rule for rule in (*plan.disabled, *plan.only) if rule.name != "*"]
    if not rules or any(name in os.environ for name in _PLUGINS) or not (folder := _triton_folder()):
        return
    wanted = {_BACKENDS.get(name, name) for name in backends}
    if not (by_backend := _builders(folder)) or not wanted <= by_backend.keys():
        return
    names = frozenset[str]().union(*(by_backend[name] for name in wanted or by_backend))
    for rule in rules:
        _refuse_stage(rule)
        name = folded(rule.name)
        having = {backend for backend, builders in by_backend.items() if name in builders}
        if wanted and having and not wanted & having:
            raise PlanError(f"no pass of {' or '.join(sorted(wanted))} is named '{rule}': {', '.join(having)} has one.")
        if not (having or rule.name in _OPTIMISERS or _has_argument(folder, rule.name)):
            near = did_you_mean(_without_prefix(name), names, or_all=False)
            raise PlanError(f"no pass of this Triton is named '{rule}'.{near} 'irscope passes FILE' lists a kernel's.")


def _without_prefix(name: str) -> str:
    """`coalesc` of `tritongpu_coalesc`: the builders' names have none of the arguments' prefixes."""
    return re.sub(r"^(triton_nvidia_gpu|triton_nvidia|tritongpu|tritonamdgpu|triton|nvgpu|convert)_", "", name)


def _refuse_stage(rule: PassRule) -> None:
    if rule.stage is not None and rule.stage not in STAGE_NAMES:
        raise PlanError(f"'{rule}': there is no stage {rule.stage!r}.{did_you_mean(rule.stage, STAGE_NAMES)}")


def _triton_folder() -> Path | None:
    try:
        spec = find_spec("triton")
    except ImportError:
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


@cache
def _builders(folder: Path) -> dict[str, frozenset[str]]:
    """Backend → the names of the builders of passes that its pipelines call, without `add_`."""
    found: dict[str, frozenset[str]] = {}
    for path in folder.glob("backends/*/compiler.py"):
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        # passes.ttgpuir.add_coalesce(pm)   nvidia.passes.ttnvgpuir.add_plan_cta(pm, …)
        calls = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        found[path.parent.name] = frozenset(
            folded(name.removeprefix("add_")) for name in calls if name.startswith("add_")
        )
    return found


def _has_argument(folder: Path, name: str) -> bool:
    """Whether the compiler's library holds a name, as the argument of one of its passes: `tritongpu-coalesce`."""
    spellings = {name, name.replace("_", "-"), name.replace("-", "_")}
    for path in folder.glob("_C/libtriton*.*"):
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if any(data.find(spelling.encode() + b"\0") >= 0 for spelling in spellings):
                    return True
        except (OSError, ValueError):
            return True
    return False

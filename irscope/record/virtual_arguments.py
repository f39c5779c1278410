"""Takes stand-ins out of a launch's arguments and grid before Triton sees them, and tells what they decide of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from irscope.assumption import Decision
from irscope.record import triton_api
from irscope.record.virtual_follow import Following, following
from irscope.record.virtual_numbers import Read, carry, plain, reads_of
from irscope.record.virtual_patches import Patches

Decided = dict[Read, list[Decision]]

_launch = threading.local()


def install_arguments(patches: Patches) -> None:
    """Watch what kernels are called with, until `patches` are restored."""
    kernel_class = triton_api.jit_function_class()
    run = kernel_class.run

    def run_plain(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        one = following()
        if one is None:
            return run(function, *args, grid=grid, warmup=warmup, **kwargs)
        before = getattr(_launch, "decided", None)
        _launch.decided = decided = {}
        names = [*function.arg_names, *([""] * len(args))]
        constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
        held: dict[str, Any] = {}

        def taken(name: str, value: Any) -> Any:
            value = _assumed(one, name, value)
            for read in reads_of(value):
                # What is passed on as it is read has the parameter's name.
                read = read if read.name else replace(read, name=name)
                kind = "constexpr" if name in constants else "argument"
                decided.setdefault(read, []).append(Decision(kind, name))
                held[name] = value
            return plain(value)

        try:
            args = tuple(taken(name, value) for name, value in zip(names, args, strict=False))
            kwargs = {name: taken(name, value) for name, value in kwargs.items()}
            return run(function, *args, grid=_watched_grid(grid, held, decided), warmup=warmup, **kwargs)
        finally:
            _launch.decided = before

    patches.set(kernel_class, "run", run_plain)


def _assumed(one: Following, name: str, value: Any) -> Any:
    """An argument as `--assume` sets it by the parameter's name, where what was read has another name."""
    reads = reads_of(value)
    if not reads or isinstance(value, tuple | list) or any(read.given for read in reads):
        return value
    number = one.given_for(name, value)
    if number is None:
        return value
    first = min(reads, key=lambda read: (read.file, read.line))
    return carry(number, frozenset({Read(name, repr(number), first.file, first.line, first.expression, True)}))


def _watched_grid(grid: Any, held: Mapping[str, Any], decided: Decided) -> Any:
    def noted(chosen: Any) -> Any:
        for index, size in enumerate(chosen if isinstance(chosen, tuple | list) else ()):
            for read in reads_of(size):
                decided.setdefault(read, []).append(Decision("grid", f"grid[{index}]={plain(size)}"))
        return tuple(map(plain, chosen)) if reads_of(chosen) else chosen

    if not callable(grid):
        return noted(grid)
    called: Callable[[dict[str, Any]], Any] = grid
    # A grid sees the arguments as the program gave them.
    return lambda bound: noted(called({**bound, **held} if held else bound))


def assumptions_under_way(launch: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """What was assumed up to now, as JSON holds `irscope.assumption.Assumption`.

    `launch`: what is compiled, as JSON holds it: with it, what the launch's arguments decided of its attributes and
    constants is told too.
    """
    one = following()
    if one is None:
        return []
    decided: Decided = getattr(_launch, "decided", None) or {}
    if launch is not None:
        decided = {read: [*_specialised(made, launch), *made] for read, made in decided.items()}
    return [asdict(assumption) for assumption in one.assumptions(decided)]


def _specialised(made: list[Decision], launch: Mapping[str, Any]) -> list[Decision]:
    names = {decision.what for decision in made if decision.kind == "argument"}
    found: list[Decision] = []
    for parameter, text in launch.get("attributes", ()):
        if parameter.partition("[")[0] in names:
            found.append(Decision("attribute", f"{parameter}: {text}"))
    for parameter, text in launch.get("constants", ()):
        if parameter.partition("[")[0] in names:
            found.append(Decision("constexpr", f"{parameter}={text}"))
    return found

"""A launch's arguments and grid: plain numbers of placeholder values, what these decide, what the kernel writes to."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from irscope.ir.mlir.uses import read_pointer_uses
from irscope.model.capture import Launch
from irscope.model.launch_record import Assumption, Decision
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import Patches, replaced
from irscope.record.virtual.numbers import Read, carry, plain, reads_of
from irscope.record.virtual.placeholders import Following, current_following

_Decided = dict[Read, list[Decision]]

_launch = threading.local()


def install_arguments(patches: Patches) -> None:
    kernel_class = triton_api.jit_function_class()
    run = kernel_class.run

    def run_plain(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        following = current_following()
        if not following.is_on:
            return run(function, *args, grid=grid, warmup=warmup, **kwargs)
        decided: _Decided = {}
        names = [*function.arg_names, *([""] * len(args))]
        constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
        passed: dict[str, Any] = {}

        def taken(name: str, value: Any) -> Any:
            value = _assumed(following, name, value)
            for read in reads_of(value):
                # A read without a name has the parameter's.
                read = read if read.name else replace(read, name=name)
                kind = "constexpr" if name in constants else "argument"
                decided.setdefault(read, []).append(Decision(kind, name))
                passed[name] = value
            return plain(value)

        with replaced(_launch, "decided", decided):
            args = tuple(taken(name, value) for name, value in zip(names, args, strict=False))
            kwargs = {name: taken(name, value) for name, value in kwargs.items()}
            try:
                return run(function, *args, grid=_watched_grid(grid, passed, decided), warmup=warmup, **kwargs)
            finally:
                following.launched(decided)

    patches.set(kernel_class, "run", run_plain)


def _assumed(following: Following, name: str, value: Any) -> Any:
    """An argument with the value that `--assume` sets by the parameter's name, if the read has another name."""
    reads = reads_of(value)
    if not reads or isinstance(value, tuple | list) or any(read.given for read in reads):
        return value
    number = following.value_of_parameter(name, value)
    if number is None:
        return value
    first = min(reads, key=lambda read: (read.file, read.line))
    return carry(number, frozenset({Read(name, repr(number), first.file, first.line, first.expression, True)}))


def _watched_grid(grid: Any, passed: Mapping[str, Any], decided: _Decided) -> Any:
    def noted(chosen: Any) -> Any:
        for index, size in enumerate(chosen if isinstance(chosen, tuple | list) else ()):
            for read in reads_of(size):
                decided.setdefault(read, []).append(Decision("grid", f"grid[{index}]={plain(size)}"))
        return tuple(map(plain, chosen)) if reads_of(chosen) else chosen

    if not callable(grid):
        return noted(grid)
    called: Callable[[dict[str, Any]], Any] = grid
    # The grid function gets the arguments as the program passed them.
    return lambda bound: noted(called({**bound, **passed} if passed else bound))


def known_values(tensor: Any, most_bytes: int) -> dict[str, Any]:
    """What is known of the data of a tensor of torch's, as fields of an Argument; no elements of a larger one."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor):
        return {}
    from irscope.record.virtual.torch.memory import recorded_values

    return recorded_values(tensor, most_bytes)


def assumptions_under_way(launch: Launch | None = None) -> tuple[Assumption, ...]:
    """All assumptions up to now, and what the arguments of a `launch` that is compiled decided of it."""
    decided: _Decided = getattr(_launch, "decided", {})
    if launch is not None:
        decided = {read: [*_specialised(made, launch), *made] for read, made in decided.items()}
    return current_following().assumptions(decided)


def _specialised(made: list[Decision], launch: Launch) -> list[Decision]:
    names = {decision.what for decision in made if decision.kind == "argument"}
    rows = [("attribute", parameter, f": {text}") for parameter, text in launch.attributes]
    rows += [("constexpr", parameter, f"={text}") for parameter, text in launch.constants]
    return [Decision(kind, parameter + text) for kind, parameter, text in rows if parameter.partition("[")[0] in names]


_uses = lru_cache(maxsize=256)(read_pointer_uses)


def written_arguments(kernel: Any, signature: Mapping[str, Any], arguments: tuple[Any, ...]) -> list[Any] | None:
    """Those of a launch's arguments that the compiled kernel may write through; None if it may write to any memory."""
    # One that is being compiled has these already; its other texts would be waited for.
    known = getattr(kernel, "known_texts", None) or kernel.asm
    text = next((known[stage] for stage in ("ttir", "ttgir") if isinstance(known.get(stage), str)), None)
    if text is None:
        return list(arguments)
    uses = _uses(text)
    if uses.elsewhere:
        return None
    kinds = list(signature.values())
    passed = zip(kinds, arguments, strict=False)
    pointers = [argument for kind, argument in passed if str(kind).startswith(("*", "tensordesc"))]
    if len(kinds) != len(arguments) or len(pointers) != len(uses.parameters):
        # A tuple holds pointers that are not among these.
        return list(arguments)
    return [argument for use, argument in zip(uses.parameters, pointers, strict=True) if use.written]

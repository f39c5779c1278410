"""A family: one kernel at real sizes, in several configurations that are ranked against one another."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Config = Mapping[str, int]
"""Constants of the kernel, `num_warps` and `num_stages`, and sizes in lower case that only the host uses."""

_MOST = 26
"""Configurations of a family: with more, a sample of that number is taken."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch, ready to be made: its tensors are allocated."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    """Constants and compile options."""

    def __call__(self) -> None:
        """Launch the kernel."""
        self.kernel[self.grid](*self.arguments, **self.keywords)


@dataclass(frozen=True, slots=True)
class Family:
    """A kernel and its configurations."""

    name: str
    module: str
    """The module of `benchmarks.timing.families` that holds it."""
    description: str
    configs: tuple[Config, ...]
    prepare: Callable[[Config], Launch] = field(repr=False)
    """Allocates the tensors of a configuration on the current device."""


FAMILIES: dict[str, Family] = {}
"""Every family by name, once `benchmarks.timing.families` is imported."""


def family(configs: Iterable[Config]) -> Callable[[Callable[[Config], Launch]], Callable[[Config], Launch]]:
    """Register the decorated function, which prepares a launch, as a family of its name."""

    def register(prepare: Callable[[Config], Launch]) -> Callable[[Config], Launch]:
        name = prepare.__name__
        if name in FAMILIES:
            raise ValueError(f"two families are named {name!r}")
        module = prepare.__module__.rpartition(".")[2]
        FAMILIES[name] = Family(name, module, (prepare.__doc__ or "").strip(), tuple(configs), prepare)
        return prepare

    return register


def combine(_most: int = _MOST, **values: Iterable[int]) -> list[dict[str, int]]:
    """Combine every value with every other: at most `_most` of the combinations, drawn with a fixed seed."""
    rows = [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]
    return rows if len(rows) <= _most else random.Random(35).sample(rows, _most)


def listed(names: str, *rows: Sequence[int]) -> list[dict[str, int]]:
    """Make configurations of rows of values, whose names are separated by spaces."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, config: Config, **constants: int) -> Launch:
    """Make a launch whose keywords are those of the configuration that the kernel or the compiler takes."""
    taken = {
        name: value
        for name, value in config.items()
        if name.startswith("num_") or (name.isupper() and name in kernel.arg_names)
    }
    return Launch(kernel, grid, arguments, taken | constants)


def label(config: Config) -> str:
    """Write a configuration as text: `BLOCK=1024 num_warps=4`."""
    return " ".join(f"{name}={value}" for name, value in config.items())


def every() -> Iterator[tuple[Family, int, Config]]:
    """Yield each configuration of each family with its number in the family."""
    for row in FAMILIES.values():
        for number, config in enumerate(row.configs):
            yield row, number, config

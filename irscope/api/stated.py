"""Launches that are stated in place of a capture's own: sizes of integer arguments, and the grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.model.telling import divisor_of

_MOST_DIGITS = 18
_MOST_PROGRAMS = (1 << 31) - 1


def read_sizes(texts: Iterable[str]) -> dict[str, int]:
    """`NAME=VALUE`, several of them with commas between; raises UsageError for anything else."""
    sizes: dict[str, int] = {}
    for text in (part for whole in texts for part in whole.split(",")):
        name, _, value = text.strip().partition("=")
        if not name or not _is_integer(value):
            raise UsageError(f"--size {text!r} is no size: write NAME=INTEGER, such as n=4096.")
        sizes[name] = int(value)
    return sizes


def read_grid(text: str) -> tuple[int, int, int]:
    """`X`, `X,Y` or `X,Y,Z`; raises UsageError for anything else."""
    parts = text.replace("x", ",").split(",")
    numbers = [int(part) for part in parts if part.isdecimal() and len(part) < 11]
    if len(numbers) != len(parts) or not 1 <= len(parts) <= 3 or not all(0 < one <= _MOST_PROGRAMS for one in numbers):
        raise UsageError(f"--grid {text!r} is no grid: write one to three positive integers, such as 128 or 64,64.")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS


def with_launch(
    capture: Capture, sizes: Mapping[str, int], grid: tuple[int, int, int] | None, *, must_fit: bool = True
) -> Capture:
    """The capture with stated sizes and grid in place of those of its launch.

    `must_fit`: whether a size that it was not compiled for is refused.
    Raises UsageError for a name that is no integer argument, and for a size that does not fit.
    """
    launch = capture.launch
    integers = [name for name, kind in launch.signature if kind[:1] in ("i", "u") and kind[1:].isdecimal()]
    divisors = {name: divisor_of(text) for name, text in launch.attributes}
    for name, value in sizes.items():
        if name not in integers:
            known = f"they are {', '.join(integers)}.{did_you_mean(name, integers)}" if integers else "it has none."
            raise UsageError(f"--size {name}: {capture.name} has no integer argument {name!r}; {known}")
        if must_fit and value % divisors.get(name, 1):
            raise UsageError(
                f"--size {name}={value}: {capture.name} was compiled for multiples of {divisors[name]}. State another "
                "size, or record a launch with this one."
            )
    rows = launch.record.arguments if launch.record is not None else ()
    stated = {name: Argument(name, "scalar", "int", value) for name, value in sizes.items()}
    record = LaunchRecord((*(row for row in rows if row.path not in stated), *stated.values()))
    return replace(capture, launch=replace(launch, grid=grid or launch.grid, record=record))

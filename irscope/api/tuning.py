"""The configurations of a kernel ranked by predicted time, over one or several sizes, without a GPU."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from irscope.analysis.variants.site import read_kernel
from irscope.api.timing import time
from irscope.device.measurement import Timing, timing_of
from irscope.device.occupancy import excesses_of
from irscope.errors import IrscopeError, RecordingError, UsageError
from irscope.model.capture import Capture
from irscope.model.launch_record import Autotuning
from irscope.model.telling import divisor_of
from irscope.timing.predict import Prediction
from irscope.timing.tuning import OPTIONS, Candidate, Ranked, Size, Tuning

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest

__all__ = ["candidates_of", "clock_on_gpu", "evaluated", "measured", "ranked", "sizes_of"]

_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., int]] = {"cdiv": lambda a, b: -(-a // b), "min": min, "max": max}
_MOST_POINTS = 256
_ROUNDS = 30
"""Launches of each configuration that is measured."""


def sizes_of(texts: Iterable[str]) -> tuple[dict[str, str], ...]:
    """`M=1,16,4096` and `stride_am=K`: every combination, each name with an integer or an expression of other names.

    Raises UsageError.
    """
    axes: list[list[tuple[str, str]]] = []
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip().isidentifier() or not values.strip():
            raise UsageError(f"--size {text!r}: write NAME=VALUE[,VALUE], such as M=1,16,4096, or stride_am=K.")
        parts = values.split(",") if "(" not in values else [values]
        axes.append([(name.strip(), part.strip()) for part in parts])
    points = [dict(point) for point in product(*axes)]
    if len(points) > _MOST_POINTS:
        raise UsageError(f"--size: {len(points)} combinations are more than {_MOST_POINTS}.")
    return tuple(points)


def evaluated(text: str, names: Mapping[str, int], option: str) -> tuple[int, ...]:
    """The integers of `cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1`; raises UsageError for anything but arithmetic."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"{option} {text!r} is not an expression of integers: {error.msg}.") from error
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return tuple(_value(part, names, f"{option} {text!r}") for part in parts)


def _value(node: ast.expr, names: Mapping[str, int], place: str) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise UsageError(f"{place}: {node.id} is not one of {', '.join(names)}.")
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _value(node.left, names, place), _value(node.right, names, place)
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and not right:
            raise UsageError(f"{place} divides by zero.")
        return _ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name) and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        if name in _FUNCTIONS and len(node.args) == 2:
            return _FUNCTIONS[name](*(_value(one, names, place) for one in node.args))
    raise UsageError(f"{place}: only integers, names, + - * // %, cdiv, min and max are allowed.")


def candidates_of(captures: Iterable[Capture]) -> tuple[Candidate, ...]:
    """The captures of one kernel by their configuration.

    That is what `@triton.autotune` states where it has several; else the constants and options that differ.
    """
    held = list(captures)
    tuned = {one.launch.autotuning for one in held}
    stated = _names_of(tuned) if None not in tuned and len(tuned) > 1 else None
    rows = [_settings(one, stated) for one in held]
    names = list(dict.fromkeys(name for row in rows for name in row))
    always = {*OPTIONS[:2], *(stated or ())} - {*OPTIONS[2:]}
    names = [one for one in names if one in always or len({repr(row.get(one)) for row in rows}) > 1]
    found: dict[tuple[tuple[str, Any], ...], Candidate] = {}
    for capture, row in zip(held, rows, strict=True):
        config = tuple((name, row[name]) for name in names if name in row)
        if config in found:
            # The same configuration of another specialisation: the first is ranked.
            continue
        if capture.failure is not None:
            found[config] = Candidate(config, capture, capture.failure.headline)
        elif excess := excesses_of(capture):
            found[config] = Candidate(config, capture, "; ".join(str(one) for one in excess))
        else:
            found[config] = Candidate(config, capture)
    return tuple(found.values())


def _names_of(tuned: Iterable[Autotuning | None]) -> set[str]:
    """The names that configurations set: `BLOCK_M: 64, num_warps: 4, num_ctas: 1, maxnreg: None`."""
    return {part.partition(":")[0].strip() for one in tuned if one for part in one.config.split(",")}


def _settings(capture: Capture, stated: Container[str] | None = None) -> dict[str, Any]:
    """The constants that are declared as such, or those that are stated, and the options."""
    declared = read_kernel(capture.launch.kernel)
    row: dict[str, Any] = {}
    for name, text in capture.launch.constants:
        # An argument that is 1 is a constant of its compile too.
        if declared.is_constexpr(name) is False or (stated is not None and name not in stated):
            continue
        try:
            row[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            continue
    options = dict(capture.launch.options)
    return row | {name: options[name] for name in OPTIONS if options.get(name) is not None}


def ranked(
    captures: Iterable[Capture],
    points: Sequence[Mapping[str, str]] = ({},),
    grid: str = "",
    part: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tuning:
    """Rank the configurations of one kernel.

    Args:
        captures: its compiles, one for each configuration.
        points: of `sizes_of`; one empty point for the launches as they were recorded.
        grid: an expression of the sizes and the constants; needed where sizes are stated.
        part: whose time; None for the first part of the target.
        progress: called with how many configurations are predicted, of how many.

    Raises UsageError where sizes are stated, or a capture was not launched, without a grid, and for another name.
    """
    held = list(captures)
    candidates = candidates_of(held)
    if any(points) and not grid:
        raise UsageError(
            "--size: the number of CTAs depends on sizes, which a capture does not record: "
            "--grid 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)' does."
        )
    rows: list[Ranked] = []
    failed = [one for one in candidates if one.failure]
    sizes: tuple[Size, ...] = ((),)
    waiting = [one for one in candidates if not one.failure and one.capture is not None]
    bare = [one.capture.name for one in waiting if one.capture is not None and one.capture.launch.grid is None]
    if bare and not grid:
        raise UsageError(
            f"{bare[0]} was compiled with other tl.constexpr values, and not launched: --grid 'cdiv(N, BLOCK)' states "
            "the number of CTAs by sizes and constants."
        )
    for number, one in enumerate(waiting, 1):
        if one.capture is None:
            continue
        settings = [(_sizes_at(one.capture, point), point) for point in points]
        sizes = tuple(tuple((name, values[name]) for name in point) for values, point in settings)
        try:
            predictions = tuple(_predicted(one.capture, values, point, grid, part) for values, point in settings)
        except UsageError:
            raise
        except IrscopeError as error:
            failed.append(replace(one, failure=str(error)))
        else:
            rows.append(Ranked(one, predictions))
        if progress is not None:
            progress(number, len(waiting))
    rows.sort(key=lambda row: row.seconds)
    name = next((one.capture.name for one in candidates if one.capture is not None), "")
    chosen = rows[0].predictions[0].part if rows else part or ""
    notes = _specialised(rows[0].candidate.capture, sizes) if rows else ()
    if (others := len(held) - len(candidates)) > 0:
        notes += (f"{others} compiles of the same configurations for other arguments were not ranked.",)
    return Tuning(name, chosen, sizes, tuple(rows), tuple(failed), notes)


def _specialised(capture: Capture | None, sizes: Sequence[Size]) -> tuple[str, ...]:
    """The sizes for which a launch would compile the kernel anew, in sentences."""
    if capture is None:
        return ()
    divisors = {name: divisor_of(text) for name, text in capture.launch.attributes}
    others = dict.fromkeys(
        f"{name}={value}: no multiple of {divisors[name]}, for which the kernel was compiled. Such a launch "
        "compiles again, possibly with narrower accesses than predicted."
        for size in sizes
        for name, value in size
        if value % divisors.get(name, 1)
    )
    return tuple(others)


def measured(
    tuning: Tuning, count: int, clock: Callable[[Candidate], Timing], progress: Callable[[int, int], None] | None = None
) -> Tuning:
    """Measure the first configurations of a ranking; one that fails keeps its prediction, and the reason.

    Args:
        count: how many, from the fastest by prediction on.
        clock: launches a configuration and returns its times, as `clock_on_gpu` makes it; may raise IrscopeError.
        progress: called with how many were measured, of how many.
    """
    rows = list(tuning.rows)
    chosen = rows[:count]
    for number, row in enumerate(chosen):
        try:
            rows[number] = replace(row, measured=clock(row.candidate))
        except IrscopeError as error:
            rows[number] = replace(row, why_not_measured=str(error))
        if progress is not None:
            progress(number + 1, len(chosen))
    return replace(tuning, rows=tuple(rows))


def clock_on_gpu(
    request_of: Callable[[Candidate], tuple[RecordRequest, int | None]],
) -> Callable[[Candidate], Timing]:
    """A clock for `measured`: runs the script on the GPU with a configuration, and times its launch, L2 flushed.

    `request_of`: the script with a configuration, and the number of the launch; None for the first.
    """
    from irscope.record.gpu.session import device_session

    def clock(candidate: Candidate) -> Timing:
        request, launch = request_of(candidate)
        with device_session(request, launch) as session:
            made = _settings(session.baseline)
            differing = [name for name, value in candidate.config if made.get(name, value) != value]
            if candidate.capture is None or not set(differing) <= set(OPTIONS):
                raise RecordingError(f"the script launched {made} in place of {candidate.name}.")
            # The baseline, that once more, and the configuration's compile where its options are others.
            variants = (candidate.capture,) if differing else ()
            return timing_of(session.times_us(variants, rounds=_ROUNDS)[2 if variants else 0], cold=True)

    return clock


def _sizes_at(capture: Capture, point: Mapping[str, str]) -> dict[str, int]:
    """Every name that an expression may use: the recorded scalars, the constants, and what the point states."""
    names: dict[str, int] = {key: value for key, value in _settings(capture).items() if isinstance(value, int)}
    if capture.launch.record is not None:
        names |= {row.path: row.value for row in capture.launch.record.arguments if isinstance(row.value, int)}
    waiting = dict(point)
    for _ in range(len(point) + 1):
        for name, text in list(waiting.items()):
            used = {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
            if not used & set(waiting):
                names[name] = evaluated(text, names, f"--size {name}=")[0]
                del waiting[name]
    if waiting:
        raise UsageError(f"--size {next(iter(waiting))}: the sizes depend on one another.")
    return names


def _predicted(
    capture: Capture, names: Mapping[str, int], point: Mapping[str, str], grid: str, part: str | None
) -> Prediction:
    shape: tuple[int, int, int] | None = None
    if grid:
        x, y, z = (*evaluated(grid, names, "--grid"), 1, 1)[:3]
        shape = (x, y, z)
    sizes = {name: names[name] for name in point}
    return time(capture, part=part, sizes=sizes, grid=shape, must_fit=False)

"""The configurations of a kernel ranked by predicted time, over one or several sizes, without a GPU."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Any

from irscope.api.timing import predict
from irscope.device.occupancy import excesses_of
from irscope.errors import IrscopeError, UsageError
from irscope.model.capture import Capture
from irscope.timing.predict import Prediction

__all__ = ["Candidate", "Ranked", "Size", "Tuning", "evaluated", "ranked", "sizes_of"]

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., int]] = {"cdiv": lambda a, b: -(-a // b), "min": min, "max": max}
_MOST_POINTS = 256

Size = tuple[tuple[str, int], ...]
"""(argument, value) of one point; empty for the recorded launch."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One configuration: what distinguishes it from the others, and its compile."""

    config: tuple[tuple[str, Any], ...]
    """The tl.constexpr values and options that the configurations differ in."""
    capture: Capture | None
    failure: str = ""
    """Why it cannot be timed: it did not compile, or does not fit."""

    @property
    def name(self) -> str:
        """`BLOCK_M=64 num_warps=4`."""
        return " ".join(f"{key}={value}" for key, value in self.config)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A configuration with its predicted time at each size."""

    candidate: Candidate
    predictions: tuple[Prediction, ...]
    """One for each size; empty where it cannot be timed."""

    @property
    def seconds(self) -> float:
        """Of all sizes together."""
        return sum(one.seconds for one in self.predictions) if self.predictions else inf


@dataclass(frozen=True, slots=True)
class Tuning:
    """The configurations of a kernel, the fastest by prediction first."""

    kernel: str
    part: str
    sizes: tuple[Size, ...]
    rows: tuple[Ranked, ...]
    failed: tuple[Candidate, ...]

    def best(self, number: int) -> Ranked:
        """The configuration that is predicted to be the fastest at one size."""
        return min(self.rows, key=lambda row: row.predictions[number].seconds)


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
        raise UsageError(f"{option} {text!r} is no expression of integers: {error.msg}.") from error
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return tuple(_value(part, names, f"{option} {text!r}") for part in parts)


def _value(node: ast.expr, names: Mapping[str, int], place: str) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise UsageError(f"{place}: {node.id} is none of {', '.join(names)}.")
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
    raise UsageError(f"{place}: only integers, names, + - * // %, cdiv, min and max are understood.")


def candidates_of(captures: Iterable[Capture]) -> tuple[Candidate, ...]:
    """The captures of one kernel by what distinguishes them: constants, and options that are not all the same."""
    held = list(captures)
    rows = [_settings(one) for one in held]
    names = list(dict.fromkeys(name for row in rows for name in row))
    differing = [name for name in names if len({repr(row.get(name)) for row in rows}) > 1 or name in _OPTIONS[:2]]
    found: dict[tuple[tuple[str, Any], ...], Candidate] = {}
    for capture, row in zip(held, rows, strict=True):
        config = tuple((name, row[name]) for name in differing if name in row)
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


def _settings(capture: Capture) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, text in capture.launch.constants:
        try:
            row[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            continue
    options = dict(capture.launch.options)
    return row | {name: options[name] for name in _OPTIONS if options.get(name) is not None}


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

    Raises UsageError where sizes are stated without a grid, or one of another name.
    """
    candidates = candidates_of(captures)
    if any(points) and not grid:
        raise UsageError(
            "--size: the number of CTAs depends on sizes, and a capture does not tell how: "
            "--grid 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)' does."
        )
    rows: list[Ranked] = []
    failed = [one for one in candidates if one.failure]
    sizes: tuple[Size, ...] = ((),)
    waiting = [one for one in candidates if not one.failure and one.capture is not None]
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
    return Tuning(name, chosen, sizes, tuple(rows), tuple(failed))


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
    return predict(capture, part=part, sizes={name: names[name] for name in point}, grid=shape)


def config_text(one: Candidate) -> str:
    """`triton.Config({'BLOCK_M': 64}, num_warps=4, num_stages=3)`."""
    constants = {name: value for name, value in one.config if name not in _OPTIONS}
    options = "".join(f", {name}={value}" for name, value in one.config if name in _OPTIONS)
    return f"triton.Config({constants!r}{options})"


def perf_model_text(tuning: Tuning) -> str:
    """Python: the predictions as a `perf_model` for `prune_configs_by`."""
    names = [name for name, _ in tuning.rows[0].candidate.config] if tuning.rows else []
    sizes = [name for name, _ in tuning.sizes[0]] if tuning.sizes else []
    lines = [
        f"# Predicted for {tuning.part}; microseconds by ({', '.join(names)}).",
        "PREDICTED_US = {",
    ]
    for number, size in enumerate(tuning.sizes):
        lines.append(f"    {tuple(value for _, value in size)!r}: {{")
        for row in tuning.rows:
            key = tuple(value for _, value in row.candidate.config)
            lines.append(f"        {key!r}: {row.predictions[number].seconds * 1e6:.2f},")
        lines.append("    },")
    lines += [
        "}", "", "",
        "def perf_model(**arguments):",
        f'    """The predicted time of a configuration, of the nearest size by {", ".join(sizes) or "the one recorded"}."""',
        f"    sizes = [arguments[name] for name in {sizes!r}]",
        "    nearest = min(PREDICTED_US, key=lambda size: sum(abs((a + 1) / (b + 1) - 1) for a, b in zip(sizes, size)))",
        f"    config = tuple(arguments[name] for name in {names!r})",
        '    return PREDICTED_US[nearest].get(config, float("inf"))',
        "", "",
        "# @triton.autotune(configs=[…], key=[…], prune_configs_by={\"perf_model\": perf_model, \"top_k\": 3})",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"

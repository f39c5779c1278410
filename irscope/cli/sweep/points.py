"""The ways in which a sweep compiles each capture: every choice of every axis, with every other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from irscope.cli.subject.recording import interpreter_at, option_value, versus_pair
from irscope.errors import PlanError, UsageError
from irscope.model.capture import Capture, Target
from irscope.model.trial import Point
from irscope.plan import PassPlan

__all__ = ["points_of", "with_constants"]


def points_of(versus: Sequence[str], plans: Sequence[str]) -> tuple[Point, ...]:
    """All choices with all others, the capture's own way first; raises UsageError and PlanError."""
    axes: dict[str, list[str]] = {}
    for text in versus:
        key, value = versus_pair(text, "--vs")
        if key in ("config", "kernel"):
            raise UsageError(f"--vs {text!r}: it needs the script: irscope collect --config all records all.")
        axes.setdefault(key, []).extend(one.strip() for one in value.split(",") if one.strip())
    found = [Point()]
    for key, values in axes.items():
        found = [one for point in found for one in (point, *(_with(point, key, value) for value in values))]
    written = [_plan(text) for text in plans]
    found = [one for point in found for one in (point, *(replace(point, plan=text) for text in written))]
    return tuple(dict.fromkeys(found))


def with_constants(points: Sequence[Point], captures: Sequence[Capture]) -> tuple[Point, ...]:
    """The points, with the options that are no options of the captures' but tl.constexpr parameters as constants."""
    constants = {name for one in captures for name, _ in one.launch.constants}
    constants -= {name for one in captures for name, _ in one.launch.options}
    return tuple(
        replace(
            point,
            options=tuple(row for row in point.options if row[0] not in constants),
            constants=tuple((name, str(value)) for name, value in point.options if name in constants),
        )
        for point in points
    )


def _with(point: Point, key: str, value: str) -> Point:
    if key == "target":
        return replace(point, target=str(Target.parse(value)))
    if key == "triton":
        return replace(point, interpreter=str(interpreter_at(value, "--vs triton=")))
    return replace(point, options=(*point.options, (key, option_value(value))))


def _plan(text: str) -> str:
    path = Path(text)
    try:
        is_file = path.is_file()
    except OSError:
        is_file = False
    if not is_file and not text.lstrip().startswith(("-", "+")):
        raise PlanError(f"--plan {text!r} is neither a file nor a plan, such as -combine.")
    try:
        return str(PassPlan.parse(path.read_text("utf-8") if is_file else text))
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"cannot read the plan {text!r}: {error}.") from error

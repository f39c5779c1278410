"""The values of a run as text: a table by line of Python, and where the first NaN and infinity arose."""

from __future__ import annotations

from math import prod

from irscope.machine.observed import Nonfinite, Observation, ObservedValue
from irscope.render.text.tables import number_text, table

COLUMNS = ("line", "value", "operation", "type", "times", "minimum", "maximum", "NaN", "infinite")
_FEW_VALUES = 4
"""Up to so many values, their elements are shown too."""


def render_values(observed: Observation, *, width: int | None = None, color: bool = False) -> str:
    rows = [value_cells(one) for one in observed.values]
    parts = [table(COLUMNS, rows, width=width, color=color)]
    if len(observed.values) <= _FEW_VALUES:
        parts += [f"{one.name} = {elements_text(one)}" for one in observed.values]
    parts += [nonfinite_text(one) for one in observed.nonfinite]
    return "\n".join(parts)


def value_cells(value: ObservedValue) -> list[object]:
    """A row under `COLUMNS`."""
    return [
        value.place.rpartition("/")[2] or f"IR:{value.line}", value.name, value.operation, value.type,
        value.executions, number_text(value.minimum), number_text(value.maximum), value.nans or "",
        value.infinities or "",
    ]  # fmt: skip


def elements_text(value: ObservedValue, most: int = 64) -> str:
    """The first elements of a value's last execution."""
    shown = " ".join(number_text(one) for one in value.elements[:most])
    return shown if prod(value.shape) <= min(len(value.elements), most) else f"{shown} …"


def nonfinite_text(found: Nonfinite) -> str:
    """Where the first NaN or infinity arose, in one sentence."""
    what = "NaN" if found.kind == "nan" else "infinity"
    where = found.place.rpartition("/")[2] or f"line {found.line} of the IR"
    of = f" of {', '.join(number_text(one) for one in found.operands)}" if found.operands else ""
    element = f", element {list(found.element)}" if found.element else ""
    program = ",".join(map(str, found.program))
    if found.is_loaded:
        return f"The first {what} is loaded: {found.operation} ({found.name}), {where}, in program {program}{element}."
    return f"The first {what} arises in {found.operation} ({found.name}), {where},{of} in program {program}{element}."

"""The layouts of any TTGIR text: answers that a capture holds are taken from it, the rest is asked of the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from irscope.capture import Target
from irscope.layout.rows import Row, layout_rows, module_numbers
from irscope.record.layouts import LayoutServer

_ANSWER = ("bases", "out_dims", "padding", "note", "reason")


def layouts_of_text(
    text: str, target: Target, known: Iterable[Mapping[str, Any]] = (), *, interpreter: str | None = None
) -> list[Row]:
    """The rows of a module's text, answered.

    Args:
        text: a TTGIR module.
        target: what it is compiled for.
        known: rows with answers, such as a capture's: the same encoding and shape need not be asked again.
        interpreter: the Python whose Triton is asked; None for this one.

    Never raises: what can't be had has a `reason`.
    """
    rows = layout_rows(text)
    answered = {
        (row["encoding"], tuple(row["shape"])): {name: row[name] for name in _ANSWER if name in row}
        for row in known
        if "bases" in row or "reason" in row
    }
    rows = [row | answered.get((row["encoding"], tuple(row["shape"])), {}) for row in rows]
    open_rows = [row for row in rows if "bases" not in row and "reason" not in row]
    if not open_rows:
        return rows
    numbers = module_numbers(text)
    with LayoutServer(fork=False, interpreter=interpreter) as server:
        job = server.ask_types(open_rows, target, numbers.get("num-warps", 4), numbers.get("num-ctas", 1))
        fresh = iter(server.wait(job))
    return [row if "bases" in row or "reason" in row else next(fresh) for row in rows]

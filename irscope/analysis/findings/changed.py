"""The `source` stage of a capture with other facts about its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from irscope.analysis.findings.model import Change
from irscope.ir.mlir.reader import parse_mlir

__all__ = ["with_changes"]

# {tt.divisibility = 16 : i32, tt.pointee_range = 32 : i32}
_DIVISIBILITY = re.compile(r"tt\.divisibility = \d{1,9}")


def with_changes(source: str, names: Iterable[str], changes: Iterable[Change]) -> str | None:
    """The text with the changes of arguments; None if an argument cannot be found in it.

    `names`: the parameters of the kernel in the TTGIR, by whose names the changes call them.
    """
    module = parse_mlir(source)
    if module.kernel is None:
        return None
    parameters = module.kernel.parameters
    called = [name.removeprefix("%") for name in names]
    if len(called) != len(parameters):
        return None
    lines = source.split("\n")
    head = module.kernel.first_line - 1
    for change in changes:
        if change.kind == "option":
            continue
        if called.count(change.name) != 1:
            return None
        value, kind, _ = parameters[called.index(change.name)]
        declared = re.compile(rf"(?<![\w$.-]){re.escape(value.name)}: {re.escape(kind)}(?: \{{(?P<given>[^{{}}]*)\}})?")
        match = declared.search(lines[head])
        if match is None:
            return None
        if change.kind == "divisible":
            given = _DIVISIBILITY.sub("", match["given"] or "").strip(", ")
            # What follows the number is its type, which stays where an older divisibility stood.
            given = re.sub(r"^: i32(?:, )?|, : i32", "", given)
            told = ", ".join(filter(None, (f"tt.divisibility = {change.value} : i32", given)))
            lines[head] = f"{lines[head][: match.start()]}{value.name}: {kind} {{{told}}}{lines[head][match.end() :]}"
        else:
            end = module.kernel.lines[-1] - 1
            fresh = f"{value.name}_is"
            used = re.compile(rf"{re.escape(value.name)}(?![\w$.-])")
            for number in range(head + 1, end):
                lines[number] = used.sub(lambda _, to=fresh: to, lines[number])
            lines[head] += f"\n    {fresh} = arith.constant {change.value} : {kind}"
    return "\n".join(lines)

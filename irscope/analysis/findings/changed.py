"""The `source` stage of a capture with other facts about its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from irscope.analysis.findings.model import Change
from irscope.ir.mlir.model import Operation, Value
from irscope.ir.mlir.reader import parse_mlir

__all__ = ["with_changes", "with_run"]

# {tt.divisibility = 16 : i32, tt.pointee_range = 32 : i32}
_DIVISIBILITY = re.compile(r"tt\.divisibility = \d{1,9}")


# %3 = arith.muli %1, %2 : tensor<64x1xi32> loc(#loc9)
_PRODUCT = re.compile(
    r"^(?P<head>\s*%[\w.$-]+ = arith\.muli [^:{]{1,400}) : (?P<type>(?:tensor<(?P<shape>[\dx]+)x)?i\d)"
)
_SAME = ("tt.splat", "tt.expand_dims", "tt.broadcast", "tt.reshape", "arith.extsi", "arith.extui", "arith.trunci")
# sizePerThread = [1, 4]    order = [1, 0]
_NUMBERS = r"{} = \[(?P<numbers>\d+(?:, \d+){{0,7}})\]"


def with_run(encoding: str, axis: int, run: int) -> str:
    """A blocked layout with so many elements in a row of a dimension, and that dimension first; empty if it is none."""
    sizes, order = (re.search(_NUMBERS.format(name), encoding) for name in ("sizePerThread", "order"))
    if not encoding.startswith("#ttg.blocked<") or sizes is None or order is None:
        return ""
    given = [int(number) for number in sizes["numbers"].split(", ")]
    axes = [axis, *(int(number) for number in order["numbers"].split(", ") if int(number) != axis)]
    given[axis] = run
    wider = encoding.replace(sizes[0], f"sizePerThread = {given}")
    return wider.replace(order[0], f"order = {axes}")


def _products(kernel: Operation, argument: Value) -> list[int]:
    """The lines of the products with an argument, itself or spread over a tensor."""
    held, found = {argument}, list[int]()
    for operation in kernel.walk():
        if held.isdisjoint(operation.operands):
            continue
        if operation.name in _SAME:
            held.update(operation.results)
        elif operation.name == "arith.muli":
            found.append(operation.first_line)
    return found


def _hinted(divisor: int | str, match: re.Match[str]) -> str:
    rank = match["shape"].count("x") + 1 if match["shape"] else 1
    return f"{match['head']} {{tt.divisibility = dense<{divisor}> : tensor<{rank}xi32>}} : {match['type']}"


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
        if change.kind == "layout":
            if not any(change.name in line for line in lines):
                return None
            lines = [line.replace(change.name, str(change.value)) for line in lines]
            continue
        if called.count(change.name) != 1:
            return None
        value, kind, _ = parameters[called.index(change.name)]
        if change.kind == "hint":
            if not (products := _products(module.kernel, value)):
                return None
            for number in products:
                lines[number - 1] = _PRODUCT.sub(partial(_hinted, change.value), lines[number - 1])
            continue
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

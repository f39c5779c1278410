"""The `source` stage of a capture with other facts about its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from irscope.analysis.findings.model import Change
from irscope.ir.mlir.model import MlirModule
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.sites import factor_sites, sites_of

__all__ = ["with_changes", "with_run"]

# {tt.divisibility = 16 : i32, tt.pointee_range = 32 : i32}
_DIVISIBILITY = re.compile(r"tt\.divisibility = \d{1,9}")


# %3 = arith.muli %1, %2 : tensor<64x1xi32> loc(#loc9)      %5 = arith.remsi %3, %4 : tensor<64xi32>
_RESULT = re.compile(r"^(?P<head>\s*%[\w.$-]+ = arith\.\w+ [^:{]{1,400}) : (?P<type>(?:tensor<(?P<shape>[\dx]+)x)?i\d)")
# arith.muli %1, %c100_i32 : i32 loc(#loc9)      arith.cmpi slt, %1, %cst : tensor<64xi32>
_OPERATED = re.compile(r" : (?P<type>(?P<tensor>tensor<[^>]{1,200}>)|i\d{1,2})")
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


def _hinted(attributes: str, divisor: int | str, match: re.Match[str]) -> str:
    rank = match["shape"].count("x") + 1 if match["shape"] else 1
    written = ", ".join(f"{name} = dense<{divisor}> : tensor<{rank}xi32>" for name in attributes.split())
    return f"{match['head']} {{{written}}} : {match['type']}"


def _with_factor(lines: list[str], module: MlirModule, change: Change) -> bool:
    """Put another constant into the products and comparisons that have one; whether any has."""
    found = [(one, index) for value, one, index in factor_sites(module) if value == change.was]
    for number, (one, index) in enumerate(found):
        line = lines[one.first_line - 1]
        kind = _OPERATED.search(line)
        old = re.compile(rf"{re.escape(one.operands[index].name)}(?![\w$.-])")
        head, sign, rest = line.partition(" = ")
        if kind is None or not sign or "\n" in line:
            return False
        value = f"dense<{change.value}>" if kind["tensor"] else str(change.value)
        fresh = f"%factor_{change.was}_{number}"
        lines[one.first_line - 1] = (
            f"    {fresh} = arith.constant {value} : {kind['type']}\n{head} = {old.sub(fresh, rest)}"
        )
    return bool(found)


def with_changes(source: str, names: Iterable[str], changes: Iterable[Change]) -> str | None:
    """The text with the changes; None if what is to be changed cannot be found in it.

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
        if change.kind == "factor":
            if not _with_factor(lines, module, change):
                return None
            continue
        if called.count(change.name) != 1:
            return None
        value, kind, _ = parameters[called.index(change.name)]
        if change.kind in ("hint", "contiguous"):
            sites = sites_of(module, value)
            hinted = sites.products if change.kind == "hint" else sites.remainders
            attributes = "tt.divisibility" if change.kind == "hint" else "tt.contiguity tt.divisibility"
            if not hinted:
                return None
            for one in hinted:
                written = partial(_hinted, attributes, change.value)
                lines[one.first_line - 1] = _RESULT.sub(written, lines[one.first_line - 1])
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

"""The regular expressions of the viewing half, and texts made from each of them to slow it down."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import irscope

with warnings.catch_warnings():
    # Python 3.10 has it under its old name alone.
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

ROOMS = ("analysis", "cli", "device", "ir", "layout", "memory", "model", "render", "store")
_CHARACTERS = "a0 x_.-,\t\n\"'()[]{}<>#%!@$:;/*=|&\\Z9~f"
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


@dataclass(frozen=True)
class Pattern:
    """A compiled expression of a module, and whether that looks for it anywhere in a text."""

    place: str
    expression: re.Pattern[str]
    is_searched: bool


def patterns() -> Iterator[Pattern]:
    """Every expression that stands in a module of the viewing half, also in its tuples, tables and value objects."""
    known: set[tuple[str, int]] = set()
    for room in ROOMS:
        package = importlib.import_module(f"irscope.{room}")
        names = [package.__name__]
        names += [one.name for one in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{package.__name__}.")]
        for name in names:
            module = importlib.import_module(name)
            source = inspect.getsource(module)
            for variable, value in vars(module).items():
                for one in _expressions(value):
                    # By hand or in a loop over a table: what is no plain name counts as searched where it may be.
                    used = re.search(rf"\b{re.escape(variable)}\.(?:search|finditer|findall|sub|split)\b", source)
                    if isinstance(one.pattern, str) and (one.pattern, one.flags) not in known:
                        known.add((one.pattern, one.flags))
                        yield Pattern(f"{name}.{variable}", one, used is not None)


def _expressions(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _expressions(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _expressions(one)
    elif hasattr(type(value), "__dataclass_fields__") and type(value).__module__.startswith(irscope.__name__):
        for name in (*type(value).__dataclass_fields__, "pattern"):
            if isinstance(one := getattr(value, name, None), re.Pattern):
                yield one


def attacks(expression: re.Pattern[str], length: int) -> Iterator[str]:
    """Texts that repeat what one of its repetitions matches, behind what stands before it, and then do not match."""
    draw = random.Random(1)
    parsed: Any = sre_parse.parse(expression.pattern, expression.flags)
    tree: list[Any] = list(parsed)
    whole = _sample(tree, draw)
    pairs = {("", whole[:end]) for end in range(1, min(len(whole), 12))}
    for before, repeated in _repetitions(tree, "", draw):
        pairs |= {(before, repeated), ("", repeated), ("", before + repeated), ("", f"\n{before}{repeated}")}
    for before, repeated in sorted(pairs):
        for end in ("", "\0", "\0\n"):
            if repeated:
                yield before + repeated * (length // len(repeated)) + end


def _repetitions(tree: list[Any], before: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    for index, (kind, value) in enumerate(tree):
        here = before + _sample(tree[:index], draw)
        if str(kind) in _REPEATS:
            if int(value[1]) > 50:
                for _ in range(16):
                    yield here, _sample(list(value[2]), draw)
            yield from _repetitions(list(value[2]), here, draw)
        elif str(kind) == "BRANCH":
            for branch in value[1]:
                yield from _repetitions(list(branch), here, draw)
        elif str(kind) in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
            yield from _repetitions(list(value[-1]), here, draw)


def _sample(tree: list[Any], draw: random.Random) -> str:
    """A text that a part of an expression matches, as far as it does not look around."""
    text = ""
    for kind, value in tree:
        if str(kind) == "LITERAL":
            text += chr(value)
        elif str(kind) == "NOT_LITERAL":
            text += "a" if value != ord("a") else "b"
        elif str(kind) == "ANY":
            text += draw.choice('a 0"')
        elif str(kind) == "IN":
            text += draw.choice([one for one in _CHARACTERS if _is_in(value, one)] or ["a"])
        elif str(kind) == "BRANCH":
            text += _sample(list(draw.choice(value[1])), draw)
        elif str(kind) == "SUBPATTERN":
            text += _sample(list(value[-1]), draw)
        elif str(kind) in _REPEATS:
            least, most, inner = value
            for _ in range(max(int(least), min(int(most), draw.randint(0, 1)))):
                text += _sample(list(inner), draw)
    return text


def _is_in(items: list[Any], one: str) -> bool:
    found = negated = False
    for kind, value in items:
        if str(kind) == "NEGATE":
            negated = True
        elif str(kind) == "LITERAL":
            found |= value == ord(one)
        elif str(kind) == "RANGE":
            found |= value[0] <= ord(one) <= value[1]
        elif str(kind) == "CATEGORY":
            name = str(value).lower()
            is_one = {"digit": one.isdigit(), "space": one.isspace(), "word": one.isalnum() or one == "_"}[
                name.rpartition("_")[2]
            ]
            found |= is_one != ("_not_" in name)
    return found != negated

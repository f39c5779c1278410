"""What Triton specialised a launch on: parameter by parameter, and option by option."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.variants.python import KernelText
from irscope.model.capture import Capture
from irscope.model.telling import DIVISIBLE

__all__ = ["Aspect", "Specialisation", "specialisation_of"]

Aspect = Literal["type", "equal to 1", "divisible by 16", "aligned to 16 bytes", "attribute", "constexpr", "option"]
"""What of a parameter, or of the options, decides that a launch is compiled of its own."""

Key = tuple[Aspect, str]
"""(aspect, name of the parameter or option)."""


@dataclass(frozen=True, slots=True)
class Specialisation:
    """Everything that Triton's cache key has of a launch, by aspect and name."""

    values: Mapping[Key, str]

    def without(self, keys: Sequence[Key]) -> tuple[tuple[Key, str], ...]:
        """The rest, as something that can be compared, for launches that no longer differ in these."""
        return tuple(sorted((key, value) for key, value in self.values.items() if key not in keys))

    def state_of(self, name: str) -> str:
        """One parameter or option in short: `i32 %16`, `=1`, `*fp16 unaligned`, `64`."""
        held = {aspect: value for (aspect, other), value in self.values.items() if other == name}
        if "constexpr" in held or "option" in held:
            return held.get("constexpr", held.get("option", ""))
        parts = [held.get("type", "")]
        if held.get("equal to 1") == "yes":
            parts.append("=1")
        if held.get("divisible by 16") == "yes":
            parts.append("%16")
        if held.get("aligned to 16 bytes") == "no":
            parts.append("unaligned")
        parts.append(held.get("attribute", ""))
        return " ".join(filter(None, parts))


def specialisation_of(capture: Capture, text: KernelText, runtime: frozenset[str]) -> Specialisation:
    """The specialisation of a capture.

    Args:
        capture: of the launch.
        text: the kernel's Python.
        runtime: the parameters that are arguments of the IR in some variant, so that a constant is a specialised value.
    """
    values: dict[Key, str] = {}
    constants = dict(capture.launch.constants)
    attributes = dict(capture.launch.attributes)
    for name, kind in capture.launch.signature:
        is_declared = text.is_constexpr(name)
        if kind == "constexpr" and name not in runtime and is_declared is not False:
            values["constexpr", name] = constants.get(name, "")
        elif kind == "constexpr":
            value = constants.get(name, "")
            if _is_one(value):
                values["equal to 1", name] = "yes"
            else:
                # None, and what else is no argument.
                values["type", name] = value
        else:
            values["type", name] = kind
            rows = [row for row in attributes.get(name, "").split(", ") if row]
            is_divisible = DIVISIBLE in rows
            if kind.startswith("*"):
                values["aligned to 16 bytes", name] = _yes(is_divisible)
            elif kind.startswith(("i", "u")) and kind not in ("i1", "u1"):
                values["equal to 1", name] = "no"
                values["divisible by 16", name] = _yes(is_divisible)
            elif is_divisible:
                values["attribute", name] = DIVISIBLE
            if others := [row for row in rows if row != DIVISIBLE]:
                values["attribute", name] = ", ".join(others)
    # Elements of tuples.
    named = dict(capture.launch.signature)
    for name, value in constants.items():
        if name not in named:
            values["constexpr", name] = value
    for name, value in attributes.items():
        if name not in named:
            values["attribute", name] = value
    for name, value in capture.launch.options:
        values["option", name] = str(value)
    return Specialisation(values)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _is_one(value: str) -> bool:
    try:
        return ast.literal_eval(value) == 1
    except (ValueError, SyntaxError):
        return False

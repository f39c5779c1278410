"""Attributes that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.program import Program
from irscope.analysis.reduce.steps.step import Edit

__all__ = ["Attributes", "Properties"]

_STRUCTURAL = ("sym_name", "function_type", "operandSegmentSizes", "value", "callee")
"""Properties that an operation cannot do without, or that say what it is."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Leaves out attributes that are no properties: of operations, the module, and arguments of functions."""

    name: str = "attributes"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(operation or argument, attribute)."""
        found: list[Edit] = [(one.key, name) for one in program.walk() for name in one.attributes]
        kept = {value for one in program.functions for value in one.regions[0][0].arguments}
        return found + [
            (value, name) for value, rows in program.argument_attributes.items() if value in kept for name in rows
        ]

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen attributes out."""
        for one in program.walk():
            one.attributes = {name: text for name, text in one.attributes.items() if (one.key, name) not in chosen}
        for value, rows in program.argument_attributes.items():
            program.argument_attributes[value] = {
                name: text for name, text in rows.items() if (value, name) not in chosen
            }


@dataclass(frozen=True, slots=True)
class Properties:
    """Leaves out properties: those of one name on all operations of one name."""

    name: str = "properties"

    def edits(self, program: Program) -> Sequence[Edit]:
        """(operation's name, property)."""
        rows = [(one.name, name) for one in program.walk() for name in one.properties if name not in _STRUCTURAL]
        return list(dict.fromkeys(rows))

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Leave the chosen properties out."""
        for one in program.walk():
            one.properties = {name: text for name, text in one.properties.items() if (one.name, name) not in chosen}

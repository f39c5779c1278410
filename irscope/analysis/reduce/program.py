"""What is reduced: a module that can be edited, the passes that run on it, and the options of the compile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irscope.ir.mlir.editable import EditableModule, read_editable, write_editable
from irscope.model.capture import PassSnapshot, stage_rank
from irscope.plan import PassPlan, PassRule

_FEW = 3
"""Passes that are named rather than those that are off: a pass that the failure keeps from running is not known."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The passes that may run on a text: those of the stages from the one that it is for."""

    every: tuple[str, ...]
    """The labels of all passes of these stages, as far as they are known, in their order."""
    kept: frozenset[str]
    """The labels of those that run."""

    @staticmethod
    def of(passes: Sequence[PassSnapshot], stages: Sequence[str], first: str = "") -> Pipeline:
        """Those that ran in some stages, from the pass `first` on; empty for the first of all."""
        every = [one for one in passes if one.stage in stages]
        labels = [one.label for one in every]
        begin = labels.index(first) if first in labels else 0
        return Pipeline(tuple(labels), frozenset(one.label for one in every[begin:] if one.outcome != "skipped"))

    @property
    def running(self) -> tuple[str, ...]:
        """The labels of the passes that run, in their order."""
        return tuple(label for label in self.every if label in self.kept)

    def without(self, labels: frozenset[str]) -> Pipeline:
        """The same without some passes."""
        return Pipeline(self.every, self.kept - labels)

    def up_to(self, stage: str) -> Pipeline:
        """The same without the passes of later stages, which then run as they do; all for an empty `stage`."""
        if not stage:
            return self
        every = tuple(label for label in self.every if stage_rank(label.partition(":")[0]) <= stage_rank(stage))
        return Pipeline(every, self.kept & {*every})

    @property
    def plan(self) -> PassPlan:
        """The plan under which these passes run, and no others of their stages; the shorter of both ways to say it."""
        disabled: list[PassRule] = []
        only: list[PassRule] = []
        for stage in dict.fromkeys(label.partition(":")[0] for label in self.every):
            of_stage = [label for label in self.every if label.startswith(f"{stage}:")]
            kept = [label for label in of_stage if label in self.kept]
            gone = [label for label in of_stage if label not in self.kept]
            if not kept:
                disabled.append(PassRule("*", stage))
            elif not gone or len(kept) > max(len(gone), _FEW):
                disabled += map(PassRule.parse, gone)
            else:
                only += map(PassRule.parse, kept)
        return PassPlan(tuple(disabled), tuple(only))


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    pipeline: Pipeline
    options: tuple[tuple[str, Any], ...] = ()
    """Those that differ from the target's defaults."""


@dataclass(slots=True)
class EditableProgram(EditableModule):
    """A module with the passes that run on it, and the options of the compile."""

    pipeline: Pipeline = Pipeline((), frozenset())
    options: tuple[tuple[str, Any], ...] = ()
    """As of a `Case`."""

    def case(self) -> Case:
        return Case(write_editable(self), self.pipeline, self.options)


def read_program(text: str) -> EditableProgram:
    """Read a module that MLIR printed in its generic form; raises ParseError for any other form."""
    module = read_editable(text)
    return EditableProgram(
        module.operations, module.types, module.aliases, module.argument_attributes, module.next_number
    )

"""All steps, in the order in which they are tried: those that may take most away come first."""

from __future__ import annotations

from irscope.analysis.reduce.steps.arguments import Merged, Unused
from irscope.analysis.reduce.steps.attributes import Attributes, Properties
from irscope.analysis.reduce.steps.branches import BlockArguments, Branches, OneBlock
from irscope.analysis.reduce.steps.carried import Carried, Optional
from irscope.analysis.reduce.steps.operations import Functions, Operations
from irscope.analysis.reduce.steps.regions import Regions, Turns
from irscope.analysis.reduce.steps.step import Step
from irscope.analysis.reduce.steps.types import Elements, Extents, Layouts

__all__ = ["STEPS"]

STEPS: tuple[Step, ...] = (
    Functions(),
    OneBlock(),
    Operations("argument"),
    Regions(),
    Branches(),
    Operations("operand"),
    Operations("constant"),
    Carried(),
    BlockArguments(),
    Optional(),
    Unused(),
    Merged(),
    Turns(),
    Elements(),
    Extents(),
    Layouts(),
    Attributes(),
    Properties(),
    Operations("argument"),
    Unused(),
)

"""All steps, in the order in which they are tried: those that may take most away come first."""

from __future__ import annotations

from irscope.analysis.reduce.steps.control import BlockArguments, Branches, OneBlock, Regions, Turns
from irscope.analysis.reduce.steps.step import Step
from irscope.analysis.reduce.steps.types import Attributes, Elements, Extents, Layouts, Properties
from irscope.analysis.reduce.steps.values import Carried, Functions, Merged, Operations, Optional, Unused

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

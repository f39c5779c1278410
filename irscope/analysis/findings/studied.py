"""What all kinds of findings read of a capture, each thing once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from irscope.analysis.findings.model import Cause, Evidence, Finding, Suggestion
from irscope.ir.locations.model import Chain
from irscope.ir.locations.user import Place
from irscope.ir.logs.reasons.decisions import Decision
from irscope.ir.mlir.encoding import read_aliases
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.uses import ModuleUses, read_uses, with_loops
from irscope.model.capture import Capture

# Imported where they are needed: a summary needs none of them, and they bring numpy.
if TYPE_CHECKING:
    from irscope.analysis.passes.decisions import Decisions
    from irscope.layout.described import DescribedLayout
    from irscope.memory.addresses.narrow import Limits
    from irscope.memory.cost import Cost
    from irscope.memory.machine import Machine

__all__ = ["Studied"]

_Read = TypeVar("_Read")


class Studied:
    """A capture, and what is read of it."""

    def __init__(
        self, capture: Capture, costs: Sequence[Cost] | None = None, *, follows_operations: bool = True
    ) -> None:
        """`costs`: those of the capture, if they are known. `follows_operations`: whether through the passes."""
        self.capture = capture
        self.follows_operations = follows_operations
        if costs is not None:
            self.__dict__["costs"] = costs
        self.ttgir = capture.texts.get("ttgir", "")
        self._kept: dict[Callable[[Studied], Any], Any] = {}

    def with_log(self, capture: Capture) -> Studied:
        """The same capture, now with the compiler's log; what was read of it is kept."""
        other = copy(self)
        other.capture = capture
        other.__dict__.pop("decisions", None)
        return other

    def kept(self, read: Callable[[Studied], _Read]) -> _Read:
        """What a function reads of it, once."""
        if read not in self._kept:
            self._kept[read] = read(self)
        return self._kept[read]

    @cached_property
    def uses(self) -> ModuleUses:
        """The operations of the TTGIR."""
        return read_uses(self.ttgir)

    @cached_property
    def operations(self) -> dict[int, tuple[Operation, int]]:
        """Line of the TTGIR → the operation that begins there, and the loops around it."""
        return {one.first_line: (one, loops) for one, loops in with_loops(self.uses.module)}

    @cached_property
    def costs(self) -> Sequence[Cost]:
        """The costs of its layouts and addresses."""
        from irscope.memory.costs import costs_of

        return costs_of(self.capture)

    @cached_property
    def machine(self) -> Machine:
        """The memory instructions of its assembly."""
        from irscope.memory.machine import read_machine

        return read_machine(self.capture)

    @cached_property
    def decisions(self) -> Decisions:
        """What the compiler's log says; nothing if the capture holds none."""
        from irscope.analysis.passes.decisions import decisions_of

        return decisions_of(self.capture)

    @cached_property
    def limits(self) -> Limits:
        """What the compiler knows of the arguments."""
        from irscope.memory.addresses.narrow import Limits

        return Limits(self.uses.module)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The aliases of the TTGIR."""
        return dict(read_aliases(self.ttgir))

    @cached_property
    def _layouts(self) -> dict[tuple[str, tuple[int, ...]], DescribedLayout]:
        from irscope.layout.described import DescribedLayout

        rows = (DescribedLayout(row, self.capture.target) for row in self.capture.layouts)
        return {(item.encoding.text, item.shape): item for item in rows}

    def layout_of(self, operation: Operation) -> DescribedLayout | None:
        """The layout of an access's pointers."""
        from irscope.memory.global_costs import layout_of_access

        return layout_of_access(operation, self._layouts, self.aliases)

    def chain_at(self, line: int) -> Chain:
        """Where an operation of the TTGIR comes from."""
        return self.uses.locations.chain_at(line)

    def place_at(self, line: int) -> Place:
        """The same, without the frames of Triton's own library."""
        return self.uses.place_at(line)

    def logged(self, decision: Decision) -> Cause:
        """What the log says, as a cause."""
        label = next(
            (one.label for one in self.capture.passes() if one.index == decision.index), f"stage {decision.stage}"
        )
        return Cause(decision.said, "log", f"{label}, line {decision.line} of its log")

    def in_ir(self, text: str, line: int, evidence: Evidence = "ir") -> Cause:
        """What an operation of the TTGIR shows, as a cause."""
        return Cause(text, evidence, f"line {line} of ttgir")

    def finding(
        self,
        code: str,
        line: int,
        text: str,
        cost: str,
        weight: int,
        causes: Sequence[Cause],
        suggestions: Sequence[Suggestion] = (),
    ) -> Finding:
        """A finding about an operation of the TTGIR; what is in a loop weighs more, as in the table of costs."""
        operation, loops = self.operations[line]
        values = tuple(value.name for value in operation.results or operation.operands[:1])
        return Finding(
            code,
            operation.name,
            line,
            values,
            self.chain_at(line),
            self.place_at(line),
            text,
            cost,
            weight << min(4 * loops, 16),
            tuple(causes),
            tuple(suggestions),
        )

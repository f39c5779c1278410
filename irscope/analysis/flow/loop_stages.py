"""The stages that the software pipeliner cut a loop into, and what the pipelined loop keeps in flight."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.analysis.flow.dataflow import Dataflow, Node, read_dataflow, role_of
from irscope.analysis.flow.dataflow_fold import NOTABLE
from irscope.ir.mlir.types import short_type


@dataclass(frozen=True, slots=True)
class ScheduledOperation:
    name: str
    value: str
    """The value it makes, or an empty string."""
    type: str
    """In short: `128x64xf16`."""
    stage: int
    cluster: int
    """The order within one turn of the pipelined loop: lower ones first."""
    line: int
    """1-based line of the text."""
    notable: bool
    """Whether it touches memory, multiplies, reduces or converts a layout."""


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """One loop, cut into stages: stage s of iteration i runs in turn i + s of the pipelined loop."""

    line: int
    """1-based line of the text."""
    title: str
    operations: tuple[ScheduledOperation, ...]

    @property
    def stages(self) -> int:
        """How many stages there are: so many iterations are under way at once."""
        return max((operation.stage for operation in self.operations), default=0) + 1

    def of_stage(self, stage: int) -> tuple[ScheduledOperation, ...]:
        """The operations of a stage, in the order they run in."""
        chosen = [operation for operation in self.operations if operation.stage == stage]
        return tuple(sorted(chosen, key=lambda operation: (operation.cluster, operation.line)))


@dataclass(frozen=True, slots=True)
class PipelinedLoop:
    """A loop after the pipeliner: its copies, what it waits for, and the buffers."""

    line: int
    title: str
    copies: tuple[tuple[str, str], ...]
    """(operation, value) of each copy that it begins."""
    waits: tuple[tuple[str, str], ...]
    """(operation, how many copies it leaves in flight) of each wait."""
    prologue: int
    """Copies begun before it, in the same region."""
    buffers: tuple[tuple[str, str, int], ...]
    """(value, type, how many) of each allocation with several buffers."""


def read_schedules(text: str) -> tuple[LoopSchedule, ...]:
    """The scheduled loops of a snapshot; none if no operation has a `loop.stage`."""
    if "loop.stage" not in text:
        return ()
    flow = read_dataflow(text)
    found: list[LoopSchedule] = []
    for scope in flow.scopes:
        if scope.name != "scf.for":
            continue
        operations = tuple(
            one for node in flow.nodes if node.region == scope.number and (one := _scheduled(node)) is not None
        )
        if operations:
            found.append(LoopSchedule(scope.line, scope.title, operations))
    return tuple(sorted(found, key=lambda loop: loop.line))


def _scheduled(node: Node) -> ScheduledOperation | None:
    if node.operation is None or not isinstance(stage := node.operation.attribute("loop.stage"), int):
        return None
    cluster = node.operation.attribute("loop.cluster")
    return ScheduledOperation(
        node.name,
        node.values[0] if node.values else "",
        short_type(node.type),
        stage,
        cluster if isinstance(cluster, int) else 0,
        node.line,
        role_of(node.operation) in NOTABLE,
    )


def read_pipelined(text: str) -> tuple[PipelinedLoop, ...]:
    """The loops of a module that begin copies, with what they keep in flight."""
    flow = read_dataflow(text)
    found = [_pipelined(flow, scope.number) for scope in flow.scopes if scope.name == "scf.for"]
    return tuple(sorted((loop for loop in found if loop is not None), key=lambda loop: loop.line))


def _pipelined(flow: Dataflow, number: int) -> PipelinedLoop | None:
    scope = flow.scopes[number]
    inside = [node for node in flow.nodes if node.region == number]
    copies = [(node.name, node.values[0] if node.values else "") for node in inside if _brings_data(node)]
    if not copies:
        return None
    waits = [
        (node.name, node.detail.partition(" ")[0])
        for node in inside
        if node.operation is not None and node.operation.kind == "wait"
    ]
    numbers = {node.number for node in inside}
    outside = {edge.source for edge in flow.edges if edge.target in numbers}
    buffers = [
        (node.values[0], short_type(node.type), shape[0])
        for node in flow.nodes
        if node.number in outside and node.operation is not None
        # An allocation with no value to begin with is one that the pipeliner made.
        if node.operation.kind == "allocation" and not node.operation.operands
        for shape in (kind.shape for kind in node.operation.result_types[:1])
        if len(shape) > 1
    ]
    begins = max((one.line for one in flow.scopes if one.parent == scope.parent and one.line < scope.line), default=0)
    kinds = {name for name, _ in copies}
    begun = (node for node in flow.nodes if node.region == scope.parent and begins < node.line < scope.line)
    before = sum(node.name in kinds for node in begun)
    return PipelinedLoop(scope.line, scope.title, tuple(copies), tuple(waits), before, tuple(buffers))


def _brings_data(node: Node) -> bool:
    """Whether an operation loads from global memory, or begins to copy from there."""
    operation = node.operation
    if operation is None or operation.kind not in ("load", "copy") or not operation.is_of_triton:
        return False
    return any(effect.kind == "reads" and effect.space == "global" for effect in operation.effects)

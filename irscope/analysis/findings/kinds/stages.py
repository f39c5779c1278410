"""IRS202: loads of a pipelined loop that are begun fewer iterations ahead than num_stages asks for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from irscope.analysis.findings.kinds.loops import LOADS, stages_of_loop
from irscope.analysis.findings.model import Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.ir.mlir.model import Operation, Value
from irscope.ir.mlir.uses import read_uses
from irscope.model.capture import PassSnapshot

__all__ = ["buffers_of", "stage_findings"]

_DEEPEST = 64
_CHANGES = 4
"""Of the layout, between a load and the buffer."""


def stage_findings(studied: Studied) -> Iterator[Finding]:
    """The findings of each load that a dot of the same loop reads; none without the IR of the passes."""
    snapshot = next((one for one in studied.capture.passes() if one.text and "loop.stage" in one.text), None)
    asked = studied.capture.launch.option("num_stages")
    if snapshot is not None and isinstance(asked, int):
        yield from _Scheduled(studied, snapshot, asked).findings()


class _Scheduled:
    """The IR in which the pipeliner has written down the stage of each operation."""

    def __init__(self, studied: Studied, snapshot: PassSnapshot, asked: int) -> None:
        self._studied = studied
        self._label = snapshot.label
        self._asked = asked
        self._uses = read_uses(snapshot.text or "")
        self._inside: set[int] = set()
        """The lines of the operations of the loop that is read."""

    @cached_property
    def _copies(self) -> dict[object, int]:
        """Where each load of a loop of the final TTGIR comes from → its line there."""
        copies = (*LOADS, "async_copy_global_to_local", "buffer_load_to_local")
        found = (one for one, loops in self._studied.operations.values() if loops and one.opcode in copies)
        return {self._studied.chain_at(one.first_line): one.first_line for one in found}

    def findings(self) -> Iterator[Finding]:
        for loop in self._uses.module.walk():
            if loop.name != "scf.for":
                continue
            stated = stages_of_loop(loop)
            asked = stated if stated is not None else self._asked
            self._inside = {one.first_line for one in loop.walk()}
            for dot in (one for one in loop.walk() if one.kind == "dot" and _stage(one) is not None):
                for load in self._loads(dot.operands[:2]):
                    yield from self._fewer(load, dot, asked, stated is not None)

    def _loads(self, values: tuple[Value, ...]) -> list[Operation]:
        """The loads of the same iteration that some values are made from, the nearest ones."""
        found: dict[int, Operation] = {}
        open_ = list(values)
        seen = set(open_)
        while open_ and len(seen) < 1 << 12:
            made = self._uses.module.maker_of(open_.pop())
            if made is None or made.first_line not in self._inside:
                continue
            if made.opcode in LOADS:
                found[made.first_line] = made
                continue
            fresh = [one for one in made.operands if one not in seen]
            seen.update(fresh)
            open_ += fresh
        return [found[line] for line in sorted(found)]

    def _fewer(self, load: Operation, dot: Operation, asked: int, stated: bool) -> Iterator[Finding]:
        first, last = _stage(load) or 0, _stage(dot) or 0
        ahead = last - first
        line = self._copies.get(self._uses.locations.chain_at(load.first_line))
        if not 0 < ahead < asked - 1 or line is None:
            return
        # What its addresses or its mask are loaded from takes stages of its own.
        before = [one for one in self._loads(load.operands) if (_stage(one) or 0) < first]
        if not before:
            return
        levels, deeper = 2, before
        while (deeper := [one for other in deeper for one in self._loads(other.operands)]) and levels < _DEEPEST:
            levels += 1
        causes = [
            self._studied.in_ir(
                f"stage {first} of {last + 1} begins it, stage {last} has the dot", load.first_line, stage=self._label
            )
        ]
        for one in before[:2]:
            what = f"its address comes from another load, {one.results[0].name}, which stage {_stage(one)} begins"
            causes.append(self._studied.in_ir(what, one.first_line, stage=self._label))
        enough = levels * (asked - 2) + 3
        changes = () if stated else (Change("option", "num_stages", enough),)
        yield self._studied.finding(
            "IRS202",
            line,
            f"is begun {ahead} iteration{'s' * (ahead > 1)} ahead, where num_stages={asked} asks for {asked - 1}",
            f"{asked - 1 - ahead} iterations less to wait for memory in",
            asked - 1 - ahead,
            causes,
            [Suggestion(f"num_stages={enough}", changes)],
        )


def _stage(operation: Operation) -> int | None:
    stage = operation.attribute("loop.stage")
    return stage if isinstance(stage, int) else None


def buffers_of(studied: Studied, copy: Operation) -> int:
    """How many buffers in shared memory a copy or a load of a loop has in turn."""
    written = [*copy.operands]
    for one, _ in studied.operations.values():
        if one.opcode == "local_store" and _comes_from(studied, one.operands[0], copy):
            written += one.operands
    for value in written:
        made = studied.module.maker_of(value)
        if made is not None and made.opcode in ("memdesc_index", "memdesc_subview") and made.operands:
            shape = studied.module.type_of(made.operands[0]).shape
            return shape[0] if len(shape) > 2 else 1
    return 1


def _comes_from(studied: Studied, value: Value, load: Operation) -> bool:
    """Whether a value is that of a load, perhaps in another layout."""
    made = studied.module.maker_of(value)
    for _ in range(_CHANGES):
        if made is None or made is load or not made.operands:
            break
        made = studied.module.maker_of(made.operands[0])
    return made is load

"""The costs of a kernel's layouts, per operation: global accesses, shared accesses, conversions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from irscope.ir.mlir.uses import ModuleUses, read_uses
from irscope.memory.access import Cost
from irscope.memory.global_costs import global_costs
from irscope.memory.machine import MemoryInstructions, read_machine
from irscope.memory.shared_costs import shared_costs
from irscope.model.capture import Capture


def costs_of(capture: Capture) -> list[Cost]:
    """Every cost of a capture's TTGIR, the worst first: by `excess`, which counts more inside loops."""
    uses, machine = read_uses(capture.texts.get("ttgir", "")), read_machine(capture)
    return _ordered([*global_costs(capture, uses, machine), *shared_costs(capture, uses, machine)])


def costs_on_chip(capture: Capture, uses: ModuleUses, machine: MemoryInstructions) -> list[Cost]:
    """The same without accesses to global memory, whose addresses must be evaluated.

    `uses`: the operations of the TTGIR. `machine`: the memory instructions of the assembly.
    """
    return _ordered(shared_costs(capture, uses, machine))


def _ordered(costs: Iterable[Cost]) -> list[Cost]:
    return sorted(costs, key=lambda cost: (-(cost.excess << min(4 * cost.loops, 16)), -cost.loops, cost.line))


def as_json(costs: Iterable[Cost]) -> list[dict[str, Any]]:
    """Costs as plain values."""
    return [asdict(cost) for cost in costs]

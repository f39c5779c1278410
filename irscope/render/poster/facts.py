"""What a poster says of a capture: the answers of the analyses, each asked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from irscope.analysis.findings.model import Finding, is_silenced
from irscope.analysis.findings.studied import Studied
from irscope.analysis.in_flight.model import InFlight
from irscope.analysis.resources import assembly_of, instruction_families
from irscope.analysis.source.annotations import AnnotatedCode, annotate
from irscope.device.occupancy import Occupancy, occupancy_of
from irscope.device.parts import peaks_of_target
from irscope.errors import undamaged
from irscope.ir.mlir.operations import opcode_of
from irscope.layout.described import DescribedLayout
from irscope.memory.access import Cost
from irscope.memory.allocation import AllocatedMemory, allocations_of
from irscope.memory.costs import costs_of
from irscope.model.capture import Capture

if TYPE_CHECKING:
    # Both execute IR, on NumPy, which a page can do without.
    from irscope.analysis.roofline import Roofline
    from irscope.timing.predict import Prediction


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a poster shows; what is not known is None or empty."""

    capture: Capture
    flight: InFlight | None
    allocations: tuple[AllocatedMemory, ...]
    costs: tuple[Cost, ...]
    findings: tuple[Finding, ...]
    time: Prediction | None
    occupancy: Occupancy | None
    families: dict[str, int]
    assembly: str
    """The stage that is counted: `sass`, `amdgcn`, `ptx`; or an empty string."""
    registers: AnnotatedCode | None
    tile: DescribedLayout | None
    """The layout of the dot's result; of another value where there is no dot."""
    of_dot: bool
    """Whether the tile is a dot's."""

    @property
    def conversions(self) -> tuple[Cost, ...]:
        return tuple(one for one in self.costs if one.kind == "conversion")

    @property
    def accesses(self) -> tuple[Cost, ...]:
        return tuple(one for one in self.costs if one.kind == "global")


def facts_of(
    capture: Capture,
    costs: Sequence[Cost] | None = None,
    findings: Sequence[Finding] | None = None,
    time: Prediction | None = None,
) -> Facts:
    """The facts of a capture; `costs` are those of `costs_of`, `findings` and `time` those of `why`, if known."""
    from irscope.analysis.in_flight.find import in_flight

    known = tuple(costs if costs is not None else known_costs(capture))
    if findings is None:
        every, time = known_findings(capture, known)
        findings = [one for one in every if not one.is_small]
    tile, of_dot = _tile(capture)
    return Facts(
        capture,
        in_flight(capture),
        known_allocations(capture),
        known,
        tuple(findings),
        time,
        occupancy_of(capture),
        instruction_families(capture),
        assembly_of(capture),
        live_registers(capture),
        tile,
        of_dot,
    )


def roofline_of_assumed(capture: Capture) -> Roofline | None:
    """The roofline of a launch on the first part of its target; None if that cannot be told."""
    from irscope.analysis.roofline import roofline_of

    peaks = next(iter(peaks_of_target(capture.target)), None)
    if peaks is None or capture.launch.record is None or capture.failure is not None:
        return None
    return undamaged(lambda: roofline_of(capture, peaks), None)


def known_findings(capture: Capture, costs: Sequence[Cost]) -> tuple[Sequence[Finding], Prediction | None]:
    """The findings of a capture that are not silenced, the worst first, and the prediction of its launch, if any."""
    from irscope.analysis.findings.costs import every_finding

    found, time = every_finding(Studied(capture, costs, follows_operations=False))
    return [one for one in found if not is_silenced(one, capture)], time


def known_costs(capture: Capture) -> Sequence[Cost]:
    """The costs of layouts and accesses, the worst first; none of a damaged capture."""
    return undamaged(lambda: costs_of(capture), [])


def known_allocations(capture: Capture) -> tuple[AllocatedMemory, ...]:
    """The memories over time; none of a damaged capture."""
    return undamaged(lambda: allocations_of(capture), ())


def live_registers(capture: Capture) -> AnnotatedCode | None:
    """The instructions of a capture's machine code, if it holds any whose live registers are known."""
    found = undamaged(lambda: annotate(replace(capture, profile=None)), None)
    return found if found is not None and found.peak is not None else None


_DOT, _ACCUMULATOR = ("dot", "warp_group_dot", "dot_scaled"), ("tmem_load", "tmem_store")
_STORES = ("store", "buffer_store", "load", "buffer_load", "local_load", "local_store")


def _tile(capture: Capture) -> tuple[DescribedLayout | None, bool]:
    rows = [DescribedLayout(row, capture.target) for row in capture.layouts]
    held = [one for one in rows if one.threads is not None]
    for names, of_dot in ((_DOT, True), (_ACCUMULATOR, True), (_STORES, False)):
        used = [one for one in held if any(opcode_of(use.name) in names for use in one.row.operations)]
        if of_dot:
            # The result of a dot, not its operands.
            used = [one for one in used if one.encoding.kind != "dot_op"]
        if used:
            return max(used, key=lambda one: (len(one.shape), one.threads.size if one.threads else 0)), of_dot
    return (max(held, key=lambda one: one.threads.size if one.threads else 0) if held else None), False

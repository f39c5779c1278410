"""What a finding is about as a number, in its own compile and in one that tries a suggestion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from irscope.analysis.findings.kinds.dots import waits_in_loops
from irscope.analysis.findings.kinds.loops import DOTS, LOADS, loads_of_dot, loops_with_dots
from irscope.analysis.findings.kinds.stages import buffers_of
from irscope.analysis.findings.model import Finding, Proof
from irscope.analysis.findings.studied import Studied
from irscope.device.occupancy import occupancy_of
from irscope.memory.cost import Cost
from irscope.model.capture import Capture

__all__ = ["compare", "without_refuted"]


@dataclass(frozen=True, slots=True)
class _Measured:
    value: int
    """The less the better."""
    text: str


_Measure = Callable[[Finding, Studied], "_Measured | None"]


def compare(finding: Finding, own: Studied, other: Studied) -> Proof:
    """What a compile that tries a suggestion says of it; the other capture should hold its layouts."""
    before, after = own.capture, other.capture
    if not after.has_compiled:
        return Proof(False, failure=after.failure.why_not_run if after.failure is not None else "it was not compiled")
    measure = _MEASURES.get(finding.code)
    was, now = (measure(finding, one) if measure is not None else None for one in (own, other))
    if was is None or now is None:
        return Proof(False, failure="what it changes cannot be found in the new compile")
    effects = (f"{was.text} → {now.text}",) if was.text != now.text else ()
    fits = after.failure is None or before.failure is not None
    failure = "" if fits or after.failure is None else after.failure.why_not_run
    return Proof(now.value < was.value and fits, (*effects, *_others(finding, before, after)), failure)


def without_refuted(finding: Finding) -> Finding:
    """A finding about an access without what its launch is blamed for, if a compile showed that it is not to blame."""
    proofs = [one.proof for one in finding.suggestions if one.proof is not None and not one.proof.failure]
    if finding.code not in ("IRS101", "IRS102", "IRS103") or not proofs or any(one.helps for one in proofs):
        return finding
    return replace(finding, causes=tuple(one for one in finding.causes if one.evidence != "launch"))


def _others(finding: Finding, before: Capture, after: Capture) -> Iterator[str]:
    """How the figures of the whole kernel change."""
    rows = (
        ("registers", before.resources.registers, after.resources.registers),
        ("bytes of shared memory", before.resources.shared_bytes, after.resources.shared_bytes),
        ("bytes spilled", before.resources.spilled_bytes, after.resources.spilled_bytes),
        ("bytes of code", before.resources.code_bytes, after.resources.code_bytes),
    )
    own = {"IRS501": "bytes spilled", "IRS503": "bytes of shared memory"}.get(finding.code)
    for name, was, now in rows:
        if was is not None and now is not None and was != now and name != own:
            yield f"{was} → {now} {name}"


def _costs_at(finding: Finding, studied: Studied, kind: str) -> list[Cost]:
    """The costs of the operations of a finding's place; of a copy past the registers as of a load."""
    return [cost for cost in studied.costs if cost.kind == kind and studied.chain_at(cost.line) == finding.chain]


def _width(finding: Finding, studied: Studied) -> _Measured | None:
    costs = _costs_at(finding, studied, "global")
    widths = [int(width) for cost in costs for width in cost.figures["assembly_bits"]]
    return _Measured(-max(widths), f"{max(widths)} bits a lane") if widths else None


def _sectors(finding: Finding, studied: Studied) -> _Measured | None:
    units = [cost.access.launch.units[0] for cost in _costs_at(finding, studied, "global") if cost.access is not None]
    return _Measured(sum(units), f"{sum(units)} sectors") if units else None


def _waiting_loads(finding: Finding, studied: Studied) -> _Measured | None:
    loops = [*loops_with_dots(studied)]
    if not loops:
        return None
    inside = [one for loop in loops for one in loop.walk()]
    fed = {load.first_line for one in inside if one.name in DOTS for load in loads_of_dot(studied, one)}
    is_amd = studied.capture.target.backend == "hip"
    loads = [
        one
        for one in inside
        if one.name in LOADS
        and studied.chain_at(one.first_line) == finding.chain
        # What AMD's pipeliner begins in one iteration for the next is still a load.
        and (not is_amd or one.first_line in fed)
    ]
    return _Measured(len(loads), "waited for in each iteration" if loads else "pipelined")


def _buffers(finding: Finding, studied: Studied) -> _Measured | None:
    copies = [
        one
        for one, loops in studied.operations.values()
        if loops and one.name in (finding.operation, *LOADS) and studied.chain_at(one.first_line) == finding.chain
    ]
    count = max((buffers_of(studied, one) for one in copies), default=0)
    return _Measured(-count, f"{count} buffers") if count else None


def _waits(_: Finding, studied: Studied) -> _Measured | None:
    if not any(one.name == "ttng.warp_group_dot" for one, _ in studied.operations.values()):
        return None
    waits = waits_in_loops([*studied.operations.values()])
    return _Measured(waits, f"{waits} dots waited for at once")


def _conversions(finding: Finding, studied: Studied) -> _Measured | None:
    count = len(_costs_at(finding, studied, "conversion"))
    return _Measured(count, f"{count} conversions")


def _spilled(_: Finding, studied: Studied) -> _Measured | None:
    spilled = studied.capture.resources.spilled_bytes
    return _Measured(spilled, f"{spilled} bytes spilled") if spilled is not None else None


def _occupied(_: Finding, studied: Studied) -> _Measured | None:
    """Warps at once; those that spills pay for count for nothing."""
    found, spilled = occupancy_of(studied.capture), studied.capture.resources.spilled_bytes or 0
    if found is None:
        return None
    return _Measured((spilled << 10) - found.warps_per_sm, f"{found.warps_per_sm} of {found.max_warps} warps")


def _fits(_: Finding, studied: Studied) -> _Measured | None:
    failed = studied.capture.failure is not None
    size = studied.capture.resources.shared_bytes
    return _Measured(failed, f"{size} bytes of shared memory, {'does not fit' if failed else 'fits'}")


_MEASURES: dict[str, _Measure] = {
    "IRS101": _width,
    "IRS102": _width,
    "IRS103": _sectors,
    "IRS201": _waiting_loads,
    "IRS202": _buffers,
    "IRS302": _waits,
    "IRS401": _conversions,
    "IRS501": _spilled,
    "IRS502": _occupied,
    "IRS503": _fits,
    "IRS504": _occupied,
}

"""What a finding is about as a number, in its own compile and in one that tries a suggestion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from irscope.analysis.findings.kinds.dots import waits_in_loops
from irscope.analysis.findings.kinds.loops import LOADS, loads_of_dot, loops_with_dots
from irscope.analysis.findings.kinds.stages import buffers_of
from irscope.analysis.findings.model import Finding, Proof
from irscope.analysis.findings.studied import Studied
from irscope.device.occupancy import CUDA_LIMITS, HIP_LIMITS, excesses_of, occupancy_of
from irscope.ir.mlir.reader import parse_mlir
from irscope.memory.access import Cost
from irscope.memory.machine import ACCESSES, count_actions
from irscope.model.capture import Capture

__all__ = ["Reach", "compare", "may_not_fit", "reach_of", "without_refuted"]

Reach = Literal["ttgir", "assembly", "binary"]
"""How far a compile goes: to the TTGIR, to PTX or AMDGCN, or to the binary. The first takes a tenth of the last."""


@dataclass(frozen=True, slots=True)
class _Measured:
    value: int
    """The less the better."""
    text: str


_Measure = Callable[[Finding, Studied], "_Measured | None"]


def reach_of(finding: Finding) -> Reach:
    """How far a compile must go to show whether a finding is mended."""
    return _REACHES.get(finding.code, "binary")


def compare(finding: Finding, own: Studied, other: Studied, reach: Reach = "binary", *, relaid: bool = False) -> Proof:
    """What a compile that tries a suggestion says of it, and that went so far.

    The other capture should hold its layouts if sectors are compared. `relaid`: whether another layout is tried, which
    may bring conversions in.
    """
    before, after = own.capture, other.capture
    if not after.has_compiled:
        return Proof(False, failure=after.failure.why_not_run if after.failure is not None else "it was not compiled")
    measure = _MEASURES.get(finding.code)
    was, now = (measure(finding, one) if measure is not None else None for one in (own, other))
    if was is None or now is None:
        return Proof(False, failure="what it changes cannot be found in the new compile")
    effects = (f"{was.text} → {now.text}",) if was.text != now.text else ()
    failure = "" if before.failure is not None else _why_not_run(after)
    fits = not failure
    narrower = dict(_narrower(own, other)) if finding.code == "IRS401" else {}
    loops = own.operations[finding.line][1] if narrower else 0
    helps = now.value < was.value and fits and all(depth < loops for depth in narrower.values())
    more = _of_layouts(finding, own, other) if relaid else ()
    effects = (*effects, *narrower, *more, *_others(finding, before, after))
    return Proof(helps, effects, failure, unseen=_UNSEEN[reach])


def _narrower(own: Studied, other: Studied) -> Iterator[tuple[str, int]]:
    """The accesses to global memory that a compile made narrower, and in how many loops they are."""
    for one, loops in own.operations.values():
        if one.name in ACCESSES and (was := max(own.machine.widths_of(one), default=0)):
            chain = own.chain_at(one.first_line)
            same = (at for at, (same, _) in other.operations.items() if same.name in ACCESSES)
            widths = [
                width
                for at in same
                if chain and other.chain_at(at) == chain
                for width in other.machine.widths_of(other.operations[at][0])
            ]
            if widths and max(widths) < was:
                yield f"{was} → {max(widths)} bits a lane of {one.name} (line {one.first_line} of ttgir)", loops


def _of_layouts(finding: Finding, own: Studied, other: Studied) -> Iterator[str]:
    """How the conversions of a kernel, and the instructions of the access, change by another layout."""
    counts = [Counter(one.opcode for one, _ in each.operations.values())["convert_layout"] for each in (own, other)]
    rows = [("conversions", *counts)]
    widths = [_widths(finding, each) for each in (own, other)] if finding.code == "IRS103" else []
    if widths and all(widths):
        rows += [
            ("bits a lane", *map(max, widths)),
            ("instructions of the access", *(one.total() for one in widths)),
        ]
    for name, was, now in rows:
        if was != now:
            yield f"{was} → {now} {name}"


def may_not_fit(capture: Capture) -> bool:
    """Whether the buffers of a capture's TTGIR, one beside the other, take more shared memory than a block has."""
    limits = CUDA_LIMITS.get(capture.target.arch) or HIP_LIMITS.get(capture.target.arch)
    allocations = (one for one in parse_mlir(capture.text("ttgir")).walk() if one.opcode == "local_alloc")
    buffers = (prod(kind.shape) * kind.element_bits for one in allocations for kind in one.result_types)
    return limits is None or sum(buffers) > 8 * limits.shared_bytes_per_block


def _why_not_run(after: Capture) -> str:
    """Why a kernel cannot run; of a compile that ended before the binary, by its shared memory. Empty if it can."""
    if after.failure is not None:
        return after.failure.why_not_run
    return "" if after.resources.registers is not None else "; ".join(map(str, excesses_of(after)))


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


def _at(finding: Finding, studied: Studied, costs: Sequence[Cost]) -> list[Cost]:
    """The costs of the operations of a finding's place; of a copy past the registers as of a load."""
    return [cost for cost in costs if studied.chain_at(cost.line) == finding.chain]


def _widths(finding: Finding, studied: Studied) -> Counter[int]:
    """Bits a lane → number of instructions, of the accesses of a finding's place."""
    found = Counter[int]()
    for one, _ in studied.operations.values():
        if one.name in ACCESSES and studied.chain_at(one.first_line) == finding.chain:
            found += studied.machine.widths_of(one)
    return found


def _width(finding: Finding, studied: Studied) -> _Measured | None:
    widths = _widths(finding, studied)
    return _Measured(-max(widths), f"{max(widths)} bits a lane") if widths else None


def _sectors(finding: Finding, studied: Studied) -> _Measured | None:
    costs = _at(finding, studied, studied.global_costs)
    accesses = [cost.access for cost in costs if cost.access is not None]
    units = sum(one.launch.units[0] for one in accesses)
    return _Measured(units, f"{units} {accesses[0].unit}") if accesses else None


def _waiting_loads(finding: Finding, studied: Studied) -> _Measured | None:
    loops = [*loops_with_dots(studied)]
    if not loops:
        return None
    inside = [one for loop in loops for one in loop.walk()]
    fed = {load.first_line for one in inside if one.kind == "dot" for load in loads_of_dot(studied, one)}
    is_amd = studied.capture.target.backend == "hip"
    loads = [
        one
        for one in inside
        if one.opcode in LOADS
        and studied.chain_at(one.first_line) == finding.chain
        # What AMD's pipeliner begins in one iteration for the next is still a load.
        and (not is_amd or one.first_line in fed)
    ]
    return _Measured(len(loads), "waited for in each iteration" if loads else "pipelined")


def _buffers(finding: Finding, studied: Studied) -> _Measured | None:
    copies = [
        one
        for one, loops in studied.operations.values()
        if loops
        and (one.name == finding.operation or one.opcode in LOADS)
        and studied.chain_at(one.first_line) == finding.chain
    ]
    count = max((buffers_of(studied, one) for one in copies), default=0)
    return _Measured(-count, f"{count} buffers") if count else None


def _waits(_: Finding, studied: Studied) -> _Measured | None:
    if not any(one.opcode == "warp_group_dot" for one, _ in studied.operations.values()):
        return None
    waits = waits_in_loops([*studied.operations.values()])
    return _Measured(waits, f"{waits} dots waited for at once")


def _through_shared(_: Finding, studied: Studied) -> _Measured | None:
    """What the whole kernel stores to shared memory: a conversion may be done elsewhere instead."""
    stage = studied.machine.text_stage
    if not stage:
        return None
    stores = count_actions(studied.capture.text(stage), stage, "shared store", "matrix store")
    return _Measured(stores, f"{stores} store{'s' * (stores != 1)} to shared memory")


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


_REACHES: dict[str, Reach] = {
    **dict.fromkeys(("IRS101", "IRS102", "IRS103", "IRS401"), "assembly"),
    **dict.fromkeys(("IRS201", "IRS202", "IRS302"), "ttgir"),
}
_UNSEEN: dict[Reach, tuple[str, ...]] = {
    "ttgir": ("widths", "registers", "shared memory"),
    "assembly": ("registers",),
    "binary": (),
}
"""What a compile that goes no further does not show."""
_MEASURES: dict[str, _Measure] = {
    "IRS101": _width,
    "IRS102": _width,
    "IRS103": _sectors,
    "IRS201": _waiting_loads,
    "IRS202": _buffers,
    "IRS302": _waits,
    "IRS401": _through_shared,
    "IRS501": _spilled,
    "IRS502": _occupied,
    "IRS503": _fits,
    "IRS504": _occupied,
}

"""Finds all findings of a capture, the worst first, and the data of other compiles that would add findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from irscope.analysis.findings.accesses import access_findings, atomic_findings, is_seen, overflow_findings
from irscope.analysis.findings.arithmetic import arithmetic_findings
from irscope.analysis.findings.loops import (
    LOADS,
    dot_findings,
    loop_findings,
    may_be_refused,
    may_round,
    precision_findings,
    stage_findings,
    unexplained_loads,
)
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.nonfinite import nonfinite_findings
from irscope.analysis.findings.resources import occupancy_findings, register_findings, resource_findings
from irscope.analysis.findings.shared import may_go_through_memory, shared_findings
from irscope.analysis.findings.studied import Studied, makers
from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.locations.model import Chain
from irscope.memory.machine import ACCESSES, Action
from irscope.model.capture import Capture


def findings_of(capture: Capture | Studied, *, evaluates: bool = True) -> tuple[Finding, ...]:
    """The findings of a capture: those of a lower rank first, then those that cost more.

    `evaluates`: whether addresses are evaluated, which takes most of the time; without that, what is found by them
    (narrow and wasteful accesses, conflicts, overflows) is left out.

    The capture should hold its layouts, and the operations of its instructions; with the compiler's log more is found,
    and causes have its lines.
    """
    studied = capture if isinstance(capture, Studied) else Studied(capture)
    found = [*resource_findings(studied), *register_findings(studied), *occupancy_findings(studied)]
    if studied.ttgir:
        accesses = list(access_findings(studied)) if evaluates else []
        loops = list(loop_findings(studied, accesses))
        found += [one for one in accesses if is_seen(studied, one)]
        found += [*loops, *dot_findings(studied, loops), *stage_findings(studied)]
        found += [*atomic_findings(studied), *precision_findings(studied), *arithmetic_findings(studied)]
        if evaluates:
            found += [*shared_findings(studied), *studied.kept(_overflows), *studied.kept(_nonfinite)]
    return worst(found)


def _overflows(studied: Studied) -> tuple[Finding, ...]:
    return tuple(overflow_findings(studied))


def _nonfinite(studied: Studied) -> tuple[Finding, ...]:
    return tuple(nonfinite_findings(studied))


def worst(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in their order, the worst first; the spills of a dot by multiply-adds after it."""
    found = [*findings]
    has_slow_dot = any(one.code in ("IRS301", "IRS601") for one in found)

    def key(one: Finding) -> tuple[object, ...]:
        return one.kind.rank, has_slow_dot and one.code == "IRS501", -one.weight, one.line, one.code

    return tuple(sorted(found, key=key))


OF_SASS = frozenset({"IRS504", "IRS602"})
"""Findings of which some are known from the machine code alone."""

_COALESCE = ("tritongpu-coalesce", "ttg-utility")
_PIPELINE = ("triton-loop-pipeline",)
_ASYNC_DOTS = ("triton-wgmma-pipeline",)
_CONVERSIONS = ("tritongpu-remove-layout-conversions",)
_BY_COALESCE = ("IRS101", "IRS102")
_WAIT, _WAIT_OF_SASS = "wgmma.wait_group", "WARPGROUP.DEPBAR.LE"
"""How the waits for all but some matrix multiplications begin."""
_VIEWS = ("trans", "reshape")

_GLOBAL: tuple[Action, ...] = ("global load", "global store", "async copy", "atomic")
_SHARED: tuple[Action, ...] = ("shared load", "shared store", "matrix load", "matrix store")
_OF_SHARED = ("local_load", "local_store", "local_alloc", "convert_layout")


@dataclass(frozen=True, slots=True)
class LogNeeds:
    """The parts of the compiler's log that would add findings or causes."""

    parts: tuple[str, ...] = ()
    """The debug types of the parts of Triton that say it, all of them before LLVM IR is made."""
    assembler: bool = False
    """Whether ptxas says it."""

    def __bool__(self) -> bool:
        return bool(self.parts) or self.assembler


def log_needs(studied: Studied, findings: Iterable[Finding]) -> LogNeeds:
    """The needed parts of the log; none if the capture holds it, or failed."""
    capture = studied.capture
    if capture.log is not None or capture.failure is not None or not studied.ttgir:
        return LogNeeds()
    found = list(findings)
    codes = {one.code for one in found}
    parts: dict[str, None] = {}
    loads = any(True for _ in unexplained_loads(studied))
    if loads or codes.intersection(_BY_COALESCE):
        parts |= dict.fromkeys(_COALESCE)
    if loads:
        parts |= dict.fromkeys(_PIPELINE)
    if may_be_refused(studied):
        parts |= dict.fromkeys((*_ASYNC_DOTS, *_PIPELINE, *_COALESCE) if loads else _ASYNC_DOTS)
    if any(one.code == "IRS401" and not _is_of_load(studied, one) for one in found):
        parts |= dict.fromkeys(_CONVERSIONS)
    return LogNeeds(tuple(parts), _may_be_serialised(studied))


def _is_of_load(studied: Studied, finding: Finding) -> bool:
    """Whether a conversion takes what was loaded as it is: a load is not done again, and the log says no more."""
    value = studied.operations[finding.line].operands[0]
    made = next((one for one in makers(studied.module, value) if one.opcode not in _VIEWS), None)
    return made is not None and made.opcode in LOADS


def _may_be_serialised(studied: Studied) -> bool:
    """Whether ptxas may have serialised wgmma.

    Then the SASS waits more often than the PTX, or for each instruction; and each time for all that were begun.
    """
    ptx, sass = studied.capture.texts.get("ptx", ""), studied.capture.texts.get("sass", "")
    if "wgmma.mma_async" not in ptx:
        return False
    code = read_instructions(sass, "sass")
    waits = sum(item.opcode.startswith(_WAIT) for item in read_instructions(ptx, "ptx"))
    # WARPGROUP.DEPBAR.LE gsb0, 0x1: all but one
    left = [item.operands[-1] for item in code if item.opcode.startswith(_WAIT_OF_SASS)]
    if len(left) > waits:
        return True
    dots = sum(item.family == "wgmma" for item in code)
    return not sass or (len(left) >= dots and all(number == "0x0" for number in left))


def needs_operations(studied: Studied) -> bool:
    """Whether what was found may be otherwise if each instruction's own operation is known.

    Where it is not, the operations of one place in Python share their instructions. That says too little where several
    of them access memory there in different ways, of dots, and of conversions, which are seen by their own
    instructions only.
    """
    machine = studied.machine
    if machine.by_operation or not machine.text_stage:
        return False
    if may_go_through_memory(studied) or may_round(studied):
        return True
    own: dict[tuple[Chain, bool], dict[str, int]] = {}
    for operation in studied.operations.values():
        is_global = operation.opcode in ACCESSES
        if (is_global or operation.opcode in _OF_SHARED) and (chain := studied.chain_at(operation.first_line)):
            own.setdefault((chain, is_global), {})[operation.text] = operation.first_line
    return any(
        len(lines) > 1 and _has_several_widths(machine.at(min(lines.values())), _GLOBAL if is_global else _SHARED)
        for (_, is_global), lines in own.items()
    )


def _has_several_widths(counted: Mapping[tuple[Action, int], int], actions: tuple[Action, ...]) -> bool:
    widths: dict[Action, set[int]] = {}
    for action, bits in counted:
        if action in actions and bits:
            widths.setdefault(action, set()).add(bits)
    return any(len(one) > 1 for one in widths.values())

"""IRS701: offsets of 32 bits that overflow for the sizes of the launch, so that an access goes astray."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.findings.bounds import may_overflow
from irscope.analysis.findings.model import Cause, Finding, Suggestion
from irscope.analysis.findings.studied import Studied

__all__ = ["overflow_findings"]

_SIGNS = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "×", "arith.shli": "<<"}
_MOST = (1 << 31) - 1
_ADVICE = "compute it in 64 bits: `.to(tl.int64)` on an operand (a program id, an index) before the multiplication"


def overflow_findings(studied: Studied) -> Iterator[Finding]:
    """The sums and products of 32 bits that lead an access astray; of a launch that was not recorded, none."""
    launch, kernel = studied.capture.launch, studied.uses.module.kernel
    if launch.record is None or launch.grid is None or kernel is None or not may_overflow(kernel, launch):
        return
    # numpy, which only this needs, takes a tenth of a second to import.
    from irscope.memory.addresses.arguments import read_arguments
    from irscope.memory.addresses.overflow import overflows_of

    arguments = read_arguments(kernel, launch)
    for one in overflows_of(studied.uses.module, arguments.held, launch.grid):
        line, access = one.operation.first_line, one.access
        operands = f" {_SIGNS[one.operation.name]} ".join(f"{each:,}" for each in one.operands)
        program = ", ".join(map(str, one.program))
        named = {source.path: source.value for source in launch.record.arguments if source.kind == "scalar"}
        factors = [name for name, value in named.items() if value in one.operands and abs(int(value or 0)) > 1]
        causes = [
            studied.in_ir(
                f"in program ({program}) it is {operands} = {one.value:,}, beyond {_MOST:,}: "
                f"it wraps around to {one.wrapped:,}",
                line,
                "evaluated",
            ),
            studied.in_ir(f"the addresses of {access.name} depend on it", access.first_line),
            *(Cause(f"{name} is {named[name]}", "launch", "the arguments, as recorded or stated") for name in factors),
            *(Cause(text, "launch", "assumed") for text in arguments.stand_ins),
        ]
        yield studied.finding(
            "IRS701",
            line,
            f"overflows 32 bits: {one.value:,}",
            f"{access.name} of line {access.first_line} of ttgir goes to another address than it should",
            1,
            causes,
            [Suggestion(_ADVICE)],
        )

"""NaNs and infinities that a launch makes and stores, found by running it on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from irscope.analysis.findings.model import Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.errors import NotRun, UsageError, WrongProgram

_MOST_PROGRAMS = 64
_ADVICE = {
    "arith.divf": "keep the divisor from 0: add an epsilon, or tl.where on the divisor",
    "math.log": "keep the operand above 0: tl.maximum, or an epsilon",
    "math.log2": "keep the operand above 0: tl.maximum, or an epsilon",
    "math.sqrt": "keep the operand from below 0: tl.maximum",
    "math.rsqrt": "keep the operand above 0: an epsilon",
    "math.exp": "subtract the maximum before exp",
    "math.exp2": "subtract the maximum before exp2",
    "arith.truncf": "keep the value in the range of the narrower type, or store a wider one",
}


def nonfinite_findings(studied: Studied) -> Iterator[Finding]:
    """The operations that make the NaNs and infinities of a launch; none without the data of its tensors."""
    capture = studied.capture
    record, grid = capture.launch.record, capture.launch.grid
    pointers = [one for one in record.arguments if one.kind != "scalar"] if record is not None else []
    if grid is None or not any(one.data for one in pointers if "float" in one.dtype or one.dtype.startswith("fp")):
        return
    # They import numpy, which takes a tenth of a second.
    from irscope.machine.captured import sampled_programs
    from irscope.machine.launch import SMALL_RUN
    from irscope.machine.observed import stored_nonfinite

    programs = sampled_programs(grid, _MOST_PROGRAMS)
    try:
        found = stored_nonfinite(capture, programs, SMALL_RUN)
    except (NotRun, UsageError, WrongProgram):
        return
    for one in found:
        arose = one.arose
        what = "NaN" if arose.kind == "nan" else "infinity"
        operands = ", ".join(f"{number:.6g}" for number in arose.operands)
        program, element = ", ".join(map(str, arose.program)), list(arose.element)
        where = f"in program ({program})" + (f", element {element}" if element else "")
        operation = studied.operations[arose.line]
        yield studied.finding(
            "IRS702",
            arose.line,
            f"makes {'a NaN' if what == 'NaN' else 'an infinity'}" + (f" of {operands}" if operands else ""),
            f"{one.count:,} elements of {one.tensor} are {'NaN' if what == 'NaN' else 'infinite'} after the launch",
            one.count,
            [
                studied.in_ir(f"{where} it makes the first {what} of finite operands", arose.line, "evaluated"),
                studied.in_ir(
                    f"{one.programs:,} of {prod(grid):,} programs were run on the CPU", arose.line, "evaluated"
                ),
            ],
            [Suggestion(_ADVICE.get(operation.opcode, "mask the elements for which it is not defined"))],
        )

"""Source pages as Nsight Compute writes them, made of a capture's own SASS with counters of our choice."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping

from irscope.ir.asm.sass import SassInstruction
from irscope.ir.asm.sass_reader import parse_sass
from irscope.model.capture import Capture

BASE = 0x7F5A3CFA0000
COLUMNS = (
    "Address", "Source", "Warp Stall Sampling (All Samples)", "Warp Stall Sampling (Not-issued Samples)",
    "# Samples", "Instructions Executed", "Thread Instructions Executed", "Predicated-On Thread Instructions Executed",
    "Address Space", "Access Operation", "Access Size", "L1 Tag Requests Global", "L1 Conflicts Shared N-Way",
    "L1 Wavefronts Shared Excessive", "L1 Wavefronts Shared", "L1 Wavefronts Shared Ideal",
    "L2 Theoretical Sectors Global Excessive", "L2 Theoretical Sectors Global", "L2 Theoretical Sectors Global Ideal",
    "stall_barrier", "stall_long_sb", "stall_selected", "stall_wait",
    "stall_barrier (Not Issued)", "stall_long_sb (Not Issued)",
)  # fmt: skip

Plant = Callable[[SassInstruction], Mapping[str, object]]
"""An instruction → the cells of its row, by column."""


def page_of(capture: Capture, plant: Plant, *, padding: int = 2, name: str = "") -> str:
    """The source page of one launch of a capture: each instruction executed once, and what `plant` gives."""
    (function, *_) = parse_sass(capture.text("sass"))
    rows: list[list[object]] = [["Kernel Name", name or capture.name], [*COLUMNS]]
    for instruction in function.instructions:
        text = f"{f'{instruction.predicate} ' if instruction.predicate else '      '}"
        text += f"{instruction.opcode} {', '.join(instruction.operands)} "
        cells = {"Instructions Executed": 1, "Address": f"{BASE + instruction.offset:x}", "Source": text}
        cells |= plant(instruction)
        rows.append([cells.get(column, "") for column in COLUMNS])
    end = BASE + 16 * len(function.instructions)
    for number in range(padding):
        cells = {"Address": f"{end + 16 * number:x}", "Source": "      NOP "}
        rows.append([cells.get(column, "") for column in COLUMNS])
    output = io.StringIO()
    csv.writer(output, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return output.getvalue()

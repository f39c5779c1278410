"""Source pages as Nsight Compute writes them, made of a capture's own SASS with counters of our choice."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping

from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.sass import parse_sass
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Target
from irscope.model.evidence import OperationLines

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

Plant = Callable[[Instruction], Mapping[str, object]]
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


_TTGIR = """#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @kernel(%x: !tt.ptr<f32>, %p: tensor<512x!tt.ptr<f32>, #blocked>) {
    %0 = tt.load %p : tensor<512x!tt.ptr<f32>, #blocked> loc(#loc1)
    %1 = arith.addf %0, %0 : tensor<512xf32, #blocked> loc(#loc2)
    tt.store %p, %1 : tensor<512x!tt.ptr<f32>, #blocked> loc(#loc3)
    tt.return loc(#loc3)
  }
}
#loc1 = loc("kernels.py":11:4)
#loc2 = loc("kernels.py":12:4)
#loc3 = loc("kernels.py":13:4)
"""
_SASS = """.target sm_90a
.section .text.kernel  // 7 instructions
        0000  B------:R-:W-:-:S08  LDC R1, c[0x0][0x28]
        0010  B------:R-:W0:-:S01  ULDC.64 UR4, c[0x0][0x208]
        0020  B------:R-:W2:-:S01  @!P0 LDG.E.128 R4, desc[UR4][R2.64]
        0030  B--2---:R-:W-:-:S05  FADD R4, R4, R4
        0040  B------:R-:W-:-:S05  @P1 EXIT
        0050  B------:R-:W-:-:S02  STG.E.128 desc[UR4][R2.64], R4
        0060  B------:R-:W-:-:S05  EXIT
"""


def small_capture() -> Capture:
    """A capture of a kernel of seven instructions, with the operations of all but the first two."""
    texts = {"source": "module {\n  tt.func public @kernel() {}\n}\n", "ttgir": _TTGIR, "sass": _SASS}
    artifacts = (*(Artifact(stage, text) for stage, text in texts.items()), Artifact("cubin", b"code"))
    launch = Launch(Kernel("kernel", "kernels.py", 10), signature=(("x", "*fp32"),), grid=(16, 1, 1))
    operations = (OperationLines("sass", ((0, 4), (4, 1), (5, 1), (6, 2), (7, 1), (0, 1))),)
    return Capture(launch, Target.parse("cuda:90"), artifacts=artifacts, operations=operations)

"""Whether the PTX of a launch means what its TTGIR means: both are executed for single programs, with all values.

A difference is one of Triton's lowering or of LLVM; what is right here and wrong on a GPU is one of ptxas.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irscope.device.measurement import Agreement
from irscope.errors import DAMAGE, NotRun, WrongProgram
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.agreement import agreement_of, moved_runs
from irscope.machine.arithmetic import Arithmetic, float_bits, is_float
from irscope.machine.captured import Inputs, launched_grid, run_text
from irscope.machine.values import Array
from irscope.model.capture import Capture
from irscope.verify.cta import CtaVerifier

_INSTRUCTIONS = 20_000
"""Of a CTA, that are followed: some seconds."""
_ORDER = 2.0**-8
"""Of the largest element: what another order of the sums of a product may change, which moved inputs do not show."""
_ORDER_ULPS = 8.0
"""The same of narrow formats, whose sums are rounded each time."""


@dataclass(frozen=True, slots=True)
class _LoweredRun:
    """What the PTX of one program leaves, beside what its TTGIR leaves."""

    agreement: Agreement
    before: dict[str, Array]
    after: dict[str, Array]

    def wrong(self) -> tuple[str, tuple[int, ...]] | None:
        """A tensor and an element of it whose difference no order of sums explains; None if there is none.

        Such are a NaN in one alone (an element that one alone stores, too), integers that inputs moved by one unit do
        not change, and a difference of a size of its own.
        """
        floats = [name for name, tensor in self.before.items() if is_float(tensor.dtype)]
        for name in floats:
            differs = np.isnan(self.before[name]) != np.isnan(self.after[name])
            if differs.any():
                return name, _first(differs)
        name = self.agreement.argument
        if self.agreement.passes or name not in self.before:
            return None
        if name not in floats:
            return name, _first(self.before[name] != self.after[name])
        before, after = (side[name].astype(np.float64) for side in (self.before, self.after))
        largest = float(np.max(np.abs(before), initial=0.0, where=np.isfinite(before)))
        order = max(_ORDER, _ORDER_ULPS * 2.0 ** -float_bits(self.before[name].dtype))
        with np.errstate(invalid="ignore"):
            apart = np.isfinite(before) & np.isfinite(after) & (np.abs(after - before) > order * largest)
        return (name, _first(apart)) if apart.any() else None


def _first(marked: Array) -> tuple[int, ...]:
    return tuple(int(one[0]) for one in np.nonzero(marked))


def left_by_ptx(
    capture: Capture, given: Inputs, programs: Sequence[int], most: int = _INSTRUCTIONS, stores_late: bool = True
) -> dict[str, Array]:
    """What the PTX of programs leaves in the tensors of `given`; raises NotRun, or StuckThreads for a deadlock.

    `most`: instructions of each program; `stores_late` as of `CtaVerifier.execute`.
    """
    ttgir, ptx, grid = capture.texts.get("ttgir"), capture.texts.get("ptx"), capture.launch.grid
    if not ttgir or not ptx or grid is None:
        raise NotRun("the capture has no TTGIR and PTX of a launch")
    cta = CtaVerifier(capture, grid, given, [], frozenset(), parse_mlir(ttgir), (ptx, "ptx"))
    try:
        for program in programs:
            cta.execute(program, most, stores_late)
    except (NotRun, WrongProgram):
        raise
    except DAMAGE as error:
        raise NotRun(f"the PTX is not followed ({error})") from error
    return {name: tensor.copy() for name, tensor in given.tensors.items()}


def clear_common_nans(one: Mapping[str, Array], two: Mapping[str, Array], *others: Mapping[str, Array]) -> None:
    """Set to zero, in all of them, what is a NaN in both: one result. A NaN of a single side stays."""
    for name, tensor in one.items():
        if is_float(tensor.dtype):
            with np.errstate(invalid="ignore"):
                both = np.isnan(tensor) & np.isnan(two[name])
            for side in (one, two, *others):
                side[name][both] = 0


def lowered_run(capture: Capture, inputs: Callable[[], Inputs], program: int) -> _LoweredRun:
    """Run the TTGIR and the PTX of one program on the same inputs; raises NotRun or WrongProgram for either.

    Raises StuckThreads where the PTX alone never ends.
    """
    grid, ttgir = launched_grid(capture), capture.text("ttgir")

    def run(given: Inputs, arithmetic: Arithmetic | None = None) -> dict[str, Array]:
        return run_text(ttgir, grid, given, programs=[program], arithmetic=arithmetic)

    def compared(stores_late: bool) -> _LoweredRun:
        after = left_by_ptx(capture, inputs(), [program], stores_late=stores_late)
        sides = [inputs().tensors, before, *moved]
        first, own, *noisy = [{name: tensor.copy() for name, tensor in side.items()} for side in sides]
        clear_common_nans(own, after, first, *noisy)
        with np.errstate(all="ignore"):
            noise = "runs with moved inputs and approximations"
            return _LoweredRun(agreement_of(first, own, noisy, after, noise), own, after)

    before, moved = run(inputs()), moved_runs(run, inputs, 0)
    found = compared(stores_late=True)
    if not found.agreement.passes and "bulk_group" in capture.text("ptx") and compared(False).agreement.passes:
        raise NotRun(
            "what it leaves depends on how late copies to global memory read: verify checks the waits for them"
        )
    return found

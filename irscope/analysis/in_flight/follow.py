"""Follows one program through the TTGIR: which copies, dots and waits run, in which slots, and what waits for what."""

from __future__ import annotations

from collections.abc import Callable

from irscope.analysis.flow.partitions import WarpSpecialization
from irscope.analysis.in_flight.follower import Follower
from irscope.analysis.in_flight.model import InFlight
from irscope.analysis.in_flight.specialised import SpecialisedFollower
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.memory.addresses.arguments import read_arguments
from irscope.memory.addresses.evaluate import run_kernel
from irscope.memory.addresses.held import Programs
from irscope.model.capture import Launch

__all__ = ["follow"]


def follow(
    module: MlirModule,
    loop: Operation | None,
    launch: Launch,
    place_at: Callable[[int], str],
    *,
    is_first: bool = False,
    specialised: WarpSpecialization | None = None,
) -> InFlight:
    """Follow the last program of a launch, or the first, through a loop, or through the whole kernel.

    Args:
        module: a TTGIR module with a kernel.
        loop: an `scf.for` of it; of others nothing is followed.
        launch: what it was given; what its record does not hold is unknown, with all that it decides.
        place_at: line of the TTGIR -> `file:line` of the Python source.
        is_first: whether it is the first program.
        specialised: the partitions to follow side by side, one of which has the loop; None if there are none.
    """
    kernel = module.kernel
    assert kernel is not None
    grid, program = launch.grid, None
    if grid is not None and min(grid) > 0:
        program = (0, 0, 0) if is_first else (grid[0] - 1, grid[1] - 1, grid[2] - 1)
    programs = Programs(program, (1, 1, 1), grid) if program is not None else Programs()
    held = read_arguments(kernel, launch).held
    if specialised is None:
        follower = Follower(module, held, programs, loop, place_at)
    else:
        follower = SpecialisedFollower(module, held, programs, loop, place_at, specialised)
    run_kernel(follower, module)
    # Before the steps, which then tell their buffers among these.
    rings = follower.log.rings()
    line = loop.first_line if loop is not None else 0
    return InFlight(
        line,
        "" if loop is None else _title(loop),
        place_at(line) if line else "",
        follower.turns,
        follower.turns,
        program,
        0 if loop is None else 1,
        follower.is_nested,
        tuple(follower.log.steps),
        rings,
        "; ".join(follower.notes),
        () if specialised is None else specialised.partitions,
    )


def _title(loop: Operation) -> str:
    """`for %k = %c0 to %n step %c64`."""
    return loop.text.partition("scf.")[2].partition(" iter_args")[0].partition(" {")[0].partition(" : ")[0].strip()

"""Finds the loop of a capture that does most, and follows one program through it: copies, dots, waits, slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from irscope.analysis.flow.partitions import WarpSpecialization, most_specialised, read_partitions
from irscope.analysis.in_flight.follower import Follower, SpecialisedFollower
from irscope.analysis.in_flight.model import InFlight, kind_of_step
from irscope.errors import DAMAGE
from irscope.ir.locations.model import line_text, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.loops import run_kernel
from irscope.machine.programs import Programs
from irscope.memory.addresses.arguments import read_arguments
from irscope.model.capture import Capture, Launch


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
        loop: an `scf.for` of it; of others nothing is followed.
        launch: what it was given; what its record does not hold is unknown, with all that it decides.
        place_at: line of the TTGIR -> `file:line` of the Python source.
        specialised: the partitions to follow side by side, one of which has the loop; None if there are none.
    """
    kernel = module.kernel
    assert kernel is not None
    grid, program = launch.grid, None
    if grid is not None and min(grid) > 0:
        program = (0, 0, 0) if is_first else (grid[0] - 1, grid[1] - 1, grid[2] - 1)
    programs = Programs.at(program, grid) if program is not None else Programs()
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
        follower.iterations,
        follower.iterations,
        program,
        0 if loop is None else 1,
        follower.is_nested,
        tuple(follower.log.steps),
        rings,
        "; ".join(follower.notes),
        () if specialised is None else specialised.partitions,
    )


def _title(loop: Operation) -> str:
    return loop.text.partition("scf.")[2].partition(" iter_args")[0].partition(" {")[0].partition(" : ")[0].strip()


_MOST_LOOPS = 4
_FEW_ITERATIONS = 4
"""A loop that fills shared memory and has fewer iterations is followed as if it had more: its pipeline never fills."""
_LOOPS = ("scf.for", "scf.while")


def in_flight(capture: Capture) -> InFlight | None:
    """The loop with dots that has most iterations; without dots, the one that accesses memory; else the whole kernel.

    Of the launch the first or the last program is followed, whichever has more iterations.
    Of specialised warps all partitions are followed, side by side with the one that has the loop; where that cannot be
    done there are no steps, and the note says why. None if the capture holds no TTGIR.
    """
    text = capture.texts.get("ttgir", "")
    try:
        module = parse_mlir(text)
        if module.kernel is None:
            return None
        specialised = most_specialised(read_partitions(text))
        locations = read_locations(text, "mlir")
        own = locations.chain_at(module.kernel.first_line)
        file = own[0].file if own else capture.launch.kernel.file
        place_at: Callable[[int], str] = lambda line: line_text(place_of(locations.chain_at(line), file))  # noqa: E731
        loops = _candidates(module, None if specialised is None else specialised.line)
        if specialised is not None and not loops:
            found = follow(module, None, capture.launch, place_at, specialised=specialised)
            return replace(found, steps=(), rings=(), note="no partition of its warps has a loop that accesses memory")
        found = [
            follow(module, loop, capture.launch, place_at, is_first=is_first, specialised=specialised)
            for is_first in (False, True)
            for loop in loops[:_MOST_LOOPS] or [None]
        ]
        chosen = max(found, key=_weight)
        few = loops and chosen.iterations is not None and chosen.iterations < _FEW_ITERATIONS
        if few and (not chosen.iterations or any(one.kind in ("copy", "write") for one in chosen.steps)):
            in_launch = max(one.iterations or 0 for one in found if one.line == loops[0].first_line)
            any_launch = replace(capture.launch, record=None, grid=None)
            often = follow(module, loops[0], any_launch, place_at, specialised=specialised)
            chosen = replace(often, launch_iterations=in_launch) if often.steps else chosen
    except DAMAGE:
        # The IR comes from the capture's file, which may say anything.
        return None
    return replace(chosen, loops=len(loops))


def _weight(found: InFlight) -> tuple[bool, int, int]:
    iterations = found.iterations if found.iterations is not None else 1
    return bool(found.steps), iterations, sum(step.iteration == 0 for step in found.steps)


def _candidates(module: MlirModule, partitions: int | None) -> list[Operation]:
    """The innermost loops with dots; if there are none, those that access memory.

    `partitions`: the line of the operation that they stand in; None if it may be any.
    """
    around = (one for one in module.walk() if partitions is not None and one.first_line == partitions)
    loops = [one for one in next(around, module).walk() if one.name == "scf.for"]
    inner = [loop for loop in loops if not any(one.name in _LOOPS for one in _inside(loop))]
    with_dots = [loop for loop in inner if any(one.kind == "dot" for one in _inside(loop))]
    return with_dots or [loop for loop in inner if any(kind_of_step(one) for one in _inside(loop))]


def _inside(loop: Operation) -> Iterator[Operation]:
    return (one for one in loop.walk() if one is not loop)


def as_json(found: InFlight) -> dict[str, Any]:
    """As plain values: its fields, and at each step the copies and dots in flight."""
    steps = [
        asdict(one) | {"copies_in_flight": found.flying(number, "copy"), "dots_in_flight": found.flying(number, "dot")}
        for number, one in enumerate(found.steps)
    ]
    return asdict(found) | {"steps": steps, "partitions": [one.name for one in found.partitions]}

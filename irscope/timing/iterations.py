"""How many more iterations of a loop go as the last one: from the instructions that decide its branches alone."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.timing.program import Program
from irscope.timing.scalars import Registers, State, predicate
from irscope.timing.trace import inner_of

__all__ = ["ENDLESS", "MOST_ITERATIONS", "same_iterations"]

Array = NDArray[Any]

ENDLESS = 1 << 30
MOST_ITERATIONS = 4096
"""Iterations that are executed, or asked for, at once."""
_FIRST_ITERATIONS = 64
"""Of these, at first."""
_MOST_STEPS = 200_000
"""Instructions that are executed for it."""


_ACROSS_LANES = {"S2R", "S2UR", "ELECT", "VOTE", "VOTEU", "SHFL", "REDUX", "R2UR"}
"""They give lanes values of their own, or join those of several."""


def same_iterations(
    program: Program, state: State, path: tuple[int, ...], growth: Mapping[str, Array | None], registers: Registers,
    head: int, on: Array,
) -> tuple[int, Array]:  # fmt: skip
    """How many more iterations go a way, and how many each row does.

    Args:
        program: the code.
        state: of the rows.
        path: the instructions of an iteration.
        growth: by what registers grow in each iteration; None where that is not known.
        registers: at its beginning.
        head: the loop's first instruction.
        on: which rows are in the loop.

    Where each row is a CTA that one lane stands for, rows that leave the loop end nothing for the others: as many as
    for the last of them. Else the second is the first in an array of one element.
    """
    data = {name for name, origins in state.data.items() if origins or growth.get(name, 0) is None}
    # Loops within it that were skipped are taken to go the same way, and what they leave behind is not known.
    has_skips = any(index < 0 for index in path)
    inner = inner_of(path, program) if has_skips else [False] * len(path)
    branches, chosen, carried = _deciding(program, path, data, inner)
    order = sorted(chosen | branches)
    if any(
        # What differs in each iteration, and is known, decides whether the next one goes this way.
        not inner[place] and index in program.control and _is_known_data(program, state, index, data)
        for place, index in enumerate(path)
    ):
        return _all(0)
    follows = {place: path[(place + 1) % len(path)] for place in branches}
    sub = State(state.rows, state.lanes, dict(registers), state.constants, state.special)
    sub.assumed = replace(state.assumed, notes=set())

    def goes_on(side_by_side: bool = False) -> tuple[Array, Array]:
        """Whether an iteration goes this way in all rows, and whether each row goes on to the next one.

        Of several iterations next to one another in place of lanes, each.
        """
        alive, followed = np.ones(1, np.bool_), np.ones((1, 1), np.bool_)
        for place in order:
            index = path[place]
            if inner[place]:
                for name in program.writes[index]:
                    sub.registers[name] = None
                continue
            if place not in branches:
                if (step := program.steps[index]) is not None:
                    step(sub)
                continue
            taken = predicate(program.code[index].predicate)(sub)
            if taken is None:
                continue
            target = program.targets.get(index, -1)
            is_back = target <= index and program.bases[index] == "BRA"
            if not side_by_side:
                taken = taken.any(axis=1, keepdims=True) if is_back else taken.all(axis=1, keepdims=True)
            agrees = taken == (follows[place] == target and follows[place] != index + 1)
            if is_back and target == head and state.lanes == 1:
                followed = followed & agrees
            else:
                alive = alive & (agrees[on] if len(agrees) == len(on) else agrees).all(axis=0)
                if not alive.any():
                    break
        return alive, followed

    known = {name: registers[name] for name in carried - data if registers.get(name) is not None}
    linear = all(
        growth.get(name) is not None
        for name, value in known.items()
        if value is not None and name in growth and value.dtype != np.bool_
    )
    if not linear:
        count, most = 0, min(MOST_ITERATIONS, _MOST_STEPS // max(len(order), 1))
        while count < most and all(part.all() for part in goes_on()):
            count += 1
        return _all(count)

    # What lanes have different values of is not known where iterations stand in place of lanes.
    spread = {name for name, value in registers.items() if value is not None and value.shape[1] > 1}
    is_uniform = spread.isdisjoint(carried)
    across = {program.bases[path[place]] for place in order} & ({"S2R", "S2UR"} if is_uniform else _ACROSS_LANES)

    def at(iteration: int | Array) -> tuple[Array, Array]:
        side_by_side = not isinstance(iteration, int)
        sub.registers = dict(registers) | (dict.fromkeys(spread) if side_by_side else {})
        for name in carried:
            value, grown = sub.registers.get(name), growth.get(name)
            if value is not None and grown is not None:
                sub.registers[name] = value + grown * iteration & 0xFFFFFFFF
        return goes_on(side_by_side)

    def goes_at(iteration: int) -> bool:
        return all(bool(part.all()) for part in at(iteration))

    low, high, begin, limit = 0, 1, 0, ENDLESS
    if not across:
        # A counter that ends a loop at one value alone would be passed over by larger steps.
        size = _FIRST_ITERATIONS
        left = np.full(state.rows if state.lanes == 1 else 1, ENDLESS)
        while begin < MOST_ITERATIONS * 8:
            alive, followed = at(np.arange(begin, begin + size)[None, :])
            if alive.size == 1 and followed.shape[1] == 1 and alive.all() and followed.all():
                if is_uniform:
                    return _all(ENDLESS)
                break
            ends = begin + np.where(followed.all(axis=1), ENDLESS, followed.argmin(axis=1))
            left = np.minimum(left, ends)
            most = int((left[on] if len(left) == len(on) else left).max())
            if not alive.all():
                most = min(most, begin + int(alive.argmin()))
            if most < begin + size:
                if is_uniform:
                    return most, left
                limit = most
                break
            begin += size
            size = min(size * 4, MOST_ITERATIONS)
        if begin and is_uniform:
            low, high = begin - size, 2 * begin
    if not limit or (not low and not goes_at(0)):
        return _all(0)
    while high < limit and goes_at(high):
        low, high = high, high * 2
        if high > ENDLESS:
            return _all(ENDLESS)
    high = min(high, limit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if goes_at(middle) else (low, middle)
    return _all(low + 1)


def _deciding(
    program: Program, path: tuple[int, ...], data: set[str], inner: list[bool]
) -> tuple[set[int], set[int], set[str]]:
    """The branches of an iteration that data do not decide, what their predicates come from, and the registers that
    these read before any of them writes."""
    places = [place for place, index in enumerate(path) if index >= 0]
    branches = {
        place
        for place in places
        if not inner[place]
        and path[place] in program.control
        and program.code[path[place]].predicate
        and data.isdisjoint(program.reads[path[place]])
    }
    # The predicates of branches, and what they come from.
    chosen: set[int] = set()
    needed: set[str] = set()
    carried: set[str] = set()
    for _ in range(4):
        size = len(chosen)
        for place in reversed(places):
            index = path[place]
            if place in branches:
                needed |= {name for name in program.reads[index] if name.startswith(("P", "UP"))}
            elif needed & program.writes[index] and path[place] not in program.control:
                chosen.add(place)
                if inner[place]:
                    needed -= program.writes[index]
                    continue
                if not program.code[index].predicate:
                    needed -= program.writes[index]
                needed |= program.reads[index]
        carried = set(needed)
        if len(chosen) == size:
            break
    return branches, chosen, carried


def _all(count: int) -> tuple[int, Array]:
    return count, np.full(1, count)


def _is_known_data(program: Program, state: State, at: int, data: set[str]) -> bool:
    """Whether a branch depends on loaded values that are known, and that change from one iteration to the next."""
    if not program.code[at].predicate:
        return False
    read = [state.data[name] for name in data & program.reads[at]]
    return bool(read) and not any(read)

"""What kernels ask of memory, against every lane of every warp of every program, counted one by one."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from irscope.ir.mlir.attributes import read_aliases, read_encoding, resolve_aliases
from irscope.ir.mlir.types import read_types
from irscope.layout.described import DescribedLayout
from irscope.layout.maps import ThreadMap
from irscope.layout.rows import own_shape
from irscope.memory.access import Traffic
from irscope.memory.costs import costs_of
from irscope.model.capture import Capture
from tests.memory.addresses.accesses.recorded import recorded_accesses

pytestmark = [pytest.mark.triton, pytest.mark.newest, pytest.mark.slow]
pytest.importorskip("triton", reason="the kernels are compiled, and Triton is not installed")
pytest.importorskip("torch", reason="the launches are made with torch")
every = importlib.import_module("tests.memory.addresses.accesses.every")

FIGURES = (
    "units",
    "lines",
    "bytes",
    "ideal_units",
    "instructions",
    "active_instructions",
    "masked_lanes",
    "executions",
)


@pytest.fixture(scope="module", params=["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.exhaustive)])
def captures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Capture]:
    return recorded_accesses(tmp_path_factory, request.param)


def threads_at(capture: Capture, line: int) -> ThreadMap | None:
    """The layout of the pointers of an operation; None for a scalar."""
    text = capture.text("ttgir")
    aliases = read_aliases(text)
    rows = {
        (one.encoding.text, one.shape): one for one in (DescribedLayout(r, capture.target) for r in capture.layouts)
    }
    kinds = read_types(text.split("\n")[line - 1].partition(" = ")[2] or text.split("\n")[line - 1])
    for kind in sorted((one for one in kinds if one.form == "tensor"), key=lambda one: not one.pointee):
        encoding = read_encoding(resolve_aliases(kind.encoding, aliases))
        return rows[encoding.text, own_shape(encoding, kind)[0]].threads
    return None


UNIT_BYTES = {"cuda": 32, "hip": 128}


def by_hand(touched: Any, asking: Sequence[Sequence[int]], bits: int, size: int, base: int, unit: int) -> Traffic:
    """One execution, lane by lane; `asking`: the warp instructions."""
    elements, mask = touched
    address = (base + elements.astype(np.int64) * size).reshape(-1).tolist()
    held = np.broadcast_to(mask, elements.shape).reshape(-1).tolist()
    instructions = active = units = lines = asked = ideal = masked = 0
    for lanes in asking:
        instructions += 1
        touched_bytes: set[int] = set()
        for element in lanes:
            if not held[element]:
                masked += 1
                continue
            asked += max(bits // 8, size)
            touched_bytes.update(range(address[element], address[element] + max(bits // 8, size)))
        active += bool(touched_bytes)
        units += len({one // unit for one in touched_bytes})
        lines += len({one // 128 for one in touched_bytes})
        ideal += -(-len(touched_bytes) // unit)
    values = {"units": units, "lines": lines, "bytes": asked, "ideal_units": ideal, "instructions": instructions,
              "active_instructions": active,
              "masked_lanes": masked, "executions": 1}  # fmt: skip
    return Traffic(**{name: (value, value) for name, value in values.items()})


def warp_instructions(
    threads: ThreadMap | None, warps: int, bits: int, size: int, once: bool, unit: int
) -> Iterator[list[int]]:
    """The first element of each lane that takes part, of every warp instruction."""
    width, lanes_of_a_scalar = max(bits // 8 // size, 1), 64 if unit == 128 else 32
    if threads is None:
        for warp in range(warps):
            yield ([0] if warp == 0 else []) if once else [0] * lanes_of_a_scalar
        return
    for block, warp in product(range(threads.blocks), range(threads.warps)):
        for register in range(0, threads.registers, width):
            lanes: list[int] = []
            for lane in range(threads.lanes):
                place = ((block * threads.warps + warp) * threads.lanes + lane) * threads.registers
                own = threads.elements[place : place + register]
                element = threads.elements[place + register]
                if element in own:
                    break
                first = threads.owners_at(element)[0]
                if not once or (first.block, first.warp, first.lane) == (block, warp, lane):
                    lanes.append(element)
            else:
                yield lanes


def box_by_hand(touched: Any, size: int) -> Traffic:
    """A block of a descriptor: one instruction for all of it."""
    elements, mask = touched
    held = np.broadcast_to(mask, elements.shape)
    starts = elements[held] * size
    found = {int(byte) for start in starts for byte in range(start, start + size)}
    values = {"units": len({one // 32 for one in found}), "lines": len({one // 128 for one in found}),
              "bytes": len(starts) * size, "ideal_units": -(-len(found) // 32), "instructions": 1,
              "active_instructions": int(bool(found)),
              "masked_lanes": int((~held).sum()), "executions": 1}  # fmt: skip
    return Traffic(**{name: (value, value) for name, value in values.items()})


def test_every_access_by_hand(captures: dict[str, Capture]) -> None:
    """All kernels in one test: they are recorded at once."""
    assert set(every.CASES) <= set(captures)
    wrong = [text for name in every.CASES for text in differences(captures[name], every.CASES[name])]
    assert not wrong, "\n".join(wrong)
    counted = sum(len(case.model((0, 0, 0))) for case in every.CASES.values())
    assert counted >= 80


@pytest.mark.parametrize("name", ["rows", "words", "dropped"])
def test_what_data_decides_lies_between_the_bounds(captures: dict[str, Capture], name: str) -> None:
    """For random indices, for equal ones and for ones far apart; the last two reach the bounds."""
    case = every.OF_DATA[name]
    capture = captures[name]
    (access,) = [one for cost in costs_of(capture) if (one := cost.access) is not None and one.argument == "table"]
    assert access.certainty == "range"
    assert any(text.startswith("depends on data of") for text in access.assumed)
    size = 2 if name == "rows" else 4
    threads, warps = threads_at(capture, access.line), capture.launch.option("num_warps")
    asking = list(warp_instructions(threads, warps, access.bits_per_thread, size, False, access.unit_bytes))
    random = np.random.default_rng(0)
    seen: dict[str, list[int]] = {figure: [] for figure in FIGURES}
    same, apart = np.zeros(128, np.int64), np.arange(128) * 64
    for indices in (same, apart, same + 1, *(random.integers(0, 1000, 128) for _ in range(6))):
        launch: list[Traffic] = []
        for program in range(case.grid[0]):
            (touched,) = case.model((program, 0, 0), indices)["load table"]
            launch.append(by_hand(touched, asking, access.bits_per_thread, size, 0, access.unit_bytes))
        total = Traffic.sum(launch)
        for figure in FIGURES:
            seen[figure].append(getattr(total, figure)[0])
    for figure in FIGURES:
        low, high = getattr(access.launch, figure)
        assert low <= min(seen[figure]) <= max(seen[figure]) <= high, figure
    assert (min(seen["units"]), max(seen["units"])) == access.launch.units


ALIKE = ("repeated", "row_broadcast")
"""Kernels whose warps load the same: without the SASS it is not known how many of these loads the assembler leaves."""


def differences(capture: Capture, case: Any) -> Iterator[str]:
    accesses = [cost.access for cost in costs_of(capture) if cost.access is not None]
    grid = (*case.grid, 1, 1)[:3]
    programs = list(product(*map(range, grid)))
    record = capture.launch.record
    assert record is not None
    warps = capture.launch.option("num_warps")
    unit = UNIT_BYTES[capture.target.backend]
    for key in case.model((0, 0, 0)):
        action, name = key.split()
        actions = ("load", "copy") if action == "load" else (action,)
        own = [one for one in accesses if one.argument == name and one.action in actions]
        if not own:
            yield f"{capture.name}: no {key}"
            continue
        argument = record.argument(name)
        assert argument is not None
        size = {"float64": 8, "int64": 8, "float16": 2, "bfloat16": 2, "int8": 1}.get(argument.dtype, 4)
        base = (argument.storage_offset or 0) * size
        threads = threads_at(capture, own[0].line)
        touched = {program: case.model(program)[key] for program in programs}
        if own[0].bits_per_thread:
            once = own[0].action != "load"
            asking = list(warp_instructions(threads, warps, own[0].bits_per_thread, size, once, unit))
            given = (asking, own[0].bits_per_thread, size, base, unit)
            hand = {at: Traffic.sum(by_hand(one, *given) for one in rows) for at, rows in touched.items()}
        else:
            hand = {at: Traffic.sum(box_by_hand(one, size) for one in rows) for at, rows in touched.items()}
        figures = FIGURES[:4] if case.is_pipelined else FIGURES
        is_bounded = capture.name.removesuffix("_kernel") in ALIKE and action == "load"
        corners = (programs[0], tuple(size // 2 for size in grid), programs[-1])
        for what, at in zip(("first", "inner", "last"), corners, strict=True):
            yield from unlike(
                f"{capture.name}: {key}, {what}", [getattr(one, what) for one in own], [hand[at]], figures, is_bounded
            )
        yield from unlike(f"{capture.name}: {key}", [one.launch for one in own], hand.values(), figures, is_bounded)
        if any((one.certainty != "exact") != is_bounded for one in own):
            yield f"{capture.name}: {key} is not exact: {[(one.mark, one.assumed) for one in own]}"


def unlike(what: str, found: Any, expected: Any, figures: tuple[str, ...], is_bounded: bool = False) -> Iterator[str]:
    ours, theirs = Traffic.sum(found), Traffic.sum(expected)
    for name in figures:
        (low, high), (least, most) = getattr(ours, name), getattr(theirs, name)
        is_within = low <= least and most <= high
        if not is_within if is_bounded else (low, high) != (least, most):
            yield f"{what}: {name} {getattr(ours, name)} instead of {getattr(theirs, name)}"

"""What kernels ask of memory, against every lane of every warp of every program, counted one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.ir.mlir.encoding import read_aliases, read_encoding, resolve_aliases
from irscope.ir.mlir.types import read_types
from irscope.layout.described import DescribedLayout
from irscope.layout.rows import own_shape
from irscope.layout.thread_map import ThreadMap
from irscope.memory.access import Traffic
from irscope.memory.costs import costs_of
from irscope.model.capture import Capture

pytestmark = [pytest.mark.triton, pytest.mark.slow]
pytest.importorskip("triton")
pytest.importorskip("torch")
accessing = pytest.importorskip("tests.memory.addresses.accessing")

FIGURES = ("units", "lines", "bytes", "ideal_units", "instructions", "masked_lanes", "executions")


@pytest.fixture(scope="module")
def captures() -> dict[str, Capture]:
    return {one.name: one for one in irscope.record_all(Path(accessing.__file__), target="cuda:90")}


def threads_at(capture: Capture, line: int) -> ThreadMap | None:
    """The layout of the pointers of an operation; None for a scalar."""
    text = capture.text("ttgir")
    aliases = read_aliases(text)
    rows = {
        (one.encoding.text, one.shape): one for one in (DescribedLayout(r, capture.target) for r in capture.layouts)
    }
    for kind in read_types(text.split("\n")[line - 1]):
        if kind.pointee:
            encoding = read_encoding(resolve_aliases(kind.encoding, aliases))
            return rows[encoding.text, own_shape(encoding, kind)[0]].threads
    return None


def by_hand(
    touched: Any, threads: ThreadMap | None, warps: int, bits: int, size: int, once: bool, base: int
) -> Traffic:
    """One execution, lane by lane."""
    elements, mask = touched
    address = (base + elements.astype(np.int64) * size).reshape(-1).tolist()
    held = np.broadcast_to(mask, elements.shape).reshape(-1).tolist()
    instructions = units = lines = asked = ideal = masked = 0
    for lanes in warp_instructions(threads, warps, max(bits // 8 // size, 1), once):
        instructions += 1
        touched_bytes: set[int] = set()
        for element in lanes:
            if not held[element]:
                masked += 1
                continue
            asked += max(bits // 8, size)
            touched_bytes.update(range(address[element], address[element] + max(bits // 8, size)))
        units += len({one // 32 for one in touched_bytes})
        lines += len({one // 128 for one in touched_bytes})
        ideal += -(-len(touched_bytes) // 32)
    values = {"units": units, "lines": lines, "bytes": asked, "ideal_units": ideal, "instructions": instructions,
              "masked_lanes": masked, "executions": 1}  # fmt: skip
    return Traffic(**{name: (value, value) for name, value in values.items()})


def warp_instructions(threads: ThreadMap | None, warps: int, width: int, once: bool) -> Iterator[list[int]]:
    """The first element of each lane that takes part, of every warp instruction."""
    if threads is None:
        for warp in range(warps):
            yield ([0] if warp == 0 else []) if once else [0] * 32
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
              "masked_lanes": int((~held).sum()), "executions": 1}  # fmt: skip
    return Traffic(**{name: (value, value) for name, value in values.items()})


def test_every_access_by_hand(captures: dict[str, Capture]) -> None:
    """All kernels in one test: they are recorded at once."""
    assert set(accessing.CASES) <= set(captures)
    wrong = [text for name in accessing.CASES for text in differences(captures[name], accessing.CASES[name])]
    assert not wrong, "\n".join(wrong)
    counted = sum(len(case.model((0, 0, 0))) for case in accessing.CASES.values())
    assert counted >= 80


def differences(capture: Capture, case: Any) -> Iterator[str]:
    accesses = [cost.access for cost in costs_of(capture) if cost.access is not None]
    grid = (*case.grid, 1, 1)[:3]
    programs = list(product(*map(range, grid)))
    record = capture.launch.record
    assert record is not None
    warps = capture.launch.option("num_warps")
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
        if own[0].bits_a_lane:
            once = own[0].action != "load"
            hand = {at: Traffic.sum(by_hand(one, threads, warps, own[0].bits_a_lane, size, once, base) for one in rows)
                    for at, rows in touched.items()}  # fmt: skip
        else:
            hand = {at: Traffic.sum(box_by_hand(one, size) for one in rows) for at, rows in touched.items()}
        figures = FIGURES[:4] if case.is_pipelined else FIGURES
        corners = (programs[0], tuple(size // 2 for size in grid), programs[-1])
        for what, at in zip(("first", "inner", "last"), corners, strict=True):
            yield from unlike(
                f"{capture.name}: {key}, {what}", [getattr(one, what) for one in own], [hand[at]], figures
            )
        yield from unlike(f"{capture.name}: {key}", [one.launch for one in own], hand.values(), figures)
        if any(one.certainty != "exact" for one in own):
            yield f"{capture.name}: {key} is not exact: {[(one.mark, one.assumed) for one in own]}"


def unlike(what: str, found: Any, expected: Any, figures: tuple[str, ...]) -> Iterator[str]:
    ours, theirs = Traffic.sum(found), Traffic.sum(expected)
    for name in figures:
        if getattr(ours, name) != getattr(theirs, name):
            yield f"{what}: {name} {getattr(ours, name)} instead of {getattr(theirs, name)}"

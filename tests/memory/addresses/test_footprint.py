"""The distinct bytes and sectors of a launch, against every element that every program's meaning says it touches."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.loops import Runner
from irscope.memory.access import SECTOR_BYTES
from irscope.memory.addresses import parts as launch_parts
from irscope.memory.addresses.arguments import read_arguments
from irscope.memory.addresses.footprint import Footprint, Pieces, Touched, extent_of, footprint_of
from irscope.model.capture import Capture
from tests.memory.addresses.accesses.recorded import recorded_accesses

pytestmark = [pytest.mark.triton, pytest.mark.newest, pytest.mark.slow]
pytest.importorskip("triton", reason="the kernels are compiled, and Triton is not installed")
pytest.importorskip("torch", reason="the launches are made with torch")
every = importlib.import_module("tests.memory.addresses.accesses.every")

SIZES = {"float64": 8, "int64": 8, "float16": 2, "bfloat16": 2, "int8": 1}
STORAGE_BYTES = 512


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Capture]:
    return recorded_accesses(tmp_path_factory, "cuda:90")


def footprint(capture: Capture) -> Footprint:
    module, record = parse_mlir(capture.text("ttgir")), capture.launch.record
    assert module.kernel is not None
    assert record is not None
    assert capture.launch.grid is not None
    room = {one.path: one.storage_bytes for one in record.arguments if one.storage_bytes is not None}
    return footprint_of(module, read_arguments(module.kernel, capture.launch), capture.launch.grid, room)


@pytest.fixture(scope="module")
def exact(captures: dict[str, Capture]) -> dict[str, Footprint]:
    return {name: footprint(captures[name]) for name in every.CASES}


def test_every_byte_by_hand(captures: dict[str, Capture], exact: dict[str, Footprint]) -> None:
    """All kernels in one test: they are recorded at once."""
    wrong = [text for name, case in every.CASES.items() for text in differences(captures[name], exact[name], case)]
    assert not wrong, "\n".join(wrong)


def differences(capture: Capture, exact: Footprint, case: Any) -> Iterator[str]:
    found = {(one.argument, one.is_read): one for one in exact.touched}
    programs = list(product(*map(range, (*case.grid, 1, 1)[:3])))
    record = capture.launch.record
    assert record is not None
    by_hand: dict[tuple[str, bool], list[np.ndarray]] = {}
    for program in programs:
        for key, executions in case.model(program).items():
            action, name = key.split()
            for elements, mask in executions:
                touched = elements[np.broadcast_to(mask, elements.shape)].reshape(-1)
                for is_read in (True, False) if action == "atomic" else (action == "load",):
                    by_hand.setdefault((name, is_read), []).append(touched)
    if by_hand.keys() != found.keys():
        yield f"{capture.name}: {sorted(found)} instead of {sorted(by_hand)}"
        return
    for key, parts in by_hand.items():
        argument = record.argument(key[0])
        assert argument is not None
        size = SIZES.get(argument.dtype, 4)
        begin = (argument.storage_offset or 0) * size % STORAGE_BYTES
        elements = np.unique(np.concatenate(parts))
        every = (elements[:, None] * size + np.arange(size) + begin).reshape(-1)
        hand = (elements.size * size, np.unique(every // SECTOR_BYTES).size, sum(one.size for one in parts) * size)
        ours = [found[key].distinct_bytes, found[key].sectors, found[key].requested_bytes]
        if ours != [(value, value) for value in hand]:
            yield f"{capture.name}: {key}: {ours} instead of {hand}"


def spans(found: Footprint) -> dict[object, tuple[int, int]]:
    """Every figure of a footprint by its name."""
    named: dict[object, tuple[int, int]] = {**found.executions}
    for one in found.touched:
        for figure in ("distinct_bytes", "sectors", "requested_bytes"):
            named[one.argument, one.is_read, figure] = getattr(one, figure)
    return named


@pytest.mark.parametrize("limits", [(1, 100_000), (3, 100_000), (48, 5), (48, 40), (48, 300)], ids=str)
def test_less_effort_gives_bounds_that_hold(
    captures: dict[str, Capture],
    exact: dict[str, Footprint],
    monkeypatch: pytest.MonkeyPatch,
    limits: tuple[int, int],
) -> None:
    runs, work = limits
    # `far` leaves its storage, which nothing else is taken to do.
    for name in every.CASES.keys() - {"far"}:
        known = spans(exact[name])
        with monkeypatch.context() as patch:
            patch.setattr(launch_parts, "_MOST_RUNS", runs)
            patch.setattr(Runner, "most_work", work)
            bounds = spans(footprint(captures[name]))
        assert known.keys() <= bounds.keys(), name
        for figure, (low, high) in known.items():
            assert bounds[figure][0] <= low <= high <= bounds[figure][1], (name, figure)


@pytest.mark.parametrize("name", ["rows", "words", "dropped"])
def test_what_data_decides_lies_between_the_bounds(captures: dict[str, Capture], name: str) -> None:
    case = every.OF_DATA[name]
    table: Touched = next(one for one in footprint(captures[name]).touched if one.argument == "table")
    size = 2 if name == "rows" else 4
    random = np.random.default_rng(0)
    for indices in (np.zeros(128, np.int64), np.arange(128), random.integers(0, 60, 128)):
        parts = [
            elements[np.broadcast_to(mask, elements.shape)]
            for program in range(case.grid[0])
            for elements, mask in case.model((program, 0, 0), indices)["load table"]
        ]
        distinct = np.unique(np.concatenate(parts)).size * size
        assert table.distinct_bytes[0] <= distinct <= table.distinct_bytes[1]
        sectors = np.unique(np.concatenate(parts) * size // SECTOR_BYTES).size
        assert table.sectors[0] <= sectors <= table.sectors[1]
    assert table.distinct_bytes[0] < table.distinct_bytes[1]
    assert table.why_not


def test_far_more_pieces_than_are_held_are_counted_where_their_distances_are_even() -> None:
    rows, columns, programs = 1 << 13, 1 << 13, np.arange(1 << 15)
    # A tile of 512 rows and 4 columns; neighbours in a row first.
    starts = 4 * (columns * np.arange(512)[:, None] + np.arange(4)).reshape(-1)
    shifts = 16 * (programs % (columns // 4)) + 4 * 512 * columns * (programs // (columns // 4))
    found = extent_of([Pieces(np.unique(starts), 4, (np.unique(shifts),))], SECTOR_BYTES, (0,))
    assert found.bytes == 4 * columns * rows
    assert found.units == (found.bytes // SECTOR_BYTES, found.bytes // SECTOR_BYTES)


def test_shifts_that_are_taken_apart_are_the_same_shifts() -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        sizes, apart = random.integers(1, 5, 3), random.integers(1, 90, 3)
        axes = np.ix_(*(np.arange(size) * step for size, step in zip(sizes, apart, strict=True)))
        shifts = np.unique(sum(axes)) if random.random() < 0.8 else random.integers(0, 99, 7)
        starts = np.unique(random.integers(0, 50, 3))
        every = np.unique((starts[:, None, None] + shifts[:, None] + np.arange(4)).reshape(-1))
        assert extent_of([Pieces(starts, 4, (shifts,))], 1, (0,)).bytes == every.size

"""Each operation has its own instructions, where several stand on one line and column of Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import irscope
from irscope.errors import RecordingError
from irscope.memory.costs import costs_of
from irscope.memory.machine import MemoryInstructions, read_machine
from irscope.model.capture import Artifact, Capture
from irscope.record.compile.second import find_operations
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import compiled
from tests.recording import record_without_sass

pytestmark = [pytest.mark.triton, pytest.mark.newest]

KERNELS = Path(__file__).parents[1] / "kernels" / "same_line.py"


@cache
def recorded(kernel: str, signature: str, target: str, block: int = 0) -> Capture:
    """With SASS of one kernel alone."""
    constexprs = {"BLOCK": block} if block else {}
    record = irscope.record if kernel == "two_stores" else record_without_sass
    capture = record(KERNELS, kernel=kernel, signature=signature, constexprs=constexprs, target=target)
    operations = find_operations(capture)
    assert [row.reason for row in operations] == [""] * len(operations)
    return replace(capture, operations=operations)


def test_of_ptx_alone_no_code_is_assembled() -> None:
    capture = recorded("two_stores", "*fp32:16, *fp32:16, *i8:16", "cuda:90", 1024)
    made: list[tuple[str, ...]] = []

    def noted(request: RecordRequest) -> Capture:
        made.append((again := compiled(request)).stages)
        return again

    assert find_operations(capture, noted, ("ptx",)) == capture.operations[:1]
    assert made == [("ttgir", "llir", "ptx")]


def lines_of(capture: Capture, operation: str) -> list[int]:
    lines = enumerate(capture.text("ttgir").split("\n"), 1)
    return [number for number, line in lines if f"{operation} " in line]


def of_line(machine: MemoryInstructions, lines: list[int], *actions: str) -> list[set[int]]:
    """The widths of some actions at each line."""
    return [{bits for action, bits in machine.at(line) if action in actions} for line in lines]


@pytest.mark.parametrize(("target", "store"), [("cuda:90", "tt.store"), ("hip:gfx942", "amdg.buffer_store")])
def test_two_stores(target: str, store: str) -> None:
    capture = recorded("two_stores", "*fp32:16, *fp32:16, *i8:16", target, 1024)
    stores = lines_of(capture, store)
    wide, narrow = of_line(read_machine(capture), stores, "global store")
    assert wide == {128}
    assert len(narrow) == 1
    assert max(narrow) < 128
    together = of_line(read_machine(replace(capture, operations=())), stores, "global store")
    assert together == [wide | narrow] * 2
    # LLVM loads what a conversion leaves at the store, one element at a time, and says it were of the store.
    for line in stores:
        assert {action for action, _ in read_machine(capture).at(line)} == {"global store"}
    # The narrow store is no hint at the wide one.
    first = next(cost for cost in costs_of(capture) if cost.line == stores[0])
    assert first.by_operation
    assert set(first.figures["assembly_bits"]) == {"128"}


@pytest.mark.parametrize("target", ["cuda:90", pytest.param("hip:gfx942", marks=pytest.mark.exhaustive)])
def test_two_conversions(target: str) -> None:
    capture = recorded("two_conversions", "*fp32:16, *fp32:16, *fp16:16", target, 64)
    machine = read_machine(capture)
    first, second = (machine.at(line) for line in lines_of(capture, "ttg.convert_layout"))
    shared = {"shared load", "shared store", "matrix load", "matrix store"}
    assert {action for action, _ in first} & shared
    assert {action for action, _ in second} & shared
    assert {key for key in first if key[0] in shared}.isdisjoint(key for key in second if key[0] in shared)
    # Nothing is lost, and nothing counted twice: together they have what their line has.
    by_chain = read_machine(replace(capture, operations=()))
    (line,) = {tuple(by_chain.at(line).items()) for line in lines_of(capture, "ttg.convert_layout")}
    assert {key: count for key, count in line if key[0] in shared} == {
        key: count for key, count in (first + second).items() if key[0] in shared
    }


def test_zeros_beside_a_matrix() -> None:
    capture = recorded("zeros_and_matrix", "*fp16:16, *fp16:16", "cuda:90")
    stores = lines_of(capture, "ttg.local_store")
    machine = read_machine(capture)
    assert [machine.count(line, "matrix store") for line in stores] == [0, 4]
    assert [machine.count(line, "shared store") for line in stores] == [4, 0]
    matrices = {cost.line: cost.figures["matrices"] for cost in costs_of(capture) if cost.line in stores}
    assert matrices == {stores[0]: False, stores[1]: True}


def test_sass_names_the_operations_in_the_order_of_the_kernel() -> None:
    capture = recorded("two_stores", "*fp32:16, *fp32:16, *i8:16", "cuda:90", 1024)
    operations = next(row.by_line for row in capture.operations if row.stage == "sass")
    stored = [
        (operations[number], "128" in line)
        for number, line in enumerate(capture.text("sass").split("\n"))
        if " STG.E" in line
    ]
    wide, narrow = lines_of(capture, "tt.store")
    assert Counter(stored) == {(wide, True): 2, (narrow, False): 1}


def test_other_code_is_refused() -> None:
    capture = recorded("two_stores", "*fp32:16, *fp32:16, *i8:16", "cuda:90", 1024)

    def with_stage(stage: str, data: str | bytes) -> Capture:
        kept = [Artifact(stage, data) if item.stage == stage else item for item in capture.artifacts]
        return replace(capture, artifacts=tuple(kept))

    ptx = capture.text("ptx").replace("add.s64", "sub.s64", 1).replace("shl.b32", "shr.b32", 1)
    assert [bool(row.reason) for row in find_operations(with_stage("ptx", ptx))] == [True, False]
    cubin = capture.artifact("cubin").data
    assert isinstance(cubin, bytes)
    code = cubin.find(bytes.fromhex("4d790000"))
    assert code > 0  # EXIT
    other = cubin[: code + 8] + bytes([cubin[code + 8] ^ 1]) + cubin[code + 9 :]
    assert [bool(row.reason) for row in find_operations(with_stage("cubin", other))] == [False, True]
    broken = find_operations(with_stage("ttgir", capture.text("ttgir").replace("tt.store", "tt.nothing")))
    assert all("failed" in row.reason and not row.runs for row in broken)
    with pytest.raises(RecordingError):
        find_operations(replace(capture, artifacts=()))

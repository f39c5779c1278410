"""Costs of real kernels, from captures that need no Triton to be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.analysis.source.map import source_map
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.operands import split_operands
from irscope.layout.rows import layout_rows
from irscope.memory.costs import costs_of
from irscope.memory.machine import read_action
from irscope.model.capture import Capture
from irscope.store.file import load

DATA = Path(__file__).parent.parent / "data" / "layouts"


def capture(name: str) -> Capture:
    return load(DATA / f"{name}.irscope")


def test_the_conversion_before_a_store_is_the_worst() -> None:
    first, *rest = costs_of(capture("matmul-cuda-80"))
    assert (first.kind, first.operation) == ("conversion", "ttg.convert_layout")
    assert first.figures["moves"] == "warps"
    assert "operand 1 of tt.store" in first.hint
    assert "arith.truncf makes #mma" in first.hint
    assert "16 matrix loads" in first.summary
    assert all(cost.excess <= first.excess for cost in rest)
    assert first.place.endswith(":45")
    assert first.chain[-1].endswith(":92")


def test_operands_come_by_ldmatrix_without_conflicts() -> None:
    loads = [cost for cost in costs_of(capture("matmul-cuda-80")) if cost.operation == "ttg.local_load"]
    assert len(loads) >= 8
    assert all(cost.figures["matrices"] and cost.excess == 0 for cost in loads)
    assert any(cost.loops for cost in loads)


def test_waves_of_64_lanes() -> None:
    costs = costs_of(capture("matmul-hip-gfx942"))
    store = next(cost for cost in costs if cost.operation == "amdg.buffer_store")
    # Four rows of an mfma lie in four registers: 8 bytes a lane, half a sector each.
    assert store.access is not None
    assert store.access.bits_per_thread == 64
    assert (store.access.unit_bytes, store.access.line_bytes) == (128, 128)
    assert store.figures["assembly_bits"] == {"64": 16}
    shared = [cost for cost in costs if cost.kind == "shared"]
    assert shared
    assert all(cost.figures["banks"] == 32 for cost in shared)
    assert all(set(cost.figures["assembly_bits"]) <= {"64"} for cost in shared if cost.operation == "ttg.local_store")


def test_flash_attentions_loads_are_whole() -> None:
    costs = costs_of(capture("flash_attention-cuda-90"))
    copies = [cost for cost in costs if cost.kind == "global" and cost.operation == "ttg.async_copy_global_to_local"]
    assert copies
    assert all(set(cost.figures["assembly_bits"]) == {"128"} for cost in copies)
    assert all(cost.excess == 0 and not cost.hint for cost in copies)
    operands = [cost for cost in costs if cost.kind == "conversion" and cost.figures["moves"] == "nothing"]
    assert operands
    assert all("warp_group_dot" in cost.hint for cost in operands)


@pytest.mark.parametrize(
    ("opcode", "operands", "stage", "action"),
    [
        ("ld.global.L1::evict_last.v4.b32", "{%r1, %r2, %r3, %r4}, [%rd1]", "ptx", ("global load", 128)),
        ("st.global.v2.b16", "[%rd1], {%rs1, %rs2}", "ptx", ("global store", 32)),
        ("cp.async.cg.shared.global", "[%r1+0], [%rd1+0], 0x10, %r2", "ptx", ("async copy", 128)),
        ("cp.async.ca.shared.global", "[%r1], [%rd1], 4", "ptx", ("async copy", 32)),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "{%r1, %r2, %r3, %r4}, [%r5]", "ptx", ("matrix load", 16)),
        ("st.shared::cta.v4.b32", "[%r1], {%r2, %r3, %r4, %r5}", "ptx", ("shared store", 128)),
        ("shfl.sync.bfly.b32", "%r1, %r2, 1, 31, -1", "ptx", ("shuffle", 32)),
        ("add.s32", "%r1, %r2, %r3", "ptx", None),
        ("global_load_dwordx4", "v[2:5], v0, s[0:1]", "amdgcn", ("global load", 128)),
        ("buffer_store_short", "v1, v2, s[0:3], 0 offen", "amdgcn", ("global store", 16)),
        ("buffer_load_b128", "v[2:5], v0, s[0:3]", "amdgcn", ("global load", 128)),
        ("ds_read_b64", "v[2:3], v0", "amdgcn", ("shared load", 64)),
        ("ds_write_b8", "v0, v1", "amdgcn", ("shared store", 8)),
        ("ds_bpermute_b32", "v0, v1, v2", "amdgcn", ("shuffle", 32)),
    ],
)
def test_instructions(opcode: str, operands: str, stage: str, action: tuple | None) -> None:
    kind = "ptx" if stage == "ptx" else "amdgcn"
    assert read_action(Instruction(opcode, split_operands(operands), kind=kind)) == action


@pytest.mark.parametrize("name", ["flash_attention-cuda-90", "matmul-cuda-80", "matmul-hip-gfx942"])
def test_costs_and_layouts_name_the_line_that_the_source_map_names(name: str) -> None:
    whole = capture(name)
    found = source_map(whole, ["ttgir"])

    def line_of(number: int) -> str:
        (place,) = found.stage("ttgir").places_at(number)
        return "{}:{}".format(*found.places[place][0])

    costs = costs_of(whole)
    assert costs
    assert [cost.place for cost in costs] == [line_of(cost.line) for cost in costs]
    assert all(cost.place in cost.chain for cost in costs)
    assert any(cost.chain[-1] != cost.place for cost in costs)
    for row in layout_rows(whole.text("ttgir")):
        for use in row.operations:
            lines = [number for number in use.lines if found.stage("ttgir").places_at(number)]
            assert use.python == tuple(dict.fromkeys(map(line_of, lines)))
            assert all(place in {frame for chain in use.chains for frame in chain} for place in use.python)

"""Where operations come from: a table made by reading the Python, over every stage of two targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.ir.locations.model import Chain, TextLocations
from irscope.ir.locations.stages import lines_selected, read_locations
from irscope.model.capture import StageKind, stage_named

DATA = Path(__file__).parents[2] / "data" / "locations"


def kind_of(name: str) -> StageKind:
    return stage_named(name.rpartition(".")[2]).kind


def read(name: str) -> str:
    return (DATA / name).read_text()


def located(name: str) -> TextLocations:
    """The locations of a stage, read with all that a capture has to help."""
    start, _, stage = name.rpartition(".")
    llir = read(f"{start}.llir") if stage in ("ptx", "sass", "amdgcn") and (DATA / f"{start}.llir").exists() else None
    ptx = read(f"{start}.ptx") if stage == "sass" else None
    return read_locations(read(name), kind_of(name), llir=llir, ptx=ptx)


def shown(chain: Chain) -> str:
    """`helpers:9:12 < locations:19:13`, innermost first; SASS has no columns."""
    return " < ".join(f"{Path(f.file).stem}:{f.line}" + (f":{f.column}" if f.column else "") for f in chain)


# Line 196 of triton/language/standard.py (Triton 3.9.0) is `return core.maximum(a, b)` of `_elementwise_max`, which
# `max` hands to `core.reduce` on line 216; line 287 is `return a + b` of `_sum_combine`, which `sum` hands over on 314.
# A row: file, what the line contains, which of those lines, and where it comes from; "" is nowhere.
TABLE = [
    ("source", "%offsets = tt.get_program_id x", 1, "locations:16:15"),
    ("source", "%first = tt.call @helpers.scaled", 1, "locations:19:13"),
    ("source", "%second_29 = tt.call @helpers.scaled", 1, "locations:20:14"),
    ("source", "%third = tt.call @helpers.shifted", 1, "locations:24:13"),
    ("source", "tt.func private @helpers.shifted", 1, "helpers:13:1"),
    ("ttir", "%offsets_0 = tt.get_program_id x", 1, "locations:16:15"),
    ("ttir", "%offsets_2 = tt.make_range", 1, "locations:16:42"),
    ("ttir", "= arith.cmpi slt", 1, "locations:17:12"),
    ("ttir", "%x_7 = tt.addptr", 1, "locations:18:17"),
    ("ttir", "%x_8 = tt.load", 1, "locations:18:9"),
    ("ttir", "%first_9 = arith.mulf", 1, "helpers:9:12 < locations:19:13"),
    ("ttir", "%second_10 = arith.addf", 1, "locations:22:9"),
    ("ttir", "%second_12 = arith.mulf", 1, "helpers:9:12 < locations:20:14"),
    ("ttir", "%moved_13 = arith.mulf", 1, "helpers:9:12 < helpers:14:13 < locations:24:13"),
    ("ttir", "%moved_14 = arith.addf", 1, "helpers:14:13 < locations:24:13"),
    ("ttir", '%biggest = "tt.reduce"', 1, "standard:216:16 < locations:25:15"),
    ("ttir", "^bb0(%biggest", 1, "locations:25:15"),  # loc(callsite(unknown at …)): the caller is known all the same
    ("ttir", "arith.maxnumf", 1, "standard:196:12 < standard:216:16 < locations:25:15"),
    ("ttir", "}) : (tensor<512xf32>) -> f32", 1, "standard:216:16 < locations:25:15"),
    ("ttir", "arith.subf %moved_14", 1, "locations:26:26"),
    ("ttir", "math.exp", 1, "locations:11:12 < locations:26:20"),
    ("ttir", "}) : (tensor<512xf32>) -> f32", 2, "standard:314:12 < locations:26:13"),
    ("ttir", "tt.call @helpers.damped", 1, "locations:27:12"),
    ("ttir", "arith.divf", 1, "locations:28:31"),
    ("ttir", "tt.store", 1, "locations:28:5"),
    ("ttir", "tt.return loc", 1, "locations:15:1"),
    ("ttir", "tt.func private", 1, "helpers:19:1"),
    ("ttir", "%halved_0 = arith.mulf", 1, "helpers:20:14"),
    ("ttir", "arith.subf %halved_0", 1, "helpers:21:12"),
    ("ttir", "tt.return %0", 1, "helpers:21:5"),
    ("product.cuda90.ttgir", "scf.for", 1, "locations:37:5"),
    ("product.cuda90.ttgir", "scf.if", 1, "locations:40:9"),
    ("product.cuda90.ttgir", "} else {", 1, "locations:40:9"),
    ("product.cuda90.ttgir", "arith.mulf %total", 1, "helpers:9:12 < locations:41:21"),
    ("product.cuda90.ttgir", "ttng.warp_group_dot %", 1, "locations:42:17"),
    ("product.cuda90.ttgir", "= tt.load", 1, "locations:38:13"),
    ("product.cuda90.ttgir", "tt.store", 1, "locations:44:5"),
    ("product.gfx942.ttgir", "= tt.dot", 1, "locations:42:17"),
    ("product.gfx942.ttgir", "scf.for", 1, "locations:37:5"),
    ("chains.gfx942.ttgir", "math.exp", 1, "locations:11:12 < locations:26:20"),
    ("mlir", "llvm.mlir.constant(1.44", 1, ""),  # loc(unknown)
    ("mlir", "nvvm.read.ptx.sreg.ctaid.x", 1, "locations:16:15"),
    ("mlir", "llvm.call @helpers.damped", 1, "locations:27:12"),
    ("mlir", "llvm.func internal @helpers.damped", 1, "helpers:19:1"),
    ("llir", "sreg.ctaid.x(), !dbg", 1, "locations:16:15"),
    ("llir", "%26 = fadd float %3", 1, "locations:22:9"),
    ("llir", "%34 = fmul", 1, "helpers:9:12 < locations:19:13"),
    ("llir", "%37 = fmul", 1, "helpers:9:12 < locations:20:14"),
    ("llir", "%38 = fmul", 1, "helpers:9:12 < helpers:14:13 < locations:24:13"),
    ("llir", "@llvm.maxnum.f32(float %40", 1, "standard:196:12 < standard:216:16 < locations:25:15"),
    ("llir", "@llvm.nvvm.ex2", 1, "locations:11:12 < locations:26:20"),
    ("llir", "call fastcc float @helpers.damped", 1, "locations:27:12"),
    ("llir", "@$2 st.global.b32 [ $1 + 0 ]", 1, "locations:28:5"),
    ("llir", "define internal fastcc float", 1, "helpers:19"),
    ("llir", "fmul float %0, 5.0", 1, "helpers:20:14"),
    ("llir", "declare float @llvm.maxnum", 1, ""),
    ("ptx", "%ctaid.x;", 1, "locations:16:15"),
    ("ptx", "mul.f32 \t%r22", 1, "helpers:9:12 < locations:19:13"),
    ("ptx", "mul.f32 \t%r26", 1, "helpers:9:12 < locations:20:14"),
    ("ptx", "fma.rn.f32 \t%r30", 1, "helpers:14:13 < locations:24:13"),
    ("ptx", "max.f32 \t%r34", 1, "standard:196:12 < standard:216:16 < locations:25:15"),
    ("ptx", "shfl.sync.bfly.b32 \t%r37", 1, "standard:216:16 < locations:25:15"),
    ("ptx", "ex2.approx.f32", 1, "locations:11:12 < locations:26:20"),
    ("ptx", "add.f32 \t%r70", 1, "standard:287:12 < standard:314:12 < locations:26:13"),
    ("ptx", "call.uni", 1, "locations:27:12"),
    ("ptx", "div.full.f32", 1, "locations:28:31"),
    ("ptx", "st.global.b32 [ %rd2 + 0 ]", 1, "locations:28:5"),
    ("ptx", "fma.rn.f32 \t%r2, %r1", 1, "helpers:21:12"),
    ("ptx", ".reg .pred", 1, ""),
    ("twice.cuda90.ptx", "max.f32", 1, "standard:196:12 < standard:216:16 < locations:52:16"),
    ("twice.cuda90.ptx", "max.f32", 20, "standard:196:12 < standard:216:16 < locations:54:15"),
    ("twice.cuda90.llir", "@llvm.maxnum.f32(", 1, "standard:196:12 < standard:216:16 < locations:52:16"),
    ("twice.cuda90.sass", "FMNMX", 1, "standard:196 < standard:216 < locations:52"),
    ("twice.cuda90.sass", "FMNMX", 20, "standard:196 < standard:216 < locations:54"),
    # Its PTX says line 54, counted on by LLVM over the five instructions of its inline assembly.
    ("twice.cuda90.sass", "LDG.E.128", 1, "locations:50"),
    ("twice.cuda90.ptx", "ld.global.v4.b32", 1, "locations:50:9"),
    ("twice.cuda90.ptx", "mov.u32 %r4, 0x0", 1, "locations:50:9"),
    ("sass", "LDG.E R6", 1, "locations:18"),
    ("sass", "FADD R10, R12, 1", 1, "locations:22"),
    ("sass", "FMUL R13, R6", 1, "helpers:9 < locations:19"),
    ("sass", "FFMA R4, R13", 1, "helpers:14 < locations:24"),
    ("sass", "SHFL.BFLY", 1, "standard:216 < locations:25"),
    ("sass", "MUFU.EX2", 1, "locations:11 < locations:26"),
    ("sass", "CALL.REL", 1, "locations:27"),
    ("amdgcn", "global_load_dword v2", 1, "locations:18:9"),
    ("amdgcn", "v_pk_mul_f32 v[0:1], s[8:9]", 1, "helpers:9:12 < locations:19:13"),
    ("amdgcn", "v_pk_mul_f32 v[0:1], v[6:7]", 1, "helpers:9:12 < locations:20:14"),
    ("amdgcn", "v_pk_fma_f32", 1, "helpers:14:13 < locations:24:13"),
    ("amdgcn", "v_max_f32_e32 v0, v2, v3", 1, "standard:196:12 < standard:216:16 < locations:25:15"),
    ("amdgcn", "v_exp_f32_e32", 1, "locations:11:12 < locations:26:20"),
    ("amdgcn", "v_fma_f32 v0, v0, 0.5", 1, "helpers:21:12"),
    ("amdgcn", "s_or_b64 exec, exec", 1, ""),  # .loc 2 0 9: line 0 is no line
    ("product.gfx942.amdgcn", "v_mfma_f32", 1, "locations:42:17"),
    ("chains.gfx942.llir", "@helpers.damped__fp32(float", 1, "locations:27:12"),
]
SHORT = {"amdgcn": "chains.gfx942.amdgcn"}


@pytest.mark.parametrize(("file", "fragment", "nth", "expected"), TABLE)
def test_an_operation_comes_from_the_line_that_wrote_it(file: str, fragment: str, nth: int, expected: str) -> None:
    name = f"3.9.0/{SHORT.get(file, file if '.' in file else f'chains.cuda90.{file}')}"
    text = read(name)
    found = [number for number, line in enumerate(text.splitlines(), 1) if fragment in line]
    assert len(found) >= nth, f"{name} has {len(found)} lines with {fragment!r}"
    assert shown(located(name).chain_at(found[nth - 1])) == expected


STAGES = sorted(str(path.relative_to(DATA)) for path in DATA.glob("3.*/*"))


@pytest.mark.parametrize("name", STAGES)
def test_there_is_an_entry_for_every_line(name: str) -> None:
    text = read(name)
    locations = read_locations(text, kind_of(name))
    assert len(locations.by_line) == text.count("\n")
    assert set(locations.by_line) - {-1} == set(range(len(locations.chains)))
    assert all(locations.chains)
    assert len(set(locations.chains)) == len(locations.chains)


@pytest.mark.parametrize("name", STAGES)
def test_every_file_is_one_of_the_kernels_or_the_library(name: str) -> None:
    locations = read_locations(read(name), kind_of(name))
    files = {frame.file for chain in locations.chains for frame in chain}
    assert files <= {"kernels/helpers.py", "kernels/locations.py", "triton/language/standard.py"}


@pytest.mark.parametrize("name", STAGES)
def test_the_outermost_frame_stands_in_a_function_that_is_not_inlined(name: str) -> None:
    # That is a kernel (lines 15 and on of its file) or `damped` (lines 19 to 21 of the other).
    if name.endswith(".source"):
        return  # nothing is inlined yet
    for chain in located(name).chains:
        if name == "3.6.0/chains.cuda90.sass" and shown(chain) == "helpers:9":
            continue  # this SASS has no call sites, and three calls reach this line: it is not guessed which
        outer = chain[-1]
        assert (outer.file.endswith("locations.py") and outer.line >= 15) or outer.line >= 19, shown(chain)


def places(chain: Chain) -> tuple[tuple[str, int, int], ...]:
    return tuple((frame.file, frame.line, frame.column) for frame in chain)


@pytest.mark.parametrize(
    ("assembly", "llir"),
    [
        ("3.9.0/chains.cuda90.ptx", "3.9.0/chains.cuda90.llir"),
        ("3.9.0/twice.cuda90.ptx", "3.9.0/twice.cuda90.llir"),
        ("3.9.0/chains.gfx942.amdgcn", "3.9.0/chains.gfx942.llir"),
        ("3.6.0/chains.cuda90.ptx", "3.6.0/chains.cuda90.llir"),
    ],
)
def test_assembly_has_no_chain_that_its_llvm_ir_has_not(assembly: str, llir: str) -> None:
    known = {places(chain) for chain in read_locations(read(llir), "llvm").chains}
    alone = read_locations(read(assembly), kind_of(assembly))
    functions = {chain for chain in map(places, alone.chains) if len(chain) == 1 and chain[0][2] == 0}
    assert {places(chain) for chain in alone.chains} - functions <= known
    helped = read_locations(read(assembly), kind_of(assembly), llir=read(llir))
    assert [places(chain) for chain in helped.chains] == [places(chain) for chain in alone.chains]


def test_sass_has_no_chain_of_lines_that_its_ptx_has_not() -> None:
    for kernel in ("chains", "twice"):
        ptx = read_locations(read(f"3.9.0/{kernel}.cuda90.ptx"), "ptx").chains
        sass = located(f"3.9.0/{kernel}.cuda90.sass").chains
        known = {tuple((frame.file, frame.line) for frame in chain) for chain in ptx}
        assert {tuple((frame.file, frame.line) for frame in chain) for chain in sass} <= known


def test_names_of_values_come_with_their_frames() -> None:
    text = read("3.9.0/chains.cuda90.ttir")
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "%moved_13 = " in one)
    assert [frame.name for frame in read_locations(text, "mlir").chain_at(line)] == ["", "moved", "third"]


def test_the_function_of_inlined_code_is_not_taken_from_a_scope_that_lies() -> None:
    for name in ("3.9.0/chains.cuda90.llir", "3.9.0/chains.cuda90.ptx"):
        locations = read_locations(read(name), kind_of(name))
        assert {frame.function for chain in locations.chains for frame in chain[:-1]} == {""}
    llir = read_locations(read("3.9.0/chains.cuda90.llir"), "llvm")
    assert {chain[-1].function for chain in llir.chains} == {"chains", "helpers.damped__fp32"}


@pytest.mark.parametrize("name", [name for name in STAGES if "chains" in name and not name.endswith(".source")])
def test_a_line_of_the_kernel_selects_what_its_helpers_did_for_it(name: str) -> None:
    locations = located(name)
    selected = lines_selected(locations, lambda file: file.endswith("locations.py"), range(25, 26))
    chains = {locations.chain_at(line) for line in selected}
    assert {chain[-1].line for chain in chains} == {25}
    assert any(Path(chain[0].file).name == "standard.py" for chain in chains)
    assert not lines_selected(locations, lambda file: file.endswith("other.py"), range(1, 100))


def test_a_line_of_a_helper_selects_all_its_calls() -> None:
    locations = read_locations(read("3.9.0/chains.cuda90.ttir"), "mlir")
    selected = lines_selected(locations, lambda file: file.endswith("helpers.py"), {9})
    assert {shown(locations.chain_at(line)[-1:]) for line in selected} == {
        "locations:19:13",
        "locations:20:14",
        "locations:24:13",
    }


def test_a_binary_has_no_lines() -> None:
    assert read_locations("\x7fELF", "binary").by_line == ()
    assert read_locations("", "mlir").chain_at(1) == ()

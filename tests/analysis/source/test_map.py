"""The source map: tables made by reading the Python, for every stage of two targets, and what always holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.source.map import SourceMap, StageMap, function_blocks, read_stage_operations, source_map
from irscope.errors import StageNotFound
from irscope.ir.asm.control_flow import read_functions
from irscope.ir.columns import operation_counts
from irscope.ir.locations.model import Frame, is_library, place_of
from irscope.model.capture import Capture, StageKind, stage_named
from irscope.render.report.facts import stage_locations
from tests.analysis.recorded import example, stored, without_sources

CUDA, HIP = "cuda:90", "hip:gfx942"
STORED = [("chains", CUDA), ("chains", HIP), ("product", CUDA), ("product", HIP), ("twice", CUDA)]


def lines_at(stage: StageMap, places: Iterable[int]) -> tuple[int, ...]:
    """The text lines that come from one of some places, 1-based."""
    count = len(stage.locations.by_line)
    return tuple(number for number in range(1, count + 1) if not set(stage.places_at(number)).isdisjoint(places))


def counterparts(found: SourceMap, stage: str, line: int, other: str) -> tuple[int, ...]:
    return lines_at(found.stage(other), found.stage(stage).places_at(line))


def shown(place: tuple[tuple[str, int], ...]) -> str:
    """`helpers:9 < locations:19`, innermost first."""
    return " < ".join(f"{Path(file).stem}:{line}" for file, line in place)


def places(found: SourceMap, stage: str, text: str, fragment: str, nth: int) -> set[str]:
    """Where the nth line with a fragment comes from."""
    lines = [number for number, line in enumerate(text.split("\n"), 1) if fragment in line]
    assert len(lines) >= nth, f"{stage} has {len(lines)} lines with {fragment!r}"
    return {shown(found.places[place]) for place in found.stage(stage).places_at(lines[nth - 1])}


# A row: kernel, target, stage, what the line holds, which of those lines, the places that it comes from. Lines of the
# library are rolled up to the line that called; a helper that is not inlined has a place for each of its callers.
EACH_CALL = {"helpers:9 < locations:19", "helpers:9 < locations:20", "helpers:9 < helpers:14 < locations:24"}
STORED_TABLE = [
    ("chains", CUDA, "source", "tt.call @helpers.scaled", 1, {"locations:19"}),
    ("chains", CUDA, "source", "tt.call @helpers.scaled", 2, {"locations:20"}),
    ("chains", CUDA, "source", "arith.mulf %x, %0", 1, EACH_CALL),
    ("chains", CUDA, "source", "arith.subf %halved", 1, {"helpers:21 < locations:27"}),
    ("chains", CUDA, "ttir", "%first_9 = arith.mulf", 1, {"helpers:9 < locations:19"}),
    ("chains", CUDA, "ttir", "%second_12 = arith.mulf", 1, {"helpers:9 < locations:20"}),
    ("chains", CUDA, "ttir", "%moved_13 = arith.mulf", 1, {"helpers:9 < helpers:14 < locations:24"}),
    ("chains", CUDA, "ttir", "%moved_14 = arith.addf", 1, {"helpers:14 < locations:24"}),
    ("chains", CUDA, "ttir", "arith.maxnumf", 1, {"locations:25"}),
    ("chains", CUDA, "ttir", '%biggest = "tt.reduce"', 1, {"locations:25"}),
    ("chains", CUDA, "ttir", "math.exp", 1, {"locations:11 < locations:26"}),
    ("chains", CUDA, "ttir", "}) : (tensor<512xf32>) -> f32", 2, {"locations:26"}),
    ("chains", CUDA, "ttir", "%halved_0 = arith.mulf", 1, {"helpers:20 < locations:27"}),
    ("chains", CUDA, "ttir", "arith.divf", 1, {"locations:28"}),
    ("chains", CUDA, "ttgir", "tt.call @helpers.damped", 1, {"locations:27"}),
    ("chains", CUDA, "ttgir", "tt.store", 1, {"locations:28"}),
    ("chains", CUDA, "llir", "%34 = fmul", 1, {"helpers:9 < locations:19"}),
    ("chains", CUDA, "llir", "%37 = fmul", 1, {"helpers:9 < locations:20"}),
    ("chains", CUDA, "llir", "%38 = fmul", 1, {"helpers:9 < helpers:14 < locations:24"}),
    ("chains", CUDA, "llir", "@llvm.maxnum.f32(float %40", 1, {"locations:25"}),
    ("chains", CUDA, "llir", "fmul float %0, 5.0", 1, {"helpers:20 < locations:27"}),
    ("chains", CUDA, "ptx", "mul.f32 \t%r22", 1, {"helpers:9 < locations:19"}),
    ("chains", CUDA, "ptx", "mul.f32 \t%r26", 1, {"helpers:9 < locations:20"}),
    ("chains", CUDA, "ptx", "shfl.sync.bfly.b32 \t%r37", 1, {"locations:25"}),
    ("chains", CUDA, "ptx", "add.f32 \t%r70", 1, {"locations:26"}),
    ("chains", CUDA, "ptx", "fma.rn.f32 \t%r2, %r1", 1, {"helpers:21 < locations:27"}),
    ("chains", CUDA, "sass", "LDG.E R6", 1, {"locations:18"}),
    ("chains", CUDA, "sass", "FMUL R13, R6", 1, {"helpers:9 < locations:19"}),
    ("chains", CUDA, "sass", "SHFL.BFLY", 1, {"locations:25"}),
    ("chains", CUDA, "sass", "MUFU.EX2", 1, {"locations:11 < locations:26"}),
    ("chains", CUDA, "sass", "CALL.REL", 1, {"locations:27"}),
    ("chains", HIP, "ttgir", "math.exp", 1, {"locations:11 < locations:26"}),
    ("chains", HIP, "llir", "@helpers.damped__fp32(float", 1, {"locations:27"}),
    ("chains", HIP, "amdgcn", "v_pk_mul_f32 v[0:1], s[8:9]", 1, {"helpers:9 < locations:19"}),
    ("chains", HIP, "amdgcn", "v_pk_mul_f32 v[0:1], v[6:7]", 1, {"helpers:9 < locations:20"}),
    ("chains", HIP, "amdgcn", "v_max_f32_e32 v0, v2, v3", 1, {"locations:25"}),
    ("chains", HIP, "amdgcn", "v_exp_f32_e32", 1, {"locations:11 < locations:26"}),
    ("chains", HIP, "amdgcn", "v_fma_f32 v0, v0, 0.5", 1, {"helpers:21 < locations:27"}),
    ("product", CUDA, "ttgir", "arith.mulf %total", 1, {"helpers:9 < locations:41"}),
    ("product", CUDA, "ttgir", "ttng.warp_group_dot %", 1, {"locations:42"}),
    ("product", CUDA, "ttgir", "} else {", 1, {"locations:40"}),
    ("product", HIP, "ttgir", "= tt.dot", 1, {"locations:42"}),
    ("product", HIP, "amdgcn", "v_mfma_f32", 1, {"locations:42"}),
    ("twice", CUDA, "llir", "@llvm.maxnum.f32(", 1, {"locations:52"}),
    ("twice", CUDA, "ptx", "max.f32", 1, {"locations:52"}),
    ("twice", CUDA, "ptx", "max.f32", 20, {"locations:54"}),
    ("twice", CUDA, "ptx", "ld.global.v4.b32", 1, {"locations:50"}),
    ("twice", CUDA, "sass", "FMNMX", 1, {"locations:52"}),
    ("twice", CUDA, "sass", "FMNMX", 20, {"locations:54"}),
    ("twice", CUDA, "sass", "LDG.E.128", 1, {"locations:50"}),
]


@pytest.mark.parametrize(("kernel", "target", "stage", "fragment", "nth", "expected"), STORED_TABLE)
def test_an_operation_comes_from_the_lines_that_wrote_it(
    kernel: str, target: str, stage: str, fragment: str, nth: int, expected: set[str]
) -> None:
    capture = stored(kernel, target)
    assert places(source_map(capture), stage, capture.text(stage), fragment, nth) == expected


LOAD_Q, LOAD_K, LOAD_V = "q = tl.load(", "k = tl.load(", "v = tl.load("
QK, PV = "scores = tl.dot(q, k.T)", "acc = tl.dot(weights"
LARGEST, RESCALE, WEIGHTS, TOTAL = (
    "new_largest = tl.maximum(",
    "rescale = tl.exp2(",
    "weights = tl.exp2(",
    "total = total * rescale",
)
DIVIDE, STORE, SOFTMAX_LOAD = "z = acc / total", "tl.store(", "x = tl.load("
MAX, SUM = "numerator = tl.exp(x - tl.max", "out = numerator / tl.sum"
# A row: example, target, stage, fragment, which of those lines, what the Python line holds, and, for the attention's
# helper, which of its two calls (0: none).
EXAMPLE_TABLE = [
    ("softmax", CUDA, "ttir", "= tt.load", 1, SOFTMAX_LOAD, 0),
    ("softmax", CUDA, "ttir", "arith.maxnumf", 1, MAX, 0),
    ("softmax", CUDA, "ttgir", "math.exp", 1, MAX, 0),
    ("softmax", CUDA, "ttgir", "arith.addf", 1, SUM, 0),
    ("softmax", CUDA, "llir", "@llvm.nvvm.shfl.sync.bfly.i32(", 1, MAX, 0),
    ("softmax", CUDA, "ptx", "ld.global.v4.b32", 1, SOFTMAX_LOAD, 0),
    ("softmax", CUDA, "ptx", "max.f32", 1, MAX, 0),
    ("softmax", CUDA, "ptx", "st.global.v4.b32", 2, STORE, 0),
    ("softmax", CUDA, "sass", "LDG.E.128", 2, SOFTMAX_LOAD, 0),
    ("softmax", CUDA, "sass", "FMNMX", 5, MAX, 0),
    ("softmax", CUDA, "sass", "MUFU.EX2", 1, MAX, 0),
    ("softmax", CUDA, "sass", "MUFU.RCP", 1, SUM, 0),
    ("softmax", CUDA, "sass", "STG.E.128", 1, STORE, 0),
    ("softmax", HIP, "ttgir", "arith.divf", 1, SUM, 0),
    ("softmax", HIP, "llir", "@llvm.maxnum.f32(", 1, MAX, 0),
    ("softmax", HIP, "amdgcn", "v_exp_f32", 1, MAX, 0),
    ("softmax", HIP, "amdgcn", "v_add_f32", 1, MAX, 0),
    ("softmax", HIP, "amdgcn", "v_rcp_f32", 1, SUM, 0),
    ("attention", CUDA, "ttir", "= tt.load", 1, LOAD_Q, 0),
    ("attention", CUDA, "ttir", "= tt.load", 2, LOAD_K, 1),
    ("attention", CUDA, "ttir", "= tt.load", 5, LOAD_V, 2),
    ("attention", CUDA, "ttir", "= tt.dot", 1, QK, 1),
    ("attention", CUDA, "ttir", "= tt.dot", 4, PV, 2),
    ("attention", CUDA, "ttir", "math.exp2", 1, RESCALE, 1),
    ("attention", CUDA, "ttir", "math.exp2", 4, WEIGHTS, 2),
    ("attention", CUDA, "ttir", "arith.maxnumf", 1, LARGEST, 1),
    ("attention", CUDA, "ttir", "arith.divf", 1, DIVIDE, 0),
    ("attention", CUDA, "ttgir", "ttng.warp_group_dot %", 2, PV, 1),
    ("attention", CUDA, "ttgir", "ttng.warp_group_dot %", 3, QK, 2),
    ("attention", CUDA, "ttgir", '"tt.reduce"', 2, TOTAL, 1),
    ("attention", CUDA, "ttgir", "tt.store", 1, STORE, 0),
    ("attention", CUDA, "llir", "wgmma.mma_async", 1, QK, 1),
    ("attention", CUDA, "ptx", "wgmma.mma_async", 1, QK, 1),
    ("attention", CUDA, "ptx", "wgmma.wait_group", 1, QK, 1),
    ("attention", CUDA, "ptx", "cp.async.cg.shared.global", 1, LOAD_K, 1),
    ("attention", CUDA, "ptx", "div.full.f32", 1, DIVIDE, 0),
    ("attention", CUDA, "ptx", "st.global.v4.b32", 1, STORE, 0),
    ("attention", CUDA, "sass", "HGMMA", 1, QK, 1),
    ("attention", CUDA, "sass", "LDGSTS", 1, LOAD_K, 1),
    ("attention", CUDA, "sass", "MUFU.EX2", 1, RESCALE, 1),
    ("attention", CUDA, "sass", "STG.E.128", 1, STORE, 0),
    ("attention", HIP, "ttgir", "= tt.dot", 1, QK, 1),
    ("attention", HIP, "ttgir", "= tt.dot", 2, PV, 1),
    ("attention", HIP, "amdgcn", "v_mfma_f32", 1, QK, 1),
    ("attention", HIP, "amdgcn", "v_div_fmas_f32", 1, DIVIDE, 0),
    ("attention", HIP, "amdgcn", "global_store", 1, STORE, 0),
]


@pytest.mark.triton
@pytest.mark.parametrize(("name", "target", "stage", "fragment", "nth", "python", "call"), EXAMPLE_TABLE)
def test_an_operation_of_an_example_comes_from_the_line_that_wrote_it(
    name: str, target: str, stage: str, fragment: str, nth: int, python: str, call: int
) -> None:
    capture = example(name, target)
    source = capture.sources[0].text.split("\n")
    (own,) = [number for number, line in enumerate(source, 1) if line.lstrip().startswith(python)]
    calls = [number for number, line in enumerate(source, 1) if "= attend(" in line]
    stem = Path(capture.launch.kernel.file).stem
    expected = f"{stem}:{own}" + (f" < {stem}:{calls[call - 1]}" if call else "")
    assert places(source_map(capture), stage, capture.text(stage), fragment, nth) == {expected}


@pytest.mark.triton
@pytest.mark.parametrize("opcode", ["HGMMA", "WARPGROUP.ARRIVE"])
def test_every_matrix_multiplication_of_sass_comes_from_a_dot(opcode: str) -> None:
    # LLVM counts lines on within inline assembly, and ptxas moves some of these beside other statements.
    capture = example("attention", CUDA)
    found = source_map(capture).stage("sass")
    source = capture.sources[0].text.split("\n")
    dots = {number for number, line in enumerate(source, 1) if "tl.dot(" in line}
    chains = [found.locations.chain_at(n) for n, line in enumerate(capture.sass.split("\n"), 1) if f" {opcode}" in line]
    assert chains
    assert {chain[0].line for chain in chains} <= dots


@pytest.mark.parametrize(("kernel", "target"), STORED)
def test_every_operation_that_has_a_location_has_a_place(kernel: str, target: str) -> None:
    found = source_map(stored(kernel, target))
    for stage in found.stages:
        placed = [line for line in stage.operations.lines if stage.places_at(line)]
        located = [line for line in stage.operations.lines if stage.locations.chain_at(line)]
        assert placed == located, stage.stage
        assert located


@pytest.mark.triton
@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("name", ["softmax", "attention"])
def test_every_mapped_line_of_an_example_exists_and_is_one_of_the_kernels(name: str, target: str) -> None:
    capture = example(name, target)
    found = source_map(capture)
    check_lines_exist(capture, found)
    for stage in found.stages:
        located = [line for line in stage.operations.lines if stage.locations.chain_at(line)]
        placed = [line for line in located if stage.places_at(line)]
        assert len(placed) >= 0.99 * len(located), stage.stage


@pytest.mark.parametrize(("kernel", "target"), STORED)
def test_every_mapped_line_exists_in_its_file(kernel: str, target: str) -> None:
    capture = stored(kernel, target)
    check_lines_exist(capture, source_map(capture))


def check_lines_exist(capture: Capture, found: SourceMap) -> None:
    """Every place's lines stand in a file that the capture holds, and hold some text."""
    texts = {source.path: source.text.split("\n") for source in capture.sources}
    for place in found.places:
        assert place
        for file, line in place:
            assert not is_library(file)
            assert texts[file][line - 1].strip(), f"{file}:{line} is empty"


@pytest.mark.parametrize(("kernel", "target"), STORED)
def test_each_operation_counts_once_for_its_own_line(kernel: str, target: str) -> None:
    found = source_map(stored(kernel, target))
    for stage in found.stages:
        if stage.stage == "source":
            continue  # a helper's operations are there once, and each call has them
        located = sum(1 for line in stage.operations.lines if stage.places_at(line))
        assert sum(found.line_counts(stage.stage).values()) == located
        own = [next(c.own for c in found.counts(*line) if c.stage == stage.stage) for line in found.python_lines]
        assert sum(own) == located


@pytest.mark.parametrize(("kernel", "target"), STORED)
def test_operations_are_those_that_the_readers_count(kernel: str, target: str) -> None:
    for artifact in stored(kernel, target).artifacts:
        check_operations(artifact.stage, artifact.text)


@pytest.mark.triton
@pytest.mark.parametrize("target", [CUDA, HIP])
def test_operations_of_an_example_are_those_that_the_readers_count(target: str) -> None:
    for artifact in example("attention", target).artifacts:
        if isinstance(artifact.data, str):
            check_operations(artifact.stage, artifact.text)


def check_operations(stage: str, text: str) -> None:
    """As many operations as the readers of structure find, on the same lines."""
    kind = stage_named(stage).kind
    operations = read_stage_operations(text, kind)
    if kind in ("mlir", "llvm"):
        assert len(operations.lines) == operation_counts(text, kind).total()
        return
    padding = sum(getattr(one, "padding", 0) for one in read_functions(text, kind))
    counted = [item.line for function in read_functions(text, kind) for item in function.instructions]
    assert padding == 0
    assert list(operations.lines[: len(counted)]) == counted
    names = {operations.full_names[name] for name in operations.names[len(counted) :]}
    assert names <= {"NOP", "BRA"}  # padding behind the code


def test_two_calls_of_a_library_function_share_nothing() -> None:
    found = source_map(stored("twice", CUDA))
    for stage in found.stages:
        near = set(lines_at(stage, found.places_of_line[found.kernel_file, 52]))
        far = set(lines_at(stage, found.places_of_line[found.kernel_file, 54]))
        assert near, stage.stage
        assert far, stage.stage
        assert not near & far, stage.stage


def test_a_text_line_leads_to_its_counterparts_at_another_stage() -> None:
    capture = stored("chains", CUDA)
    found = source_map(capture)
    (exp,) = [n for n, line in enumerate(capture.ttgir.split("\n"), 1) if "math.exp" in line]
    sass = capture.sass.split("\n")
    assert any("MUFU.EX2" in sass[number - 1] for number in counterparts(found, "ttgir", exp, "sass"))
    for number in counterparts(found, "ttgir", exp, "sass"):
        assert exp in counterparts(found, "sass", number, "ttgir")
    assert counterparts(found, "ttgir", 1, "sass") == ()
    assert counterparts(found, "ttgir", 10**9, "sass") == ()


def test_a_pattern_finds_operations_by_text_name_and_family() -> None:
    capture = stored("product", CUDA)
    found = source_map(capture)
    assert set(found.matching(re.compile("warp_group_dot"))) == {"ttgir"}
    assert set(found.matching(re.compile("^wgmma$"))) == {"ptx"}
    assert found.matching(re.compile("wgmma"), ["ttgir"]) == {}
    assert found.matching(re.compile("kernels/locations")) == {}, "names of files are no instructions"


def test_the_map_is_smaller_than_the_locations() -> None:
    from irscope.ir.locations.strip import strip_locations

    capture = stored("chains", CUDA)
    size = len(json.dumps(stage_locations(capture), separators=(",", ":")))
    bare = [strip_locations(one.text, stage_named(one.stage).kind) for one in capture.artifacts]
    assert size < 2 * (sum(len(one.text) for one in capture.artifacts) - sum(map(len, bare)))


def test_a_stage_without_a_text_is_named_with_those_that_have_one() -> None:
    with pytest.raises(StageNotFound, match="choose one of source, ttir"):
        source_map(stored("chains", CUDA)).stage("cubin")


def test_one_stage_can_be_mapped_alone() -> None:
    full, alone = source_map(stored("chains", CUDA)), source_map(stored("chains", CUDA), ["sass"])
    assert [stage.stage for stage in alone.stages] == ["sass"]
    for line in alone.stage("sass").operations.lines:
        ours = {alone.places[place] for place in alone.stage("sass").places_at(line)}
        assert ours == {full.places[place] for place in full.stage("sass").places_at(line)}


def test_a_capture_without_python_has_a_map_all_the_same() -> None:
    found = source_map(without_sources(stored("chains", CUDA)))
    assert found.python_lines
    assert ("kernels/locations.py", 25) in found.places_of_line


def test_the_kernels_own_file_is_no_library_wherever_it_stands() -> None:
    path = "/site-packages/triton/language/standard.py"
    chain = (Frame(path, 3, 1), Frame("kernel.py", 9, 1))
    assert place_of(chain) == (("kernel.py", 9),)
    assert place_of(chain, path) == ((path, 3), ("kernel.py", 9))
    assert not is_library("/home/me/triton/python/tutorials/matmul.py")


@pytest.mark.parametrize("kind", ["mlir", "llvm", "ptx", "sass", "amdgcn"])
@given(text=st.text(alphabet='%@#!{}[]()<>:=,."/;ablo c0\n\t', max_size=200))
def test_any_text_is_read_without_an_error(kind: StageKind, text: str) -> None:
    operations = read_stage_operations(text, kind)
    assert len(operations.lines) == len(operations.kinds) == len(operations.names)


def test_functions_are_found_by_indentation() -> None:
    head = "import x\n\n\n@decorated(\n    a=1,\n)\ndef f(\n    a,\n):  # note\n"
    text = head + "    b = 1\n\n    return b\n\n\ndef g():\n    return 2\n"
    assert function_blocks(text, [10]) == [(4, 12)]
    assert function_blocks(text, [5, 16]) == [(5, 5), (15, 16)]
    assert function_blocks(text, [1]) == [(1, 1)]
    assert function_blocks("", [3]) == []

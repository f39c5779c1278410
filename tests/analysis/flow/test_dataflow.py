"""The dataflow: the compiler's own definitions and uses; folding, choosing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.flow.dataflow import HARDEST, Dataflow, around, at_level, fold, on_lines, read_dataflow
from irscope.errors import UsageError
from irscope.ir.mlir.attributes import short_layout
from irscope.ir.mlir.reader import Operation, parse_mlir
from irscope.ir.mlir.types import layout_of, short_type
from tests.analysis.recorded import example, stored

CUDA, HIP = "cuda:90", "hip:gfx942"
LOOP = """module {
  tt.func public @k(%p: !tt.ptr<f16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %first = arith.constant dense<0.0> : tensor<4xf32, #blocked>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %first, %b = %c0) -> (tensor<4xf32, #blocked>, i32)  : i32 {
      %x = arith.addf %a, %a : tensor<4xf32, #blocked>
      %y = arith.addi %b, %i : i32
      %z = scf.if %flag -> (i32) {
        scf.yield %y : i32
      } else {
        scf.yield %b : i32
      }
      scf.yield %x, %z : tensor<4xf32, #blocked>, i32
    }
    %s = "tt.reduce"(%r#0) <{axis = 0 : i32}> ({
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tt.reduce.return %w : f32
    }) : (tensor<4xf32, #blocked>) -> f32
    tt.store %p, %s : !tt.ptr<f16>
    tt.return
  }
}
"""


def compilers_own(text: str, folder: Path) -> tuple[list[str], int, Counter[tuple[object, int]]]:
    """Operations in the order of a walk, the number of block arguments, and (maker, reader) of each use."""
    from triton._C.libtriton import amd, ir, nvidia

    path = folder / "module.mlir"
    path.write_text(text)
    context = ir.context()
    for dialects in (ir, nvidia, amd):
        dialects.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    operations: list[object] = []
    module.walk(operations.append)
    makers: dict[int, object] = {}
    blocks = {block.id(): block for one in operations if (block := one.get_block()) is not None}
    arguments = 0
    for block in blocks.values():
        for index in range(block.get_num_arguments()):
            makers[block.get_argument(index).id()] = "argument"
            arguments += 1
    for number, one in enumerate(operations):
        for index in range(one.get_num_results()):
            makers[one.get_result(index).id()] = number
    uses = Counter(
        (makers[one.get_operand(index).id()], number)
        for number, one in enumerate(operations)
        for index in range(one.get_num_operands())
    )
    return [one.get_name() for one in operations], arguments, uses


def ours(text: str) -> tuple[list[str], int, Counter[tuple[object, int]]]:
    """The same of our reader; the compiler walks what an operation holds before the operation."""
    order: list[Operation] = []

    def walk(operation: Operation) -> None:
        for region in operation.regions:
            for block in region.blocks:
                for inner in block.operations:
                    walk(inner)
        order.append(operation)

    for operation in parse_mlir(text).operations:
        walk(operation)
    makers: dict[tuple[int, int], object] = {}
    for number, one in enumerate(order):
        makers.update({(value.number, value.index): number for value in one.results})
        blocks = [block for region in one.regions for block in region.blocks]
        makers.update({(value.number, value.index): "argument" for block in blocks for value in block.arguments})
    uses = Counter(
        (makers[value.number, value.index], number) for number, one in enumerate(order) for value in one.operands
    )
    arguments = sum(maker == "argument" for maker in makers.values())
    return [one.name for one in order], arguments, uses


@pytest.mark.triton
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("softmax", CUDA),
        ("softmax", HIP),
        pytest.param("attention", CUDA, marks=pytest.mark.newest),
        pytest.param("attention", HIP, marks=pytest.mark.newest),
    ],
)
def test_nodes_and_edges_are_the_compilers_own(name: str, target: str, tmp_path: Path) -> None:
    capture = example(name, target)
    texts = {stage: capture.text(stage) for stage in ("source", "ttir", "ttgir")}
    texts |= {one.label: one.text for one in capture.passes() if one.text and len(one.text) < 200_000}
    assert len(texts) > 8
    for label, text in texts.items():
        assert ours(text) == compilers_own(text, tmp_path), label


def maker_of(flow: Dataflow, value: str) -> int:
    return next(node.number for node in flow.nodes if value in node.values)


def drawn(flow: Dataflow) -> set[tuple[str, str, bool]]:
    names = {node.number: (node.values[0] if node.values else node.name) for node in flow.nodes}
    return {(names[edge.source], names[edge.target], edge.carried) for edge in flow.edges}


def test_what_a_loop_yields_goes_to_the_next_turn_and_to_who_reads_its_result() -> None:
    flow = read_dataflow(LOOP)
    edges = drawn(flow)
    assert {("%first", "%a", False), ("%x", "%a", True), ("%x", "%s", False), ("%n", "%i", False)} <= edges
    # The branch's result comes from both sides.
    assert {("%y", "%b", True), ("%b", "%b", True)} <= edges
    assert ("%s", "tt.store", False) in edges
    assert not {"scf.for", "scf.yield", "tt.func", "builtin.module", "tt.reduce.return"} & {
        node.name for node in flow.nodes
    }
    titles = [scope.title for scope in flow.scopes]
    assert "for %i = %c0 to %n step %c1" in titles
    assert {"k", "if %flag: then", "if %flag: else"} <= set(titles)


def test_values_have_types() -> None:
    flow = read_dataflow(LOOP)
    types = {node.values[0]: node.type for node in flow.nodes if node.values}
    assert types["%a"] == types["%x"] == "tensor<4xf32, #blocked>"
    assert types["%b"] == types["%i"] == "i32"
    assert types["%s"] == "f32"
    assert types["%p"] == "!tt.ptr<f16>"
    (edge,) = [edge for edge in flow.edges if edge.source == maker_of(flow, "%x") and edge.carried]
    assert edge.type == "tensor<4xf32, #blocked>"


SHARED = "!ttg.memdesc<2x8xf16, #s, #smem, mutable>"
POINTERS = "tensor<8x!tt.ptr<f16>, #b>"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("tt.load", "%0 = tt.load %1, %2 : tensor<8x!tt.ptr<f16>, #blocked>", "tensor<8xf16, #blocked>"),
        ("arith.cmpi", "%0 = arith.cmpi slt, %1, %2 : tensor<8xi32, #mma>", "tensor<8xi1, #mma>"),
        ("arith.select", "%0 = arith.select %1, %2, %3 : tensor<8xi1, #b>, tensor<8xf32, #b>", "tensor<8xf32, #b>"),
        ("arith.extsi", "%0 = arith.extsi %1 : tensor<8xi32> to tensor<8xi64>", "tensor<8xi64>"),
        ("tt.addptr", f"%0 = tt.addptr %1, %2 : {POINTERS}, tensor<8xi32, #b>", POINTERS),
        ("ttg.local_alloc", f"%0 = ttg.local_alloc : () -> {SHARED}", SHARED),
        ("tt.get_program_id", "%0 = tt.get_program_id x : i32", "i32"),
        ("ttg.async_commit_group", "%0 = ttg.async_commit_group tokens %1", "!ttg.async.token"),
    ],
)  # fmt: skip
def test_the_type_of_a_result_is_read_from_the_text(name: str, text: str, expected: str) -> None:
    (operation,) = parse_mlir(text).operations
    assert operation.name == name
    assert [str(kind) for kind in operation.result_types] == [expected]


def test_types_in_short() -> None:
    assert short_type("tensor<128x64x!tt.ptr<f16>, #blocked>") == "128x64x*f16"
    assert short_type("!ttg.memdesc<2x8xf16, #shared, #smem, mutable>") == "smem 2x8xf16"
    assert short_type("!tt.ptr<f16>") == "*f16"
    assert short_type("{ i32, i32, i32 }") == "{i32 ×3}"
    assert layout_of("tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>") == "#ttg.slice<{dim = 1, parent = #mma}>"
    assert short_layout("#ttg.slice<{dim = 1, parent = #mma}>") == "slice 1 of #mma"
    assert short_layout("#ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>") == "dot operand 0 of #mma1"


@pytest.mark.parametrize("level", range(HARDEST + 1))
def test_folding_loses_no_operation_that_computes(level: int) -> None:
    flow = read_dataflow(stored("product", CUDA).ttgir)
    folded = at_level(flow, {}, level)
    numbers = {node.number for node in folded.nodes}
    assert all(edge.source in numbers and edge.target in numbers for edge in folded.edges)
    assert all(edge.source != edge.target for edge in folded.edges if level and not edge.carried)
    lost = len(flow.nodes) - sum(node.size for node in folded.nodes)
    inputs = [node for node in flow.nodes if node.role in ("constant", "argument", "control", "sync")]
    assert 0 <= lost <= len(inputs)
    if level <= 3:
        dots = [node for node in folded.nodes if node.name == "ttng.warp_group_dot"]
        assert len(dots) == 1, "what matters stays by itself"


def test_chains_are_folded_without_a_cycle() -> None:
    folded = at_level(read_dataflow(stored("product", CUDA).ttgir), {}, 1)
    after: dict[int, set[int]] = {}
    for edge in folded.edges:
        if not edge.carried:
            after.setdefault(edge.source, set()).add(edge.target)
    done: set[int] = set()

    def visit(number: int, above: frozenset[int]) -> None:
        assert number not in above
        if number not in done:
            for other in after.get(number, ()):
                visit(other, above | {number})
            done.add(number)

    for node in folded.nodes:
        visit(node.number, frozenset())


def test_a_large_graph_is_folded_harder_and_says_so() -> None:
    lines = "\n".join(f"    %{n} = tt.load %{n - 1} : tensor<4x!tt.ptr<f16>, #b{n % 3}>" for n in range(1, 5000))
    text = f"module {{\n  tt.func @k(%0: i32) {{\n{lines}\n    tt.return\n  }}\n}}\n"
    folded = fold(read_dataflow(text), {}, None)
    assert len(folded.flow.nodes) <= 120
    assert folded.level > 1
    assert "operations and arguments in" in folded.note


def test_around_a_value() -> None:
    flow = read_dataflow(LOOP)
    assert {node.values[0] for node in around(flow, "%x", 0).nodes} == {"%x"}
    assert {"%a", "%x", "%s"} == {node.values[0] for node in around(flow, "x", 1).nodes}
    assert {"tt.store", "tt.reduce"} <= {node.name for node in around(flow, "x", 100).nodes}
    with pytest.raises(UsageError, match="no operation makes that value"):
        around(flow, "nothing_like_it", 1)


def test_lines_keep_their_neighbours_faded() -> None:
    flow = read_dataflow(LOOP)
    part = on_lines(flow, {7})
    assert {(node.values[0], node.faded) for node in part.nodes} == {("%x", False), ("%a", True), ("%s", True)}
    with pytest.raises(UsageError, match="irscope source"):
        on_lines(flow, {10**6})


SCHEDULED = """module {
  tt.func @k(%p: tensor<4x!tt.ptr<f16>, #b>) {
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p) -> (tensor<4xf16, #b>)  : i32 {
      %x = tt.load %a {loop.cluster = 2 : i32, loop.stage = 0 : i32} : tensor<4x!tt.ptr<f16>, #b>
      %y = arith.addf %x, %x {loop.cluster = 0 : i32, loop.stage = 2 : i32} : tensor<4xf16, #b>
      %z = ttg.convert_layout %y {loop.cluster = 1 : i32, loop.stage = 2 : i32} : tensor<4xf16, #b> -> tensor<4xf16, #c>
      scf.yield %z : tensor<4xf16, #b>
    } {tt.scheduled_max_stage = 2 : i32}
    tt.return
  }
}
"""


@given(text=st.text(alphabet='%^@#!{}[]()<>:=,-."/;scf.or yield\n01', max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    fold(read_dataflow(text), {})


def test_deep_nesting_is_no_error() -> None:
    depth = 3000
    text = "".join(f"scf.if %{n} {{\n" for n in range(depth)) + "}\n" * depth
    flow = read_dataflow(text)
    assert len(flow.nodes) == depth

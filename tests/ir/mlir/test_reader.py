"""Reading printed MLIR, against Triton's own bindings and on hostile text."""

from __future__ import annotations

import random
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.ir.columns import read_body
from irscope.ir.mlir.reader import MlirModule, Operation, Value, parse_mlir
from irscope.ir.mlir.tokens import attribute_spans
from tests.analysis.snapshots import DUMPS, distinct_modules, snapshots
from tests.work import LINES

LOOP = """#blocked = #ttg.blocked<{sizePerThread = [1], order = [0]}>
#loc = loc("k.py":1:1)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%n: i32 {tt.divisibility = 16 : i32} loc("n"(#loc)), %p: !tt.ptr<f32> loc("p"(#loc))) {
    %c0 = arith.constant 0 : i32 loc(#loc)
    %acc:2 = scf.for %i = %c0 to %n step %c0 iter_args(%a = %c0, %b = %n) -> (i32, i32)  : i32 {
      %1 = "tt.reduce"(%t) <{axis = 1 : i32}> ({
      ^bb0(%x: f32 loc(unknown), %y: f32 loc(unknown)):
        %s = arith.addf %x, %y : f32 loc(#loc2)
        tt.reduce.return %s : f32 loc(#loc2)
      }) : (tensor<4x4xf32, #blocked>) -> tensor<4xf32> loc(callsite(#loc2 at #loc))
      scf.yield %a, %b : i32, i32 loc(#loc)
    } {tt.num_stages = 2 : i32} loc(#loc3)
    %2 = scf.if %c0 -> (i32) {
      scf.yield %acc#1 : i32 loc(#loc)
    } else {
      scf.yield %acc#0 : i32 loc(#loc)
    } loc(#loc)
    cf.switch %2 : i32, [
      default: ^bb1,
      0: ^bb2(%2 : i32)
    ] loc(#loc)
  ^bb1:  // pred: ^bb0
    tt.return loc(#loc)
  ^bb2(%z: i32):  // pred: ^bb0
    "unknown.op"(%z) {text = "a } { \\" brace"} : (i32) -> ()
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("k.py":3:4)
"""


def one(module: MlirModule, name: str) -> Operation:
    (operation,) = [operation for operation in module.walk() if operation.name == name]
    return operation


def readers(module: MlirModule, value: Value) -> tuple[Operation, ...]:
    """The operations that read a value."""
    return tuple(operation for operation in module.walk() if value in operation.operands)


def attributes(text: str) -> str:
    """The attribute dictionaries of an operation."""
    return " ".join(text[start:end] for start, end in attribute_spans(text))


def test_loops_and_their_values() -> None:
    module = parse_mlir(LOOP)
    loop = one(module, "scf.for")
    assert [value.name for value in loop.results] == ["%acc#0", "%acc#1"]
    assert [value.name for value in loop.operands] == ["%c0", "%n", "%c0", "%c0", "%n"]
    assert [(argument.name, value.name) for argument, value in loop.carried] == [("%a", "%c0"), ("%b", "%n")]
    (block,) = loop.regions[0].blocks
    assert [value.name for value in block.arguments] == ["%i", "%a", "%b"]
    assert [operation.name for operation in block.operations] == ["tt.reduce", "scf.yield"]
    assert loop.lines == (6, 13)
    assert loop.location == "#loc3"


def test_blocks_regions_and_successors() -> None:
    module = parse_mlir(LOOP)
    function = one(module, "tt.func")
    assert [block.label for block in function.regions[0].blocks] == ["", "^bb1", "^bb2"]
    assert [value.name for value in function.regions[0].blocks[0].arguments] == ["%n", "%p"]
    assert [value.name for value in function.regions[0].blocks[2].arguments] == ["%z"]
    assert len(one(module, "scf.if").regions) == 2
    switch = one(module, "cf.switch")
    assert switch.successors == ("^bb1", "^bb2")
    assert switch.lines == (19, 20, 21, 22)
    reduce = one(module, "tt.reduce")
    assert [value.name for value in reduce.regions[0].blocks[0].arguments] == ["%x", "%y"]
    assert reduce.location == "callsite(#loc2 at #loc)"


def test_definitions_and_uses() -> None:
    module = parse_mlir(LOOP)
    constant = one(module, "arith.constant")
    (zero,) = constant.results
    assert module.definition(zero) is constant
    assert [operation.name for operation in readers(module, zero)] == ["scf.for", "scf.if"]
    first, second = one(module, "scf.for").results
    assert [operation.first_line for operation in readers(module, first)] == [17]
    assert [operation.first_line for operation in readers(module, second)] == [15]
    addition = one(module, "arith.addf")
    assert module.definition(addition.operands[0]) is one(module, "tt.reduce")


def test_attributes_types_and_aliases() -> None:
    module = parse_mlir(LOOP)
    assert attributes(one(module, "builtin.module").text) == '{"ttg.num-warps" = 4 : i32}'
    assert attributes(one(module, "tt.reduce").text) == "<{axis = 1 : i32}>"
    assert one(module, "arith.addf").types == "f32"
    assert module.aliases["#loc"] == 'loc("k.py":1:1)'
    resolved = module.resolve("tensor<4xf32, #blocked>")
    assert resolved == "tensor<4xf32, #ttg.blocked<{sizePerThread = [1], order = [0]}>>"
    assert attributes(one(module, "unknown.op").text) == '{text = "a } { \\" brace"}'


@pytest.mark.parametrize("written", ["<tensor<32xf32>>", "!tt.ptr<tensor<32xf32>>"])
def test_a_block_pointer_is_one_however_its_type_is_written(written: str) -> None:
    made = f"    %1 = tt.make_tensor_ptr %x, [%n], [%n], [%o] {{order = array<i32: 0>}} : {written}\n"
    module = parse_mlir("module {\n  tt.func @f(%x: !tt.ptr<f32>, %n: i64, %o: i32) {\n" + made + "  }\n}\n")
    (kind,) = one(module, "tt.make_tensor_ptr").result_types
    assert kind.form == "pointer"
    assert kind.element is not None
    assert kind.element.shape == (32,)


def test_same_names_in_regions_side_by_side_are_different_values() -> None:
    region = '    "r.op"(%a) ({\n    ^bb0(%x: i32):\n      "r.yield"(%x) : (i32) -> ()\n    }) : (i32) -> ()\n'
    module = parse_mlir("module {\n  func.func @f(%a: i32) {\n" + region * 2 + "  }\n}\n")
    first, second = [operation for operation in module.walk() if operation.name == "r.yield"]
    assert first.operands[0].name == second.operands[0].name
    assert first.operands[0] != second.operands[0]
    assert readers(module, first.operands[0]) == (first,)


def test_ten_thousand_lines_take_linear_work() -> None:
    (text,) = [module for _, module in snapshots("softmax.cuda90")[-1:]]
    body = text[text.index("    %") : text.rindex("    llvm.return")]
    times = 10_000 // body.count("\n") + 1
    assert sum(1 for _ in parse_mlir(text.replace(body, body * times)).walk()) > 9_000
    assert LINES.is_linear(lambda times: parse_mlir(text.replace(body, body * times)), 500)


@given(st.text(alphabet=' \n\t%#^@!{}()[]<>=:,."\\a0_-/lo', max_size=400))
def test_no_text_makes_it_raise(text: str) -> None:
    walk(parse_mlir(text))


@given(st.randoms(use_true_random=False))
def test_no_cut_or_altered_module_makes_it_raise(rng: random.Random) -> None:
    text = rng.choice(distinct_modules(30_000))
    start, end = sorted(rng.sample(range(len(text)), 2))
    pieces = [text[start:end], text[:start] + text[end:], text[:start] + text[start:end] * 2 + text[end:]]
    walk(parse_mlir(rng.choice(pieces)))


def test_deep_nesting_is_read() -> None:
    module = parse_mlir("module {\n" * 5000 + "}\n" * 4000)
    assert sum(1 for _ in module.walk()) == 5000


def walk(module: MlirModule) -> None:
    for operation in module.walk():
        assert list(operation.lines) == sorted(set(operation.lines))
        _ = attributes(operation.text), operation.types, operation.parameters


@pytest.mark.triton
@pytest.mark.parametrize("name", DUMPS)
def test_operations_are_those_that_triton_reads(name: str, tmp_path: Path) -> None:
    if not metadata.version("triton").startswith("3.9"):
        pytest.skip("the samples are of Triton 3.9, whose dialects other versions may not read")
    read = 0
    for title, text in dict.fromkeys(snapshots(name)):
        if len(text) > 400_000:
            continue
        ours = Counter(
            (operation.name, len(operation.operands), len(operation.results)) for operation in parse_mlir(text).walk()
        )
        theirs = operations_of_triton(text, tmp_path / "module.mlir")
        # Printing leaves out terminators without operands, which parsing puts back.
        left_out = Counter({key: count for key, count in (theirs - ours).items() if key == ("scf.yield", 0, 0)})
        assert ours == theirs - left_out, title
        read += 1
    assert read > 20


def operations_of_triton(text: str, path: Path) -> Counter[tuple[str, int, int]]:
    from triton._C.libtriton import amd, ir, nvidia

    path.write_text(text, "utf-8")
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    found: Counter[tuple[str, int, int]] = Counter()
    module.walk(
        lambda operation: found.update(
            [(operation.get_name(), operation.get_num_operands(), operation.get_num_results())]
        )
    )
    return found


SCOPES = """module {
  tt.func public @k(%a: i32, %b: i32) {
    %0 = arith.addi %a, %b : i32
    scf.if %b {
      %x = arith.addi %0, %a : i32
      "use.one"(%x) : (i32) -> ()
    } else {
      %x = arith.muli %0, %b : i32
      "use.two"(%x) : (i32) -> ()
    }
    scf.execute_region {
      cf.br ^bb1(%0 : i32)
    ^bb1(%y: i32):
      scf.execute_region {
        cf.br ^bb1
      ^bb1:
        "use.inner"() [^bb1] : () -> ()
      }
      "use.three"(%y, %later) [^bb1] : (i32, i32) -> ()
    }
    scf.execute_region {
      cf.br ^bb1(%a : i32)
    ^bb1(%y: i32):
      "use.four"(%y) [^bb1] : (i32) -> ()
    }
    %later = arith.constant 1 : i32
    ttg.warp_specialize(%0, %a)
    default {
      "use.five"(%0) : (i32) -> ()
      ttg.warp_yield
    }
    partition0(%b: i32, %0: i32) num_warps(4) {
      "use.six"(%b, %0, %ahead) : (i32, i32, i32) -> ()
      %ahead = arith.constant 2 : i32
    } : (i32, i32) -> ()
    "use.seven"(%b, %0, %x) : (i32, i32, i32) -> ()
    tt.return
  }
  module @inner {
    tt.func private @k(%a: i32) {
      "use.eight"(%a, %0, %0) : (i32, i32, i32) -> ()
      %0 = arith.constant 3 : i32
    }
  }
}
"""


def test_names_mean_what_their_scope_says() -> None:
    module = parse_mlir(SCOPES)

    def makers(name: str) -> list[str]:
        found = [module.definition(value) for value in one(module, name).operands]
        return [f"{maker.name} {maker.first_line}" if maker else "nothing" for maker in found]

    assert makers("use.one") == ["arith.addi 5"]
    assert makers("use.two") == ["arith.muli 8"]
    assert makers("use.three") == ["scf.execute_region 11", "arith.constant 26"]
    assert makers("use.four") == ["scf.execute_region 21"]
    assert makers("use.five") == ["arith.addi 3"]
    assert makers("use.six") == ["ttg.warp_specialize 27", "ttg.warp_specialize 27", "arith.constant 34"]
    assert makers("use.seven") == ["tt.func 2", "arith.addi 3", "nothing"]
    assert makers("use.eight") == ["tt.func 40", "arith.constant 42", "arith.constant 42"]
    outer = one(module, "use.five").operands[0]
    assert [operation.name for operation in readers(module, outer)] == [
        "arith.addi", "arith.muli", "cf.br", "ttg.warp_specialize", "use.five", "use.seven",
    ]  # fmt: skip


def test_labels_are_their_region_s_own() -> None:
    body = read_body(SCOPES, "mlir", frozenset({"locations"}))
    labels = {
        shape.name: body.definers[value]
        for shape, used in zip(body.shapes, body.uses, strict=True)
        for value in used
        if body.names[value] == "^bb1" and shape.name.startswith("use.")
    }
    lines = {name: body.numbers[line] for name, line in labels.items()}
    assert lines == {"use.inner": 16, "use.three": 13, "use.four": 23}

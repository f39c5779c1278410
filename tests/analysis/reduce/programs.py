"""Programs in MLIR's generic form, and whether a program is well-formed: an oracle for what the steps make of them."""

from __future__ import annotations

from irscope.analysis.reduce.model import EditableProgram
from irscope.ir.mlir.editable import Op, OpBlock

LOOP = """#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%arg0: !tt.ptr<f16>, %arg1: i32):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16, #blocked>}> : () -> tensor<64xf16, #blocked>
    %3 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32, #blocked>
    %4 = "tt.splat"(%arg0) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>, #blocked>
    %5 = "tt.addptr"(%4, %3) : (tensor<64x!tt.ptr<f16>, #blocked>, tensor<64xi32, #blocked>) -> tensor<64x!tt.ptr<f16>, #blocked>
    %6:2 = "scf.for"(%0, %arg1, %1, %2, %5) ({
    ^bb0(%arg2: i32, %arg3: tensor<64xf16, #blocked>, %arg4: tensor<64x!tt.ptr<f16>, #blocked>):
      %9 = "tt.load"(%arg4) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> {note} : (tensor<64x!tt.ptr<f16>, #blocked>) -> tensor<64xf16, #blocked>
      %10 = "arith.addf"(%arg3, %9) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf16, #blocked>, tensor<64xf16, #blocked>) -> tensor<64xf16, #blocked>
      %11 = "arith.cmpi"(%arg2, %arg1) <{predicate = 2 : i64}> : (i32, i32) -> i1
      %12 = "scf.if"(%11) ({
        %13 = "arith.mulf"(%10, %10) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf16, #blocked>, tensor<64xf16, #blocked>) -> tensor<64xf16, #blocked>
        "scf.yield"(%13) : (tensor<64xf16, #blocked>) -> ()
      }, {
        "scf.yield"(%10) : (tensor<64xf16, #blocked>) -> ()
      }) : (i1) -> tensor<64xf16, #blocked>
      "scf.yield"(%12, %arg4) : (tensor<64xf16, #blocked>, tensor<64x!tt.ptr<f16>, #blocked>) -> ()
    }) : (i32, i32, i32, tensor<64xf16, #blocked>, tensor<64x!tt.ptr<f16>, #blocked>) -> (tensor<64xf16, #blocked>, tensor<64x!tt.ptr<f16>, #blocked>)
    %7 = "ttg.convert_layout"(%6#0) : (tensor<64xf16, #blocked>) -> tensor<64xf16, #blocked1>
    %8 = "ttg.convert_layout"(%6#1) : (tensor<64x!tt.ptr<f16>, #blocked>) -> tensor<64x!tt.ptr<f16>, #blocked1>
    "tt.store"(%8, %7) : (tensor<64x!tt.ptr<f16>, #blocked1>, tensor<64xf16, #blocked1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {"ttg.num-warps" = 4 : i32} : () -> ()
"""  # noqa: E501

BRANCHES = """"builtin.module"() ({
  "tt.func"() <{function_type = (i32, i1) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%arg0: i32, %arg1: i1):
    %0 = "arith.addi"(%arg0, %arg0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    "cf.cond_br"(%arg1, %0, %arg0, %0)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 2, 1>}> : (i1, i32, i32, i32) -> ()
  ^bb1(%1: i32, %2: i32):
    %3 = "tt.call"(%1, %2) <{callee = @f}> : (i32, i32) -> i32
    "cf.br"(%3)[^bb2] : (i32) -> ()
  ^bb2(%4: i32):
    "tt.print"(%4) <{hex = false, isSigned = array<i32: 1>, prefix = ": "}> : (i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
  "tt.func"() <{function_type = (i32, i32) -> i32, sym_name = "f", sym_visibility = "private"}> ({
  ^bb0(%arg0: i32, %arg1: i32):
    %0 = "arith.muli"(%arg0, %arg0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    "tt.return"(%0) : (i32) -> ()
  }) {noinline = true} : () -> ()
}) : () -> ()
"""  # noqa: E501

WHILE = """"builtin.module"() ({
  "tt.func"() <{function_type = (i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%arg0: i32):
    %0:2 = "scf.while"(%arg0, %arg0) ({
    ^bb0(%arg1: i32, %arg2: i32):
      %1 = "arith.cmpi"(%arg1, %arg2) <{predicate = 2 : i64}> : (i32, i32) -> i1
      "scf.condition"(%1, %arg1, %arg2) : (i1, i32, i32) -> ()
    }, {
    ^bb0(%arg1: i32, %arg2: i32):
      %1 = "arith.addi"(%arg1, %arg2) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      "scf.yield"(%1, %arg2) : (i32, i32) -> ()
    }) : (i32, i32) -> (i32, i32)
    "tt.print"(%0#0, %0#1) <{hex = false, isSigned = array<i32: 1, 1>, prefix = ": "}> : (i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def faults_of(program: EditableProgram) -> list[str]:
    """What is wrong with a program: values that are not defined where they are used, and blocks without an end."""
    found: list[str] = []
    for operation in program.operations:
        _check(operation, set(), found, program)
    return found


def _check(operation: Op, known: set[int], found: list[str], program: EditableProgram) -> None:
    for value in operation.operands:
        if value not in known:
            found.append(f"{operation.name} uses {value} before it is defined")
    if missing := [value for value in operation.results if value not in program.types]:
        found.append(f"{operation.name} has results without a type: {missing}")
    for region in operation.regions:
        keys = [block.key for block in region]
        # In these programs a block's values are seen in all that follow it.
        inner = set() if operation.is_function else set(known)
        for block in region:
            inner |= set(block.arguments)
            for one in block.operations:
                _check(one, inner, found, program)
                inner |= set(one.results)
                if one.successors:
                    _check_branch(one, block, region, found)
                found += [f"{one.name} branches away" for key in one.successors if key not in keys]


def _check_branch(branch: Op, block: OpBlock, region: list[OpBlock], found: list[str]) -> None:
    if branch is not block.operations[-1]:
        found.append(f"{branch.name} is not the last of its block")
    taken = sum(len(one.arguments) for key in branch.successors for one in region if one.key == key)
    if len(branch.operands) != taken + (branch.name == "cf.cond_br"):
        found.append(f"{branch.name} passes {len(branch.operands)} values for {taken}")

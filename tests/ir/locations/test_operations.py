"""Texts whose locations are the operations' own: nothing else changes, every operation has its own, callers stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.ir.locations.model import Frame
from irscope.ir.locations.operations import read_operation_lines, with_operation_locations
from irscope.ir.locations.stages import capture_locations, read_locations
from irscope.ir.locations.strip import strip_locations
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Target
from irscope.model.evidence import OperationLines

DATA = Path(__file__).parents[2] / "data" / "locations"
NAMES = sorted(str(path.relative_to(DATA)) for path in DATA.glob("3.*/*.ttgir"))

# Every form that a location has, and what looks like one.
FORMS = """\
#blocked = #ttg.blocked<{sizePerThread = [1]}>
#loc = loc("k.py":1:0)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("p"(#loc)), %n: i32 loc("n"(#loc))) {
    %c = arith.constant {why = "loc(#loc1) and \\"loc(\\""} 0 : i32 loc(#loc1)
    %v = arith.constant dense<0.0> : tensor<4xf32, #blocked> loc("v"(#loc2))
    %0:2 = tt.elementwise_inline_asm "mov $0, $1; // loc(#loc3)" {constraints = "=r,r"} %v : a -> a, a loc(#loc3)
    %1 = tt.call @helper(%v) : (tensor<4xf32>) -> f32 loc(callsite(#loc3 at #loc4))
    %2 = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc(callsite(#loc1 at #loc4)), %b: f32 loc("b"(#loc))):
      %3 = arith.addf %a, %b : f32 loc(fused<#ttg.some<[1, 2]>>[#loc5, #loc1])
      tt.reduce.return %3 : f32 loc(fused["k.py":9:1, "k.py":9:2])
    }) : (tensor<4xf32>) -> f32 loc(unknown)
    cf.switch %c : i32, [
      default: ^bb1,
      7: ^bb2(%c : i32)
    ] loc("k.py":12:3 to :30)
  ^bb1:
    tt.assert %2, "loc(#loc5)" : f32 loc(callsite("w"(#loc1) at "k.py":3:4))
    cf.br ^bb2(%c : i32) loc("k(\\"1":13:1)
  ^bb2(%i: i32 loc("k.py":14:1)):
    tt.return loc(#loc)
  } loc(#loc)
  tt.func private @helper(%x: tensor<4xf32> loc("x"(#loc6))) -> f32 attributes {noinline = true} {
    %0 = tt.something : f32 loc(callsite(callsite("k.py":1:1 at "k.py":2:2) at "k.py":3:3))
    tt.return %0 : f32 loc(#loc6)
  } loc(#loc6)
} loc(#loc)
#loc1 = loc("k.py":2:1)
#loc2 = loc("k.py":3:1)
#loc3 = loc("lib.py":4:1)
#loc4 = loc("k.py":5:1)
#loc5 = loc(callsite(#loc3 at #loc4))
#loc6 = loc("named"("h.py":7:1))"""


@pytest.mark.parametrize("name", [*NAMES, "FORMS"])
def test_every_operation_gets_its_own_place_and_keeps_its_callers(name: str) -> None:
    text = FORMS if name == "FORMS" else (DATA / name).read_text()
    again = with_operation_locations(text)
    # The definitions of locations stand first now: all other lines are as they were, without their locations.
    assert strip_locations(again, "mlir") == strip_locations(text, "mlir")
    moved = sum(line.startswith("#loc") for line in text.split("\n"))
    assert again.split("\n")[:moved] == [line for line in text.split("\n") if line.startswith("#loc")]
    before, after = read_locations(text, "mlir"), read_locations(again, "mlir")
    ours, theirs = list(parse_mlir(text).walk()), list(parse_mlir(again).walk())
    assert [operation.name for operation in ours] == [operation.name for operation in theirs]
    for operation, other in zip(ours, theirs, strict=True):
        chain = after.chain_at(other.first_line)
        old = before.chain_at(operation.first_line)
        if operation.name == "tt.assert":
            assert chain == old
            continue
        assert chain[0] == Frame("ttgir", operation.first_line * 1000, 0, name=chain[0].name)
        assert chain[1:] == old[1:] or "fused" in operation.location, operation.text


def test_the_arguments_of_blocks_have_their_operations_place() -> None:
    again = with_operation_locations(FORMS).split("\n")
    function = next(line for line in again if "@k(" in line)
    assert function.count('"ttgir":4000:0') == 2
    reduction = next(line for line in again if "^bb0(" in line)
    assert reduction.count('"ttgir":9000:0') == 2
    assert "callsite" in reduction


def test_strings_stay_as_they_are() -> None:
    again = with_operation_locations(FORMS)
    for string in ('"loc(#loc1) and \\"loc(\\""', '"mov $0, $1; // loc(#loc3)"', '"loc(#loc5)"'):
        assert string in again


def test_an_operation_without_a_location_gets_one() -> None:
    again = with_operation_locations("module {\n  tt.func @k() {\n    tt.return\n  }\n}")
    assert again == (
        'module {\n  tt.func @k() {\n    tt.return loc("ttgir":3000:0)\n  } loc("ttgir":2000:0)\n} loc("ttgir":1000:0)'
    )


@pytest.mark.parametrize("text", ["", "loc(", "#loc = loc(#loc)\nmodule {\n} loc(#loc)", "} loc(fused[) }", 'x loc("'])
def test_what_is_no_module_is_passed_over(text: str) -> None:
    assert isinstance(with_operation_locations(text), str)


def test_lines_that_llvm_counts_on_within_assembly_are_the_statements() -> None:
    ptx = """\
.visible .entry k()
{
	.loc	1 12000 0
	add.s32 	%r1, %r2, %r3;
	.loc	1 13000 0
	// begin inline asm
	{
	.loc	1 13001 0
	mov.u32 %r1, %r2;
	.loc	1 13002 0
	mov.u32 %r2, %r1;
	}
	// end inline asm
	.loc	1 0 0
	bra.uni 	$L__BB0_2;
	.loc	2 40 1
	call.uni 	assertfail;
	ret;
}
	.file	1 "/kernels/ttgir"
	.file	2 "k.py"
"""
    operations = read_operation_lines(ptx, "ptx")
    named = {line.split()[0]: at for line, at in zip(ptx.split("\n"), operations, strict=False) if line[-1:] == ";"}
    assert named == {"add.s32": 12, "mov.u32": 13, "bra.uni": 0, "call.uni": 0, "ret;": 0}


def test_lines_of_assembly_have_their_operations_places_where_these_are_known() -> None:
    sass = '//## File "k.py", line 9\n0000  -  LDG R1\n0010  -  IADD R2\n0020  -  STG R2'
    artifacts = (Artifact("ttgir", FORMS), Artifact("sass", sass))
    capture = Capture(Launch(Kernel("k")), Target("cuda", "90", 32), artifacts=artifacts)
    stated = capture_locations(capture, sass, "sass")
    assert stated == read_locations(sass, "sass")
    capture = replace(capture, operations=(OperationLines.of("sass", [0, 6, 0, 8]),))
    placed = capture_locations(capture, sass, "sass")
    assert [placed.chain_at(line) for line in range(1, 5)] == [
        (),
        (Frame("k.py", 3, 1, name="v"),),
        (Frame("k.py", 9, 0),),
        (Frame("lib.py", 4, 1), Frame("k.py", 5, 1)),
    ]
    assert capture_locations(replace(capture, operations=(OperationLines("sass", reason="?"),)), sass, "sass") == stated

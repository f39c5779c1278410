"""Each step of a reduction on texts, and that whatever it is told to shrink leaves a well-formed program."""

from __future__ import annotations

import random

import pytest

from irscope.analysis.reduce.model import Edit, EditableProgram, ReductionStep, read_program
from irscope.analysis.reduce.steps import STEPS
from irscope.errors import ParseError
from irscope.ir.mlir.editable import write_editable
from tests.analysis.reduce.programs import BRANCHES, LOOP, WHILE, faults_of

STEP = {one.name: one for one in STEPS}
TEXTS = {"loop": LOOP, "branches": BRANCHES, "while": WHILE}


def shrunk(text: str, step: ReductionStep[EditableProgram], chosen: list[Edit] | None = None) -> str:
    program = read_program(text)
    step.apply(program, frozenset(step.edits(program) if chosen is None else chosen))
    assert faults_of(program) == []
    return write_editable(program)


def names(text: str) -> list[str]:
    return [one.name for one in read_program(text).walk()]


def only(text: str, step: ReductionStep[EditableProgram], name: str) -> str:
    """The text after a step on the operations of a name."""
    program = read_program(text)
    keys = {one.key for one in program.walk() if one.name == name}
    chosen = [edit for edit in step.edits(program) if (edit[0] if isinstance(edit, tuple) else edit) in keys]
    assert chosen
    return shrunk(text, step, chosen)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_program_is_read_and_written(text: str) -> None:
    program = read_program(text)
    assert faults_of(program) == []
    written = write_editable(program)
    assert write_editable(read_program(written)) == written
    assert names(written) == names(text)
    assert write_editable(program.copy()) == written


def test_the_custom_form_is_refused() -> None:
    with pytest.raises(ParseError, match="generic form"):
        read_program("module {\n  tt.return\n}\n")


def test_a_new_argument_stands_in_for_a_result() -> None:
    made = only(LOOP, STEP["operations"], "scf.for")
    assert "scf.for" not in made
    assert "(!tt.ptr<f16>, i32, tensor<64xf16, #blocked>, tensor<64x!tt.ptr<f16>, #blocked>) -> ()" in made
    assert made.count("tt.divisibility") == 1


def test_an_operand_stands_in_for_a_result() -> None:
    made = only(LOOP, STEP["operations by operands"], "arith.addf")
    assert "arith.addf" not in made
    # %arg3 of the loop
    assert '"arith.mulf"(%11, %11)' in made
    assert "^bb2(%10: i32, %11: tensor<64xf16, #blocked>" in made


def test_a_constant_stands_in_for_a_result() -> None:
    made = only(LOOP, STEP["operations by constants"], "tt.load")
    assert "tt.load" not in made
    assert names(made).count("arith.constant") == 4


def test_what_goes_together_leaves_nothing_behind() -> None:
    made = shrunk(LOOP, STEP["operations"])
    assert names(made) == ["builtin.module"]
    program = read_program(LOOP)
    chosen = [one.key for one in program.walk() if one.name in ("tt.splat", "tt.addptr", "scf.for")]
    # The splat is used by what goes too: it needs no argument.
    assert "(!tt.ptr<f16>, i32, tensor<64xf16, #blocked>, tensor<64x!tt.ptr<f16>, #blocked>) -> ()" in shrunk(
        LOOP, STEP["operations"], [*chosen]
    )


def test_a_function_goes_with_its_calls() -> None:
    program = read_program(BRANCHES)
    callee = next(one.key for one in program.walk() if one.properties.get("sym_name") == '"f"')
    made = shrunk(BRANCHES, STEP["functions"], [callee])
    assert "tt.call" not in made
    assert names(made).count("tt.func") == 1


def test_a_loop_makes_one_turn() -> None:
    made = only(LOOP, STEP["regions"], "scf.for")
    assert "scf.for" not in made
    assert "arith.mulf" in made
    # The first value of the accumulator is the constant.
    assert '"arith.addf"(%4, %8)' in made


@pytest.mark.parametrize(("side", "has_mulf"), [(0, True), (1, False)])
def test_a_condition_takes_a_side(side: int, has_mulf: bool) -> None:
    program = read_program(LOOP)
    key = next(one.key for one in program.walk() if one.name == "scf.if")
    made = shrunk(LOOP, STEP["regions"], [(key, side)])
    assert "scf.if" not in made
    assert ("arith.mulf" in made) == has_mulf


def test_a_while_loop_makes_one_turn() -> None:
    made = shrunk(WHILE, STEP["regions"])
    assert names(made) == ["builtin.module", "tt.func", "arith.cmpi", "arith.addi", "tt.print", "tt.return"]


def test_loops_get_constant_bounds() -> None:
    made = shrunk(LOOP, STEP["loop bounds"])
    assert '"scf.for"(%8, %9, %9, %4, %7)' in made
    assert STEP["loop bounds"].edits(read_program(made)) == []


@pytest.mark.parametrize("index", [0, 1])
def test_a_loop_carries_less(index: int) -> None:
    program = read_program(LOOP)
    key = next(one.key for one in program.walk() if one.name == "scf.for")
    made = shrunk(LOOP, STEP["carried values"], [(key, "result", index)])
    loop = next(one for one in read_program(made).walk() if one.name == "scf.for")
    assert (len(loop.results), len(loop.operands), len(loop.regions[0][0].arguments)) == (1, 4, 2)


def test_a_while_loop_carries_nothing() -> None:
    made = shrunk(WHILE, STEP["carried values"])
    loop = next(one for one in read_program(made).walk() if one.name == "scf.while")
    assert [*loop.results, *loop.operands, *(one for block in loop.blocks for one in block.arguments)] == []


def test_optional_operands_go() -> None:
    without = '"tt.load"(%arg4) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> {note} : ('
    masked = without.replace("(%arg4)", "(%arg4, %arg3)").replace("1, 0, 0", "1, 1, 0") + "tensor<64xf16, #blocked>, "
    masked = LOOP.replace(without, masked)
    program = read_program(masked)
    key = next(one.key for one in program.walk() if one.name == "tt.load")
    made = shrunk(masked, STEP["optional operands"], [(key, 1)])
    assert "operandSegmentSizes = array<i32: 1, 0, 0>" in made


def test_arguments_go_and_merge() -> None:
    two = 'sym_name = "k"}> ({\n  ^bb0(%0: i32, %1: i32, %2: f32):\n    "tt.print"(%0, %1) : (i32, i32) -> ()\n'
    text = f'"builtin.module"() ({{\n  "tt.func"() <{{function_type = (i32, i32, f32) -> (), {two}    "tt.return"() : () -> ()\n  }}) : () -> ()\n}}) : () -> ()\n'  # noqa: E501
    assert "^bb0(%0: i32, %1: i32):" in shrunk(text, STEP["arguments"]).replace("bb1", "bb0")
    merged = shrunk(text, STEP["arguments of one type"])
    assert '"tt.print"(%0, %0)' in merged
    assert "function_type = (i32, f32) -> ()" in merged


def test_a_branch_takes_a_side() -> None:
    program = read_program(BRANCHES)
    key = next(one.key for one in program.walk() if one.name == "cf.cond_br")
    first, second = (shrunk(BRANCHES, STEP["branches"], [(key, side)]) for side in (0, 1))
    assert ("tt.call" in first, "tt.call" in second) == (True, False)
    assert "cf.br" not in first + second


def test_a_function_is_one_block() -> None:
    program = read_program(BRANCHES)
    function = program.functions[0]
    for block, name in zip(function.regions[0], ("arith.addi", "tt.call", "tt.print"), strict=True):
        made = shrunk(BRANCHES, STEP["blocks"], [(function.key, block.key)])
        assert names(made)[2:4] == [name, "tt.return"]


def test_branches_pass_nothing() -> None:
    made = shrunk(BRANCHES, STEP["block arguments"])
    assert "operandSegmentSizes = array<i32: 1, 0, 0>" in made


def test_attributes_and_properties_go() -> None:
    made = shrunk(LOOP, STEP["attributes"])
    assert not [word for word in ("tt.divisibility", "note", "noinline", "num-warps") if word in made]
    made = shrunk(LOOP, STEP["properties"])
    assert "fastmath" not in made
    assert "sym_name" in made


def test_extents_get_smaller_everywhere() -> None:
    made = shrunk(LOOP, STEP["extents"], [(64, 16), (64, 32)])
    assert "64x" not in made
    assert "end = 16 : i32" in made
    assert "tensor<16xf16, #blocked>" in made


def test_elements_are_f32() -> None:
    made = shrunk(LOOP, STEP["element types"])
    assert "f16" not in made
    assert "!tt.ptr<f32>" in made


def test_one_layout_stands_in_for_another() -> None:
    made = shrunk(LOOP, STEP["layouts"], [("#blocked1", "#blocked")])
    assert "convert_layout" not in made
    assert "#blocked1" not in made


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_choice_leaves_a_well_formed_program(text: str) -> None:
    chance = random.Random(1)
    for step in STEPS:
        program = read_program(text)
        for _ in range(4):
            edits = [*step.edits(program)]
            chosen = frozenset(chance.sample(edits, chance.randint(0, len(edits))))
            made: EditableProgram = program.copy()
            step.apply(made, chosen)
            assert faults_of(made) == [], (step.name, chosen)
            assert write_editable(read_program(write_editable(made))) == write_editable(made)
        # The program itself is left alone.
        assert write_editable(program) == write_editable(read_program(text))

"""Pictures of control flow: every block, jump and loop is there, and labels are safe whatever they hold."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from irscope.analysis.flow.control_flow_fold import fold_flows
from irscope.ir.asm.control_flow import BasicBlock, ControlFlow, Jump, Loop, read_control_flow
from irscope.ir.asm.instructions import Instruction
from irscope.render.dot.blocks import ranges, render_blocks
from tests.analysis.recorded import stored
from tests.render.dot.test_dataflow import HOSTILE, groups, needs_dot, svg_of


def words(svg: ElementTree.Element) -> str:
    return " ".join(svg.itertext())


@needs_dot
def test_the_svg_has_every_block_jump_and_loop() -> None:
    flows = read_control_flow(stored("product", "cuda:90").ptx, "ptx")
    svg = svg_of(render_blocks(flows, "ptx", title="product"))
    assert len(groups(svg, "node")) == sum(len(flow.blocks) for flow in flows)
    assert len(groups(svg, "edge")) == sum(len(flow.jumps) for flow in flows)
    assert len(groups(svg, "cluster")) == len(flows) + sum(len(flow.loops) for flow in flows)
    assert "wgmma" in words(svg)
    assert "next iteration" in words(svg)


@needs_dot
def test_calls_ends_and_unknown_places_are_named() -> None:
    code = (Instruction("mov", ("R1", "R2"), line=1),)
    flow = ControlFlow(
        "k",
        (BasicBlock(0, (), code, calls=("helper", "")), BasicBlock(1, ("L",), code, "exit", blocks=3, is_loop=True)),
        (Jump(0, 1, "falls"), Jump(0, -1, "jumps", "@P0"), Jump(0, 1, "calls")),
    )
    svg = svg_of(render_blocks([flow], "sass", title="k", lines={1: "7"}))
    for shown in ("calls helper", "calls what a register holds", "the program ends", "unknown", "loop of 3 blocks"):
        assert shown in words(svg)
    assert "line 7" in words(svg)
    assert "mov R1, R2" in words(svg_of(render_blocks([flow], "sass", title="k", register="R2")))


@needs_dot
@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_names_are_drawn_as_text(word: str) -> None:
    code = (Instruction(word, (word,), word, 1),)
    flow = ControlFlow(
        word,
        (BasicBlock(0, (word,), code, calls=(word,)), BasicBlock(1, (), code)),
        (Jump(0, 1, "jumps", word), Jump(1, 0, "jumps", word, True)),
        (Loop(0, frozenset({0, 1})),),
    )
    svg = svg_of(render_blocks([flow], "sass", title=word, notes=[word], lines={1: word}, register=word))
    assert len(groups(svg, "node")) == 2
    assert not list(svg.iter("{http://www.w3.org/2000/svg}script"))


@needs_dot
@pytest.mark.slow
def test_thousands_of_blocks_are_folded_to_what_can_be_drawn() -> None:
    body = "".join(f" @%p{n} bra $L_{(n * 7) % 2000};\n$L_{n}:\n add.s32 %r1, %r1, 1;\n" for n in range(2000))
    folded = fold_flows(read_control_flow(f".entry k()\n{{\n{body} ret;\n}}\n", "ptx"))
    svg = svg_of(render_blocks(folded.flows, "ptx", title="large", notes=[folded.note]))
    assert 1 <= len(groups(svg, "node")) <= 120
    assert "basic blocks in" in words(svg)


def test_lines_that_follow_one_another_are_one_range() -> None:
    assert ranges(["27", "23", "28", "29", "helpers.py:4"]) == ["23", "27–29", "helpers.py:4"]
    assert ranges(f"{2 * number}" for number in range(9))[-1] == "…"

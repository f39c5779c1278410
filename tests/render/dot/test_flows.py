"""Pictures of control flow: every block, jump and loop is there, and labels are safe whatever they hold."""

from __future__ import annotations

import os
import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.flow.control_flow_fold import fold_flows
from irscope.analysis.flow.dataflow import Dataflow, Edge, Node, Scope, fold, read_dataflow
from irscope.analysis.passes.effects import PassEffect
from irscope.errors import MissingTool
from irscope.ir.asm.control_flow import BasicBlock, ControlFlow, Jump, Loop, read_control_flow
from irscope.ir.asm.instructions import Instruction
from irscope.model.capture import PassSnapshot
from irscope.render.dot.flows import layout_colors, render_blocks, render_dataflow, render_passes
from irscope.render.dot.graph import Drawing, has_dot, ranges, render_bytes
from tests.analysis.flow.test_dataflow import SCHEDULED
from tests.analysis.recorded import stored

needs_dot = pytest.mark.skipif(not has_dot(), reason="Graphviz is not installed: apt install graphviz")


def picture(text: str) -> tuple[Dataflow, Drawing]:
    folded = fold(read_dataflow(text), {}, 1, 120)
    return folded.flow, render_dataflow(folded.flow, title="k", notes=[folded.note])


def svg_of(drawing: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(render_bytes(drawing, "svg"))


def groups(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [one for one in svg.iter("{http://www.w3.org/2000/svg}g") if one.get("class") == kind]


@needs_dot
def test_the_svg_has_every_node_edge_and_frame() -> None:
    flow, drawing = picture(stored("product", "cuda:90").ttgir)
    svg = svg_of(drawing)
    assert len(groups(svg, "node")) == len(flow.nodes)
    assert len(groups(svg, "edge")) == len(flow.edges)
    titles = " ".join("".join(one.itertext()) for one in groups(svg, "cluster"))
    assert "for %" in titles
    assert "product" in titles


@needs_dot
def test_what_costs_time_stands_out_and_layouts_are_colours() -> None:
    flow, drawing = picture(stored("product", "cuda:90").ttgir)
    source = drawing.source
    for node in flow.nodes:
        line = next(line for line in source.split("\n") if line.strip().startswith(f"n{node.number} "))
        expected = {
            "dot": "penwidth=4",
            "memory": "shape=cylinder",
            "convert": "shape=hexagon",
            "shared": "shape=box3d",
        }
        assert expected.get(node.role, "") in line
    colors = layout_colors(flow)
    assert len({fill for fill, _ in colors.values()}) == len(colors) > 2
    assert "next iteration" in source


@needs_dot
@pytest.mark.parametrize("format_", ["svg", "png", "pdf"])
def test_every_format_is_what_it_says(format_: str) -> None:
    _, drawing = picture(SCHEDULED)
    assert render_bytes(drawing, format_).lstrip()[:5] in (b"<?xml", b"\x89PNG\r", b"%PDF-")


def test_the_source_needs_no_dot(monkeypatch: pytest.MonkeyPatch) -> None:
    _, drawing = picture(SCHEDULED)
    monkeypatch.setenv("PATH", "")
    assert render_bytes(drawing, "gv").startswith(b"digraph")
    with pytest.raises(MissingTool, match="apt install graphviz"):
        render_bytes(drawing, "svg")


HOSTILE = [
    '<script>alert("x")</script>',
    "a\\",
    '"; evil [label="x',
    "<B>",
    "]]>",
    "\x1b[31m",
    "&amp;&",
    "%n" * 500,
    "\\N\\G",
    "<>",
]


@needs_dot
@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_names_are_drawn_as_text(word: str) -> None:
    flow = Dataflow(
        (
            Node(0, word, (word,), 1, 1, word, f"tensor<{word}>"),
            Node(1, "tt.load", (word,), 1, 2, word, word, detail=word),
        ),
        (Edge(0, 1, word, type=word), Edge(1, 0, word, type=word, carried=True)),
        (Scope(0, -1, word, word), Scope(1, 0, "scf.for", word, 1)),
        {word: word},
    )
    svg = svg_of(render_dataflow(flow, title=word, notes=[word], lines={1: word}))
    assert len(groups(svg, "node")) == 2
    assert not list(svg.iter("{http://www.w3.org/2000/svg}script"))


@needs_dot
@pytest.mark.slow
def test_thousands_of_nodes_are_folded_to_what_can_be_drawn() -> None:
    lines = [f"    %{n} = tt.load %{n - 1 - n % 7} : tensor<4x!tt.ptr<f16>, #b{n % 5}>" for n in range(8, 6000)]
    text = "module {\n  tt.func @k(%0: i32) {\n" + "\n".join(lines) + "\n  }\n}\n"
    folded = fold(read_dataflow(text), {})
    svg = svg_of(render_dataflow(folded.flow, title="large", notes=[folded.note]))
    assert 1 <= len(groups(svg, "node")) <= 120
    assert re.search(r"operations and arguments in \d+ nodes", "".join(svg.itertext()))


def snapshot(number: int, **how: object) -> PassEffect:
    plain = PassSnapshot(number, "ttgir" if number > 2 else "ttir", f"pass{number}", 1, changed=False, duration_us=1000)
    return PassEffect(replace(plain, **how), operations=number, by_operation=(("tt.load", 2),))


@needs_dot
def test_the_pipeline_marks_what_changed_and_joins_idle_passes() -> None:
    effects = [
        snapshot(0, changed=True),
        snapshot(1),
        snapshot(2),
        snapshot(3, changed=True),
        snapshot(4, outcome="skipped"),
        snapshot(5, outcome="failed"),
        snapshot(6, changed=None),
    ]
    svg = svg_of(render_passes(effects, title="passes"))
    assert len(groups(svg, "node")) == 6
    assert len(groups(svg, "cluster")) == 2
    texts = "".join(svg.itertext())
    assert "pass1, pass2" in texts
    for mark in ("switched off", "failed", "not compared", "tt.load +2"):
        assert mark in texts


@needs_dot
@pytest.mark.skipif(os.name != "posix", reason="a script stands in for dot")
def test_a_graph_that_dot_finds_no_ranks_for_is_placed_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, drawing = picture(SCHEDULED)
    # As dot 2.43 ends for some graphs of specialised warps.
    script = f"""#!/bin/sh
case "$*" in *newrank=true*) exec {shutil.which("dot")} "$@" ;; esac
cat >"$0.said"; echo 'trouble in init_rank' >&2; exit 1
"""
    (tmp_path / "dot").write_text(script)
    (tmp_path / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert groups(svg_of(drawing), "node")
    assert (tmp_path / "dot.said").read_text() == drawing.source


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
    for shown in ("calls helper", "calls the address in a register", "the program ends", "unknown", "loop of 3 blocks"):
        assert shown in words(svg)
    assert "line 7" in words(svg)
    assert "mov R1, R2" in words(svg_of(render_blocks([flow], "sass", title="k", register="R2")))


@needs_dot
@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_names_are_drawn_as_text_of_blocks(word: str) -> None:
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

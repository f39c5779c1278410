"""Control flow: SASS against nvdisasm's own graph, the others against a plain count, and rare forms."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.flow.control_flow_fold import HARDEST, blocks_around, blocks_on_lines, fold_flows, parts_of
from irscope.errors import UsageError
from irscope.ir.asm.control_flow import UNKNOWN, ControlFlow, read_control_flow
from irscope.model.capture import Capture, StageKind, stage_named
from tests.analysis.recorded import recorded, stored

KINDS = ("functions", "called", "softmax", "attention")


def flows_of(capture: Capture, stage: str) -> tuple[ControlFlow, ...]:
    return read_control_flow(capture.text(stage), stage_named(stage).kind)


# "called":exit0:e -> ".L_x_1":entry:n [style=solid];
_EDGE = re.compile(r'^"(?P<source>[^"]+)":\w+:\w -> "(?P<target>[^"]+)":', re.MULTILINE)
# "BB0"
# [label="{<entry>\ \ EXIT\ ;\l}"]
_NODE = re.compile(r'^"(?P<name>[^"]+)"\n\[label="(?P<label>.*)"\]', re.MULTILINE)


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    ("kernel", "target"),
    [
        *((kernel, "cuda:90") for kernel in KINDS),
        pytest.param("called", "cuda:100", marks=pytest.mark.exhaustive),
    ],
)
def test_the_blocks_of_sass_are_those_that_nvdisasm_draws(kernel: str, target: str, tmp_path: Path) -> None:
    import triton

    capture = recorded(kernel, target)
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(capture.cubin)
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    answer = subprocess.run([tool, "-bbcfg", cubin], capture_output=True, text=True, check=False)
    if (
        answer.returncode
        and triton.__version__.startswith(("3.7", "3.8"))
        and "Dataflow analysis disabled" in answer.stderr
    ):
        pytest.skip("the nvdisasm of Triton 3.7 and 3.8 draws no graph of a kernel that calls functions")
    assert answer.returncode == 0, answer.stderr
    drawn = answer.stdout
    theirs = {match["name"]: match["label"].count(r";\l") for match in _NODE.finditer(drawn)}
    (flow,) = flows_of(capture, "sass")
    # nvdisasm names a block by its label, the first by the kernel, and numbers the others.
    unnamed = iter(range(len(flow.blocks)))
    name_of: dict[int, str] = {}
    for block in flow.blocks:
        label = block.labels[0] if block.labels else capture.name if not block.number else f"BB{next(unnamed)}"
        name_of[block.number] = label
    padding = {name for name, count in theirs.items() if name not in name_of.values()}
    assert len(padding) <= 1  # a branch to itself, behind the code
    assert {name_of[block.number]: len(block.instructions) for block in flow.blocks} == {
        name: count for name, count in theirs.items() if name not in padding
    }
    edges = {(match["source"], match["target"]) for match in _EDGE.finditer(drawn)}
    ours = {(name_of[jump.source], name_of[jump.target]) for jump in flow.jumps if jump.kind != "calls"}
    assert ours == {edge for edge in edges if edge[0] not in padding}


# A label, a jump to one and what ends a function, at each stage. What begins a block: a label that is jumped to, and
# what stands behind a jump.
# (nvdisasm draws no graph of what is older than sm_90: for cuda:80 this is the check.)
PATTERNS: dict[str, tuple[str, str]] = {
    "sass": (r"^(\.L_x_\d+):", r"\bBRA(?:\.\w+)*\s+[^`\n]*`\((\.L_x_\d+)\)"),
    "ptx": (r"^(\$L__BB\w+):", r"^\s+(?:@!?%p\d+ )?bra(?:\.uni)?\s+(\$L__BB\w+);"),
    "amdgcn": (r"^(\.LBB\w+):", r"^\s+s_c?branch\w*\s+(\.LBB\w+)"),
    "llir": (r"^([\w.]+):", r"label %([\w.]+)"),
}


COUNTED = [("cuda:90", "ptx"), ("cuda:90", "llir"), ("hip:gfx942", "amdgcn")]


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    ("kernel", "target", "stage"),
    [*((kernel, *at) for kernel in KINDS for at in COUNTED), (KINDS[0], "cuda:80", "sass")],
)
def test_every_branch_is_a_jump_to_the_block_of_its_label(kernel: str, target: str, stage: str) -> None:
    text = recorded(kernel, target).text(stage)
    flows = flows_of(recorded(kernel, target), stage)
    label, branch = (re.compile(pattern, re.MULTILINE) for pattern in PATTERNS[stage])
    labels = [name for flow in flows for block in flow.blocks for name in block.labels]
    assert set(branch.findall(text)) <= set(labels)
    assert {name for name in labels if not name.startswith("$")} <= set(label.findall(text))
    jumps = [jump for flow in flows for jump in flow.jumps if jump.kind == "jumps"]
    assert len(jumps) == len(branch.findall(text))
    assert all(jump.target != UNKNOWN for jump in jumps)
    named = {(flow.function, block.number): block.labels for flow in flows for block in flow.blocks}
    to = Counter(named[flow.function, jump.target][0] for flow in flows for jump in flow.jumps if jump.kind == "jumps")
    assert to == Counter(branch.findall(text))
    for flow in flows:
        check_is_whole(flow)


def check_is_whole(flow: ControlFlow) -> None:
    """Every block but those that end has a successor, and none stands twice."""
    after = {jump.source for jump in flow.jumps if jump.kind != "calls"}
    for block in flow.blocks[:-1]:
        assert block.number in after or block.ending, block.name
    numbers = {block.number for block in flow.blocks}
    assert len(numbers) == len(flow.blocks)
    assert {jump.target for jump in flow.jumps} - {UNKNOWN} <= numbers
    lines = [item.line for block in flow.blocks for item in block.instructions]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("kernel", "target", "stage"), [("product", "cuda:90", "ptx"), ("product", "hip:gfx942", "amdgcn")]
)
def test_a_loop_of_python_is_a_loop(kernel: str, target: str, stage: str) -> None:
    capture = stored(kernel, target)
    kind = stage_named(stage).kind
    (flow,) = flows_of(capture, stage)
    inside = {block for loop in flow.loops for block in loop.body}
    multiplying = {
        block.number for block in flow.blocks if any(row.part == "dot" for row in parts_of(block.instructions, kind))
    }
    assert multiplying & inside
    stores = {block.number for block in flow.blocks if "st.global" in str(parts_of(block.instructions, kind))}
    assert stores
    assert not stores & inside


PTX = """
.visible .entry k(
)
{
	mov.u32 	%r1, 0;
$L__BB0_1:
	add.s32 	%r1, %r1, 1;
	@%p1 bra 	$L__BB0_1;
$L__BB0_2:
	{ @%p2 bra 	$L__BB0_1; }
	brx.idx 	%r1, table;
$L__BB0_3:
	@%p3 ret;
	call.uni 	helper, (param0);
	bra.uni 	$L__BB0_9;
}
"""
SASS = """	.section	.text.k,"ax",@progbits
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_0:
        /*0010*/              @!PT BRA `(.L_x_0) ;
        /*0020*/                   BRA P1, `(.L_x_1) ;
        /*0030*/              @P0 EXIT ;
.L_x_1:
        /*0040*/                   BRX R2 -0x10 ;
        /*0050*/                   CALL.REL.NOINC `($k$helper) ;
        /*0060*/               @PT BRA `(.L_x_0) ;
$k$helper:
        /*0070*/                   RET.REL.NODEC R2 `(k) ;
"""
AMDGCN = """	.type	k,@function
k:
	s_cbranch_scc1 .LBB0_1
	s_setpc_b64 s[2:3]
.LBB0_1:
	s_swappc_b64 s[30:31], s[0:1]
	s_endpgm
.Lfunc_end0:
"""
LLVM = """define void @k(i32 %0) {
  switch i32 %0, label %4 [
    i32 1, label %2
    i32 -7, label %3
  ]

2:
  br i1 %c, label %2, label %"a b"

3:
  indirectbr ptr %p, [label %2]

4:
  unreachable

"a b":
  ret void
}
"""


def jumps_of(text: str, kind: StageKind) -> list[tuple[int, int, str, str]]:
    (flow,) = read_control_flow(text, kind)
    return [(jump.source, jump.target, jump.kind, jump.condition) for jump in flow.jumps]


def test_forms_of_ptx() -> None:
    assert jumps_of(PTX, "ptx") == [
        (0, 1, "falls", ""),
        (1, 1, "jumps", "@%p1"),
        (1, 2, "falls", ""),
        (2, 1, "jumps", "@%p2"),
        (2, 3, "falls", ""),
        (3, UNKNOWN, "jumps", ""),
        (4, 5, "falls", ""),
        (5, 6, "falls", ""),
        (6, UNKNOWN, "jumps", ""),
    ]
    (flow,) = read_control_flow(PTX, "ptx")
    assert [block.ending for block in flow.blocks] == ["", "", "", "", "return", "", ""]
    assert flow.blocks[5].calls == ("helper",)
    # The jumps back to the first label make one loop, of both blocks that jump.
    assert [(loop.head, sorted(loop.body)) for loop in flow.loops] == [(1, [1, 2])]


def test_forms_of_sass() -> None:
    assert jumps_of(SASS, "sass") == [
        (0, 1, "falls", ""),
        (1, 1, "jumps", "@!PT"),
        (1, 2, "falls", ""),
        (2, 4, "jumps", "P1"),
        (2, 3, "falls", ""),
        (3, 4, "falls", ""),
        (4, UNKNOWN, "jumps", ""),
        (5, 7, "calls", ""),
        (5, 6, "falls", ""),
        (6, 1, "jumps", ""),
    ]


def test_forms_of_amdgcn_and_of_llvm() -> None:
    assert jumps_of(AMDGCN, "amdgcn") == [
        (0, 2, "jumps", "scc1"),
        (0, 1, "falls", ""),
        (1, UNKNOWN, "jumps", ""),
        (2, 3, "falls", ""),
    ]
    assert jumps_of(LLVM, "llvm") == [
        (0, 3, "jumps", "default"),
        (0, 1, "jumps", "1"),
        (0, 2, "jumps", "-7"),
        (1, 1, "jumps", "true"),
        (1, 4, "jumps", "false"),
        (2, UNKNOWN, "jumps", ""),
    ]


def many(count: int) -> tuple[ControlFlow, ...]:
    """Two loops, one in the other, and then `count` branches one after another."""
    add = " add.s32 %r1, %r1, 1;\n"
    body = f"$L__BB0_0:\n{add}$L__BB0_1:\n{add} @%p1 bra $L__BB0_1;\n @%p2 bra $L__BB0_0;\n"
    for number in range(2, count):
        body += f" @%p{number} bra $L__BB0_{number};\n{add}$L__BB0_{number}:\n"
    return read_control_flow(f".visible .entry k()\n{{\n mov.u32 %r1, 0;\n{body} ret;\n}}\n", "ptx")


@pytest.mark.parametrize("level", range(HARDEST + 1))
def test_folding_keeps_every_instruction(level: int) -> None:
    flows = many(20)
    folded = fold_flows(flows, level, 1000)
    assert folded.level == level
    assert sum(flow.instructions for flow in folded.flows) == flows[0].instructions
    assert sum(block.blocks for flow in folded.flows for block in flow.blocks) == len(flows[0].blocks)
    loops = [block for flow in folded.flows for block in flow.blocks if block.is_loop]
    assert len(loops) == (level in (2, 3))
    assert len(folded.flows[0].loops) == {0: 2, 1: 2, 2: 1, 3: 0, 4: 0}[level]


def test_what_is_large_is_folded_until_it_is_small_enough() -> None:
    folded = fold_flows(many(3000), None, 120)
    assert folded.level == HARDEST
    assert sum(len(flow.blocks) for flow in folded.flows) <= 120
    assert "basic blocks in" in folded.note
    assert "order of the text" in folded.note


def test_parts_are_chosen() -> None:
    flows = read_control_flow(SASS, "sass")
    assert [block.number for block in blocks_around(flows, ".L_x_1", 0)[0].blocks] == [4]
    assert [block.number for block in blocks_around(flows, "L_x_1", 1)[0].blocks] == [2, 3, 4]
    assert [block.number for block in blocks_around(flows, "R0", 0)[0].blocks] == [0]
    with pytest.raises(UsageError, match=r"no block has that label.*\.L_x_1"):
        blocks_around(flows, ".L_x_9", 1)
    chosen = blocks_on_lines(flows, {2})
    assert [(block.number, block.faded) for block in chosen[0].blocks] == [(0, False), (1, True)]
    with pytest.raises(UsageError, match="nothing of this stage"):
        blocks_on_lines(flows, {999})


@pytest.mark.parametrize("kind", ["llvm", "ptx", "sass", "amdgcn"])
@given(text=st.text(alphabet="%@$L.:(){};\n\t abrxPT0123,`", max_size=200))
def test_any_text_is_read_without_an_error(kind: StageKind, text: str) -> None:
    read_control_flow(text, kind)
    read_control_flow(f".visible .entry k()\n{{\n{text}\n}}\n", kind)

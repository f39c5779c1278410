"""The instructions of operations: by the operation where a capture holds that, else by chain of Python frames."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from irscope.memory.machine import read_machine
from irscope.model.capture import Artifact, Capture, Kernel, Launch, Target
from irscope.model.evidence import OperationLines
from irscope.store.file import load

DATA = Path(__file__).parent.parent / "data" / "layouts"

TTGIR = """\
#loc = loc("k.py":5:7)
module {
  tt.store %p, %x : a loc(#loc)
  tt.store %q, %y : a loc(#loc)
  tt.store %r, %z : a loc("k.py":6:7)
}"""
PTX = """\
.visible .entry k()
{
	.loc	1 5 7
	st.global.v4.b32 	[%rd1], {%r1, %r2, %r3, %r4};
	@%p1 st.global.b16 	[%rd2], %rs1;
	.loc	1 6 7
	st.global.v2.b32 	[%rd3], {%r1, %r2};
	ret;
}
	.file	1 "k.py"
"""


def capture(operations: tuple[OperationLines, ...] = ()) -> Capture:
    artifacts = (Artifact("ttgir", TTGIR), Artifact("ptx", PTX))
    return Capture(Launch(Kernel("k")), Target("cuda", "90", 32), artifacts=artifacts, operations=operations)


def test_two_stores_of_one_line_have_their_own_instructions() -> None:
    machine = read_machine(capture((OperationLines.of("ptx", [0, 0, 0, 3, 4, 0, 5, 0, 0, 0, 0]),)))
    assert machine.by_operation
    assert [machine.widths(line, ("global store",)) for line in (3, 4, 5)] == [
        Counter({128: 1}),
        Counter({16: 1}),
        Counter({64: 1}),
    ]
    assert machine.count(2, "global store") == 0


def test_without_operations_they_share_those_of_their_line() -> None:
    for operations in ((), (OperationLines("ptx", reason="the code is another"),), (OperationLines.of("sass", [3]),)):
        machine = read_machine(capture(operations))
        assert not machine.by_operation
        assert machine.at(3) == machine.at(4) == Counter({("global store", 128): 1, ("global store", 16): 1})
        assert machine.widths(5, ("global store",)) == Counter({64: 1})


def test_every_instruction_of_a_real_kernel_is_counted_once_by_operation() -> None:
    """By chain the same instruction may count for several operations; together they are the same instructions."""
    whole = load(DATA / "matmul-cuda-80.irscope")
    ptx = whole.text("ptx")
    lines = [4 + number % 7 for number, _ in enumerate(ptx.split("\n"))]
    machine = read_machine(replace(whole, operations=(OperationLines.of("ptx", lines),)))
    total = sum((machine.at(line) for line in range(4, 11)), Counter())
    by_action = Counter[str]()
    for (action, _), count in total.items():
        by_action[action] += count
    assert by_action["matrix load"] == len(re.findall(r"^\s*ldmatrix\.", ptx, re.MULTILINE)) > 0
    assert by_action["async copy"] == len(re.findall(r"^\s*(?:@%p\d+ )?cp\.async\.c[ag]\.", ptx, re.MULTILINE)) > 0

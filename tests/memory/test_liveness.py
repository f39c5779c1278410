"""Oracle: where buffers are live, against the compiler's own log of its allocation."""

from __future__ import annotations

import pytest

from irscope.ir.mlir.reader import Operation, parse_mlir
from irscope.memory.allocation import shared_text
from irscope.memory.liveness import Liveness
from tests.memory.compiler_log import CASES, FOR_EVER, logged_buffers
from tests.memory.kernels import compiled


def intervals(function: Operation) -> list[tuple[int, int]]:
    live = Liveness(function)
    found: list[tuple[int, int]] = []
    for operation in function.walk():
        if "allocation.offset" not in f"{operation.text} {operation.closing}":
            continue
        if operation is function:
            found.append((0, FOR_EVER))
        elif operation.name == "ttg.local_alloc":
            found.append(live.buffer_interval(operation.results[0]))
        else:
            found.append((live.number_of(operation), live.number_of(operation) + 1))
    return sorted(found)


@pytest.mark.triton
@pytest.mark.parametrize(("kernel", "target"), CASES)
def test_intervals_are_the_compilers(kernel: str, target: str) -> None:
    text = shared_text(compiled(kernel, target))
    assert text is not None
    functions = [one for one in parse_mlir(text).walk() if one.name == "tt.func"]
    ours = [found for found in map(intervals, functions) if found]
    theirs = [sorted((start, end) for *_, start, end in rows) for rows in logged_buffers(kernel, target)]
    assert sorted(ours) == sorted(theirs)
    assert sum(map(len, ours)) >= 2


LOOP = """module {
  tt.func public @kernel(%more: i1) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<8xi8, #s, #m>
    %b = ttg.local_alloc : () -> !ttg.memdesc<8xi8, #s, #m>
    cf.br ^bb1(%a, %b : !ttg.memdesc<8xi8, #s, #m>, !ttg.memdesc<8xi8, #s, #m>)
  ^bb1(%first: !ttg.memdesc<8xi8, #s, #m>, %second: !ttg.memdesc<8xi8, #s, #m>):
    %x = ttg.local_load %first : !ttg.memdesc<8xi8, #s, #m> -> tensor<8xi8, #blocked>
    cf.cond_br %more, ^bb1(%second, %first : !ttg.memdesc<8xi8, #s, #m>, !ttg.memdesc<8xi8, #s, #m>), ^bb2
  ^bb2:
    %c = ttg.local_alloc : () -> !ttg.memdesc<8xi8, #s, #m>
    tt.return
  }
}
"""


def test_buffers_that_a_loop_exchanges_both_live_through_it() -> None:
    function = parse_mlir(LOOP).kernel
    assert function is not None
    live = Liveness(function)
    made = {one.results[0].name: one.results[0] for one in function.walk() if one.name == "ttg.local_alloc"}
    assert live.buffer_interval(made["%a"]) == (0, 5)
    assert live.buffer_interval(made["%b"]) == (1, 5)
    assert live.buffer_interval(made["%c"]) == (5, 6)
    assert live.loops() == [(3, 5)]
    assert live.steps == 8  # its seven operations, and the function

"""Oracle: bank conflicts against the compiler's own count, for pairs of layouts in registers and in shared memory."""

from __future__ import annotations

from itertools import product

import pytest

from irscope.layout.memory_map import MemoryMap
from irscope.layout.rows import query_type
from irscope.layout.thread_map import ThreadMap
from irscope.memory.conflicts import shared_access
from irscope.model.capture import Target
from irscope.model.layout import LayoutMap
from tests.layout.cases import blocked, dot, mma2, nvmma, swizzled

pytest.importorskip("triton", reason="the oracle is the installed compiler, and Triton is not installed")
pytestmark = pytest.mark.triton

REGISTERS = (
    blocked((1, 8), (4, 8), (4, 1), (1, 0)),
    blocked((1, 1), (1, 32), (4, 1), (1, 0)),
    blocked((1, 1), (32, 1), (1, 4), (0, 1)),
    blocked((1, 4), (8, 4), (2, 2), (1, 0)),
    blocked((8, 1), (8, 4), (1, 4), (0, 1)),
    mma2((2, 2)),
    dot(0, mma2((2, 2)), 2),
)
SHARED = (
    swizzled(1, 1, 1, (1, 0)),
    swizzled(8, 1, 8, (1, 0)),
    swizzled(4, 2, 4, (1, 0)),
    swizzled(1, 1, 1, (0, 1)),
    nvmma(128),
)
PAIRS = [
    (registers, shared, element)
    for registers, shared, element in product(REGISTERS, SHARED, ("f16", "f32"))
    if element == "f16" or not ("nvmma" in shared or "dot_op" in registers)
]


def test_wavefronts_are_the_compilers() -> None:
    from irscope.record.layouts.messages import Module
    from irscope.record.layouts.questions import bank_conflicts
    from irscope.record.layouts.server import LayoutServer

    target = Target.parse("cuda:80")
    pairs = [
        (query_type(registers, (64, 64), element), query_type(shared, (64, 64), element))
        for registers, shared, element in PAIRS
    ]
    with LayoutServer(fork=False) as server:
        job = server.wait(server.ask(Module.of(target), types=[text for pair in pairs for text in pair]))
    maps = [answer.layout for answer in job.answered_types() if isinstance(answer, LayoutMap)]
    counts = bank_conflicts(pairs, target)
    for number, (registers, shared, element) in enumerate(PAIRS):
        threads = ThreadMap.of(maps[2 * number])
        memory = MemoryMap.of(maps[2 * number + 1], 16 if element == "f16" else 32)
        # The compiler counts what each wavefront takes above one.
        ours = shared_access(threads, memory).ways - 1
        assert ours == counts[number], (registers, shared, element)
    assert len(PAIRS) >= 50

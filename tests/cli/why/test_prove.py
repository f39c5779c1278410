"""Which compiles `why` does of the changes that it would try."""

from __future__ import annotations

from irscope.analysis.findings.model import Change
from irscope.cli.why.tries import shared_compiles

WARPS, STAGES = (Change("option", "num_warps", 8),), (Change("option", "num_stages", 1),)
M, N = (Change("divisible", "m", 16),), (Change("divisible", "n", 16),)
N_IS_1 = (Change("constant", "n", 1), Change("divisible", "k", 16))


def test_each_change_has_a_compile_of_its_own_while_there_are_enough() -> None:
    assert shared_compiles([WARPS, M, N], 3) == {WARPS: [WARPS], M: [M], N: [N]}


def test_else_arguments_change_together() -> None:
    assert shared_compiles([M, WARPS, N], 2) == {WARPS: [WARPS], (*M, *N): [M, N]}
    assert shared_compiles([M, STAGES, WARPS], 1) == {M: [M]}
    assert shared_compiles([WARPS, M], 0) == {}
    assert shared_compiles([WARPS, STAGES], 1) == {WARPS: [WARPS]}


def test_a_single_compile_tries_what_mends_the_worst() -> None:
    assert shared_compiles([WARPS, STAGES, M, N], 1) == {WARPS: [WARPS]}
    assert shared_compiles([M, WARPS, N], 1) == {(*M, *N): [M, N]}


def test_what_contradicts_an_earlier_change_waits() -> None:
    assert shared_compiles([N, N_IS_1, M], 1) == {(*N, *M): [N, M]}

"""A branch that depends on what is not computed is passed where both of its ways only compute until they meet."""

from __future__ import annotations

import pytest

from irscope.errors import NotComputed
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.readers import parse_ptx
from irscope.machine.ptx import PtxCta
from irscope.machine.ptx_registers import CtaListener, CtaMemory
from irscope.machine.values import Array

PTX = """
.visible .entry kernel(.param .u64 kernel_param_0)
.reqntid 32
{{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %r2, %r1;
    setp.lt.f32 %p1, %r2, 0f41000000;
    mov.b32 %r5, 0;
    mov.b32 %r6, 64;
    @%p1 bra $LARGE;
    {small}
    mov.b32 %r5, 8;
    bra.uni $MEET;
$LARGE:
    mov.b32 %r5, 4;
$MEET:
    st.shared.b32 [%r{address}], %r5;
    ret;
}}
"""


class _Writes(CtaListener):
    def __init__(self) -> None:
        self.addresses: list[int] = []

    def access(self, item: Instruction, threads: Array, addresses: Array, size: int, writes: bool, space: str) -> None:
        self.addresses += addresses.tolist()


def _written(small: str, address: int) -> list[int]:
    (function,) = parse_ptx(PTX.format(small=small, address=address))
    listener = _Writes()
    PtxCta(function, 32, {}, (0, 0, 0), (1, 1, 1), listener, CtaMemory(), {}).run(1000)
    return listener.addresses


def test_what_both_ways_leave_alone_is_known_where_they_meet() -> None:
    assert _written("", 6) == [64] * 32


def test_what_a_way_computes_is_not_known() -> None:
    with pytest.raises(NotComputed):
        _written("", 5)


def test_a_way_that_writes_to_shared_memory_is_not_passed() -> None:
    with pytest.raises(NotComputed, match="predicate that is not computed"):
        _written("st.shared.b32 [%r6], %r5;", 6)


def test_a_number_has_the_bits_that_it_states() -> None:
    # The bits of f64's negative infinity are above all signed numbers.
    text = PTX.format(small="", address=6).replace("mov.b32 %r6, 64;", "shr.u64 %r6, 0dFFF0000000000000, 56;")
    (function,) = parse_ptx(text)
    listener = _Writes()
    PtxCta(function, 32, {}, (0, 0, 0), (1, 1, 1), listener, CtaMemory(), {}).run(1000)
    assert listener.addresses == [0xFF] * 32

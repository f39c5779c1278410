"""Loads that stand at an operation that loads nothing are the loads of what its operands come from."""

from __future__ import annotations

from irscope.ir.locations.operations import with_loads_of_readers

TTGIR = """\
module {
  tt.func @k(%p: i32, %q: i32) {
    %a = tt.load %p : f32
    %b = ttg.convert_layout %a : f32 -> f32
    %c = arith.mulf %b, %b : f32
    tt.store %q, %c : f32
    %d = ttg.local_load %q : f32
    %e = arith.addf %b, %d : f32
    tt.store %q, %e : f32
    tt.return
  }
}"""


def moved(line: str, at: int) -> int:
    return with_loads_of_readers([at], line, TTGIR)[0]


def test_a_load_of_shared_memory_goes_back_to_its_reader() -> None:
    for load in (
        "\tld.shared.v4.b32 \t{%r1, %r2, %r3, %r4}, [%r5];",
        "        04c0  B------:R-:W1:-:S02  G020:P0:U00:Q0  @!P0 LDS.128 R4, [R2]",
        "        04c0  B------:R-:W1:-:S02  LDS.128 R4, [R2]",
        "\tds_read_b128 v[0:3], v4",
    ):
        # The store's value is made of the conversion's by arithmetic, which loads nothing either.
        assert moved(load, 6) == moved(load, 5) == 4
        # Of two readers it is not known which.
        assert moved(load, 9) == 9
        assert moved(load, 4) == 4
        assert moved(load, 0) == 0


def test_only_loads_of_the_readers_memory_are_moved() -> None:
    assert moved("\t@%p1 ld.global.b32 \t%r1, [%rd5];", 6) == 6
    assert moved("\tst.shared.b32 \t[%r5], %r1;", 6) == 6
    assert moved("\tadd.s32 \t%r1, %r2, %r3;", 6) == 6
    assert moved("$L__BB0_1:", 6) == 6

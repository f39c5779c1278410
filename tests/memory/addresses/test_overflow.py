"""Overflows that lead an access astray, against the addresses of every lane of every program."""

from __future__ import annotations

from random import Random

import pytest

from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.numbers import constant
from irscope.memory.addresses.overflow import Overflow, overflows_of

LANES = 8
# A masked load of x[((p * a + c) * b + lane) {hash}], whose offsets the mask compares with `limit`.
KERNEL = """\
module {
  tt.func public @k(%x: !tt.ptr<f32>, %a: i32, %b: i32, %c: i32, %limit: i32) {
    %p = tt.get_program_id x : i32
    %0 = arith.muli %p, %a : i32
    %1 = arith.addi %0, %c : i32
    %2 = arith.muli %1, %b : i32
    %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %3 = tt.splat %2 : i32 -> tensor<8xi32>
    %4 = arith.addi %3, %range : tensor<8xi32>
    HASH
    %5 = tt.splat %limit : i32 -> tensor<8xi32>
    %6 = arith.cmpi slt, %o, %5 : tensor<8xi32>
    %7 = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %8 = tt.addptr %7, %o : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %9 = tt.load %8, %6 : tensor<8x!tt.ptr<f32>>
    tt.return
  }
}
"""
PLAIN = "%zero = arith.constant dense<0> : tensor<8xi32>\n    %o = arith.addi %4, %zero : tensor<8xi32>"
HASHED = "%most = arith.constant dense<1023> : tensor<8xi32>\n    %o = arith.andi %4, %most : tensor<8xi32>"


def wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def found(sizes: tuple[int, int, int, int], programs: int, hashed: bool = False) -> tuple[Overflow, ...]:
    module = parse_mlir(KERNEL.replace("HASH", HASHED if hashed else PLAIN))
    kernel = module.kernel
    assert kernel is not None
    values = [value for value, _, _ in kernel.parameters[1:]]
    held = {value: constant(size, 32) for value, size in zip(values, sizes, strict=True)}
    return overflows_of(module, held, (programs, 1, 1))


def is_astray(sizes: tuple[int, int, int, int], programs: int) -> bool:
    """By brute force: whether a lane accesses another address than with integers that never wrap around."""
    a, b, c, limit = sizes
    for program in range(programs):
        for lane in range(LANES):
            exact = (program * a + c) * b + lane
            plain = wrapped(exact)
            if (exact < limit or plain < limit) and (exact != plain or (exact < limit) != (plain < limit)):
                return True
    return False


def test_an_overflow_is_found_where_a_lane_of_a_program_goes_astray() -> None:
    random = Random(7)
    verdicts: list[bool] = []
    for _ in range(200):
        bits = [random.randrange(1, size) for size in (20, 18, 31)]
        a, b, c = (random.choice((1, 1, -1)) * random.getrandbits(count) for count in bits)
        sizes = a, b, c, random.choice(((1 << 31) - 1, random.getrandbits(30), 0))
        programs = random.randrange(1, 16)
        expected = is_astray(sizes, programs)
        verdicts.append(expected)
        assert bool(found(sizes, programs)) == expected, (sizes, programs)
    assert 30 < sum(verdicts) < 170


@pytest.mark.parametrize(("programs", "overflows"), [(32_768, False), (32_769, True)])
def test_the_last_program_is_the_one_that_overflows(programs: int, overflows: bool) -> None:
    one = found((1 << 16, 1, 0, (1 << 31) - 1), programs)
    assert bool(one) == overflows
    if overflows:
        assert (one[0].operation.name, one[0].value, one[0].operands) == ("arith.muli", 1 << 31, (32_768, 1 << 16))
        assert (one[0].wrapped, one[0].program) == (-(1 << 31), (32_768, 0, 0))
        assert one[0].access.name == "tt.load"


def test_a_number_that_is_meant_to_wrap_around_leads_nothing_astray() -> None:
    sizes = 0x1E3779B1, 3, 12345, (1 << 31) - 1
    assert found(sizes, 12)
    assert not found(sizes, 12, hashed=True)


IN_A_LOOP = """\
module {
  tt.func public @k(%x: !tt.ptr<f32>, %size: i32, %step: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %by = tt.splat %step : i32 -> tensor<8xi32>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %end = scf.for %i = %c0 to %size step %c1 iter_args(%o = %range) -> (tensor<8xi32>)  : i32 {
      %p = tt.addptr %base, %o : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %v = tt.load %p : tensor<8x!tt.ptr<f32>>
      %next = arith.addi %o, %by : tensor<8xi32>
      scf.yield %next : tensor<8xi32>
    }
    tt.return
  }
}
"""


@pytest.mark.parametrize("iterations", [50, 900, 3000, 100_000])
def test_an_offset_that_a_loop_carries_overflows_in_an_iteration_that_is_accessed(iterations: int) -> None:
    module = parse_mlir(IN_A_LOOP)
    assert module.kernel is not None
    size, step = (value for value, _, _ in module.kernel.parameters[1:])
    # The offset of the last iteration that loads is the largest of them.
    most = ((1 << 31) - LANES) // (iterations - 1)
    for by, overflows in ((most, False), (most + 1, (most + 1) * (iterations - 1) + LANES > 1 << 31)):
        held = {size: constant(iterations, 32), step: constant(by, 32)}
        rows = overflows_of(module, held, (1, 1, 1))
        assert [one.operation.name for one in rows] == ["arith.addi"] * overflows, by

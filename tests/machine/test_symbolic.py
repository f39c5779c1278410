"""The evaluator, against Python's integers on random expressions, and on control that no compiler would print."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.loops import evaluate
from irscope.machine.noted import Evaluation
from irscope.machine.numbers import Number, constant
from irscope.machine.programs import Programs

MANY = 2 * settings().max_examples
"""A search of `make fuzz` has as many more as others."""
SIZE = 8
PROGRAMS = 5
_LAYOUT = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>"

Values = list["int | None"]
"""One value for each element; None where the operation is undefined there."""


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def quotient(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def rest(a: int, b: int) -> int | None:
    return None if b == 0 else a - b * (quotient(a, b) or 0)


def above(a: int, b: int) -> int | None:
    return None if b == 0 else -(-a // b)


def shifted(value: int, by: int, bits: int) -> int | None:
    return value if 0 <= by < bits else None


BINARY: dict[str, Callable[[int, int, int], int | None]] = {
    "addi": lambda a, b, n: a + b,
    "subi": lambda a, b, n: a - b,
    "muli": lambda a, b, n: a * b,
    "divsi": lambda a, b, n: quotient(a, b),
    "divui": lambda a, b, n: quotient(unsigned(a, n), unsigned(b, n)),
    "ceildivsi": lambda a, b, n: above(a, b),
    "remsi": lambda a, b, n: rest(a, b),
    "remui": lambda a, b, n: rest(unsigned(a, n), unsigned(b, n)),
    "andi": lambda a, b, n: a & b,
    "ori": lambda a, b, n: a | b,
    "xori": lambda a, b, n: a ^ b,
    "shli": lambda a, b, n: shifted(a << (b if 0 <= b < n else 0), b, n),
    "shrsi": lambda a, b, n: shifted(a >> (b if 0 <= b < n else 0), b, n),
    "shrui": lambda a, b, n: shifted(unsigned(a, n) >> (b if 0 <= b < n else 0), b, n),
    "minsi": lambda a, b, n: min(a, b),
    "maxsi": lambda a, b, n: max(a, b),
    "minui": lambda a, b, n: min(a, b, key=lambda value: unsigned(value, n)),
    "maxui": lambda a, b, n: max(a, b, key=lambda value: unsigned(value, n)),
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b, "ult": lambda a, b: a < b, "ule": lambda a, b: a <= b,
    "ugt": lambda a, b: a > b, "uge": lambda a, b: a >= b,
}  # fmt: skip


class Expression:
    """Operations on tensors of eight integers, as TTGIR and as what Python computes for each program."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.bits: list[int] = []
        self.values: list[list[Values]] = []
        """For each value and program the elements."""

    def type(self, bits: int) -> str:
        return f"tensor<{SIZE}xi{bits}, {_LAYOUT}>"

    def add(self, text: str, bits: int, values: list[Values]) -> int:
        number = len(self.bits)
        self.lines.append(f"    %{number} = {text}")
        self.bits.append(bits)
        self.values.append([[None if one is None else signed(one, bits) for one in elements] for elements in values])
        return number

    def apply(self, function: Callable[..., int | None], *operands: int) -> list[Values]:
        def one(*parts: int | None) -> int | None:
            return None if any(part is None for part in parts) else function(*parts)

        return [
            [one(*parts) for parts in zip(*columns, strict=True)]
            for columns in zip(*(self.values[operand] for operand in operands), strict=True)
        ]

    def module(self, result: int) -> str:
        wide, kind = self.type(64), f"tensor<{SIZE}x!tt.ptr<i8>, {_LAYOUT}>"
        bits = self.bits[result]
        value = f"%{result}" if bits == 64 else "%wide"
        body = [*self.lines]
        if bits != 64:
            body.append(f"    %wide = arith.extsi %{result} : {self.type(bits)} to {wide}")
        body += [
            f"    %start = tt.splat %p : !tt.ptr<i8> -> {kind}",
            f"    %at = tt.addptr %start, {value} : {kind}, {wide}",
            f"    tt.store %at, %at : {kind}",
        ]
        return "\n".join(["module {", "  tt.func public @k(%p: !tt.ptr<i8>) {", *body, "    tt.return", "  }", "}"])


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    found = Expression()
    every = range(PROGRAMS)
    found.add(f"tt.make_range {{end = {SIZE} : i32, start = 0 : i32}} : {found.type(32)}", 32,
              [list(range(SIZE)) for _ in every])  # fmt: skip
    found.lines.append("    %pid = tt.get_program_id x : i32")
    found.add(f"tt.splat %pid : i32 -> {found.type(32)}", 32, [[program] * SIZE for program in every])
    constants = st.one_of(st.integers(-20, 20), st.sampled_from([64, 128, 1000, 1 << 30, (1 << 31) - 1, -(1 << 31)]))
    for _ in range(draw(st.integers(1, 3))):
        value = draw(constants)
        found.add(f"arith.constant dense<{value}> : {found.type(32)}", 32, [[value] * SIZE for _ in every])
    for _ in range(draw(st.integers(1, 9))):
        _grow(draw, found)
    return found


def _grow(draw: st.DrawFn, found: Expression) -> None:
    one = draw(st.sampled_from(range(len(found.bits))))
    bits = found.bits[one]
    same = [number for number, other in enumerate(found.bits) if other == bits]
    other = draw(st.sampled_from(same))
    way = draw(st.sampled_from(["binary", "binary", "binary", "compare", "select", "cast"]))
    if way == "select" and 1 in found.bits:
        condition = draw(st.sampled_from([number for number, width in enumerate(found.bits) if width == 1]))
        values = found.apply(lambda c, a, b: a if c else b, condition, one, other)
        found.add(f"arith.select %{condition}, %{one}, %{other} : {found.type(1)}, {found.type(bits)}", bits, values)
    elif way == "compare" and bits > 1:
        name = draw(st.sampled_from(sorted(COMPARISONS)))
        view = unsigned if name[0] == "u" else signed
        values = found.apply(lambda a, b: -COMPARISONS[name](view(a, bits), view(b, bits)), one, other)
        found.add(f"arith.cmpi {name}, %{one}, %{other} : {found.type(bits)}", 1, values)
    elif way == "cast":
        wide = draw(st.sampled_from([8, 16, 32, 64]))
        if wide < bits:
            found.add(f"arith.trunci %{one} : {found.type(bits)} to {found.type(wide)}", wide,
                      found.apply(lambda a: a, one))  # fmt: skip
        elif wide > bits:
            name = draw(st.sampled_from(["extsi", "extui"]))
            values = found.apply(lambda a: a if name == "extsi" else unsigned(a, bits), one)
            found.add(f"arith.{name} %{one} : {found.type(bits)} to {found.type(wide)}", wide, values)
    else:
        names = sorted(BINARY) if bits > 1 else ["andi", "ori", "xori"]
        name = draw(st.sampled_from(names))
        values = found.apply(lambda a, b: BINARY[name](a, b, bits), one, other)
        found.add(f"arith.{name} %{one}, %{other} : {found.type(bits)}", bits, values)


def addresses(text: str, programs: Programs) -> Number:
    module = parse_mlir(text)
    kernel = module.kernel
    assert kernel is not None
    zero = constant(0, 64)
    found = evaluate(module, {kernel.parameters[0][0]: zero}, programs)
    assert len(found.executions) == 1, found.notes
    return found.executions[0].addresses


@settings(max_examples=MANY)
@given(expressions())
def test_one_program_is_what_python_computes(found: Expression) -> None:
    for program in (0, PROGRAMS - 1):
        result = addresses(found.module(len(found.bits) - 1), Programs.at((program, 0, 0), (PROGRAMS, 1, 1)))
        expected = found.values[-1][program]
        if None in expected:
            continue
        assert np.broadcast_to(result.known, (SIZE,)).tolist() == expected
        # What is undefined in an element that is not chosen leaves the others known.
        assert result.tokens is None or any(None in values[program] for values in found.values)


@settings(max_examples=MANY)
@given(expressions())
def test_all_programs_at_once_are_never_wrong(found: Expression) -> None:
    """What is known holds for each program; elements of one token are as far apart as they are known to be."""
    whole = addresses(found.module(len(found.bits) - 1), Programs.all((PROGRAMS, 1, 1)))
    known = np.broadcast_to(whole.known, (SIZE,))
    tokens = np.broadcast_to(whole.tokens, (SIZE,)) if whole.tokens is not None else np.zeros(SIZE, np.uint64)
    for values in found.values[-1]:
        if None in values:
            continue
        pairs = zip(values, known, strict=True)
        apart = [signed(value - int(part), 64) for value, part in pairs if value is not None]
        of_token: dict[int, int] = {}
        for token, unknown in zip(tokens.tolist(), apart, strict=True):
            assert token or unknown == 0
            assert of_token.setdefault(token, unknown) == unknown
            assert not token or (whole.low <= unknown <= whole.high and unknown % whole.step == 0)


def run(body: str, parameters: str = "%n: i32", programs: Programs | None = None) -> Evaluation:
    text = f"module {{\n  tt.func public @k({parameters}) {{\n{body}\n    tt.return\n  }}\n}}"
    return evaluate(parse_mlir(text), {}, programs or Programs.all((1, 1, 1)))


LOOP = """    %p = arith.constant 0 : i64
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %end = arith.constant {turns} : i32
    %ptr = tt.int_to_ptr %p : i64 -> !tt.ptr<f32>
    %r:2 = scf.for %i = %c0 to %end step %c1 iter_args(%at = %ptr, %k = %c0) -> (!tt.ptr<f32>, i32)  : i32 {{
      {store}
      %next = tt.addptr %at, {by} : !tt.ptr<f32>, i32
      %more = arith.addi %k, %i : i32
      scf.yield %next, %more : !tt.ptr<f32>, i32
    }}
    tt.store %r#0, %c0 : !tt.ptr<f32>"""


def loop(turns: int, by: str = "%c4", store: str = "tt.store %at, %i : !tt.ptr<f32>") -> Evaluation:
    return run(LOOP.format(turns=turns, by=by, store=store))


@pytest.mark.parametrize("turns", [0, 1, 3, 8, 9, 50, 100_000])
def test_a_loop_is_executed_as_often_as_it_turns(turns: int) -> None:
    found = loop(turns)
    assert not found.notes
    inside, last = found.executions[:-1], found.executions[-1]
    assert [sum(side) for side in zip(*(one.weight.span for one in inside), strict=True)] in ([turns, turns], [])
    assert last.addresses.value == turns * 16


def test_a_loop_of_many_turns_is_not_run_turn_by_turn() -> None:
    assert loop(1_000_000).work < 1000


def test_a_pointer_that_grows_unevenly_is_run_turn_by_turn() -> None:
    found = loop(100, by="%k")
    assert sum(one.weight.span[0] for one in found.executions[:-1]) == 100
    expected, at, k = [], 0, 0
    for turn in range(100):
        expected.append(at)
        at, k = at + 4 * k, k + turn
    assert [one.addresses.value for one in found.executions] == [*expected, at]


def test_one_iteration_that_stands_for_all_is_said() -> None:
    found = loop(5000, by="%k")
    assert found.notes == ("one of 5000 iterations of the loop in line 9 was evaluated",)
    assert found.executions[0].weight.span == (5000, 5000)
    assert found.executions[0].addresses.tokens is not None


def test_a_condition_that_is_not_known_leaves_both_branches_possible() -> None:
    found = run(
        """    %c0 = arith.constant 0 : i32
    %p = arith.constant 64 : i64
    %ptr = tt.int_to_ptr %p : i64 -> !tt.ptr<f32>
    %b = arith.cmpi sgt, %n, %c0 : i32
    %q = scf.if %b -> (!tt.ptr<f32>) {
      tt.store %ptr, %c0 : !tt.ptr<f32>
      %one = tt.addptr %ptr, %c0 : !tt.ptr<f32>, i32
      scf.yield %one : !tt.ptr<f32>
    } else {
      %two = tt.addptr %ptr, %n : !tt.ptr<f32>, i32
      scf.yield %two : !tt.ptr<f32>
    }
    tt.store %q, %c0 : !tt.ptr<f32>"""
    )
    inside, after = found.executions
    assert inside.weight.span == (0, 1)
    assert after.weight.span == (1, 1)
    assert after.addresses.tokens is not None


def test_names_of_values_decide_nothing() -> None:
    """A Python variable may be called what an operation is."""
    found = run(
        """    %program_id = tt.get_program_id y : i32
    %num_programs = tt.get_num_programs z : i32
    %at = arith.muli %program_id, %num_programs : i32
    %wide = arith.extsi %at : i32 to i64
    %ptr = tt.int_to_ptr %wide : i64 -> !tt.ptr<f32>
    tt.store %ptr, %at : !tt.ptr<f32>""",
        programs=Programs.at((3, 5, 7), (10, 11, 13)),
    )
    assert found.executions[0].addresses.value == 5 * 13


HOSTILE = [
    "%0 = tt.make_range {end = 999999999 : i32, start = 0 : i32} : tensor<999999999xi32, #b>",
    "%0 = tt.splat %n : i32 -> tensor<1048576x1048576xi32, #b>",
    "%0 = arith.constant dense<[1, 2, 3]> : tensor<8xi32, #b>",
    "%0 = arith.constant 99999999999999999999999999999999 : i32",
    "%0 = arith.constant dense<0x7FF> : tensor<2xi32, #b>",
    "%0 = arith.addi %missing, %n : i32",
    "%0 = arith.addi %n : i32",
    "%0 = tt.broadcast %n : i32 -> tensor<4x4xi32, #b>",
    "%0 = tt.expand_dims %n {axis = 9 : i32} : i32 -> tensor<1xi32, #b>",
    "%0 = arith.shli %n, %n : i32",
    "%0 = tt.call @k(%n) : (i32) -> i32",
    "%0:2 = scf.for %i = %n to %n step %n iter_args(%a = %n, %b = %n) -> (i32, i32) : i32 {\n    }",
    "%0 = scf.while (%a = %n) : (i32) -> i32 {\n    } do {\n    }",
    "%0 = scf.if %n -> (i32) {\n    }",
    '%0 = "tt.reduce"(%n) <{axis = 0 : i32}> ({\n    }) : (i32) -> i32',
    "tt.store %n, %n : tensor<8x!tt.ptr<f32>, #b>",
    "tt.load : tensor<8x!tt.ptr<f32>, #b>",
    "ttng.async_tma_copy_global_to_local %n[%n] %n : !tt.tensordesc<4xf32, #b>",
    "amdg.buffer_store %n, %n[%n] : !tt.ptr<f32> -> tensor<8xf32, #b>",
    "cf.br ^bb7(%n : i32)",
    "cf.cond_br %n, ^bb0, ^bb0",
    "%0 = other.thing\n    cf.cond_br %0, ^bb1, ^bb1\n  ^bb1:",
    "cf.cond_br ^bb1, ^bb1\n  ^bb1:",
]


@pytest.mark.parametrize("body", HOSTILE)
def test_a_damaged_text_is_unknown(body: str) -> None:
    found = run(f"    {body}")
    assert found.work < 100_000


@pytest.mark.exhaustive
def test_work_is_bounded() -> None:
    deep = "\n".join(f"    scf.for %i{n} = %a to %b step %c : i32 {{" for n in range(12))
    body = (
        f"    %a = arith.constant 0 : i32\n    %b = arith.constant 7 : i32\n    %c = arith.constant 1 : i32\n{deep}\n"
    )
    body += "      %z = arith.addi %a, %b : i32\n" + "    }\n" * 12
    found = run(body)
    assert found.is_ended
    assert found.notes


@pytest.mark.parametrize(
    "access",
    [
        "%v = amdg.buffer_load %p[%o], %m : tensor<8xf16, #b>",
        "%v = amdg.buffer_load %p[%o], %m : !tt.ptr<f16> -> tensor<8xf16, #b>",
        "amdg.buffer_store %c, %p[%o], %m {contiguity = 4 : i32} : tensor<8xf16, #b>",
        "amdg.buffer_store %c, %p[%o], %m : !tt.ptr<f16> -> tensor<8xf16, #b>",
        "%v = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %c, %p[%o], %m : tensor<8xf16, #b>",
        "%v = amdg.buffer_load_to_local %p[%o] mask = %m into %l : <f16>[tensor<8xi32, #b>]  -> <8xf16, #s, #smem>",
        "%v = amdg.buffer_load_to_local %p[%o] mask = %m into %l : !tt.ptr<f16>[tensor<8xi32, #b>]  -> <8xf16, #s>",
    ],
)
def test_a_buffer_is_accessed_where_its_pointer_and_offsets_say(access: str) -> None:
    """As Triton 3.6 to 3.8 write it, with the type of the data alone, and as 3.9 does."""
    text = f"""\
module {{
  tt.func public @k(%x: !tt.ptr<f16>) {{
    %two = arith.constant 2 : i32
    %c = arith.constant dense<0.0> : tensor<8xf16, #b>
    %l = ttg.local_alloc : () -> !ttg.memdesc<8xf16, #s, #smem, mutable>
    %three = arith.constant dense<3> : tensor<8xi32, #b>
    %five = arith.constant dense<5> : tensor<8xi32, #b>
    %r = tt.make_range {{end = 8 : i32, start = 0 : i32}} : tensor<8xi32, #b>
    %o = arith.muli %r, %three : tensor<8xi32, #b>
    %m = arith.cmpi slt, %r, %five : tensor<8xi32, #b>
    %p = tt.addptr %x, %two : !tt.ptr<f16>, i32
    {access}
    tt.return
  }}
}}
"""
    module = parse_mlir(text)
    assert module.kernel is not None
    held = {module.kernel.parameters[0][0]: constant(4096, 64)}
    found = evaluate(module, held, Programs())
    assert not found.unread
    (execution,) = found.executions
    assert execution.mask is not None
    assert execution.element_bits == 16
    assert execution.addresses.known.tolist() == [4096 + 2 * (2 + 3 * lane) for lane in range(8)]
    assert [bool(bit) for bit in execution.mask.known] == [lane < 5 for lane in range(8)]


@pytest.mark.parametrize("name", ["divsi", "divui", "ceildivsi", "ceildivui", "remsi", "remui"])
def test_nothing_is_known_of_a_division_by_zero(name: str) -> None:
    found = run(
        f"""    %c0 = arith.constant 0 : i32
    %c7 = arith.constant 7 : i32
    %q = arith.{name} %c7, %c0 : i32
    %wide = arith.extsi %q : i32 to i64
    %ptr = tt.int_to_ptr %wide : i64 -> !tt.ptr<f32>
    tt.store %ptr, %c0 : !tt.ptr<f32>"""
    )
    assert found.executions[0].addresses.value is None

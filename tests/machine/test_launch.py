"""Random TTIR programs on the machine against the same ones in NumPy, written independently."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.errors import NeverEnds, NotRun, OutOfBounds, WrongProgram
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.launch import HostDescriptor, Pointer, run

_SIZE = 16
_PROGRAMS = 3
_INTEGERS = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
}  # fmt: skip
_FLOATS = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
}  # fmt: skip


def launched(body: str, arrays: list[np.ndarray], types: list[str], programs: int = _PROGRAMS) -> None:
    """Run a kernel whose parameters are pointers; the arrays hold what it leaves."""
    parameters = ", ".join(f"%p{place}: !tt.ptr<{kind}>" for place, kind in enumerate(types))
    text = f"module {{\n  tt.func public @kernel({parameters}) {{\n{body}\n    tt.return\n  }}\n}}\n"
    pointers = [Pointer(one.reshape(-1).view(np.uint8)) for one in arrays]
    run(parse_mlir(text), (programs, 1, 1), pointers)


def loaded(name: str, place: int, kind: str) -> str:
    """The lines that load the program's own part of an array."""
    tensor = f"tensor<{_SIZE}x!tt.ptr<{kind}>>"
    return f"""
    %s{place} = tt.splat %p{place} : !tt.ptr<{kind}> -> {tensor}
    %a{place} = tt.addptr %s{place}, %offsets : {tensor}, tensor<{_SIZE}xi32>
    %{name} = tt.load %a{place} : {tensor}"""


PROLOGUE = f"""
    %id = tt.get_program_id x : i32
    %size = arith.constant {_SIZE} : i32
    %begin = arith.muli %id, %size : i32
    %range = tt.make_range {{end = {_SIZE} : i32, start = 0 : i32}} : tensor<{_SIZE}xi32>
    %begins = tt.splat %begin : i32 -> tensor<{_SIZE}xi32>
    %offsets = arith.addi %begins, %range : tensor<{_SIZE}xi32>"""


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=12),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_elementwise_programs(steps, floats, seed):
    kind, dtype, table = ("f32", np.float32, _FLOATS) if floats else ("i32", np.int32, _INTEGERS)
    random = np.random.default_rng(seed)
    data = random.integers(-(2**31), 2**31, (2, _PROGRAMS * _SIZE))
    x, y = data.astype(np.int32) if not floats else random.standard_normal(data.shape).astype(np.float32)
    out = np.zeros_like(x)
    values, lines = [("%x", x.copy()), ("%y", y.copy())], []
    names = sorted(table)
    for number, (which, first, second) in enumerate(steps):
        name = names[which % len(names)]
        (left, a), (right, b) = values[first % len(values)], values[second % len(values)]
        lines.append(f"    %v{number} = {name} {left}, {right} : tensor<{_SIZE}x{kind}>")
        with np.errstate(all="ignore"):
            values.append((f"%v{number}", table[name](a, b).astype(dtype)))
    stored = f"""
    %s2 = tt.splat %p2 : !tt.ptr<{kind}> -> tensor<{_SIZE}x!tt.ptr<{kind}>>
    %a2 = tt.addptr %s2, %offsets : tensor<{_SIZE}x!tt.ptr<{kind}>>, tensor<{_SIZE}xi32>
    tt.store %a2, {values[-1][0]} : tensor<{_SIZE}x!tt.ptr<{kind}>>"""
    body = PROLOGUE + loaded("x", 0, kind) + loaded("y", 1, kind) + "\n" + "\n".join(lines) + stored
    launched(body, [x, y, out], [kind] * 3)
    assert np.array_equal(out, values[-1][1], equal_nan=floats)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 9), min_size=_PROGRAMS, max_size=_PROGRAMS), st.integers(0, 7), st.integers(1, 3))
def test_loops_whose_bounds_and_branches_differ_between_programs(bounds, limit, stride):
    counts, out = np.array(bounds, np.int32), np.zeros(_PROGRAMS, np.int32)
    body = f"""
    %id = tt.get_program_id x : i32
    %zero = arith.constant 0 : i32
    %step = arith.constant {stride} : i32
    %limit = arith.constant {limit} : i32
    %p = tt.addptr %p0, %id : !tt.ptr<i32>, i32
    %n = tt.load %p : !tt.ptr<i32>
    %sum = scf.for %i = %zero to %n step %step iter_args(%acc = %id) -> (i32)  : i32 {{
      %small = arith.cmpi slt, %i, %limit : i32
      %next = scf.if %small -> (i32) {{
        %more = arith.addi %acc, %i : i32
        scf.yield %more : i32
      }} else {{
        %double = arith.muli %acc, %step : i32
        scf.yield %double : i32
      }}
      scf.yield %next : i32
    }}
    %q = tt.addptr %p1, %id : !tt.ptr<i32>, i32
    tt.store %q, %sum : !tt.ptr<i32>"""
    launched(body, [counts, out], ["i32", "i32"])
    expected = []
    for program, bound in enumerate(bounds):
        total = program
        for i in range(0, bound, stride):
            total = total + i if i < limit else total * stride
        expected.append(total)
    assert out.tolist() == expected


def test_views_of_several_allocations_and_undefined_ones():
    shared = "!ttg.memdesc<4xi32, #shared, #smem, mutable>"
    text = f"""
#shared = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
module {{
  tt.func public @kernel(%out: !tt.ptr<i32>) {{
    %id = tt.get_program_id x : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %four = arith.constant 4 : i32
    %ones = arith.constant dense<11> : tensor<4xi32>
    %twos = arith.constant dense<22> : tensor<4xi32>
    %a = ttg.local_alloc %ones : (tensor<4xi32>) -> {shared}
    %b = ttg.local_alloc %twos : (tensor<4xi32>) -> {shared}
    %first = arith.cmpi slt, %id, %one : i32
    %chosen = arith.select %first, %a, %b : {shared}
    %some = arith.cmpi slt, %id, %two : i32
    %perhaps = scf.if %some -> ({shared}) {{
      scf.yield %chosen : {shared}
    }} else {{
      %none = ub.poison : {shared}
      scf.yield %none : {shared}
    }}
    scf.if %some {{
      %values = ttg.local_load %perhaps : {shared} -> tensor<4xi32>
      %range = tt.make_range {{end = 4 : i32, start = 0 : i32}} : tensor<4xi32>
      %begin = arith.muli %id, %four : i32
      %p = tt.addptr %out, %begin : !tt.ptr<i32>, i32
      %ps = tt.splat %p : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
      %at = tt.addptr %ps, %range : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
      tt.store %at, %values : tensor<4x!tt.ptr<i32>>
    }}
    tt.return
  }}
}}
"""
    out = np.zeros(12, np.int32)
    run(parse_mlir(text), (3, 1, 1), [Pointer(out.view(np.uint8))])
    assert out.tolist() == [11] * 4 + [22] * 4 + [0] * 4
    # A program that reads what nothing defined is wrong.
    used = text.replace("    scf.if %some {\n      %values", "    scf.if %true {\n      %values")
    used = used.replace("    %some =", "    %true = arith.constant true\n    %some =")
    with pytest.raises((WrongProgram, NotRun)):
        run(parse_mlir(used), (3, 1, 1), [Pointer(out.view(np.uint8))])


def test_an_operation_that_is_not_known_is_named():
    with pytest.raises(NotRun, match=r"irscope does not execute some\.thing \(2\)"):
        launched("    some.thing\n    some.thing", [np.zeros(1, np.int32)], ["i32"])


def test_an_attribute_that_is_not_read_is_no_zero():
    with pytest.raises(NotRun, match=r"tt\.make_range, line \d+: its attribute 'start' is not read"):
        launched("    %r = tt.make_range {end = 4 : i32} : tensor<4xi32>", [np.zeros(1, np.int32)], ["i32"])


@pytest.mark.parametrize(
    ("bits", "expected"),
    [(0x3F801000, 0x3F802000), (0x3F800FFF, 0x3F800000), (0x7F800000, 0x7F800000), (0xBF801000, 0xBF802000)],
)
def test_assembly_rounds_to_tf32_with_ties_away_from_zero(bits, expected):
    values = np.array([bits], np.uint32).view(np.float32)
    out = np.zeros(1, np.float32)
    body = """
    %v = tt.load %p0 : !tt.ptr<f32>
    %r = tt.elementwise_inline_asm "cvt.rna.tf32.f32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %v : f32 -> f32
    tt.store %p1, %r : !tt.ptr<f32>"""  # noqa: E501
    launched(body, [values, out], ["f32", "f32"], programs=1)
    assert int(out.view(np.uint32)[0]) == expected


_NAMED = """module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%out: !tt.ptr<i32>) {
    %seven = arith.constant 7 : i32
    %one = arith.constant 1 : i32
    %bar = arith.constant 2 : i32
    %threads = arith.constant THREADS : i32
    ttg.warp_specialize(%out, %bar, %threads, %seven)
    default {
      ttng.wait_barrier_named %bar, %threads : i32, i32
      %value = tt.load %out : !tt.ptr<i32>
      %next = tt.addptr %out, %one : !tt.ptr<i32>, i32
      %sum = arith.addi %value, %one : i32
      tt.store %next, %sum : !tt.ptr<i32>
      ttg.warp_yield
    }
    partition0(%p: !tt.ptr<i32>, %b: i32, %t: i32, %v: i32) num_warps(4) {
      tt.store %p, %v : !tt.ptr<i32>
      ttng.arrive_barrier_named %b, %t : i32, i32
      ttg.warp_return
    } : (!tt.ptr<i32>, i32, i32, i32) -> ()
    tt.return
  }
}
"""


def test_a_named_barrier_opens_when_as_many_threads_came_as_it_waits_for():
    out = np.zeros(2, np.int32)
    run(parse_mlir(_NAMED.replace("THREADS", "256")), (1, 1, 1), [Pointer(out.view(np.uint8))])
    assert out.tolist() == [7, 8]
    with pytest.raises(NeverEnds, match="named barrier 2 never completes: too few threads"):
        run(parse_mlir(_NAMED.replace("THREADS", "384")), (1, 1, 1), [Pointer(out.view(np.uint8))])


def test_transposed_memory_is_reshaped():
    text = """#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel(%out: !tt.ptr<i32>) {
    %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #blocked>
    %rows = tt.reshape %range : tensor<32xi32, #blocked> -> tensor<4x8xi32, #blocked>
    %memory = ttg.local_alloc %rows : (tensor<4x8xi32, #blocked>) -> !ttg.memdesc<4x8xi32, #shared, #smem>
    %turned = ttg.memdesc_trans %memory {order = array<i32: 1, 0>} :
        !ttg.memdesc<4x8xi32, #shared, #smem> -> !ttg.memdesc<8x4xi32, #shared, #smem>
    %flat = ttg.memdesc_reshape %turned : !ttg.memdesc<8x4xi32, #shared, #smem> -> !ttg.memdesc<32xi32, #shared, #smem>
    %values = ttg.local_load %flat : !ttg.memdesc<32xi32, #shared, #smem> -> tensor<32xi32, #blocked>
    %first = tt.splat %out : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #blocked>
    %pointers = tt.addptr %first, %range : tensor<32x!tt.ptr<i32>, #blocked>, tensor<32xi32, #blocked>
    tt.store %pointers, %values : tensor<32x!tt.ptr<i32>, #blocked>
    tt.return
  }
}
""".replace(":\n        ", ": ")
    out = np.zeros(32, np.int32)
    run(parse_mlir(text), (1, 1, 1), [Pointer(out.view(np.uint8))])
    assert np.array_equal(out, np.arange(32).reshape(4, 8).T.reshape(-1))


def test_descriptors_of_several_ranks_are_followed_by_their_sizes_and_strides():
    text = """module {
  tt.func public @kernel(%a: !tt.tensordesc<4xi32>, %a0: i32, %a1: i64, %b: !tt.tensordesc<2x4xi32>, %b0: i32, %b1: i32,
      %b2: i64, %b3: i64, %out: !tt.ptr<i32>) {
    tt.store %out, %b1 : !tt.ptr<i32>
    tt.return
  }
}
""".replace("\n      ", " ")
    memory, out = np.zeros(64, np.uint8), np.zeros(1, np.int32)
    one = HostDescriptor(Pointer(memory), (16,), (1,))
    other = HostDescriptor(Pointer(memory), (2, 5), (8, 1))
    run(parse_mlir(text), (1, 1, 1), [one, other, Pointer(out.view(np.uint8))])
    assert out.tolist() == [5]


_MEMORY = """#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel(%p: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %base = tt.splat %p : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %at = tt.addptr %base, %range : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %x = tt.load %at : tensor<8x!tt.ptr<i32>>
BODY
    tt.return
  }
}
"""


def in_memory(body: str, values: list[int]) -> list[int]:
    """What a kernel makes of eight integers, which it loads as `%x`."""
    array = np.array(values, np.int32)
    run(parse_mlir(_MEMORY.replace("BODY", body)), (1, 1, 1), [Pointer(array.view(np.uint8))])
    return array.tolist()


def test_updates_of_shared_memory_that_meet_are_all_made():
    body = """    %ones = arith.constant dense<1> : tensor<8xi32>
    %zeros = arith.constant dense<0> : tensor<8xi32>
    %m = ttg.local_alloc %zeros : (tensor<8xi32>) -> !ttg.memdesc<8xi32, #s, #smem, mutable>
    %old = ttg.local_atomic_scatter_rmw add, %m[%x], %ones {axis = 0 : i32} : tensor<8xi32>
    %sum = ttg.local_load %m : !ttg.memdesc<8xi32, #s, #smem, mutable> -> tensor<8xi32>
    tt.store %at, WHAT : tensor<8x!tt.ptr<i32>>"""
    assert in_memory(body.replace("WHAT", "%sum"), [5, 1, 5, 0, 1, 5, 7, 7]) == [1, 2, 0, 0, 0, 3, 0, 2]
    # What stood there is open where several meet.
    assert in_memory(body.replace("WHAT", "%old"), [7, 6, 5, 4, 3, 2, 1, 0]) == [0] * 8
    with pytest.raises(NotRun, match="in unspecified order"):
        in_memory(body.replace("WHAT", "%old"), [5, 5, 0, 1, 2, 3, 4, 6])


def test_a_launch_is_not_cancelled_by_another_program():
    body = """    %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %r = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #s, #smem, mutable>
    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.barrier_expect %b, 16, %true : !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.clc_try_cancel %r, %b : !ttg.memdesc<2xi64, #s, #smem, mutable>, !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.wait_barrier %b, %c0 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    %answer = ttng.clc_load_result %r : !ttg.memdesc<2xi64, #s, #smem, mutable> -> i128
    %is = ttng.clc_is_canceled %answer : i128 -> i1
    %wide = arith.extui %is : i1 to i32
    tt.store %p, %wide : !tt.ptr<i32>"""
    assert in_memory(body, [9] * 8)[0] == 0


def test_a_poll_sees_what_was_stored_or_never_ends():
    body = """    %seen = tt.atomic_poll acquire, gpu, %p, %c1 : (!tt.ptr<i32>, i32) -> i1
    %ballot = ttng.vote_ballot_sync %c1, %seen : i32, i1 -> i32
    %next = tt.addptr %p, %c1 : !tt.ptr<i32>, i32
    tt.store %next, %ballot : !tt.ptr<i32>"""
    assert in_memory(body, [1, 5, 0, 0, 0, 0, 0, 0])[:2] == [1, 1]
    with pytest.raises(NeverEnds):
        in_memory(body, [2] * 8)


def test_a_tile_is_copied_by_an_amd_gpu_once_it_is_waited_for():
    body = """    %size = arith.constant 6 : i32
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i32
    %d = tt.make_tensor_descriptor %p, [%size], [%one] : <i32>, <4xi32>
    %m = ttg.local_alloc : () -> !ttg.memdesc<4xi32, #s, #smem, mutable>
    %t = amdg.async_tdm_copy_global_to_local %d[%two] into %m, pred = %c1 : !tt.tensordesc<4xi32> -> !ttg.memdesc<4xi32, #s, #smem, mutable>
    %w = amdg.async_tdm_wait {num = 0 : i32}
    amdg.async_tdm_copy_local_to_global %d[%c0] from %m : !ttg.memdesc<4xi32, #s, #smem, mutable> -> !tt.tensordesc<4xi32>"""  # noqa: E501
    assert in_memory(body, [10, 11, 12, 13, 14, 15, 16, 17]) == [12, 13, 14, 15, 14, 15, 16, 17]


READS_FAR = """module {
  tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %at = tt.get_program_id x : i32
    %from = tt.addptr %y, %at : !tt.ptr<f32>, i32
    %v = tt.load %from : !tt.ptr<f32>
    %to = tt.addptr %x, %at : !tt.ptr<f32>, i32
    tt.store %to, %v : !tt.ptr<f32>
    tt.return
  }
}
"""


@pytest.mark.parametrize("programs", [None, [1, 4, 7]])
def test_an_access_out_of_bounds_is_told_with_its_argument_and_program(programs):
    x, y = (np.zeros(count * 4, np.uint8) for count in (8, 3))
    arguments = [Pointer(x, name="x_ptr"), Pointer(y, name="y_ptr")]
    first = 3 if programs is None else 4
    told = (
        rf"program \({first}, 0, 0\): a load of 4 bytes is out of bounds .* {4 * first} bytes .* memory of y_ptr, which"
    )
    with pytest.raises(OutOfBounds, match=told):
        run(parse_mlir(READS_FAR), (8, 1, 1), arguments, programs=programs)

"""Kernels that do not compile, or compile and cannot run: one for each way to fail."""

import triton
import triton.language as tl


@triton.jit
def undefined(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + nowhere)  # noqa: F821


@triton.jit
def odd_range(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, offsets)


@triton.jit
def innermost(x):
    return x + missing_in_helper  # noqa: F821


@triton.jit
def middle(x):
    return innermost(x + 1.0)


@triton.jit
def chain(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, middle(tl.load(x_ptr + offsets)))


@triton.jit
def packs_wrong(x):
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=3)


@triton.jit
def wrong_pack_in_helper(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, packs_wrong(tl.load(x_ptr + offsets)))


@triton.jit
def one_argument_too_few(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, middle())


@triton.jit
def static_assert(x_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 1000, "BLOCK is too small for this kernel")
    tl.store(x_ptr, BLOCK)


@triton.jit
def untyped_loop(x_ptr, n, BLOCK: tl.constexpr):
    total = 0
    for i in range(n):
        total += 0.5 * i
    tl.store(x_ptr, total)


@triton.jit
def wrong_pack(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=3)
    tl.store(x_ptr + offsets, y)


@triton.jit
def bogus_instruction(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise("bogus.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x_ptr + offsets, y)


@triton.jit
def bogus_constraint(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=q,q", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x_ptr + offsets, y)


@triton.jit
def too_few_constraints(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x_ptr + offsets, y)


@triton.jit
def amd_bogus(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise("v_bogus_f32 $0, $1", "=v,v", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x_ptr + offsets, y)


@triton.jit
def sorted_block(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@triton.jit
def product(a_ptr, b_ptr, c_ptr, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    accumulator = tl.zeros((M, N), tl.float32)
    for start in range(0, size, K):
        a = tl.load(a_ptr + rows[:, None] * size + (start + inner)[None, :])
        b = tl.load(b_ptr + (start + inner)[:, None] * size + columns[None, :])
        accumulator = tl.dot(a, b, accumulator)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], accumulator)


@triton.jit
def wide(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * 2)


@tl.core.extern
def missing_function(x, _semantic=None):
    return tl.core.extern_elementwise(
        "nothing", "", [x], {(tl.float32,): ("no_such_function", tl.float32)}, is_pure=True, _semantic=_semantic
    )


@triton.jit
def unresolved(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, missing_function(tl.load(x_ptr + offsets)))


@triton.constexpr_function
def killed(number):
    import os

    os.kill(os.getpid(), number)
    return 1


@triton.jit
def signalled(x_ptr, NUMBER: tl.constexpr):
    tl.store(x_ptr, killed(NUMBER))


@triton.constexpr_function
def endless(number):
    while number:
        number += 1
    return number


@triton.jit
def hangs(x_ptr, NUMBER: tl.constexpr):
    tl.store(x_ptr, endless(NUMBER))


@triton.constexpr_function
def limited(megabytes):
    import resource

    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (megabytes << 20), resource.RLIM_INFINITY))
    return 0


@triton.jit
def hungry(x_ptr, BLOCK: tl.constexpr, MEGABYTES: tl.constexpr):
    offsets = tl.arange(0, BLOCK) + limited(MEGABYTES)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * 2)


@triton.jit
def combine(a, b):
    return a + b + missing_in_combine  # noqa: F821


@triton.jit
def scans(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.associative_scan(tl.load(x_ptr + offsets), 0, combine))

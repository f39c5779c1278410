"""Kernels with what the examples do not have: random numbers, locks, scales, sorting, atomics, gathers by descriptors.

A script to record; the shapes are those of the tutorials of Triton, only smaller.
With the argument `few`, it launches only what NVIDIA's parts before Blackwell have no instructions for.
"""

import sys

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(tl.rand(seed, at) > p, x / (1 - p), 0.0), mask=at < n)


@triton.jit
def library_functions(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = libdevice.asin(libdevice.tanh(x)) + tl.erf(x) + tl.math.rsqrt(x * x + 1) + tl.sin(x) * tl.exp2(x)
    tl.store(y_ptr + at, y, mask=at < n)


@triton.jit
def sums_under_locks(sums_ptr, locks_ptr, x_ptr, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0)
    lock, count = locks_ptr + row % GROUP, locks_ptr + GROUP + row % GROUP
    places = sums_ptr + (row % GROUP) * n + columns
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        value += tl.load(places, mask=columns < n)
    tl.store(places, value, mask=columns < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def persistent_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N // 2 if HALVES else BLOCK_N])
    columns = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * columns
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        i, j = tile // columns * BLOCK_M, tile % columns * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            acc = tl.dot(a.load([i, k * BLOCK_K]), b.load([j, k * BLOCK_K]).T, acc)
        if HALVES:
            pairs = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
            left, right = tl.split(pairs)
            c.store([i, j], left.to(tl.float16))
            c.store([i, j + BLOCK_N // 2], right.to(tl.float16))
        else:
            c.store([i, j], acc.to(tl.float16))


@triton.jit
def scaled_dot(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, K: tl.constexpr, SIZE: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    rows, packed, scales = tl.arange(0, SIZE), tl.arange(0, K // PACKED), tl.arange(0, K // 32)
    a = tl.load(a_ptr + rows[:, None] * (K // PACKED) + packed[None, :])
    b = tl.load(b_ptr + packed[:, None] * SIZE + rows[None, :])
    a_scale = tl.load(a_scale_ptr + rows[:, None] * (K // 32) + scales[None, :])
    b_scale = tl.load(b_scale_ptr + rows[:, None] * (K // 32) + scales[None, :])
    acc = tl.dot_scaled(a, a_scale, A, b, b_scale, B)
    tl.store(c_ptr + rows[:, None] * SIZE + rows[None, :], acc)


@triton.jit
def dot_of(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.arange(0, SIZE)
    a = tl.load(a_ptr + rows[:, None] * SIZE + rows[None, :])
    b = tl.load(b_ptr + rows[:, None] * SIZE + rows[None, :])
    kind = tl.int32 if a.dtype == tl.int8 else tl.float32
    tl.store(c_ptr + rows[:, None] * SIZE + rows[None, :], tl.dot(a, b, input_precision=PRECISION, out_dtype=kind))


@triton.jit
def larger(a, a_index, b, b_index):
    is_first = (a > b) | ((a == b) & (a_index < b_index))
    return tl.where(is_first, a, b), tl.where(is_first, a_index, b_index)


@triton.jit
def orders_and_bits(x_ptr, i_ptr, out_ptr, bits_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, i = tl.load(x_ptr + at), tl.load(i_ptr + at)
    tl.store(out_ptr + at, tl.sort(x))
    tl.store(out_ptr + N + at, tl.cumsum(x, 0))
    tl.store(out_ptr + 2 * N + at, tl.cumprod(x, 0, reverse=True))
    value, place = tl.reduce((x, at), 0, larger)
    tl.store(out_ptr + 3 * N + at, value + tl.gather(x, i % N, 0))
    tl.store(out_ptr + 4 * N + tl.arange(0, 2 * N), tl.interleave(x, -x))
    tl.store(bits_ptr + tl.arange(0, 16), tl.histogram(i % 16, 16))
    tl.store(bits_ptr + 16 + at, tl.argmax(x, 0) + place + tl.argmin(x, 0) + at)
    tl.store(bits_ptr + 16 + N + at, (tl.flip(i) + (i >> 3) * (i & 5)) ^ (i | 9))
    tl.store(bits_ptr + 16 + 2 * N + at, tl.umulhi(i, i) + tl.clamp(x, -1.0, 1.0).to(tl.int32) + (i // 7) % 5)
    tl.atomic_add(bits_ptr + 16 + 3 * N + at % 4, i)
    tl.atomic_max(bits_ptr + 20 + 3 * N + at % 4, i)
    old = tl.atomic_add(out_ptr + 6 * N + at, x, mask=at % 2 == 0)
    tl.store(out_ptr + 7 * N + at, tl.where(at % 2 == 0, old, 0.0))


@triton.jit
def narrow(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = x.to(tl.float8e5)
    tl.store(y_ptr + at, y)
    towards_zero = x.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32)
    tl.store(z_ptr + at, y.to(tl.float32) + x.to(tl.bfloat16).to(tl.float32) + towards_zero)


@triton.jit(noinline=True)
def called(x_ptr, n):
    return tl.load(x_ptr + n) * 2


@triton.jit
def control(x_ptr, out_ptr, n):
    program = tl.program_id(0)
    x = tl.load(x_ptr + program)
    if program % 3 == 0:
        x *= 2
        if program > 5:
            tl.store(out_ptr + program, -x)
            return
    i = 0
    while i < program and x < 100.0:
        x += called(x_ptr, i)
        i += 1
    for j in range(program, n, 2):
        x += j
    tl.device_assert(x == x, "a NaN")
    tl.store(out_ptr + program, x)


@triton.jit
def rows_by_descriptors(x_ptr, y_ptr, index_ptr, M, N: tl.constexpr, ROWS: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [1, 64])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [1, 64])
    block = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [ROWS, 64])
    index = tl.load(index_ptr + tl.arange(0, ROWS))
    x = source.gather(index, 64)
    target.scatter(x, index, 0)
    block.atomic_add([0, 64], x)


def main() -> None:
    def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", dtype=dtype)

    def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.zeros(*shape, device="cuda", dtype=dtype)

    def integers(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        return torch.randint(low, high, shape, device="cuda", dtype=dtype)

    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    is_amd = torch.version.hip is not None
    half = torch.float16
    only_few = "few" in sys.argv
    if not only_few:
        dropout[(3,)](random(2500), zeros(2500), 2500, 0.5, 123, 1024)
        library_functions[(3,)](random(2500), zeros(2500), 2500, 1024)
        sums_under_locks[(32,)](zeros(4, 300), zeros(8, dtype=torch.int32), random(32, 300), 300, 4, 512)
        for halves in (True, False):
            matrices = random(256, 192, dtype=half), random(384, 192, dtype=half), zeros(256, 384, dtype=half)
            persistent_matmul[(5,)](*matrices, 256, 384, 192, 128, 128, 64, halves)
    for kinds, packed in ((("e2m1", "e2m1"), 2), (("e5m2", "e4m3"), 1)):
        bytes_ = [integers(0, 100, 128, 128 // packed, dtype=torch.uint8) for _ in range(2)]
        scales = [integers(120, 130, 128, 4, dtype=torch.uint8) for _ in range(2)]
        scaled_dot[(1,)](bytes_[0], scales[0], bytes_[1], scales[1], zeros(128, 128), 128, 128, *kinds, packed)
    if not only_few:
        for precision in ("ieee",) if is_amd else ("ieee", "tf32", "tf32x3"):
            dot_of[(1,)](random(64, 64), random(64, 64), zeros(64, 64), 64, precision)
        whole = [integers(-100, 100, 64, 64, dtype=torch.int8) for _ in range(2)]
        dot_of[(1,)](*whole, zeros(64, 64, dtype=torch.int32), 64, "ieee")
        orders_and_bits[(1,)](
            random(64), integers(0, 1000, 64), zeros(64 * 8), zeros(16 + 64 * 3 + 8, dtype=torch.int32), 64
        )
        narrow[(1,)](random(128), zeros(128, dtype=torch.float8_e5m2), zeros(128), 128)
        control[(13,)](random(13), zeros(13), 17)
    if not is_amd and torch.cuda.get_device_capability() >= (10, 0):
        index = torch.arange(0, 64, 2, device="cuda", dtype=torch.int32)
        rows_by_descriptors[(1,)](random(64, 128), zeros(64, 128), index, 64, 128, 32)


if __name__ == "__main__":
    main()

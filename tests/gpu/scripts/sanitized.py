"""A kernel that a sanitizer reports, or its twin: its name is the argument."""

import sys

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy


@triton.jit
def split_k_plain(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(y_ptr + offsets, x + y)


@triton.jit
def split_k_atomic(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + offsets, tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets))


@triton.jit
def past_the_end(x_ptr, y_ptr, BLOCK: tl.constexpr):
    # Far beyond what the allocator pads.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets * (1 << 20))
    tl.store(y_ptr + offsets, x)


@triton.jit
def copy_to_n(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


@gluon.jit
def waits(x_ptr, y_ptr, BLOCK: gl.constexpr, PENDING: gl.constexpr = 0):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    offsets = gl.arange(0, BLOCK, layout)
    buffer = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_copy_global_to_shared(buffer, x_ptr + offsets)
    async_copy.commit_group()
    async_copy.wait_group(PENDING)
    x = buffer.load(layout)
    gl.store(y_ptr + offsets, x)


def main(name: str) -> None:
    x, y = torch.ones(64 * 512, device="cuda"), torch.zeros(64 * 512, device="cuda")
    if name == "waits_for_nothing":
        waits[(1,)](x, y, 512, PENDING=1)
    else:
        globals()[name][(1 if name == "waits" else 64,)](x, y, 512)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main(sys.argv[1])

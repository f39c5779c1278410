"""A program hands a tile to another one: all its threads store it, and one of them releases a flag.

Only the first warp has its elements at once. Triton 3.6.0 puts no barrier between the stores and the release.
"""

import torch
import triton
import triton.language as tl

BLOCK, WARPS, PAIRS = 2048, 16, 64


@triton.jit
def hands_over(x, tile, flag, y, BLOCK: tl.constexpr, FIRST: tl.constexpr):
    at = tl.arange(0, BLOCK)
    pair = tl.program_id(0) // 2
    if tl.program_id(0) % 2 == 0:
        value = tl.load(x + tl.where(at < FIRST, 0, (pair * BLOCK + at) * 8))
        tl.store(tile + pair * BLOCK + at, value + 1)
        tl.atomic_xchg(flag + pair, 1, sem="release")
    else:
        while tl.atomic_add(flag + pair, 0, sem="acquire") == 0:
            pass
        tl.debug_barrier()
        tl.store(y + pair * BLOCK + at, tl.load(tile + pair * BLOCK + at))


def stale_values(pairs: int) -> int:
    """How many values are not those that the other program stored, in one launch."""
    x = torch.zeros(pairs * BLOCK * 8, device="cuda", dtype=torch.int32)
    tile, y = (torch.zeros(pairs * BLOCK, device="cuda", dtype=torch.int32) for _ in range(2))
    flag = torch.zeros(pairs, device="cuda", dtype=torch.int32)
    # L2 holds x no longer: the other warps wait for DRAM.
    torch.zeros(1 << 25, device="cuda")
    hands_over[(2 * pairs,)](x, tile, flag, y, BLOCK=BLOCK, FIRST=BLOCK // WARPS, num_warps=WARPS)
    return int((y != 1).sum())


if __name__ == "__main__":
    stale_values(1)

"""Compiles a few small kernels for one target; the logs beside this file are what MLIR printed meanwhile.

    python kernels.py TARGET KERNEL[:OPTION=VALUE,…] …
"""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    tl.store(y + offsets, tl.load(x + offsets, mask=inside) + 1.0, mask=inside)


@triton.jit(noinline=True)
def doubled(value):
    return value * 2.0


@triton.jit(noinline=True)
def halved(value):
    return value * 0.5


@triton.jit
def calls(x, y, BLOCK: tl.constexpr):
    value = tl.load(x)
    offsets = tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.full((BLOCK,), 1.0, tl.float32) * halved(doubled(value) + doubled(value + 1.0)))


@triton.jit
def dot(a, b, c, K, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    at = rows[:, None] * BLOCK + rows[None, :]
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        total = tl.dot(tl.load(a + at + k), tl.load(b + at + k), total)
    tl.store(c + at, total.to(tl.float16))


SIGNATURES = {
    "add": (add, {"x": "*fp32", "y": "*fp32", "count": "i32"}, 64),
    "calls": (calls, {"x": "*fp32", "y": "*fp32"}, 32),
    "dot": (dot, {"a": "*fp16", "b": "*fp16", "c": "*fp16", "K": "i32"}, 16),
}


def main(target, *asked):
    backend, arch = target.split(":")
    gpu = GPUTarget(backend, int(arch) if backend == "cuda" else arch, 32 if backend == "cuda" else 64)
    for item in asked:
        name, _, rest = item.partition(":")
        options = {key: int(value) for key, value in (pair.split("=") for pair in rest.split(",") if pair)}
        function, signature, block = SIGNATURES[name]
        constants = {"BLOCK": options.pop("BLOCK", block)}
        pointers = [index for index, kind in enumerate(signature.values()) if kind[0] == "*"]
        attributes = {(index,): [["tt.divisibility", 16]] for index in pointers}
        source = ASTSource(
            fn=function, signature={**signature, "BLOCK": "constexpr"}, constexprs=constants, attrs=attributes
        )
        triton.compile(source, target=gpu, options={"num_warps": 1, **options})


if __name__ == "__main__":
    main(*sys.argv[1:])

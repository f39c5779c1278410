"""Makes the files of this folder: python /kernels/make.py, with this folder copied to /kernels.

Triton 3.9.0 compiled them, its ptxas, nvdisasm and cuobjdump (CUDA 13) did the rest; no GPU is needed. The folder that
Triton was installed in is written as /usr/local/lib.
"""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent
INSTALLED = f"{sys.prefix}/lib/".encode()  # to be of the same length as what takes its place: binaries hold it too
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def exponential(x):
    return tl.exp(x)


@triton.jit
def softmax_kernel(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
    raised = exponential(value - tl.max(value, 0))
    tl.store(out + row * stride + i, raised / tl.sum(raised, 0), mask=i < n)


@triton.jit
def matmul_kernel(a, b, c, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + m[:, None] * sa + k[None, :]
    pb = b + k[:, None] * sb + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK * sb
    tl.store(c + m[:, None] * sc + n[None, :], acc.to(tl.float16))


KERNELS = {
    "add": (add_kernel, "x:*fp32 y:*fp32 out:*fp32 n:i32", {"BLOCK": 1024}),
    "softmax": (softmax_kernel, "x:*fp32 out:*fp32 stride:i32 n:i32", {"BLOCK": 1024}),
    "matmul": (matmul_kernel, "a:*fp16 b:*fp16 c:*fp16 K:i32 sa:i32 sb:i32 sc:i32", {"BM": 64, "BN": 64, "BK": 32}),
}


def compiled(name, arch, sizes=None, **options):
    kernel, parameters, constants = KERNELS[name]
    constants = {**constants, **(sizes or {})}
    signature = dict(word.split(":") for word in parameters.split()) | dict.fromkeys(constants, "constexpr")
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(len(parameters.split()))}
    warp = 64 if arch.startswith("gfx9") else 32
    target = GPUTarget("cuda", int(arch), 32) if arch.isdigit() else GPUTarget("hip", arch, warp)
    return triton.compile(ASTSource(kernel, signature, constants, aligned), target=target, options=options)


def keep(name, data):
    data = data if isinstance(data, bytes) else data.encode()
    (HERE / name).write_bytes(data.replace(INSTALLED, b"/usr/local/lib/"))


def ran(tool, *arguments):
    done = subprocess.run([str(TOOLS / tool), *arguments], capture_output=True, check=True, cwd=HERE)
    return done.stdout or done.stderr  # ptxas says all on stderr, nvdisasm only its warnings


def main():
    for name, arch in [("add", "75"), ("add", "80"), ("add", "120"), ("softmax", "90")]:
        keep(f"{name}_{arch}.cubin", compiled(name, arch).asm["cubin"])
        keep(f"{name}_{arch}.nvdisasm.txt", ran("nvdisasm", "-c", "-g", "-gi", "-hex", f"{name}_{arch}.cubin"))
    for name in ("softmax_90", "add_120"):
        listing = ran("nvdisasm", "-c", "-plr", f"{name}.cubin")
        (HERE / f"{name}.plr.txt.xz").write_bytes(lzma.compress(listing, preset=9 | lzma.PRESET_EXTREME))
    keep("softmax_90.live.txt", ran("nvdisasm", "-c", "-lrm", "count", "softmax_90.cubin"))
    keep("softmax_90.usage.txt", ran("cuobjdump", "-res-usage", "softmax_90.cubin"))
    for name, arch in [("softmax", "90"), ("matmul", "100")]:
        keep(f"{name}_{arch}.ptx", compiled(name, arch).asm["ptx"])
    for name, arch in [("matmul", "gfx942"), ("softmax", "gfx1100"), ("add", "gfx1201"), ("add", "gfx90a")]:
        keep(f"{name}_{arch}.amdgcn", compiled(name, arch).asm["amdgcn"])
    keep("add_gfx942.hsaco", compiled("add", "gfx942").asm["hsaco"])
    # A kernel held to 32 registers, which spills.
    (HERE / "spill.ptx").write_text(
        compiled("matmul", "80").asm["ptx"].replace(".reqntid 128", ".reqntid 128\n.maxnreg 32")
    )
    log = ran("ptxas", "-v", "-arch", "sm_80", "spill.ptx", "-o", "spill.cubin")
    keep("spill_80.ptxas.txt", log)
    keep("spill_80.usage.txt", ran("cuobjdump", "-res-usage", "spill.cubin"))
    keep("spill_80.local.txt", "\n".join(
        line.split("*/")[1].strip() for line in ran("nvdisasm", "-c", "spill.cubin").decode().splitlines()
        if "STL" in line or "LDL" in line) + "\n")
    (HERE / "spill.ptx").unlink()
    (HERE / "spill.cubin").unlink()
    keep("llvm_occupancy.json", json.dumps(llvm_occupancy(), indent=0))


def llvm_occupancy():
    """What LLVM prints in its `Kernel info` comments, with the number of warps."""
    rows = []
    for arch in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"):
        for m, n, warps in [(16, 16, 1), (64, 64, 4), (128, 64, 4), (128, 128, 4), (256, 128, 4), (256, 128, 8), (256, 256, 4)]:
            try:
                text = compiled("matmul", arch, {"BM": m, "BN": n}, num_warps=warps).asm["amdgcn"]
            except Exception as error:
                print(arch, m, n, warps, repr(error)[:100])
                continue
            info = dict(line[2:].split(": ") for line in text.splitlines() if line.startswith("; ") and ": " in line)
            names = ("TotalNumSgprs", "NumVgprs", "NumAgprs", "Occupancy")
            rows.append({"arch": arch, "warps": warps, **{name: int(info.get(name, 0)) for name in names}})
    return rows


if __name__ == "__main__":
    main()

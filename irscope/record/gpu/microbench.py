"""Microbenchmarks in PTX that tell the timing constants of the GPU that is there, in a process with torch.

`python -m irscope.record.gpu.microbench` prints the constants of the clock as JSON: what a kernel measures here, times
what the clock takes for an H100 over what the same kernel measured there: so what was fitted there is carried over.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import torch

from irscope.record.triton import api as triton_api

LOOP = 16
REPEATS = 7
_DATA_BYTES = 4 << 30
_HEAD = ".version 8.4\n.target sm_90a\n.address_size 64\n"
_REGISTERS = """
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<320>; .reg .f32 %f<320>; .reg .b64 %rd<64>; .reg .f64 %d<32>;
"""


def entry(body: str, before: str = "", after: str = "", shared: bool = False) -> str:
    """Write a kernel that stores for each CTA in `out` the clocks until all its warps did `body`.

    `%rd1` is `data`, `%rd2` is `sink`, `%r1` the thread, `%r2` the CTA, `%r3` n, `%r4` the address of shared memory.
    """
    memory = ".extern .shared .align 1024 .b8 smem[];\n"
    base = "mov.u32 %r4, smem;" if shared else ""
    return f"""{_HEAD}{memory}
.visible .entry k(.param .u64 out, .param .u64 data, .param .u64 sink, .param .u32 n) {{
{_REGISTERS}
ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [sink]; ld.param.u32 %r3, [n];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; {base}
{before}
bar.sync 0;
mov.u64 %rd3, %clock64;
{body}
bar.sync 0;
mov.u64 %rd4, %clock64;
sub.s64 %rd5, %rd4, %rd3;
{after}
setp.ne.u32 %p7, %r1, 0;
@%p7 bra END;
mul.wide.u32 %rd6, %r2, 8;
add.s64 %rd6, %rd6, %rd0;
st.global.u64 [%rd6], %rd5;
END:
ret;
}}
"""


def assemble(text: str) -> bytes:
    tool = triton_api.nvidia_tools()["ptxas"]
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        major, minor = torch.cuda.get_device_capability()
        architecture = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
        source.write_text(text.replace("sm_90a", architecture))
        command = [str(tool), f"-arch={architecture}", str(source), "-o", str(binary)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode:
            raise RuntimeError(f"ptxas: {answer.stderr[:2000]}")
        return binary.read_bytes()


@dataclass(slots=True)
class LoadedKernel:
    function: ctypes.c_void_p
    driver: ctypes.CDLL

    @classmethod
    def load(cls, binary: bytes, shared_bytes: int = 0) -> LoadedKernel:
        torch.cuda.current_stream()
        driver = ctypes.CDLL("libcuda.so.1")
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(driver.cuModuleLoadData(ctypes.byref(module), binary), "cuModuleLoadData")
        _check(driver.cuModuleGetFunction(ctypes.byref(function), module, b"k"), "cuModuleGetFunction")
        if shared_bytes > 48 * 1024:
            _check(driver.cuFuncSetAttribute(function, 8, shared_bytes), "cuFuncSetAttribute")
        return cls(function, driver)

    def launch(
        self, ctas: int, threads: int, tensors: Sequence[torch.Tensor], n: int = 0, shared_bytes: int = 0
    ) -> None:
        values = [ctypes.c_uint64(tensor.data_ptr()) for tensor in tensors] + [ctypes.c_uint32(n)]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        grid = (ctas, 1, 1, threads, 1, 1)
        code = self.driver.cuLaunchKernel(self.function, *grid, shared_bytes, stream, pointers, None)
        _check(code, "cuLaunchKernel")


def _check(code: int, name: str) -> None:
    if code:
        raise RuntimeError(f"{name}: CUDA error {code}")


@dataclass(frozen=True, slots=True)
class TimedKernel:
    """A kernel, and what a warp of it does between its two readings of the clock."""

    text: str
    operations: int
    shared_bytes: int = 0


def looped(lines: str, count: int = LOOP) -> str:
    return f"mov.u32 %r9, {count};\nLOOP:\n{lines}\nsub.u32 %r9, %r9, 1; setp.ne.u32 %p1, %r9, 0;\n@%p1 bra LOOP;\n"


def _fused_multiply_adds() -> TimedKernel:
    """Eight chains of FMAs of FP32, for as long as it takes to tell the clock."""
    registers = range(10, 18)
    before = "mov.u32 %r200, %r3; add.u32 %r201, %r3, 3; cvt.rn.f32.u32 %f200, %r3; cvt.rn.f32.u32 %f201, %r201;"
    sets = "\n".join(f"cvt.rn.f32.u32 %f{i}, %r1;" for i in registers)
    body = looped("\n".join(f"fma.rn.f32 %f{i}, %f{i}, %f200, %f201;" for i in [*registers] * 16), 40_000)
    stores = "\n".join(f"st.global.f32 [%rd2+{4 * chain}], %f{i};" for chain, i in enumerate(registers))
    return TimedKernel(entry(body, f"{before}\n{sets}", stores), 40_000 * 128)


def _chase(cache: str, steps: int = 512) -> TimedKernel:
    """Each load gives the address of the next: the latency of one level of memory."""
    lines = f"ld.global{cache}.u64 %rd10, [%rd10];\n" * 16
    body = looped(lines, steps // 16)
    return TimedKernel(entry(body, "mov.u64 %rd10, %rd1;", "st.global.u64 [%rd2], %rd10;"), steps)


def reads_of_one(cache: str, span_bytes: int, turns: int = 64) -> TimedKernel:
    """Loads of 16 bytes for each thread, again and again within `span_bytes`."""
    lines = []
    for turn in range(16):
        lines.append("and.b32 %r11, %r10, %r12; cvt.u64.u32 %rd11, %r11; add.s64 %rd11, %rd11, %rd1;")
        registers = ", ".join(f"%r{20 + 4 * turn + part}" for part in range(4))
        lines.append(f"ld.volatile.global.v4.u32 {{{registers}}}, [%rd11];" if not cache else
                     f"ld.global{cache}.v4.u32 {{{registers}}}, [%rd11];")  # fmt: skip
        lines.append("add.u32 %r10, %r10, %r13;")
    lines += [f"xor.b32 %r14, %r14, %r{20 + part};" for part in range(64)]
    before = (
        f"mov.u32 %r12, {span_bytes - 1}; mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; mul.lo.u32 %r13, %r5, 16;"
        "mul.lo.u32 %r10, %r2, 65536; mad.lo.u32 %r10, %r1, 16, %r10; mov.u32 %r14, 0;"
    )
    return TimedKernel(entry(looped("\n".join(lines), turns), before, "st.global.u32 [%rd2], %r14;"), turns * 16)


def stream(words: int, unroll: int, store: bool = False) -> str:
    """Read (or write) n bytes × 64 KiB once, in order: each thread has `unroll` accesses of `words` words in flight."""
    kind = {1: "u32", 2: "v2.u32", 4: "v4.u32"}[words]
    size = 4 * words
    lines = []
    for number in range(unroll):
        registers = ", ".join(f"%r{20 + words * number + part}" for part in range(words))
        registers = f"{{{registers}}}" if words > 1 else registers
        lines.append(f"st.global.{kind} [%rd10], {registers};" if store else f"ld.global.{kind} {registers}, [%rd10];")
        lines.append("add.s64 %rd10, %rd10, %rd12;")
    if not store:
        lines += [f"xor.b32 %r14, %r14, %r{20 + part};" for part in range(words * unroll)]
    body = f"LOOP:\n{chr(10).join(lines)}\nsetp.lt.u64 %p1, %rd10, %rd13;\n@%p1 bra LOOP;"
    set_registers = "\n".join(f"mov.u32 %r{20 + part}, %r1;" for part in range(words * unroll))
    before = f"""
mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; mad.lo.u32 %r10, %r2, %r5, %r1;
mul.wide.u32 %rd10, %r10, {size}; add.s64 %rd10, %rd10, %rd1;
mul.lo.u32 %r11, %r5, %r6; mul.wide.u32 %rd12, %r11, {size};
mul.wide.u32 %rd13, %r3, 65536; add.s64 %rd13, %rd13, %rd1; mov.u32 %r14, 0;
{set_registers if store else ""}"""
    return entry(body, before, "setp.eq.u32 %p2, %r14, 12345; @%p2 st.global.u32 [%rd2], %r14;")


def nothing() -> TimedKernel:
    return TimedKernel(entry(""), 1)


class Microbenchmarks:
    def __init__(self) -> None:
        self.out = torch.zeros(1 << 16, device="cuda", dtype=torch.int64)
        self.sink = torch.zeros(1 << 16, device="cuda", dtype=torch.int64)
        self.data = torch.zeros(_DATA_BYTES // 8, device="cuda", dtype=torch.int64)
        self.units = torch.cuda.get_device_properties(0).multi_processor_count

    def timings(
        self, program: LoadedKernel, ctas: int, threads: int, n: int = 3, shared_bytes: int = 0,
        before: Callable[[], object] = lambda: None,
    ) -> Iterator[float]:  # fmt: skip
        """Seconds between two events around a launch, again and again; `before`: is called before each."""
        while True:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            before()
            begin.record()
            program.launch(ctas, threads, (self.out, self.data, self.sink), n, shared_bytes)
            end.record()
            torch.cuda.synchronize()
            yield begin.elapsed_time(end) * 1e-3

    def seconds(self, text: str, ctas: int, threads: int, n: int = 3, shared_bytes: int = 0) -> list[float]:
        """The same of each repeat after two for warming."""
        program = LoadedKernel.load(assemble(text), shared_bytes)
        return list(islice(self.timings(program, ctas, threads, n, shared_bytes), 2, REPEATS + 2))


def clock_rate(bench: Microbenchmarks) -> list[float]:
    """Cycles in a second under an arithmetic load, by a long kernel's own clocks over its time."""
    program = LoadedKernel.load(assemble(_fused_multiply_adds().text))
    return [float(bench.out[0].item()) / taken for taken in islice(bench.timings(program, bench.units, 1024), REPEATS)]


def launch_seconds(bench: Microbenchmarks) -> list[float]:
    """Seconds between two events around a kernel that does nothing, after 256 MB were set to zero."""
    fill = torch.empty(64 << 20, device="cuda", dtype=torch.int32)
    program = LoadedKernel.load(assemble(nothing().text))
    return list(islice(bench.timings(program, 1, 32, before=fill.zero_), 200))


def latency(bench: Microbenchmarks, cache: str, span: int, stride: int, *, warm: bool) -> list[float]:
    """Cycles of a load that waits for the one before, `stride` bytes apart in an order at random within `span`."""
    places = torch.randperm(span // stride, device="cuda") * stride
    bench.data[places // 8] = bench.data.data_ptr() + torch.roll(places, -1)
    # The chase begins at offset 0, which the permutation holds. A launch begins with an empty L1: 16 misses among 4096.
    timed = _chase(cache, 4096 if cache == ".ca" else 512)
    program = LoadedKernel.load(assemble(timed.text))
    values = []
    for repeat in range(REPEATS + 1):
        if not warm:
            bench.data[(64 << 20) // 8 : (1 << 30) // 8 : 1].add_(0)
        program.launch(1, 1, (bench.out, bench.data, bench.sink))
        if repeat:
            values.append(float(bench.out[0].item()) / timed.operations)
    return values


_ON_H100 = {
    # constant: (what the clock takes for an H100, what the kernel below measured on one)
    "clock_hz": (1.97e9, 1.974e9),
    "launch_s": (3.0e-6, 3.2e-6),
    "l2_latency": (284.0, 282.7),
    "dram_latency": (700.0, 693.1),
    "dram_bytes_per_s": (3.35e12, 2.7858e12),
    "l2_bytes_per_s": (10.0e12, 8.948e12),
}


def constants() -> dict[str, Any]:
    """The GPU's name and the constants of the clock that its kernels tell; raises RuntimeError."""
    bench = Microbenchmarks()
    measured = {
        "clock_hz": median(clock_rate(bench)),
        "launch_s": median(launch_seconds(bench)),
        "l2_latency": median(latency(bench, ".cg", 2 << 20, 4096, warm=True)),
        "dram_latency": median(latency(bench, ".cg", 4 << 30, 8 << 20, warm=False)),
    }
    bench.data[: (64 << 20) // 8].zero_()
    total = 1 << 30
    taken = bench.seconds(stream(4, 4), 8 * bench.units, 256, total >> 16)
    measured["dram_bytes_per_s"] = total / median(taken)
    timed = reads_of_one(".cg", 32 << 20, 256)
    moved = timed.operations * 256 * 16 * bench.units
    measured["l2_bytes_per_s"] = moved / median(bench.seconds(timed.text, bench.units, 256))
    properties = torch.cuda.get_device_properties(0)
    scaled = {name: measured[name] * model / there for name, (model, there) in _ON_H100.items()}
    return {
        "device": properties.name,
        "constants": scaled | {"units": bench.units, "l2_size": properties.L2_cache_size},
    }


if __name__ == "__main__":
    print(json.dumps(constants()))

"""Kernels written in PTX: assembled by Triton's ptxas, loaded and launched through the CUDA driver."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import triton

_HEAD = ".version 8.4\n.target sm_90a\n.address_size 64\n"
_REGISTERS = """
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<320>; .reg .f32 %f<320>; .reg .b64 %rd<64>; .reg .f64 %d<32>;
"""


def entry(body: str, before: str = "", after: str = "", shared: bool = False) -> str:
    """Write a kernel `k(out, data, sink, n)` that stores for each CTA the clocks until all its warps did `body`.

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
    """Assemble PTX for sm_90a; raises RuntimeError with the assembler's message."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(text)
        command = [str(tool), "-arch=sm_90a", str(source), "-o", str(binary)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode:
            raise RuntimeError(f"ptxas: {answer.stderr[:2000]}")
        return binary.read_bytes()


@dataclass(slots=True)
class Program:
    """A loaded kernel."""

    function: ctypes.c_void_p
    driver: ctypes.CDLL

    @classmethod
    def load(cls, binary: bytes, shared_bytes: int = 0) -> Program:
        """Load a cubin into torch's context."""
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
        """Launch on torch's current stream; `tensors`: out, data and sink."""
        values = [ctypes.c_uint64(tensor.data_ptr()) for tensor in tensors] + [ctypes.c_uint32(n)]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        grid = (ctas, 1, 1, threads, 1, 1)
        code = self.driver.cuLaunchKernel(self.function, *grid, shared_bytes, stream, pointers, None)
        _check(code, "cuLaunchKernel")


def _check(code: int, name: str) -> None:
    if code:
        raise RuntimeError(f"{name}: CUDA error {code}")

"""`python -m irscope.record.gpu.probe [N]`: prints one line of JSON on the GPUs that are there.

Without a number: how many there are, or why none can be used. With one: that device's name, capability and driver, and
whether a kernel compiled for it gives the right result there; and what it reaches, in a large copy and in torch's
matrix products.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from irscope.record.gpu.timing import copy_bytes_per_second, matmul_flops_per_second
from irscope.record.triton import api as triton_api

_SIZE, _BLOCK = 256, 64
_LAUNCHES = 20
_DTYPES = ("float16", "bfloat16", "float32")


def count() -> dict[str, Any]:
    """How many devices torch sees, or why it sees none."""
    if torch.cuda.is_available():
        return {"devices": torch.cuda.device_count(), "why": ""}
    built = torch.version.cuda or torch.version.hip
    why = "this torch is built without CUDA and ROCm" if built is None else "torch finds no device and driver for it"
    return {"devices": 0, "why": f"{why} (torch {torch.__version__})"}


def _try_device(number: int) -> dict[str, Any]:
    """Compile, launch and check the sample kernel on one device."""
    torch.cuda.set_device(number)
    properties = torch.cuda.get_device_properties(number)
    major, minor = torch.cuda.get_device_capability(number)
    answer: dict[str, Any] = {
        "device": number,
        "name": properties.name,
        "capability": f"{major}.{minor}",
        "memory_bytes": properties.total_memory,
        "driver": _driver_version(),
        "error": "",
    }
    with tempfile.TemporaryDirectory(prefix="irscope-") as folder, triton_api.private_cache(Path(folder)):
        try:
            answer |= _run_sample()
            answer |= _measure(f"cuda:{major}{minor}")
        except Exception as error:
            text = str(error).strip().splitlines()
            answer["error"] = f"{type(error).__name__}: {text[0] if text else ''}"
    return answer


def _run_sample() -> dict[str, Any]:
    """The sample kernel's error, against float64 on the host, and its times."""
    from irscope.record.triton.sample_kernel import sample_matmul

    triton_api.silence_known_noise()
    kernel: Any = sample_matmul
    a, b = (torch.randn(_SIZE, _SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.full((_SIZE, _SIZE), float("nan"), device="cuda", dtype=torch.float32)
    grid = (_SIZE // _BLOCK, _SIZE // _BLOCK)
    started = time.perf_counter()
    kernel[grid](a, b, out, _SIZE, BLOCK=_BLOCK)
    torch.cuda.synchronize()
    compile_s = time.perf_counter() - started
    expected = a.cpu().double() @ b.cpu().double()
    error = float((out.cpu().double() - expected).norm() / expected.norm())
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times: list[float] = []
    for _ in range(_LAUNCHES):
        start.record()
        kernel[grid](a, b, out, _SIZE, BLOCK=_BLOCK)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1000.0)
    # A NaN is no number that is small enough.
    return {
        "relative_error": error,
        "right": error < 1e-3,
        "compile_s": compile_s,
        "launch_us": sorted(times)[_LAUNCHES // 2],
    }


def _measure(cuda_target: str) -> dict[str, Any]:
    """What the device reaches, and the target that it is."""
    arch = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "gcnArchName", "")
    rates = {name: matmul_flops_per_second(name) for name in _DTYPES}
    return {
        "target": f"hip:{arch.partition(':')[0]}" if torch.version.hip else cuda_target,
        "bytes_per_s": copy_bytes_per_second(),
        "flops_per_s": {name: rate for name, rate in rates.items() if rate is not None},
    }


def _driver_version() -> str:
    """The version of the GPU's driver; empty where it says none."""
    for path in ("/sys/module/nvidia/version", "/sys/module/amdgpu/version"):
        with contextlib.suppress(OSError):
            return Path(path).read_text().strip()
    with contextlib.suppress(OSError, IndexError):
        # NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build  (…)
        words = Path("/proc/driver/nvidia/version").read_text().splitlines()[0].split()
        return next(word for word in words if word[:1].isdigit() and "." in word)
    with contextlib.suppress(AttributeError, RuntimeError):
        version = int(getattr(torch._C, "_cuda_getDriverVersion")())  # noqa: B009 - not in torch's own types
        return f"for CUDA {version // 1000}.{version % 1000 // 10}"
    return ""


def main() -> None:
    """Answer, and end without taking torch down."""
    answer = count() if len(sys.argv) < 2 else _try_device(int(sys.argv[1]))
    print(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

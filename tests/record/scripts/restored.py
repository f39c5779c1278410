"""Leaves the virtual GPU in several ways, and finds everything as it was."""

import contextlib
import sys

import triton
import triton.language as tl
from triton.compiler.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner

from irscope.model.capture import Target
from irscope.record.virtual.gpu import virtual_gpu


class Buffer:
    dtype = "fp32"

    def data_ptr(self):
        return 4096


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (32, 64)], key=["n"])
@triton.jit
def fill_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)


def torch_state():
    if "torch" not in sys.modules:
        return {}
    import torch

    owners = {
        "torch": torch,
        "cuda": torch.cuda,
        "memory": torch.cuda.memory,
        "version": torch.version,
        "autograd": torch.autograd.graph,
        "testing": torch.testing,
        "tensor": torch.Tensor,
        "storage": torch.UntypedStorage,
        "accelerator": torch.accelerator,
        "compile": torch._compile,
    }
    state = {name: dict(vars(owner)) for name, owner in owners.items()}
    state["modes"] = torch._C._len_torch_function_stack()
    state["default"] = torch.get_default_device()
    return state


def triton_state():
    driver = triton.runtime.driver
    return [
        dict(vars(Autotuner)),
        dict(vars(CompiledKernel)),
        dict(vars(triton.testing)),
        driver._active,
        driver._default,
    ]


with contextlib.suppress(ImportError):
    import torch  # noqa: F401 - where it is installed, it is stood in for at once below
# Triton 3.6's AMD backend imports torch at every launch.
target = "hip:gfx942" if "torch" in sys.modules else "cuda:90"
timed = []
outer_driver = triton.runtime.driver._active
before = torch_state(), triton_state(), list(sys.meta_path)
for leaving in (None, ValueError("the program failed"), SystemExit(2)):
    try:
        timed.clear()
        with virtual_gpu(Target.parse(target), on_timed=lambda *row: timed.append(row)):
            assert triton.runtime.driver.active.get_current_target().backend == target.partition(":")[0]
            fill_kernel[(1,)](Buffer(), 7)
            assert [row[2].index for row in timed] == [0]
            if "torch" in sys.modules:
                sys.modules["torch"].set_default_device("cuda")
            if leaving is not None:
                raise leaving
    except (ValueError, SystemExit) as error:
        if error is not leaving:
            raise
    after = torch_state(), triton_state(), list(sys.meta_path)
    for old, new in zip(before, after, strict=True):
        if isinstance(old, dict):
            for name, value in old.items():
                changed = (
                    [key for key in value if value[key] is not new[name].get(key)] if isinstance(value, dict) else []
                )
                assert not changed, (name, changed)
                assert value == new[name] or isinstance(value, dict), name
        else:
            assert old == new
    assert not fill_kernel.cache
    assert not any("hip" in str(cached[2]) for cached in fill_kernel.fn.device_caches.values())
print("restored")

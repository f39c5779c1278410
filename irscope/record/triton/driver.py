"""A Triton driver for a GPU that is not there: kernels compile for its target, and launches are checked but do nothing.

Source: `extractPointer` (Triton 3.6: `getPointer`) and `_launch` in `triton/backends/{nvidia,amd}/driver.{c,py}`. A
pointer argument may be None, a number, or have a method `data_ptr` whose result, unless 0, the driver must know: memory
of the device, or memory of the host that it has pinned.
"""

from __future__ import annotations

import importlib
import itertools
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from irscope.device.parts import DevicePart
from irscope.errors import ParseError
from irscope.ir.asm.resources import parse_elf, read_cubin
from irscope.model.capture import Target
from irscope.record.triton.api import gpu_target
from irscope.record.triton.autotuner import call_once, is_rehearsal
from irscope.record.triton.patches import Patches, nothing, replaced_item

_IsHost = Callable[[Any], bool]
"""Whether an object with a method `data_ptr` is a tensor in host memory that the driver does not know."""

_LARGEST_GRID = (2**31 - 1, 65535, 65535)
"""Source: CUDA C++ Programming Guide, Technical Specifications per Compute Capability; the same for all of them."""


def _check_arguments(
    source: Any, metadata: Any, arguments: tuple[Any, ...], backend_name: str, is_host: _IsHost
) -> None:
    """Raise what Triton raises for a pointer argument that the GPU cannot reach; `arguments`: constants included."""
    signature = getattr(source, "signature", None)
    if not isinstance(signature, dict):
        return
    by_address = bool(getattr(metadata, "tensordesc_meta", None))
    for index, (kind, argument) in enumerate(flat_arguments(tuple(signature.values()), arguments)):
        pointer = argument
        if kind.startswith("tensordesc"):
            # Where the part has no hardware for descriptors, the descriptor's pointer is an argument like any other.
            pointer = None if by_address else getattr(argument, "base", None)
        elif not kind.startswith("*"):
            continue
        if pointer is not None and not isinstance(pointer, int) and is_host(pointer):
            raise ValueError(refusal_of(backend_name).replace("%d", str(index)))


def _check_grid(grid: tuple[int, int, int]) -> None:
    if 0 not in grid and any(size > largest for size, largest in zip(grid, _LARGEST_GRID, strict=True)):
        raise RuntimeError("Triton Error [CUDA]: invalid argument")


def flat_arguments(kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """(kind of the signature, argument) of each argument of a launch, those within tuples one by one."""
    for kind, argument in zip(kinds, arguments, strict=False):
        if isinstance(kind, tuple):
            yield from flat_arguments(kind, tuple(argument))
        else:
            yield str(kind), argument


def refusal_of(backend_name: str) -> str:
    """The installed launcher's message: that of NVIDIA in 3.7 and later does not number the arguments."""
    driver = importlib.import_module(f"triton.backends.{backend_name}.driver")
    folder = Path(str(driver.__file__)).parent
    text = "".join(path.read_text("utf-8") for path in (folder / "driver.py", folder / "driver.c") if path.exists())
    counted = "Pointer argument (at %d) cannot be"
    begin = counted if counted in text else "Pointer argument cannot be"
    return f"{begin} accessed from Triton (cpu tensor?)"


def binary_use(binary: bytes, name: str) -> tuple[int, int]:
    """(registers, spilled words) of one kernel of a cubin or an hsaco file (`.vgpr_count`), as the driver reports them.

    Of a binary that cannot be read 32 registers and no spills; never 0 registers, by which scripts divide.
    """
    registers: int | None = None
    spills = 0
    if b".vgpr_count" in binary:
        registers = _packed_number(binary, b".vgpr_count")
        spills = _packed_number(binary, b".vgpr_spill_count")
    else:
        try:
            kernel = read_cubin(parse_elf(binary)).get(name)
        except ParseError:
            kernel = None
        if kernel is not None:
            registers, spills = kernel.registers, (kernel.stack_bytes or 0) // 4
    return registers or 32, spills


def _packed_number(binary: bytes, key: bytes) -> int:
    after = binary.partition(key)[2]
    if not after or after[0] < 0x80:
        return after[0] if after else 0
    size = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}.get(after[0], 0)
    return int.from_bytes(after[1 : 1 + size], "big")


class CublasLt:
    """Replaces `triton._C.libtriton.nvidia.cublas.CublasLt`; its results are tensors that the caller passes."""

    def __init__(self, workspace: Any) -> None:
        self._workspace = workspace

    def matmul(self, *_: Any) -> None:
        """Would write to its last tensor, which has no data."""

    gemm = block_scaled_matmul_mxfp8 = block_scaled_matmul_nvfp4 = matmul


def install_cublas(patches: Patches) -> None:
    from triton._C.libtriton import nvidia

    if hasattr(nvidia, "cublas"):
        patches.set_known(nvidia.cublas, {"CublasLt": CublasLt})


def profiler_replacements(patches: Patches) -> dict[str, Callable[[ModuleType], None]]:
    """Module of proton → what to call with it after its import; `patches` take the replacements."""
    return {
        # A module of C++, whose functions are looked up at each call.
        "triton.profiler": lambda _: patches.set_known(
            importlib.import_module("triton._C.libproton").proton, _profiler_answers()
        ),
        # There is no profile to read: `finalize` wrote none.
        "triton.profiler.viewer": lambda viewer: patches.set_known(
            viewer, {"parse": lambda *_, **__: (None, []), "print_tree": nothing, "read": nothing}
        ),
    }


def _profiler_answers() -> dict[str, Any]:
    sessions = itertools.count()
    names = (
        "activate activate_all deactivate deactivate_all finalize finalize_all clear_data set_metric_kernels "
        "enter_op exit_op enter_instrumented_op exit_instrumented_op init_function_metadata "
        "destroy_function_metadata add_metrics"
    )
    return dict.fromkeys(names.split(), nothing) | {
        "start": lambda *_, **__: next(sessions),
        "get_data": lambda *_, **__: "[]",
        "get_data_msgpack": lambda *_, **__: b"\x90",
        "advance_data_phase": lambda *_, **__: 0,
        "is_data_phase_complete": lambda *_, **__: True,
    }


OnLaunch = Callable[[Any, tuple[int, int, int], Any, tuple[Any, ...]], None]
"""Called with the compiled kernel, its grid, its source and its arguments."""


class _DeviceIndex(int):
    """The index 0 of a device of its own: Triton keeps kernels by device, and must not mix these with real ones."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)


class _VirtualUtils:
    def __init__(self, part: DevicePart) -> None:
        self._properties = {
            "max_shared_mem": part.shared_bytes_per_block,
            "max_num_regs": part.registers_per_multiprocessor,
            "multiprocessor_count": part.multiprocessor_count,
            "warpSize": part.warp_size,
            "sm_clock_rate": part.clock_khz,
            "mem_clock_rate": part.memory_clock_khz,
            "mem_bus_width": part.memory_bus_bits,
            "max_threads_per_sm": part.threads_per_multiprocessor,
            "cooperativeLaunch": 1,
            "arch": part.arch,
        }
        self._part = part

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return dict(self._properties)

    def get_device_capability(self, device: int) -> tuple[int, int]:
        return self._part.capability

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """The module, the function, registers, spills and the most threads a block may have."""
        return name, name, *binary_use(binary, name), self._part.threads_per_block

    unload_module = set_current_device = set_printf_fifo_size = nothing

    def get_current_device(self) -> int:
        return 0

    def get_default_stream(self, device: int) -> int:
        return 0

    def is_stream_capturing(self, stream: int) -> bool:
        return False

    def cuOccupancyMaxActiveClusters(self, *_: Any) -> int:
        return self._part.multiprocessor_count

    # 3.6 has one function for all forms of the descriptor, 3.7 and later one for each, and AMD's own.
    def fill_tma_descriptor(self, *_: Any) -> object:
        return object()

    fill_tma_descriptor_tiled = fill_tma_descriptor_im2col = create_tdm_descriptor = fill_tma_descriptor


class _VirtualLauncher:
    """Stands in for the code that passes a kernel's arguments to the GPU: checks and reports a launch, runs nothing."""

    def __init__(self, driver: _VirtualDriver, source: Any, metadata: Any) -> None:
        self._driver = driver
        self.source = source
        self.kernel: weakref.ref[Any] | None = None
        """The compiled kernel, set once it is loaded."""
        self._metadata = metadata
        self._scratch_bytes = getattr(metadata, "global_scratch_size", 0) or 0
        self._scratch_align = getattr(metadata, "global_scratch_align", 1) or 1
        self._ctas = getattr(metadata, "num_ctas", 1) or 1

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: Any,
        function: Any,
        kernel_metadata: Any,
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        *arguments: Any,
    ) -> None:
        if self._scratch_bytes:
            # A kernel that needs scratch memory fails on the real part too, where the script has set no allocator.
            _allocator()(grid_x * grid_y * grid_z * self._ctas * self._scratch_bytes, self._scratch_align, stream)
        if enter_hook is not None:
            enter_hook(launch_metadata)
        _check_arguments(
            self.source, self._metadata, arguments, _backend_name(self._driver.part), self._driver.is_host_memory
        )
        grid = int(grid_x), int(grid_y), int(grid_z)
        if self._driver.part.backend == "cuda":
            _check_grid(grid)
        kernel = self.kernel() if self.kernel is not None else None
        if self._driver.on_launch is not None and kernel is not None and not is_rehearsal():
            # Before it runs: what fails there was launched, and with what it finds in its tensors.
            self._driver.on_launch(kernel, grid, self.source, arguments)
        if self._driver.on_arguments is not None:
            self._driver.on_arguments(kernel, self.source, arguments)
        if self._driver.compute is not None and not is_rehearsal():
            self._driver.compute(kernel, self.source, grid, arguments)
        if exit_hook is not None:
            exit_hook(launch_metadata)


class _VirtualDriver:
    def __init__(self, part: DevicePart, target: Any, on_launch: OnLaunch | None, bare_interface: Any) -> None:
        self.part = part
        self.on_launch = on_launch
        self.on_arguments: Callable[[Any, Any, tuple[Any, ...]], None] | None = None
        """Called at each launch with the compiled kernel (None where it is gone), its source and the arguments."""
        self.compute: Callable[[Any, Any, tuple[int, int, int], tuple[Any, ...]], None] | None = None
        """Runs a launch: called with the compiled kernel, its source, the grid and the arguments; None runs nothing."""
        self.is_host_memory: _IsHost = lambda argument: False
        """Whether an argument is a tensor that the GPU cannot reach; not known without torch."""
        self.utils = _VirtualUtils(part)
        self.binary_ext = "cubin" if part.backend == "cuda" else "hsaco"
        self._target = target
        self._bare_interface = bare_interface
        self._device = _DeviceIndex(0)
        self._kernels: weakref.WeakSet[Any] = weakref.WeakSet()
        self._functions: weakref.WeakSet[Any] = weakref.WeakSet()

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return self._device

    # A profiler needs no memory where nothing runs, and no cache has to be cleared.
    set_current_device = clear_cache = allocate_default_profile_scratch = nothing

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return self.part.capability

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        # A program without torch is not made to load it.
        return sys.modules["torch"].cuda if "torch" in sys.modules else self._bare_interface

    def launcher_cls(self, source: Any, metadata: Any) -> _VirtualLauncher:
        return _VirtualLauncher(self, source, metadata)

    def get_benchmarker(self) -> Any:
        return call_once

    def get_empty_cache_for_benchmark(self) -> Any:
        if "torch" not in sys.modules:
            return None
        import torch

        return torch.empty(self.part.l2_bytes // 4, dtype=torch.int, device="cuda")

    def map_python_to_cpp_type(self, ty: str) -> str:
        module = importlib.import_module(f"triton.backends.{_backend_name(self.part)}.driver")
        return module.ty_to_cpp(ty)

    @staticmethod
    def is_active() -> bool:
        return True

    # The rest is for the virtual GPU itself, not for Triton.

    def adopt(self, kernel: Any) -> None:
        """Remember a kernel that was loaded, so that its launches can name it and `release` can unload it."""
        launcher = getattr(kernel, "_run", None)
        if isinstance(launcher, _VirtualLauncher):
            launcher.kernel = weakref.ref(kernel)
        self._kernels.add(kernel)
        function = getattr(kernel.src, "fn", None)
        if hasattr(function, "device_caches"):
            self._functions.add(function)

    def release(self) -> None:
        for kernel in self._kernels:
            kernel.module = kernel.function = kernel._run = None
        for function in self._functions:
            function.device_caches.pop(self._device, None)
        self._kernels.clear()
        self._functions.clear()


def install_driver(
    part: DevicePart, arch: str, on_launch: OnLaunch | None, bare_interface: Any, patches: Patches
) -> _VirtualDriver:
    """Make a virtual GPU the one that Triton compiles for, until `patches` are closed.

    `part`: the device whose properties it reports, for an architecture `arch` that may have no part of its own.
    `bare_interface`: the device interface for a program that has not imported torch.
    """
    from triton.backends import backends
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime import driver as active

    target = gpu_target(Target(part.backend, arch, part.warp_size))
    driver = _VirtualDriver(part, target, on_launch, bare_interface)
    # Not set_active and a read of `active` before it: that read would look for a real GPU, and raise without one.
    patches.set(active, "_active", driver)
    patches.set(active, "_default", driver)

    # Some programs, torch.compile's among them, make a driver of the backend's own class.
    name = _backend_name(part)
    backend: Any = backends[name]
    stand_in = type("Driver", (), {"__new__": lambda cls: driver, "is_active": staticmethod(lambda: True)})
    patches.enter_context(replaced_item(backends, name, type(backend)(compiler=backend.compiler, driver=stand_in)))

    load = CompiledKernel._init_handles

    def load_and_adopt(kernel: Any) -> None:
        try:
            load(kernel)
        finally:
            # Triton checks the number of threads of a block once the kernel is loaded, and may refuse it then.
            driver.adopt(kernel)

    patches.set(CompiledKernel, "_init_handles", load_and_adopt)
    patches.callback(driver.release)
    return driver


def _backend_name(part: DevicePart) -> str:
    return "nvidia" if part.backend == "cuda" else "amd"


def _allocator() -> Any:
    from triton.runtime import _allocation

    return _allocation._allocator.get()

"""`torch.cuda` and related modules on the virtual GPU."""

from __future__ import annotations

import os
import struct
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any

import torch

from irscope.device.parts import DevicePart
from irscope.record.triton.patches import AfterImport, Patches, nothing
from irscope.record.virtual.placeholders import current_following, measured
from irscope.record.virtual.places import is_called_by_program
from irscope.record.virtual.torch.handlers import LEGACY_TYPES
from irscope.record.virtual.torch.memory import CPU, CUDA, META, VirtualMemory, store_values, values_of
from irscope.record.virtual.torch.streams import Capturing, CudaGraph, Event, Nothing, Stream

_CUDA_VERSION = "12.8"
_HIP_VERSION = "6.4.43482"

# Functions of both `torch.cuda` and `torch.accelerator` that have no effect.
_QUIET = "synchronize set_stream empty_cache reset_peak_memory_stats reset_accumulated_memory_stats"


class _DeviceProperties(SimpleNamespace):
    """The result of `torch.cuda.get_device_properties`."""


def _properties_of(part: DevicePart) -> _DeviceProperties:
    major, minor = part.capability
    return _DeviceProperties(
        name=part.name,
        major=major,
        minor=minor,
        total_memory=part.memory_bytes,
        multi_processor_count=part.multiprocessor_count,
        max_threads_per_multi_processor=part.threads_per_multiprocessor,
        max_threads_per_block=part.threads_per_block,
        warp_size=part.warp_size,
        regs_per_multiprocessor=part.registers_per_multiprocessor,
        shared_memory_per_block=min(part.shared_bytes_per_block, 65536 if part.backend == "hip" else 49152),
        shared_memory_per_block_optin=part.shared_bytes_per_block,
        shared_memory_per_multiprocessor=part.shared_bytes_per_multiprocessor,
        L2_cache_size=part.l2_bytes,
        clock_rate=part.clock_khz,
        memory_clock_rate=part.memory_clock_khz,
        memory_bus_width=part.memory_bus_bits,
        gcnArchName=part.arch if part.backend == "hip" else part.name,
        is_integrated=0,
        is_multi_gpu_board=0,
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
        uuid="00000000-0000-0000-0000-000000000000",
    )


def install_cuda(part: DevicePart, memory: VirtualMemory, patches: Patches) -> None:
    cuda = torch.cuda
    properties = _properties_of(part)
    stream = Stream()
    device_guard = _device_guard(memory)
    answers: dict[str, Any] = {
        **_constants(True, "is_available is_initialized _is_compiled"),
        **_constants(False, "can_device_access_peer"),
        **_constants(1, "device_count"),
        **_constants(0, "get_sync_debug_mode"),
        **_memory_functions(memory),
        **dict.fromkeys(("_exchange_device", "_maybe_exchange_device"), memory.exchange_device),
        "current_device": lambda: memory.current_device,
        "set_device": lambda device: nothing(memory.exchange_device(device)),
        "utilization": lambda *_: measured(0),
        "is_current_stream_capturing": lambda: CudaGraph.is_capturing,
        **_constants(
            None,
            f"{_QUIET} init _lazy_init _lazy_call ipc_collect reset_max_memory_allocated "
            "reset_max_memory_cached set_per_process_memory_fraction set_sync_debug_mode _sleep _set_stream_by_id "
            "_check_capability",
        ),
        **_constants(stream, "current_stream default_stream get_stream_from_external"),
        **dict.fromkeys(("Stream", "ExternalStream"), Stream),
        **dict.fromkeys(("stream", "StreamContext"), Nothing),
        **dict.fromkeys(("device", "device_of", "_DeviceGuard"), device_guard),
        "graph": Capturing,
        "Event": Event,
        "CUDAGraph": CudaGraph,
        "is_bf16_supported": lambda *_, **__: part.backend == "hip" or part.capability >= (8, 0),
        "is_tf32_supported": lambda: part.backend == "cuda" and part.capability >= (8, 0),
        "get_device_capability": _always(part.capability),
        "get_device_name": _always(part.name),
        "get_device_properties": _always(properties),
        "get_arch_list": lambda: [part.arch if part.backend == "hip" else f"sm_{part.arch}"],
        "mem_get_info": lambda *_: (measured(memory.free_bytes), part.memory_bytes),
        "memory_summary": _always(""),
        "memory_snapshot": _always([]),
        "graph_pool_handle": _always((0, 0)),
        "make_graphed_callables": lambda callables, *_, **__: callables,
        "cudart": lambda: SimpleNamespace(cudaProfilerStart=_always(0), cudaProfilerStop=_always(0)),
        "clock_rate": lambda *_: part.clock_khz // 1000,
    }
    for module in (cuda, cuda.memory, cuda.graphs, cuda.streams):
        patches.set_known(module, answers)
    if (dynamo := sys.modules.get("torch._dynamo.device_interface")) is not None:
        # torch itself imports it at once under TORCH_COMPILE_DEBUG: it has taken the functions of the build.
        functions = {
            name: answer if isinstance(answer, type) else staticmethod(answer)
            for public, answer in answers.items()
            for name in {public, public.removeprefix("_")}
        }
        patches.set_known(dynamo.CudaInterface, {**functions, "get_raw_stream": staticmethod(_always(0))})
    _install_random(memory, patches)
    patches.set(torch.version, "cuda", _CUDA_VERSION if part.backend == "cuda" else None)
    patches.set(torch.version, "hip", _HIP_VERSION if part.backend == "hip" else None)
    patches.set(torch._C, "_cuda_getCurrentRawStream", _always(0))
    patches.set(torch, "Stream", Stream)
    patches.set(torch, "Event", Event)
    ranges = _constants(0, "range_push range_pop range_start range_end")
    patches.set_known(cuda.nvtx, {**ranges, "mark": _always(None), "range": Nothing})
    patches.set_known(cuda.profiler, {**_constants(0, "start stop"), "init": _always(None), "profile": Nothing})
    patches.set_known(torch.backends.cuda, {"is_built": _always(True)})
    patches.set_known(torch.backends.cudnn, {"is_available": _always(True), "version": _always(91002)})
    # In torch 2.6 and later. Its functions are others than torch.cuda's: torch's own tables have them as keys.
    if (accelerator := getattr(torch, "accelerator", None)) is not None:
        patches.set_known(accelerator, _accelerator_functions(part, memory, stream))
    # The legacy types such as `torch.cuda.FloatTensor`.
    for name, dtype in LEGACY_TYPES.items():
        patches.set(torch.cuda, name, _legacy_type(name, dtype))
    patches.set(torch, "set_default_tensor_type", _default_tensor_type(torch.set_default_tensor_type))
    _install_storage(memory, patches)
    patches.enter_context(AfterImport("torch.autograd.profiler_util", partial(_follow_events, patches)))
    _install_loading(patches)


def _always(value: Any) -> Callable[..., Any]:
    """A function of any arguments that returns `value`; a new one each time, for torch compares identities."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def _constants(value: Any, names: str) -> dict[str, Any]:
    return {name: _always(value) for name in names.split()}


def _memory_functions(memory: VirtualMemory) -> dict[str, Any]:
    names = "memory_allocated memory_reserved memory_cached"
    present = {name: lambda *_, **__: measured(memory.used_bytes) for name in names.split()}
    most = {f"max_{name}": lambda *_, **__: measured(memory.most_used_bytes) for name in names.split()}
    return {
        **present,
        **most,
        **dict.fromkeys(("memory_stats", "memory_stats_as_nested_dict"), lambda *_: _Statistics()),
    }


class _Statistics(Counter[str]):
    def __missing__(self, key: str) -> Any:
        return measured(0)

    def get(self, key: str, default: Any = None) -> Any:
        return measured(0)


def _device_guard(memory: VirtualMemory) -> type:
    class DeviceGuard(Nothing):
        def __init__(self, device: Any = None) -> None:
            super().__init__()
            self.idx = memory.index_of(device)
            self.prev_idx = 0

        def __enter__(self) -> None:
            self.prev_idx = memory.exchange_device(self.idx)

        def __exit__(self, *_: object) -> None:
            memory.exchange_device(self.prev_idx)

    return DeviceGuard


def _accelerator_functions(part: DevicePart, memory: VirtualMemory, stream: Stream) -> dict[str, Any]:
    return {
        **_constants(True, "is_available"),
        **_constants(1, "device_count"),
        **_constants(None, _QUIET),
        **_memory_functions(memory),
        **dict.fromkeys(("current_device_index", "current_device_idx"), lambda: memory.current_device),
        **dict.fromkeys(("set_device_index", "set_device_idx"), lambda device: nothing(memory.exchange_device(device))),
        "current_accelerator": _always(torch.device("cuda")),
        "current_stream": _always(stream),
        "get_memory_info": lambda *_: (measured(memory.free_bytes), part.memory_bytes),
        "device_index": _device_guard(memory),
    }


def _legacy_type(name: str, dtype: torch.dtype) -> Any:
    class LegacyTypeMeta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, torch.Tensor) and instance.is_cuda and instance.dtype is dtype

        def __call__(cls, *args: Any) -> torch.Tensor:
            if len(args) == 1 and isinstance(args[0], list | tuple | torch.Tensor):
                return torch.as_tensor(args[0], dtype=dtype, device=CUDA)
            return torch.empty(args, dtype=dtype, device=CUDA)

    return LegacyTypeMeta(name, (), {"dtype": dtype, "__module__": "torch.cuda"})


def _default_tensor_type(original: Any) -> Any:
    def set_default_tensor_type(kind: Any) -> None:
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        if "cuda." not in name:
            original(kind)
            return
        torch.set_default_dtype(LEGACY_TYPES[name.rpartition(".")[2]])
        torch.set_default_device(CUDA)

    return set_default_tensor_type


def _install_storage(memory: VirtualMemory, patches: Patches) -> None:
    real = torch.UntypedStorage.data_ptr

    def data_ptr(storage: Any) -> int:
        return memory.address(storage) if storage.device.type == "meta" else real(storage)

    patches.set(torch.UntypedStorage, "data_ptr", data_ptr)
    real_item = torch.UntypedStorage.__getitem__

    def item(storage: Any, index: Any) -> Any:
        if storage.device.type != "meta":
            return real_item(storage, index)
        data = torch.empty(0, dtype=torch.uint8, device=META).set_(storage)[index]
        return data.untyped_storage() if isinstance(index, slice) else data.item()

    real_typed_item = torch.TypedStorage._getitem

    def typed_item(storage: Any, index: Any) -> Any:
        memory = storage._untyped_storage
        if memory.device.type != "meta" or not isinstance(index, int):
            return real_typed_item(storage, index)
        return torch.empty(0, dtype=storage.dtype, device=META).set_(memory)[index].item()

    patches.set(torch.UntypedStorage, "__getitem__", item)
    patches.set(torch.TypedStorage, "_getitem", typed_item)
    real_from_dlpack = torch.from_dlpack

    def from_dlpack(tensor: Any, **options: Any) -> Any:
        is_virtual = isinstance(tensor, torch.Tensor) and tensor.untyped_storage().device.type == "meta"
        return tensor.detach() if is_virtual else real_from_dlpack(tensor, **options)

    patches.set(torch, "from_dlpack", from_dlpack)
    patches.set_known(torch.utils.dlpack, {"from_dlpack": from_dlpack})


def _follow_events(patches: Patches, module: Any) -> None:
    """What a program reads of a profile is this machine's: there are no events of a GPU in it."""

    def followed(real: Any) -> Any:
        @wraps(real)
        def read(events: Any, *args: Any) -> Any:
            if is_called_by_program():
                current_following().convert("the profiler's events")
            return real(events, *args)

        return read

    kind = module.EventList
    for name in ("__len__", "__iter__", "__getitem__", "total_average"):
        patches.set(kind, name, followed(getattr(kind, name)))
    patches.set(kind, "self_cpu_time_total", property(followed(kind.self_cpu_time_total.fget)))


def _install_loading(patches: Patches) -> None:
    real = torch.load

    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, str | torch.device) and torch.device(map_location).type == "cuda":
            map_location = META
        return real(f, map_location, *args, **kwargs)

    patches.set(torch, "load", load)
    if "torch.serialization" in sys.modules:
        patches.set(torch.serialization, "load", load)


_STATE = struct.Struct("<QQ")
"""Seed and offset of the Philox generator. Source: `CUDAGeneratorImpl::get_state` in torch."""
_DEFAULT_SEED = 67280421310721
"""Source: `default_rng_seed_val` in torch's `c10/core/GeneratorImpl.h`."""


def _install_random(memory: VirtualMemory, patches: Patches) -> None:
    real = torch.Generator

    class GeneratorMeta(type(real)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return type.__instancecheck__(real, instance)

        def __call__(cls, device: Any = "cpu") -> Any:
            device = torch.device(device)
            return type.__call__(cls) if device.type == "cuda" else real(device)

    class Generator(real, metaclass=GeneratorMeta):  # type: ignore[misc, valid-type]
        """A generator of the device, which generates nothing: the tensors that it would fill have no data."""

        def __init__(self) -> None:
            super().__init__()
            self._seed, self._offset = _DEFAULT_SEED, 0

        @property
        def device(self) -> torch.device:
            return CUDA

        def manual_seed(self, seed: int) -> Any:
            self._seed, self._offset = seed % (1 << 64), 0
            return self

        def seed(self) -> int:
            self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 11)
            return self._seed

        def initial_seed(self) -> int:
            return self._seed

        def get_offset(self) -> int:
            return self._offset

        def set_offset(self, offset: int) -> None:
            self._offset = offset

        def get_state(self) -> torch.Tensor:
            with torch._C.DisableTorchFunction():
                values = torch.tensor(list(_STATE.pack(self._seed, self._offset)), dtype=torch.uint8, device="cpu")
                # How many numbers a GPU would have drawn is not known.
                state = memory.mark(values.to(META), CPU)
                return store_values(state, values, is_placeholder=True)

        def set_state(self, new_state: torch.Tensor) -> Any:
            if new_state.dtype is not torch.uint8 or new_state.numel() not in (_STATE.size, 8):
                raise RuntimeError("RNG state is wrong size")
            with torch._C.DisableTorchFunction():
                stored = values_of(new_state)
                values = bytes(_STATE.size) if stored is None else bytes(stored.values.tolist())
            # A state of 8 bytes is a seed alone; torch takes it too.
            values = values.ljust(_STATE.size, b"\0")
            self._seed, self._offset = _STATE.unpack(values)
            return self

        def clone_state(self) -> Any:
            return Generator("cuda").set_state(self.get_state())  # type: ignore[call-arg]

        def graphsafe_get_state(self) -> Any:
            return self

        def graphsafe_set_state(self, state: Any) -> Any:
            return self.set_state(state.get_state())

        def __reduce__(self) -> Any:
            return torch.Generator, (CUDA,)

    default: Any = Generator("cuda")  # type: ignore[call-arg]
    answers: dict[str, Any] = {
        "default_generators": (default,),
        "get_rng_state": lambda *_, **__: default.get_state(),
        "get_rng_state_all": lambda: [default.get_state()],
        "set_rng_state": lambda new_state, *_, **__: nothing(default.set_state(new_state)),
        "set_rng_state_all": lambda new_states: nothing([default.set_state(state) for state in new_states]),
        "manual_seed": lambda seed: nothing(default.manual_seed(int(seed))),
        "manual_seed_all": lambda seed: nothing(default.manual_seed(int(seed))),
        "seed": lambda: nothing(default.seed()),
        "seed_all": lambda: nothing(default.seed()),
        "initial_seed": default.initial_seed,
    }
    patches.set(torch, "Generator", Generator)
    for module in (torch.cuda, torch.cuda.random):
        patches.set_known(module, answers)

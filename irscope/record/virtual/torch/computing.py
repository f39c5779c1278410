"""The virtual GPU that computes: its tensors hold real data on the CPU, and irscope's machine runs its launches.

A function mode replaces the device `cuda` by the CPU, and lets tensors report the GPU. Tensors that a program makes on
the CPU report that; what is made of them alone does so too.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _device as torch_default_device

from irscope.device.parts import DevicePart
from irscope.errors import NotRun, OutOfBounds, UsageError, WrongProgram
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.launch import Given, HostDescriptor, Pointer, RunLimits, run
from irscope.record.triton.driver import CublasLt, flat_arguments
from irscope.record.triton.patches import Patches, nothing
from irscope.record.virtual.torch.cuda import install_cuda
from irscope.record.virtual.torch.memory import CPU, CUDA, VirtualMemory, note_unwritten
from irscope.record.virtual.torch.mode import GpuMode, tensor_behind
from irscope.record.virtual.torch.shadow import tensors_in

_HOST = "_irscope_is_of_host"
"""The attribute of a tensor that a program made on the CPU."""


class ComputingSession:
    def __init__(
        self, part: DevicePart, patches: Patches, limits: RunLimits, on_note: Callable[[str], None] | None = None
    ) -> None:
        """Put it in place for a part, until `patches` are closed; `limits`: of a launch that is run."""
        self._limits = limits
        self._note = on_note or (lambda text: None)
        generator, load = torch.Generator, torch.load
        # Not torch.manual_seed, which seeds GPUs too.
        seed = torch.default_generator.manual_seed
        install_cuda(part, VirtualMemory(part.memory_bytes, self._note), patches)
        patches.set(torch, "Generator", _generator_of_any_device(generator))
        patches.set(torch, "load", lambda file, map_location=None, *rest, **named: load(file, "cpu", *rest, **named))
        for name in ("manual_seed", "manual_seed_all"):
            patches.set(torch.cuda, name, lambda number: nothing(seed(number)))
        for name in ("get_rng_state", "set_rng_state"):
            function = getattr(torch, name)
            patches.set(torch.cuda, name, lambda *values, function=function, **_: function(*values[:1]))
        patches.set(CublasLt, "matmul", _matmul)
        _install_autocast(patches)
        mode = _Computing()
        mode.install(CPU, lambda outputs: mode.entered(), patches)

    def is_host_memory(self, argument: Any) -> bool:
        tensor = tensor_behind(argument)
        return tensor is not None and tensor.numel() > 0 and _is_of_host(tensor)

    def launch(self, kernel: Any, source: Any, grid: tuple[int, int, int], arguments: tuple[Any, ...]) -> None:
        """Run a launch; what cannot be run is noted. Raises RuntimeError, as torch does, for what no kernel may do."""
        if kernel is None or 0 in grid:
            return
        text = next((kernel.asm[stage] for stage in ("ttgir", "ttir") if stage in kernel.asm), None)
        name = str(getattr(kernel, "name", "a kernel"))
        if text is None:
            self._note(f"{name} was not run: it has no IR that irscope executes.")
            return
        with torch._C.DisableTorchFunction():
            try:
                storages: dict[int, NDArray[np.uint8]] = {}
                given = list(_given(source.signature, arguments, storages))
                elsewhere = _pointed_to(arguments, storages)
                for line in run(parse_mlir(text), grid, given, limits=self._limits, elsewhere=elsewhere):
                    print(line)
            except (NotRun, UsageError) as error:
                self._note(f"{name} was not run, and its tensors are unchanged: {error}")
            except WrongProgram as error:
                fault = "memory access" if isinstance(error, OutOfBounds) else "instruction"
                raise RuntimeError(f"CUDA error: an illegal {fault} in {name}: {error}") from error


# ── devices ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _generator_of_any_device(real: Any) -> Any:
    class Kind(type(real)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return type.__instancecheck__(real, instance)

        def __call__(cls, device: Any = "cpu") -> Any:
            return real("cpu")

    class Generator(real, metaclass=Kind):  # type: ignore[misc, valid-type]
        """Stands in for `torch.Generator`."""

    return Generator


class _Computing(GpuMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.device:
            return func(*args, **kwargs)
        answer = _ANSWERS.get(func)
        if answer is not None:
            return answer(*args, **kwargs)
        named = [one for one in (*args, *kwargs.values()) if _device_of(one) is not None]
        if not named:
            return _made(func, args, func(*args, **kwargs), _comes_from_host(args, kwargs))
        places = tuple(CPU if _device_of(one) is not None else one for one in args)
        options = {name: CPU if _device_of(one) is not None else one for name, one in kwargs.items()}
        to_host = _device_of(named[0]) == "cpu"
        result = func(*places, **options)
        given = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if result is given and given is not None:
            if _is_of_host(given) == to_host:
                return given
            # A copy between two memories shares none.
            result = given.clone()
        return _made(func, args, result, to_host)


def _device_of(value: Any) -> str | None:
    """The kind of device that a value names, in a form that torch takes; None if it names none."""
    if isinstance(value, torch.device):
        return value.type if value.type in ("cuda", "cpu") else None
    if isinstance(value, str) and (value == "cpu" or value.partition(":")[0] == "cuda"):
        return value.partition(":")[0]
    return None


def _comes_from_host(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a result is of the CPU: all tensors that it is made of are, or none is given and no default says so."""
    tensors = tensors_in((args, kwargs))
    if tensors:
        return all(map(_is_of_host, tensors))
    default = torch_default_device.CURRENT_DEVICE
    return default is None or default.type != "cuda"


def _made(func: Any, args: Sequence[Any], result: Any, is_of_host: bool) -> Any:
    if not is_of_host:
        note_unwritten(func, args, result)
    return _marked(result, is_of_host)


def _marked(result: Any, is_of_host: bool) -> Any:
    if is_of_host:
        for one in tensors_in(result):
            one.__dict__[_HOST] = True
    return result


def _is_of_host(tensor: torch.Tensor) -> bool:
    return _HOST in getattr(tensor, "__dict__", {})


def _install_autocast(patches: Patches) -> None:
    enter, leave = torch.autocast.__enter__, torch.autocast.__exit__

    def entered(cast: Any) -> Any:
        result = enter(cast)
        if cast.device == "cuda":
            cast.on_cpu = torch.autocast("cpu", cast.fast_dtype, enabled=cast._enabled)
            enter(cast.on_cpu)
        return result

    def left(cast: Any, *error: Any) -> Any:
        if cast.device == "cuda":
            leave(cast.on_cpu, *error)
        return leave(cast, *error)

    patches.set(torch.autocast, "__enter__", entered)
    patches.set(torch.autocast, "__exit__", left)


def _to_gpu(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return tensor.clone() if _is_of_host(tensor) else tensor


def _to_host(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return tensor if _is_of_host(tensor) else _marked(tensor.clone(), True)


def _layer_norm(values: Any, *sizes: Any, **named: Any) -> Any:
    """As a GPU sums: torch's own for narrow floats on the CPU adds up what `weight` gets in their precision."""
    dtype = values.dtype
    if dtype not in (torch.float16, torch.bfloat16):
        return _torch_layer_norm(values, *sizes, **named)
    rows = [one.float() if isinstance(one, torch.Tensor) else one for one in sizes]
    named = {name: one.float() if isinstance(one, torch.Tensor) else one for name, one in named.items()}
    return _torch_layer_norm(values.float(), *rows, **named).to(dtype)


_torch_layer_norm = torch.nn.functional.layer_norm


def _matmul(_: Any, left: torch.Tensor, right: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(left.float() @ right.float().mT)


_ANSWERS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.device.__get__: lambda tensor: CPU if _is_of_host(tensor) else CUDA,  # type: ignore[attr-defined]
    torch.Tensor.is_cuda.__get__: lambda tensor: not _is_of_host(tensor),  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: _is_of_host,  # type: ignore[attr-defined]
    torch.Tensor.get_device: lambda tensor: -1 if _is_of_host(tensor) else 0,
    torch.nn.functional.layer_norm: _layer_norm,
    torch.Tensor.cuda: _to_gpu,
    torch.Tensor.cpu: _to_host,
    torch.Tensor.pin_memory: lambda tensor, *_, **__: tensor,
    torch.Tensor.is_pinned: lambda tensor, *_, **__: _is_of_host(tensor),
}


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _given(
    signature: Mapping[str, Any], arguments: tuple[Any, ...], storages: dict[int, NDArray[np.uint8]]
) -> Iterator[Given]:
    """A launch's arguments for the machine: those that are no constants; `storages`: by address, shared by tensors."""
    for (name, form), given in zip(signature.items(), arguments, strict=False):
        for kind, argument in flat_arguments((form,), (given,)):
            if kind.startswith("tensordesc"):
                base = _pointer(name, argument.base, storages)
                fills_nan = str(getattr(argument, "padding", "zero")) == "nan"
                yield HostDescriptor(base, tuple(argument.shape), tuple(argument.strides), fills_nan)
            elif kind.startswith("*"):
                yield _pointer(name, argument, storages)
            elif kind != "constexpr":
                yield argument


def _pointer(name: str, argument: Any, storages: dict[int, NDArray[np.uint8]]) -> Pointer:
    if (tensor := tensor_behind(argument)) is None:
        raise NotRun(f"{type(argument).__name__} is passed as {name}, a pointer whose memory is not known")
    return Pointer(_bytes_of(tensor, storages), tensor.storage_offset() * tensor.element_size(), name)


def _bytes_of(tensor: torch.Tensor, storages: dict[int, NDArray[np.uint8]]) -> NDArray[np.uint8]:
    storage = tensor.untyped_storage()
    begin, size = storage.data_ptr(), storage.nbytes()
    known = storages.get(begin)
    if known is None:
        buffer = (ctypes.c_uint8 * max(size, 1)).from_address(begin) if size else (ctypes.c_uint8 * 1)()
        known = storages[begin] = np.frombuffer(buffer, np.uint8)[:size]
    return known


_MOST_POINTERS = 1 << 16
"""Elements of a tensor that may hold addresses of others."""


def _pointed_to(arguments: Sequence[Any], storages: dict[int, NDArray[np.uint8]]) -> dict[int, NDArray[np.uint8]]:
    """Address → storage of the tensors whose addresses small tensors of 64-bit integers hold."""
    tensors = [tensor for one in _flat(arguments) if (tensor := tensor_behind(one)) is not None]
    integers = [
        one for one in tensors if one.dtype in (torch.int64, torch.uint64) and 0 < one.numel() <= _MOST_POINTERS
    ]
    addresses = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.cpu().numpy().reshape(-1) for one in integers)]))
    addresses = addresses[addresses >= _LEAST_ADDRESS]
    if not addresses.size:
        return {}
    found: dict[int, NDArray[np.uint8]] = {}
    for one in gc.get_objects():
        # Not isinstance: it asks proxies for their class, which may import modules.
        if not issubclass(type(one), torch.Tensor) or one.is_sparse or one.device.type != "cpu":
            continue
        storage = one.untyped_storage()
        begin, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        if begin not in found and ((addresses >= begin) & (addresses < end)).any():
            found[begin] = _bytes_of(one, storages)
    return found


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for one in values:
        if isinstance(one, (list, tuple)):
            yield from _flat(one)
        else:
            yield one


_LEAST_ADDRESS = 1 << 32
"""Below it, integers are taken for numbers."""

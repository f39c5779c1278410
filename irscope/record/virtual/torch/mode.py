"""Lets torch run a program written for a GPU without one: each `cuda` tensor is one of torch's `meta` tensors.

A function mode sees every call: it replaces the device `cuda` by `meta`, answers as a GPU tensor would, and lets
`handlers.py` handle reads of data. What runs on the CPU is unchanged.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch._guards import detect_fake_mode
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils import _device as torch_default_device

from irscope.model.launch_record import DecisionKind
from irscope.record.triton.patches import Patches
from irscope.record.virtual.numbers import Placeholder, plain, reads_of
from irscope.record.virtual.placeholders import current_following
from irscope.record.virtual.torch.memory import CUDA, META, VirtualMemory, carry_sizes, note_unwritten
from irscope.record.virtual.torch.shadow import OWN, Call, Shadows, mapped, tensors_in

_Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
_T = torch.Tensor


class GpuMode(TorchFunctionMode):
    """A function mode that lets tensors pose as those of a GPU, also where torch switches function modes off."""

    @property
    def is_on(self) -> bool:
        """Whether the mode sees calls now: torch switches it off within its own handlers."""
        return any(mode is self for mode in _get_current_function_mode_stack())

    def entered(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.is_on else self

    def install(
        self, stand_in: torch.device, in_backward: Callable[[Any], AbstractContextManager[Any]], patches: Patches
    ) -> None:
        """Enter the mode, in the program's threads and backward passes too, until `patches` are closed.

        `stand_in`: the device that tensors of the GPU have in torch. `in_backward`: is entered for each backward pass,
        with its outputs: in functions that a mode handles, it is off, and the script's own functions and hooks run
        there.
        """
        run, kind = threading.Thread.run, torch_default_device.DeviceContext
        run_backward, handle = torch.autograd.graph._engine_run_backward, kind.__torch_function__

        def run_in_mode(thread: threading.Thread) -> None:
            # A mode belongs to one thread.
            with self.entered():
                run(thread)

        def run_backward_in_mode(*args: Any, **kwargs: Any) -> Any:
            with in_backward(args[0] if args else kwargs.get("t_outputs", ())):
                return run_backward(*args, **kwargs)

        def on_stand_in(
            context: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            # torch's own mode is below this one after `set_default_device`, above it in `with torch.device("cuda")`.
            if context.device.type != "cuda":
                return handle(context, func, types, args, kwargs)
            kwargs = kwargs or {}
            if func in torch_default_device._device_constructors() and kwargs.get("device") is None:
                kwargs["device"] = CUDA if self.is_on else stand_in
            return func(*args, **kwargs)

        patches.set(threading.Thread, "run", run_in_mode)
        patches.set(kind, "__torch_function__", on_stand_in)
        for module in (torch.autograd, torch.autograd.graph):
            patches.set_known(module, {"_engine_run_backward": run_backward_in_mode})
        # Not a handler of the mode: torch checks the stream's type before it calls any mode.
        patches.set(torch.Tensor, "record_stream", lambda tensor, stream: None)
        patches.callback(_restore_default_device, torch_default_device.CURRENT_DEVICE)
        _push_mode(self)
        patches.callback(self._remove)

    def _remove(self) -> None:
        # Not just one pop: the program may have left modes of its own above.
        above: list[Any] = []
        for _ in range(torch._C._len_torch_function_stack()):
            mode = _pop_mode()
            if mode is self:
                break
            above.append(mode)
        for mode in reversed(above):
            _push_mode(mode)


def _restore_default_device(device: Any) -> None:
    if torch_default_device.CURRENT_DEVICE is not device:
        torch.set_default_device(device)


def tensor_behind(argument: Any) -> torch.Tensor | None:
    """The tensor that a kernel's argument is, or that the result of `triton.reinterpret` has as its base."""
    while not isinstance(argument, torch.Tensor) and hasattr(argument, "base"):
        argument = argument.base
    return argument if isinstance(argument, torch.Tensor) else None


class VirtualCuda(GpuMode):
    """The function mode of tensors without data: one for each virtual GPU."""

    def __init__(self, memory: VirtualMemory) -> None:
        super().__init__()
        self.memory = memory
        self.handlers: dict[Any, _Handler] = {}
        """Functions that `call` does not run."""
        self.on_operator: Callable[[Any], None] | None = None
        """Called before an operator from a library's own registration is run."""
        self._shadows = Shadows()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = self.handlers.get(func)
        if handler is not None:
            return handler(func, args, kwargs or {})
        return self.call(func, args, kwargs or {})

    # ---- devices

    def is_cuda(self, device: Any) -> bool:
        if isinstance(device, torch.device):
            return device.type == "cuda"
        if isinstance(device, str):
            return device == "cuda" or device.startswith("cuda:")
        return isinstance(device, int) and not isinstance(device, bool)

    def other_gpu(self, device: Any) -> torch.device | None:
        """The device that a tensor on a GPU reports, if it is not `cuda:0`."""
        index = self.memory.index_of(device)
        return torch.device("cuda", index) if index else None

    def _device(self, device: Any) -> tuple[Any, torch.device | None]:
        """The device for torch, and the one that the result reports (None for `cuda:0`, or the device of the CPU)."""
        if device is None:
            return None, None
        if self.is_cuda(device):
            return META, self.other_gpu(device)
        named = torch.device(device) if isinstance(device, str) else device
        return device, META if named.type == "meta" else None

    # ---- any function

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function on tensors without data, and let its results report the right device."""
        reported: torch.device | None = None
        if kwargs:
            kwargs = dict(kwargs)
            if "device" in kwargs:
                kwargs["device"], reported = self._device(kwargs["device"])
            if kwargs.get("pin_memory"):
                return self.memory.pin(self.call(func, args, {**kwargs, "pin_memory": False}))
        tensors: list[torch.Tensor] = []
        numbers: list[Any] = []
        args = tuple([self._argument(value, tensors, numbers) for value in args])
        if kwargs:
            kwargs = {name: self._argument(value, tensors, numbers) for name, value in kwargs.items()}
        virtual = [tensor for tensor in tensors if tensor.is_meta]
        on_device = kwargs.get("device") is META or reported is not None or self._default_is_cuda(func, kwargs)
        if not virtual and not on_device:
            if numbers:
                # Tensors of the host do not remember reads.
                _decide("conversion", numbers)
            return func(*args, **kwargs)
        if "generator" in kwargs:
            # A generator of the CPU stands in for one of the device; the tensors that it would fill have no data.
            kwargs.pop("generator")
        versions = self._shadows.versions(virtual)
        try:
            result = self.run(func, args, kwargs, virtual)
        except Exception:
            if numbers:
                _decide("error", numbers)
            raise
        if reported is not None:
            self._each(result, lambda tensor: self.memory.mark(tensor, reported))
        elif self.memory.marks and virtual:
            self._inherit_device(result, virtual)
        if isinstance(result, torch.Tensor) and result.is_meta and self.memory.device(result).type == "cuda":
            self.memory.allocate(result)
            note_unwritten(func, args, result)
        self._shadows.learn(Call(func, args, kwargs, tensors, result, bool(numbers)), versions)
        carry_sizes(virtual, numbers, result)
        return result

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], virtual: list[torch.Tensor]) -> Any:
        from irscope.record.virtual.torch import rescue as virtual_rescue

        if self.on_operator is not None and isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            self.on_operator(func)
        try:
            return func(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as error:
            return virtual_rescue.rescue(func, args, kwargs, error)

    def _argument(self, value: Any, tensors: list[torch.Tensor], numbers: list[Any]) -> Any:
        """A call's argument for torch; adds its tensors and placeholder numbers to the lists."""
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return value
        kind = type(value)
        if kind is list or kind is tuple:
            items = [self._argument(item, tensors, numbers) for item in value]
            return kind(items)
        if isinstance(value, Placeholder):
            numbers.append(value)
            return plain(value)
        if kind is slice and any(isinstance(bound, Placeholder) for bound in (value.start, value.stop, value.step)):
            return slice(*(self._argument(bound, tensors, numbers) for bound in (value.start, value.stop, value.step)))
        if kind is torch.Size and any(isinstance(size, Placeholder) for size in value):
            return tuple([self._argument(size, tensors, numbers) for size in value])
        if kind is torch.device:
            return META if value.type == "cuda" else value
        if kind is str and value.startswith("cuda") and self.is_cuda(value):
            return META
        return value

    def _default_is_cuda(self, func: Any, kwargs: dict[str, Any]) -> bool:
        default = torch_default_device.CURRENT_DEVICE
        if default is None or default.type != "cuda" or kwargs.get("device") is not None:
            return False
        return func in torch_default_device._device_constructors()

    def _inherit_device(self, result: Any, virtual: list[torch.Tensor]) -> None:
        """Let a result report the device of its operands, if none of them is on the GPU."""
        devices = [self.memory.device(tensor) for tensor in virtual]
        if CUDA in devices:
            return
        self._each(result, lambda tensor: self.memory.mark(tensor, devices[0]))

    def _each(self, result: Any, action: Callable[[torch.Tensor], Any]) -> None:
        for tensor in tensors_in(result):
            if tensor.is_meta and tensor.layout is torch.strided:
                action(tensor)


def _decide(kind: DecisionKind, numbers: list[Any]) -> None:
    current_following().decide(kind, reads_of(tuple(numbers)))


def _functions(names: str) -> Iterator[Any]:
    for name in names.split():
        for owner in (torch, torch.Tensor, F, torch.linalg):
            func = getattr(owner, name, None)
            if func is not None:
                yield func


_LOWER = frozenset(
    _functions(
        "matmul __matmul__ __rmatmul__ mm bmm mv addmm addmv addbmm baddbmm chain_matmul multi_dot linear einsum "
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention prelu"
    )
)
"""Run in the lower precision. Source: torch's documentation, Automatic Mixed Precision, CUDA Op-Specific Behavior."""
_FULL = frozenset(
    _functions(
        "softmax log_softmax layer_norm group_norm norm cumsum cumprod exp expm1 log log10 log1p log2 pow __pow__ "
        "__rpow__ prod reciprocal rsqrt sinh tan sum cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss kl_div "
        "cosine_similarity binary_cross_entropy_with_logits softplus softmin acos asin cosh erfinv dist renorm"
    )
)
"""Run in float32. Source: as above."""


def install_autocast(mode: VirtualCuda) -> None:
    """Wrap the handlers that a mode has so far in the casts of autocast."""
    for functions, cast in ((_LOWER, _lowered), (_FULL, _in_full)):
        for func in functions:
            mode.handlers[func] = _before(cast, mode.handlers.get(func, mode.call))


def _lowered(value: torch.Tensor) -> torch.Tensor:
    if value.is_meta and value.is_floating_point() and value.dtype is not torch.float64:
        return value.to(torch.get_autocast_dtype("cuda"))
    return value


def _in_full(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.float32) if value.is_meta and value.dtype in (torch.float16, torch.bfloat16) else value


def _before(cast: Any, inner: Any) -> Any:
    def handler(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not torch.is_autocast_enabled("cuda"):
            return inner(func, args, kwargs)
        return inner(func, mapped(args, cast), mapped(kwargs, cast))

    return handler


_KEYS = ("CUDA", "CompositeExplicitAutograd")
"""The dispatch keys under which a library's code for the GPU may be registered."""


def install_operators(mode: VirtualCuda, patches: Patches) -> None:
    """Run a library's own code for the GPU on tensors without data, where torch would run its shape function."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
    libraries: dict[str, Any] = {}
    seen: set[str] = set()

    def register(func: Any) -> None:
        for overload in _overloads(func):
            name = overload.name()
            # Among torch's own are names that are no operators of the dispatcher's.
            if name in seen or overload.namespace in OWN:
                continue
            seen.add(name)
            if any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in _KEYS):
                register_for_meta(overload)

    def register_for_meta(overload: Any) -> None:
        def on_meta(*args: Any, **kwargs: Any) -> Any:
            # Not a call of the operator, which the mode would send back here: a redispatch skips modes.
            with mode.entered():
                return overload.redispatch(keys, *args, **kwargs)

        namespace = overload.namespace
        if namespace not in libraries:
            libraries[namespace] = torch.library.Library(namespace, "IMPL")
            patches.callback(libraries[namespace]._destroy)
        with warnings.catch_warnings():
            # torch warns that the shape function is replaced, which is intended.
            warnings.simplefilter("ignore")
            libraries[namespace].impl(overload, on_meta, "Meta", allow_override=True)

    mode.on_operator = register


def _overloads(func: Any) -> Iterator[Any]:
    if isinstance(func, torch._ops.OpOverload):
        yield func
    elif isinstance(func, torch._ops.OpOverloadPacket):
        for name in func.overloads():
            yield getattr(func, name)


def follow_wrappers(mode: VirtualCuda, patches: Patches) -> None:
    """Make tensors that wrap others without data, as other tensors are, and follow the code of their classes.

    Quantised, masked, nested and distributed ones: their implementation of torch's operators runs where the mode is
    off.
    """
    followed: set[type] = {torch.Tensor}
    make = torch.Tensor._make_wrapper_subclass

    def make_wrapper(kind: Any, *args: Any, device: Any = None, **options: Any) -> Any:
        if detect_fake_mode() is None:
            follow(next(each for each in kind.__mro__ if "__torch_dispatch__" in vars(each)))
            if device is not None and mode.is_cuda(device):
                device = META
        given = {} if device is None else {"device": device}
        return make(kind, *args, **given, **options)

    def follow(owner: type) -> None:
        if owner in followed:
            return
        followed.add(owner)
        run = vars(owner)["__torch_dispatch__"].__get__(None, owner).__func__

        def in_mode(
            cls: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if mode.is_on or detect_fake_mode() is not None:
                return run(cls, func, types, args, kwargs or {})
            with mode:
                # The operators of tensors without data are told to be on the GPU, as their operands tell.
                return run(cls, func, types, mapped(args, _same, CUDA), mapped(kwargs or {}, _same, CUDA))

        patches.set(owner, "__torch_dispatch__", classmethod(in_mode))

    patches.set(torch.Tensor, "_make_wrapper_subclass", staticmethod(make_wrapper))


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor

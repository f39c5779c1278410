"""Compiles a function with TorchInductor on fake tensors of the device: its graphs, forward and backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from traceback import StackSummary
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode

from irscope.record.compile.user_files import is_users
from irscope.record.triton.patches import Patches
from irscope.record.virtual.torch.memory import CUDA
from irscope.record.virtual.torch.rescue import EachOperator

__all__ = ["compile_with_inductor"]

# In this process, where compiles are watched; without caches; with Triton's launcher, not that of a CUDA torch.
_SETTINGS = {
    "compile_threads": 1,
    "force_disable_caches": True,
    "use_static_cuda_launcher": False,
    "use_static_triton_launcher": False,
    "triton.cudagraphs": False,
    # Whether it pays to pad a matrix would be timed.
    "shape_padding": False,
}


def compile_with_inductor(function: Any, tensors: list[torch.Tensor]) -> Callable[..., Any]:
    """A function of tensors that launches TorchInductor's kernels, in its backward pass as well.

    The backward graph is compiled when a backward pass needs it, as `torch.compile` does. Raises any exception for
    what cannot be traced as one graph.

    Arguments:
        function: takes the tensors, and returns a tuple of tensors.
        tensors: of the virtual GPU.
    """
    from torch._guards import TracingContext, tracing
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.traceback import preserve_node_meta

    captured: list[torch.Tensor] = []
    """Tensors that the function takes from elsewhere: of globals, closures, objects. They become inputs too."""

    def compile_inner(graph: Any, inputs: Any, **options: Any) -> Any:
        try:
            with _compiling():
                return compile_fx_inner(graph, inputs, **options)
        except Exception:
            if not options.get("is_backward"):
                raise
            # The backward pass is under way: it goes on without kernels.
            return _outputs_alone(graph)

    with _compiling():
        fake = FakeTensorMode()
        # With each node's line of Python; before autograd, which TorchInductor itself traces.
        known = signature(make_fx).parameters
        traces = {"record_stack_traces": True} if "record_stack_traces" in known else {}

        def traced(*inputs: torch.Tensor) -> Any:
            own, others = inputs[: len(tensors)], inputs[len(tensors) :]
            with _Captures(captured, others):
                return function(*own)

        for _ in range(_TRACES):
            with fake, preserve_node_meta():
                inputs = [_fake_of(tensor) for tensor in (*tensors, *captured)]
                count = len(captured)
                graph = make_fx(traced, pre_dispatch=True, **traces)(*inputs)
            if len(captured) == count:
                break
        with tracing(TracingContext(fake)):
            run = compile_fx(graph, inputs, inner_compile=compile_inner)
    return lambda *own: run(*own, *captured)


_TRACES = 3
"""The first finds the tensors that a function captures, the second has them as inputs."""


def _fake_of(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor like another, in the fake mode that is on."""
    return torch.empty_strided(
        tensor.shape,
        tensor.stride(),
        dtype=tensor.dtype,
        device=CUDA if tensor.is_meta else tensor.device,
        requires_grad=tensor.requires_grad,
    )


class _Captures(TorchFunctionMode):
    """Replaces tensors that a traced function captured by inputs of its graph, and `cuda` by its device with an index.

    Without an index, torch would ask the driver for the current device.
    """

    def __init__(self, captured: list[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
        """`captured`: those found before, and then those that have no input yet; `inputs`: for those found before."""
        super().__init__()
        self._captured = captured
        self._inputs = list(inputs)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _PROPERTIES:
            return func(*args, **(kwargs or {}))
        return func(*self._replaced(args), **self._replaced(kwargs or {}))

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: _indexed(item) if name == "device" else self._replaced(item) for name, item in value.items()}
        if type(value) in (tuple, list):
            return type(value)(map(self._replaced, value))
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            return self._input_for(value)
        return _indexed(value)

    def _input_for(self, tensor: torch.Tensor) -> torch.Tensor:
        for known, own in zip(self._captured, self._inputs, strict=True):
            if known is tensor:
                return own
        self._captured.append(tensor)
        self._inputs.append(_fake_of(tensor))
        return self._inputs[-1]


_PROPERTIES = frozenset({torch.Tensor.requires_grad.__get__, torch.Tensor.grad_fn.__get__, torch.Tensor.grad.__get__})


def _indexed(value: Any) -> Any:
    is_device = isinstance(value, torch.device) or (isinstance(value, str) and value == "cuda")
    return CUDA if is_device and torch.device(value) == torch.device("cuda") else value


def _outputs_alone(graph: Any) -> Any:
    """A function that returns tensors without data in place of the results of a graph."""
    (results,) = next(iter(reversed(graph.graph.nodes))).args
    values = [getattr(node, "meta", {}).get("val") for node in results]

    def run(inputs: list[Any]) -> list[Any]:
        inputs.clear()
        return [
            torch.empty_strided(tuple(value.shape), value.stride(), dtype=value.dtype, device=CUDA)
            if isinstance(value, torch.Tensor)
            else value
            for value in values
        ]

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


@contextmanager
def _compiling() -> Iterator[None]:
    """Settings of TorchInductor, and fake tensors of the device that autograd takes; no mode of ours is on.

    Torch's autograd has no device that the build lacks: fake tensors are of `meta` to it. They keep the dispatch keys
    of their own device, and to Python they have it.
    """
    from torch._inductor import config
    from torch._subclasses import FakeTensor, FakeTensorMode
    from torch.fx.proxy import TracerBase
    from torch.utils._python_dispatch import _disable_current_modes

    real = torch.Tensor._make_subclass

    def make_subclass(cls: Any, data: torch.Tensor, requires_grad: bool = False, **kwargs: Any) -> Any:
        device = kwargs.get("device_for_backend_keys")
        if device is not None and torch.device(device).type == "cuda":
            kwargs["dispatch_device"] = False
        return real(cls, data, requires_grad, **kwargs)

    def device_of(device: torch.device) -> torch.device:
        # What C++ makes beside a fake tensor, such as a scalar, is of `meta`.
        return normalize(CUDA) if device.type == "meta" else normalize(device)

    def empty(size: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device="cpu")

    def empty_strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
        return torch.empty_strided(size, stride, dtype=dtype, device="cpu")

    normalize = getattr(FakeTensor, "_normalize_fake_device", torch.device)
    known = {name: value for name, value in _SETTINGS.items() if name in config._config}
    with ExitStack() as stack:
        stack.enter_context(_without_function_modes())
        if EachOperator.is_on():
            stack.enter_context(_disable_current_modes())
        stack.enter_context(config.patch(known))
        # TorchInductor computes with constants of one element, outside of the fake mode.
        kernels = torch.library.Library("aten", "IMPL", "CUDA")
        stack.callback(kernels._destroy)
        with warnings.catch_warnings():
            # That they replace others, which this build has none of.
            warnings.simplefilter("ignore")
            kernels.impl("empty.memory_format", empty)
            kernels.impl("empty_strided", empty_strided)
        patches = stack.enter_context(Patches())
        patches.set(torch.Tensor, "_make_subclass", staticmethod(make_subclass))
        patches.set_known(FakeTensor, {"_normalize_fake_device": staticmethod(device_of)})
        for kind in ("cuda", "meta"):
            patches.set(FakeTensor, f"is_{kind}", property(lambda tensor, kind=kind: tensor.device.type == kind))
        # Else `torch.tensor(2.0, device="cuda")` is made on a real device.
        patches.set_known(FakeTensorMode, {"avoid_device_init": property(lambda _: True)})
        # Else only frames below a function named `forward`, torch's own among them.
        patches.set_known(TracerBase, {"_filter_traceback_frames": _users_frames})
        yield


def _users_frames(_: Any, frames: StackSummary) -> StackSummary:
    return StackSummary.from_list([frame for frame in frames if is_users(frame.filename)])


@contextmanager
def _without_function_modes() -> Iterator[None]:
    """Switch the function modes off: fake tensors of the device are not virtual ones."""
    held = [_pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    try:
        yield
    finally:
        for each in reversed(held):
            _push_mode(each)

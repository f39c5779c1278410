"""`torch.compile` on the virtual GPU: TorchInductor writes its Triton kernels, which compile like any others.

Dynamo cannot trace through a function mode. So a call is traced whole on fake tensors of the device, and TorchInductor
compiles the graph, and its backward graph when a backward pass needs it. A function that cannot be traced so, only runs
as it is written.
"""

from __future__ import annotations

import functools
import os
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from inspect import signature
from traceback import StackSummary
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode
from torch.utils import _pytree

from irscope.record.compile.launches import is_users
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.triton.patches import AfterImport, Patches, environment_variable
from irscope.record.virtual.torch.dynamic import (
    Marks,
    SizeHistory,
    Symbols,
    constant_marks,
    empty_as,
    is_symbolic,
    marked_axes,
    sizes_of,
)
from irscope.record.virtual.torch.memory import CUDA
from irscope.record.virtual.torch.rescue import EachOperator

_LONGEST_REASON = 300


class GraphCompiler:
    def __init__(self, on_note: Callable[[str], None] | None = None) -> None:
        self._on_note = on_note or (lambda _: None)
        self._written = ExitStack()
        """Removes the folder that TorchInductor writes to."""
        self._folder = ""
        self._resets = 0

    def install(self, patches: Patches) -> None:
        compiler = self

        def compile_(model: Any = None, **options: Any) -> Any:
            if model is None:
                return lambda function: compile_(function, **options)
            if options.get("disable") or options.get("backend", "inductor") != "inductor":
                return model
            return compiler.wrap(model, options.get("dynamic"))

        def compile_module(module: Any, *_: Any, **options: Any) -> None:
            module.forward = compiler.wrap(module.forward, options.get("dynamic"), module)

        patches.set(torch, "compile", compile_)
        patches.set(torch.nn.Module, "compile", compile_module)
        # In the generated code: the C++ one allocates on a real device.
        guards = torch._C._dynamo.guards
        patches.set(
            guards,
            "_empty_strided_cuda",
            lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=CUDA),
        )
        patches.callback(self._written.close)
        dynamo = AfterImport("torch._dynamo", lambda module: self._follow_resets(module, patches))
        dynamo.__enter__()
        patches.callback(dynamo.__exit__)

    def _follow_resets(self, dynamo: Any, patches: Patches) -> None:
        """Let `torch._dynamo.reset()` drop what was compiled here, and not ask for the CUDA graphs of a CUDA build."""
        reset_all = dynamo.reset

        def reset() -> None:
            self._resets += 1
            with Patches() as without_gpu:
                without_gpu.set(torch.cuda, "is_available", lambda: False)
                reset_all()

        patches.set(dynamo, "reset", reset)

    def wrap(self, model: Any, dynamic: bool | None = None, module: torch.nn.Module | None = None) -> Any:
        """The replacement of a compiled function; a module or a class is changed in place, and returned."""
        if isinstance(model, type):
            return self._wrap_class(model, dynamic)
        if isinstance(model, torch.nn.Module):
            model.forward = self.wrap(model.forward, dynamic, model)
            return model
        graphs: dict[Any, list[_CompiledGraph]] = {}
        histories: dict[int, SizeHistory] = {}

        def compiled(*args: Any, **kwargs: Any) -> Any:
            state = dict(module.named_parameters()) | dict(module.named_buffers()) if module is not None else {}
            leaves, layout = _pytree.tree_flatten((state, args, kwargs))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            if not tensors or not all(tensor.is_cuda for tensor in tensors):
                return model(*args, **kwargs)
            known = graphs.setdefault((self._resets, _state(), layout, *map(_described, leaves)), [])
            graph = next((graph for graph in known if graph.is_valid(leaves)), None)
            if graph is None:
                history = histories.setdefault(self._resets, SizeHistory(dynamic))
                graph = _CompiledGraph(leaves, history.marks(leaves, layout, len(state)), history)
                known.append(graph)
                self._compile(graph, leaves, model, module, layout)
            if graph.run is None:
                return model(*args, **kwargs)
            try:
                return graph.run(graph.inputs(leaves))
            except Exception as error:  # an operator of ATen's that cannot run without data
                self._on_note(f"torch.compile of {_named(model)}: its code did not complete: {_reason(error)}")
                graph.run = None
                return model(*args, **kwargs)

        compiled.__wrapped__ = model  # type: ignore[attr-defined]
        return compiled

    def _wrap_class(self, kind: type, dynamic: bool | None) -> type:
        """Make a class of modules compile its instances when they are first called; any other class is unchanged."""
        if not issubclass(kind, torch.nn.Module):
            return kind
        forward = kind.forward
        wrapped: weakref.WeakKeyDictionary[torch.nn.Module, Any] = weakref.WeakKeyDictionary()

        @functools.wraps(forward)
        def compiled_forward(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if module not in wrapped:
                # Not the bound method: it would keep its module alive.
                own = weakref.ref(module)
                wrapped[module] = self.wrap(lambda *args, **kwargs: forward(own(), *args, **kwargs), dynamic, module)
            return wrapped[module](*args, **kwargs)

        kind.forward = compiled_forward  # type: ignore[method-assign]
        return kind

    def _compile(
        self, graph: _CompiledGraph, leaves: list[Any], model: Any, module: torch.nn.Module | None, layout: Any
    ) -> None:
        results: list[Any] = []

        def traced(*inputs: Any) -> tuple[Any, ...]:
            state, args, kwargs = _pytree.tree_unflatten(graph.filled(inputs), layout)
            own = nullcontext() if module is None else torch.nn.utils.stateless._reparametrize_module(module, state)
            with own:
                flat, shape = _pytree.tree_flatten(model(*args, **kwargs))
            results[:] = [shape]
            return tuple(flat)

        self._write_elsewhere()
        try:
            run = _compile_with_inductor(traced, graph, graph.inputs(leaves))
        except Exception as error:  # a graph break, a kernel of the script's own, an operator that is not known
            done = "it ran as it is written, not compiled"
            if graph.has_symbols:
                done = "its sizes are constants, where torch.compile would have made some symbols"
            self._on_note(f"torch.compile of {_named(model)}: {done}: {_reason(error)}")
            if graph.has_symbols:
                graph.make_constant(leaves)
                self._compile(graph, leaves, model, module, layout)
            return
        graph.run = lambda inputs: _pytree.tree_unflatten(list(run(*inputs)), results[0])

    def _write_elsewhere(self) -> None:
        """Let TorchInductor write to a folder of ours: nothing made for a virtual GPU belongs in the user's cache."""
        if self._folder:
            return
        folder = tempfile.TemporaryDirectory(
            prefix="irscope-inductor-", dir=parent_of_temporaries(), ignore_cleanup_errors=True
        )
        self._folder = self._written.enter_context(folder)
        self._written.enter_context(environment_variable("TORCHINDUCTOR_CACHE_DIR", self._folder))


class _CompiledGraph:
    def __init__(self, leaves: list[Any], marks: list[Marks], history: SizeHistory) -> None:
        self._history: SizeHistory | None = history
        self._marked = [marked_axes(leaf) for leaf in leaves]
        self._set_marks(leaves, marks)
        self.run: Callable[[list[Any]], Any] | None = None
        """Takes the inputs, and returns what the function does; None if it cannot be compiled."""
        self.symbols: Symbols | None = None
        self.captured: list[torch.Tensor] = []
        """Tensors that the function takes from elsewhere: of globals, closures, objects. They become inputs too."""

    @property
    def marks(self) -> list[Marks]:
        return [mark for mark in self._marks if mark is not None]

    @property
    def has_symbols(self) -> bool:
        return any(map(is_symbolic, self._leaves, self._marks))

    def mark_of(self, captured: torch.Tensor) -> Marks:
        return constant_marks(captured) if self._history is None else self._history.mark(captured)

    def make_constant(self, leaves: list[Any]) -> None:
        self._history = None
        self.captured.clear()
        self._set_marks(leaves, [constant_marks(leaf) for leaf in leaves])

    def _set_marks(self, leaves: list[Any], marks: list[Marks]) -> None:
        self._leaves = [leaf if mark is None else sizes_of(leaf) for leaf, mark in zip(leaves, marks, strict=True)]
        self._marks = marks

    def inputs(self, leaves: list[Any]) -> list[Any]:
        return [leaf for leaf, mark in zip(leaves, self._marks, strict=True) if mark is not None]

    def filled(self, inputs: Sequence[Any]) -> list[Any]:
        rest = iter(inputs)
        pairs = zip(self._leaves, self._marks, strict=True)
        return [leaf if mark is None else next(rest) for leaf, mark in pairs]

    def is_valid(self, leaves: list[Any]) -> bool:
        if self.symbols is None:
            return all(sizes_of(leaf) == own for leaf, own in zip(leaves, self._leaves, strict=True))
        if any(not marked_axes(leaf) <= axes for leaf, axes in zip(leaves, self._marked, strict=True)):
            return False
        constants = zip(leaves, self._leaves, self._marks, strict=True)
        if any(mark is None and leaf != own for leaf, own, mark in constants):
            return False
        return self.symbols.hold_for([*self.inputs(leaves), *self.captured])


def _named(function: Any) -> str:
    """`forward (model.py:12)`"""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    place = f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code is not None else ""
    return f"{getattr(function, '__qualname__', type(function).__name__)}{place}"


def _reason(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0][:_LONGEST_REASON]
    return f"{type(error).__name__}: {text}".removesuffix(": ") + "."


def _state() -> tuple[Any, ...]:
    return torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")


def _described(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (leaf.dim(), leaf.dtype, leaf.requires_grad)
    if type(leaf) is int:
        return int
    return leaf if isinstance(leaf, int | float | str | bool | type(None)) else repr(leaf)


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


def _compile_with_inductor(function: Any, compiled: _CompiledGraph, own: list[Any]) -> Callable[..., Any]:
    """A function of a graph's inputs that launches TorchInductor's kernels, in its backward pass as well.

    `function` takes the inputs `own`, and returns a tuple of tensors; `compiled` receives its symbols and the tensors
    that it captures. Raises any exception for what cannot be traced as one graph.
    """
    from torch._guards import TracingContext, tracing
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.traceback import preserve_node_meta

    captured = compiled.captured

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
        # With each node's line of Python; before autograd, which TorchInductor itself traces.
        known = signature(make_fx).parameters
        traces = {"record_stack_traces": True} if "record_stack_traces" in known else {}
        for _ in range(_TRACES):
            symbols, count = Symbols(), len(captured)
            marks = [*compiled.marks, *map(compiled.mark_of, captured)]
            inputs = [
                symbols.input_of(value, mark, _device_of(value))
                for value, mark in zip([*own, *captured], marks, strict=True)
            ]

            def traced(*inputs: Any) -> Any:
                with _Captures(captured, inputs[len(own) :]):
                    return function(*inputs[: len(own)])

            with symbols.fake, preserve_node_meta():
                graph = make_fx(traced, pre_dispatch=True, **traces)(*inputs)
            if len(captured) == count:
                break
        with tracing(TracingContext(symbols.fake)):
            run = compile_fx(graph, inputs, inner_compile=compile_inner)
    compiled.symbols = symbols
    return lambda *own: run(*own, *captured)


_TRACES = 3
"""The first finds the tensors that a function captures, the second has them as inputs."""


def _device_of(value: Any) -> torch.device:
    return CUDA if not isinstance(value, torch.Tensor) or value.is_meta else value.device


class _Captures(TorchFunctionMode):
    """Replaces tensors that a traced function captured by inputs of its graph, and `cuda` by `cuda:0`."""

    def __init__(self, captured: list[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
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
        self._inputs.append(empty_as(tensor, _device_of(tensor), tensor.requires_grad))
        return self._inputs[-1]


_PROPERTIES = frozenset({torch.Tensor.requires_grad.__get__, torch.Tensor.grad_fn.__get__, torch.Tensor.grad.__get__})


def _indexed(value: Any) -> Any:
    is_device = isinstance(value, torch.device) or (isinstance(value, str) and value == "cuda")
    return CUDA if is_device and torch.device(value) == torch.device("cuda") else value


def _outputs_alone(graph: Any) -> Any:
    (results,) = next(iter(reversed(graph.graph.nodes))).args
    values = [getattr(node, "meta", {}).get("val") for node in results]

    def run(inputs: list[Any]) -> list[Any]:
        inputs.clear()
        return [empty_as(value, CUDA) if isinstance(value, torch.Tensor) else value for value in values]

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


@contextmanager
def _compiling() -> Iterator[None]:
    """Settings of TorchInductor, and fake tensors of `meta` to autograd, which has no device that the build lacks."""
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
    modes = [_pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    try:
        yield
    finally:
        for mode in reversed(modes):
            _push_mode(mode)

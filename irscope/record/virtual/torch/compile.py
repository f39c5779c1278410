"""`torch.compile` on the virtual GPU: TorchInductor writes its Triton kernels, which compile like any others.

Dynamo cannot trace through a function mode, and torch's autograd cannot take fake GPU tensors on a build without
CUDA. So a call is traced whole, without gradients, on fake tensors of the device; TorchInductor compiles the graph;
and if gradients are required, the original function runs too. A function that cannot be traced so, only runs as it is
written.
"""

from __future__ import annotations

import functools
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import _pop_mode, _push_mode
from torch.utils import _pytree

from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.triton.patches import Patches, environment_variable
from irscope.record.virtual.torch.memory import CUDA


class Compiler:
    """Stands in for `torch.compile` on a virtual GPU."""

    def __init__(self) -> None:
        self._written = ExitStack()
        """Removes the folder that TorchInductor writes to."""
        self._folder = ""

    def install(self, patches: Patches) -> None:
        """Replace `torch.compile`, and `compile` of modules, until `patches` are closed."""
        compiler = self

        def compile_(model: Any = None, **options: Any) -> Any:
            if model is None:
                return lambda function: compile_(function, **options)
            if options.get("disable") or options.get("backend", "inductor") != "inductor":
                return model
            return compiler.wrap(model)

        def compile_module(module: Any, *_: Any, **__: Any) -> None:
            module.forward = compiler.wrap(module.forward, module)

        patches.set(torch, "compile", compile_)
        patches.set(torch.nn.Module, "compile", compile_module)
        # In the generated code: the C++ one allocates on a real device.
        guards = torch._C._dynamo.guards
        patches.set(guards, "_empty_strided_cuda", _empty_strided)
        patches.callback(self._written.close)

    def wrap(self, model: Any, module: torch.nn.Module | None = None) -> Any:
        """The stand-in for a compiled function; a module or a class is changed in place, and returned."""
        if isinstance(model, type):
            return self._wrap_class(model)
        if isinstance(model, torch.nn.Module):
            model.forward = self.wrap(model.forward, model)
            return model
        graphs: dict[Any, Callable[[list[Any]], Any] | None] = {}

        def compiled(*args: Any, **kwargs: Any) -> Any:
            state = dict(module.named_parameters()) | dict(module.named_buffers()) if module is not None else {}
            leaves, layout = _pytree.tree_flatten((state, args, kwargs))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            if not tensors or not all(tensor.is_cuda for tensor in tensors):
                return model(*args, **kwargs)
            key = tuple(_described(leaf) for leaf in leaves)
            if key not in graphs:
                graphs[key] = self._compile(model, module, leaves, layout)
            run = graphs[key]
            if run is None:
                return model(*args, **kwargs)
            with torch.no_grad():
                result = run(tensors)
            differentiable = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
            return model(*args, **kwargs) if differentiable else result

        compiled.__wrapped__ = model  # type: ignore[attr-defined]
        return compiled

    def _wrap_class(self, kind: type) -> type:
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
                wrapped[module] = self.wrap(lambda *args, **kwargs: forward(own(), *args, **kwargs), module)
            return wrapped[module](*args, **kwargs)

        kind.forward = compiled_forward  # type: ignore[method-assign]
        return kind

    def _compile(self, model: Any, module: torch.nn.Module | None, leaves: list[Any], layout: Any) -> Any:
        """A function of the tensors in `leaves` that launches TorchInductor's kernels; None if it cannot compile it."""
        results: list[Any] = []

        def traced(*tensors: torch.Tensor) -> tuple[Any, ...]:
            rest = iter(tensors)
            filled = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            state, args, kwargs = _pytree.tree_unflatten(filled, layout)
            own = nullcontext() if module is None else torch.nn.utils.stateless._reparametrize_module(module, state)
            with own:
                flat, shape = _pytree.tree_flatten(model(*args, **kwargs))
            results[:] = [shape]
            return tuple(flat)

        self._write_elsewhere()
        shapes = [(leaf.shape, leaf.stride(), leaf.dtype) for leaf in leaves if isinstance(leaf, torch.Tensor)]
        try:
            with _without_modes(), torch.no_grad():
                run = _inductor(traced, shapes)
        except Exception:  # a graph break, a kernel of the script's own, an operator that TorchInductor does not know
            return None
        return lambda tensors: _pytree.tree_unflatten(list(run([*tensors])), results[0])

    def _write_elsewhere(self) -> None:
        """Let TorchInductor write to a folder of ours: nothing made for a virtual GPU belongs in the user's cache."""
        if self._folder:
            return
        folder = tempfile.TemporaryDirectory(
            prefix="irscope-inductor-", dir=parent_of_temporaries(), ignore_cleanup_errors=True
        )
        self._folder = self._written.enter_context(folder)
        self._written.enter_context(environment_variable("TORCHINDUCTOR_CACHE_DIR", self._folder))


def _inductor(traced: Any, shapes: list[tuple[Any, Any, torch.dtype]]) -> Any:
    """Trace a function on fake tensors of the device, and compile the graph."""
    from torch._guards import TracingContext, tracing
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.traceback import preserve_node_meta

    # In this process, where compiles are watched; without caches; with Triton's launcher, not that of a CUDA torch.
    settings = {
        "compile_threads": 1,
        "force_disable_caches": True,
        "use_static_cuda_launcher": False,
        "triton.cudagraphs": False,
    }
    known = {name: value for name, value in settings.items() if name in config._config}
    with config.patch(known):
        fake = FakeTensorMode()
        # With each node's origin before decomposition: TorchInductor names its kernels after that.
        with fake, preserve_node_meta():
            inputs = [torch.empty_strided(shape, stride, dtype=dtype, device=CUDA) for shape, stride, dtype in shapes]
            graph = make_fx(traced, decomposition_table=select_decomp_table())(*inputs)
        with tracing(TracingContext(fake)):
            return compile_fx_inner(graph, inputs)


def _empty_strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device=CUDA)


@contextmanager
def _without_modes() -> Iterator[None]:
    """Switch the function modes off: fake tensors of the device are not virtual ones."""
    held = [_pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    try:
        yield
    finally:
        for each in reversed(held):
            _push_mode(each)


def _described(leaf: Any) -> Any:
    """The properties of one input that a graph depends on."""
    if isinstance(leaf, torch.Tensor):
        return (tuple(leaf.shape), leaf.stride(), leaf.dtype)
    return leaf if isinstance(leaf, int | float | str | bool | type(None)) else repr(leaf)

"""`torch.compile` on the virtual GPU: TorchInductor writes its Triton kernels, which compile like any others.

Dynamo cannot trace through a function mode. So a call is traced whole on fake tensors of the device, and TorchInductor
compiles the graph, and its backward graph when a backward pass needs it. A function that cannot be traced so, only runs
as it is written.
"""

from __future__ import annotations

import functools
import os
import tempfile
import weakref
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from typing import Any

import torch
from torch.utils import _pytree

from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.triton.patches import Patches, environment_variable
from irscope.record.virtual.torch.inductor import compile_with_inductor
from irscope.record.virtual.torch.memory import CUDA

_LONGEST_REASON = 300


class Compiler:
    """Stands in for `torch.compile` on a virtual GPU."""

    def __init__(self, on_note: Callable[[str], None] | None = None) -> None:
        """`on_note` is called with what was not compiled, and why."""
        self._on_note = on_note or (lambda _: None)
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
        """The replacement of a compiled function; a module or a class is changed in place, and returned."""
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
            key = (_state(), *(_described(leaf) for leaf in leaves))
            if key not in graphs:
                graphs[key] = self._compile(model, module, leaves, layout)
            run = graphs[key]
            if run is None:
                return model(*args, **kwargs)
            try:
                return run(tensors)
            except Exception as error:  # an operator of ATen's that cannot run without data
                self._on_note(f"torch.compile of {_named(model)}: its code did not run to its end: {_reason(error)}")
                graphs[key] = None
                return model(*args, **kwargs)

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
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        try:
            run = compile_with_inductor(traced, tensors)
        except Exception as error:  # a graph break, a kernel of the script's own, an operator that is not known
            self._on_note(f"torch.compile of {_named(model)}: it ran as it is written, not compiled: {_reason(error)}")
            return None
        return lambda tensors: _pytree.tree_unflatten(list(run(*tensors)), results[0])

    def _write_elsewhere(self) -> None:
        """Let TorchInductor write to a folder of ours: nothing made for a virtual GPU belongs in the user's cache."""
        if self._folder:
            return
        folder = tempfile.TemporaryDirectory(
            prefix="irscope-inductor-", dir=parent_of_temporaries(), ignore_cleanup_errors=True
        )
        self._folder = self._written.enter_context(folder)
        self._written.enter_context(environment_variable("TORCHINDUCTOR_CACHE_DIR", self._folder))


def _empty_strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device=CUDA)


def _named(function: Any) -> str:
    """`forward (model.py:12)`"""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    place = f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code is not None else ""
    return f"{getattr(function, '__qualname__', type(function).__name__)}{place}"


def _reason(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0][:_LONGEST_REASON]
    return f"{type(error).__name__}: {text}".removesuffix(": ") + "."


def _state() -> tuple[Any, ...]:
    """What a graph depends on beside its inputs."""
    return torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")


def _described(leaf: Any) -> Any:
    """The properties of one input that a graph depends on."""
    if isinstance(leaf, torch.Tensor):
        return (tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.requires_grad)
    return leaf if isinstance(leaf, int | float | str | bool | type(None)) else repr(leaf)

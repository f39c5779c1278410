"""Replaces the device side of torch: the function mode, `torch.cuda`, threads, streams and comparisons."""

from __future__ import annotations

import contextlib
import importlib
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial, reduce
from types import ModuleType
from typing import Any

import torch

from irscope.device.parts import DevicePart
from irscope.record.triton.patches import Patches
from irscope.record.virtual.arguments import written_arguments
from irscope.record.virtual.placeholders import current_following
from irscope.record.virtual.torch.compile import GraphCompiler
from irscope.record.virtual.torch.cuda import install_cuda
from irscope.record.virtual.torch.handlers import Handlers
from irscope.record.virtual.torch.memory import (
    META,
    VirtualMemory,
    computed_values,
    invalidate,
    invalidate_all,
    written_by_launch,
)
from irscope.record.virtual.torch.mode import (
    VirtualCuda,
    follow_wrappers,
    install_autocast,
    install_operators,
    tensor_behind,
)
from irscope.record.virtual.torch.rescue import EachOperator
from irscope.record.virtual.torch.shadow import tensors_in
from irscope.record.virtual.torch.streams import CudaGraph


class TorchSession:
    def __init__(self, part: DevicePart, patches: Patches, on_note: Callable[[str], None] | None = None) -> None:
        """Put it in place for a part, until `patches` are closed; `on_note` gets what a reader must know of the run."""
        notes: set[str] = set()

        def note(text: str) -> None:
            if on_note is not None and text not in notes:
                notes.add(text)
                on_note(text)

        self.mode = mode = VirtualCuda(VirtualMemory(part.memory_bytes, note))
        self._patches = patches
        Handlers(mode).install()
        install_autocast(mode)
        install_operators(mode, patches)
        install_cuda(part, mode.memory, patches)
        follow_wrappers(mode, patches)
        GraphCompiler(note).install(patches)
        self._spare_dynamo()
        _spare_symbols(patches)
        self._accept_comparisons()
        # A captured graph writes again, to unknown places.
        patches.set(CudaGraph, "replay", lambda graph: invalidate_all())
        mode.install(META, partial(_backward, mode), patches)

    def is_host_memory(self, argument: Any) -> bool:
        """Whether a kernel's argument is a tensor that a GPU cannot reach: of the host, and not pinned."""
        if (tensor := tensor_behind(argument)) is None:
            return False
        with torch._C.DisableTorchFunction():
            memory = self.mode.memory
            return memory.device(tensor).type == "cpu" and tensor.numel() > 0 and not memory.is_pinned(tensor)

    def _spare_dynamo(self) -> None:
        """Do not import torch.compile, which takes a second and more, for functions that are excluded from it.

        They look up their original function with `getattr`: a global of that name in their module replaces it.
        """

        def unmarked(owner: Any, name: str, *default: Any) -> Any:
            if name == "__dynamo_disable" and "torch._dynamo" not in sys.modules:
                return getattr(owner, name, owner)
            return getattr(owner, name, *default)

        self._patches.set(torch._compile, "getattr", unmarked)
        use_deterministic = torch.use_deterministic_algorithms

        def deterministic(mode: bool, *, warn_only: bool = False) -> None:
            if "torch._inductor.config" in sys.modules:
                use_deterministic(mode, warn_only=warn_only)
            else:
                torch._C._set_deterministic_algorithms(mode, warn_only=warn_only)

        self._patches.set(torch, "use_deterministic_algorithms", deterministic)

    def _accept_comparisons(self) -> None:
        """`torch.testing.assert_close` reads its tensors' data: without data, only shapes are compared."""
        real = torch.testing.assert_close

        def assert_close(actual: Any, expected: Any, *args: Any, **kwargs: Any) -> None:
            if not _has_virtual(actual) and not _has_virtual(expected):
                real(actual, expected, *args, **kwargs)
                return
            values = [_sure_values(value) for value in (actual, expected)]
            if None not in values:
                real(*values, *args, **kwargs)
                return
            shapes = [getattr(value, "shape", None) for value in (actual, expected)]
            if None not in shapes and shapes[0] != shapes[1]:
                raise AssertionError(f"The values for attribute 'shape' do not match: {shapes[0]} != {shapes[1]}.")
            following = current_following()
            following.decide("check", following.read_of(True))

        self._patches.set(torch.testing, "assert_close", assert_close)


@contextmanager
def _backward(mode: VirtualCuda, outputs: Any) -> Iterator[None]:
    """Around a backward pass: torch's own operators, which run there too, are called from a dispatch mode."""
    _invalidate_gradients(outputs)
    with mode.entered(), nullcontext() if EachOperator.is_on() else EachOperator():
        yield


def _invalidate_gradients(outputs: Any) -> None:
    """Forget the existing gradients: the engine adds to them without any mode."""
    waiting = [tensor.grad_fn for tensor in outputs if isinstance(tensor, torch.Tensor)]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            with torch._C.DisableTorchFunction():
                if variable.grad is not None and variable.grad.is_meta:
                    invalidate(variable.grad)
        for following_node, _ in getattr(node, "next_functions", ()):
            if following_node is not None and following_node not in seen:
                seen.add(following_node)
                waiting.append(following_node)


def _sure_values(value: Any) -> torch.Tensor | None:
    if not isinstance(value, torch.Tensor):
        return None
    with torch._C.DisableTorchFunction():
        return computed_values(value)


def forget_written(kernel: Any, source: Any, arguments: tuple[Any, ...]) -> None:
    """Forget the values of those arguments of a launch that its kernel may write through; of all, where it is gone."""
    signature = getattr(source, "signature", None)
    written: list[Any] | None = list(arguments)
    if kernel is not None and signature is not None:
        written = written_arguments(kernel, signature, arguments)
    if written is None:
        invalidate_all()
    with torch._C.DisableTorchFunction():
        written_by_launch([*_tensors_of(written or ())])


def _tensors_of(argument: Any) -> Iterator[torch.Tensor]:
    if isinstance(argument, list | tuple):
        for item in argument:
            yield from _tensors_of(item)
    elif isinstance(argument, torch.Tensor):
        yield argument
    elif (base := getattr(argument, "base", None)) is not None:
        # A tensor descriptor, or a tensor that is reinterpreted as another type.
        yield from _tensors_of(base)
    elif hasattr(argument, "data_ptr"):
        invalidate_all()


def _has_virtual(value: Any) -> bool:
    with torch._C.DisableTorchFunction():
        return any(tensor.is_meta for tensor in tensors_in(value))


_SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"


class _Later(ModuleType):
    """A module that is loaded when an attribute is read that is not in `known`."""

    def __init__(self, name: str, known: dict[str, Any], *, is_package: bool) -> None:
        super().__init__(name)
        self._known = known
        self._is_package = is_package

    def __getattr__(self, name: str) -> Any:
        if name in self._known and not self.is_loaded:
            return self._known[name]
        if name == "__path__" and not self._is_package:
            # Read by each import from it.
            raise AttributeError(name)
        return getattr(self.load(), name)

    @property
    def is_loaded(self) -> bool:
        return sys.modules.get(self.__name__) is not self

    def load(self) -> ModuleType:
        if not self.is_loaded:
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


class _NoExpression:
    """Stands in for `sympy.Basic` until sympy is loaded: nothing is an instance of it."""


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return type(value) in (bool, int, float)


def _plain_or(module: _Later, name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return answer(*args) if _is_plain(args) else getattr(module.load(), name)(*args)

    return function


_SAME = (
    "expect_true guard_or_false guard_or_true guard_int guard_size_oblivious guarding_hint_or_throw "
    "statically_known_true"
)
_FOR_NUMBERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_SAME.split(), lambda value: value),
    "has_guarding_hint": lambda value: True,
    "is_nested_int": lambda value: False,
    "sym_and": lambda *values: reduce(operator.and_, values),
    "sym_or": lambda *values: reduce(operator.or_, values),
    "sym_eq": operator.eq,
}
"""Functions of `symbolic_shapes`, as they are for plain numbers and sequences of them."""


def _spare_symbols(patches: Patches) -> None:
    if _SYMBOLIC_SHAPES in sys.modules or "sympy" in sys.modules:
        return
    # The real module would have imported this.
    with contextlib.suppress(ImportError):
        importlib.import_module("torch.fx.experimental._config")
    shapes = _Later(_SYMBOLIC_SHAPES, {}, is_package=False)
    shapes._known.update({name: _plain_or(shapes, name, answer) for name, answer in _FOR_NUMBERS.items()})
    patches.set_module(shapes)
    patches.set_module(_Later("sympy", {"Basic": _NoExpression}, is_package=True))

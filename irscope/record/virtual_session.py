"""Puts the function mode and the answers of `torch.cuda` in place, and takes them away again."""

from __future__ import annotations

import sys
import threading
from typing import Any

import torch
from torch.overrides import _pop_mode, _push_mode
from torch.utils import _device as torch_default_device

from irscope.record import virtual_memory
from irscope.record.device_table import DevicePart
from irscope.record.virtual_autocast import Autocast
from irscope.record.virtual_backward import follow_backward
from irscope.record.virtual_compile import Compiler
from irscope.record.virtual_cuda import install_cuda
from irscope.record.virtual_follow import following
from irscope.record.virtual_moves import Moves
from irscope.record.virtual_ops import Operators
from irscope.record.virtual_patches import Patches
from irscope.record.virtual_reads import Reads
from irscope.record.virtual_streams import Graph
from irscope.record.virtual_symbols import spare_symbols
from irscope.record.virtual_torch import VirtualCuda
from irscope.record.virtual_writes import written_arguments


class TorchSession:
    """All that stands between the program and torch."""

    def __init__(self, part: DevicePart) -> None:
        self.mode = VirtualCuda()
        self._part = part
        self._patches = Patches()
        self._operators = Operators(self.mode)
        self._compiler = Compiler(self.mode)
        self._device_before: Any = None

    def open(self) -> None:
        """Start to stand in for the device."""
        for handlers in (Moves(self.mode), Reads(self.mode), Autocast(self.mode)):
            handlers.install()
        self.mode.on_operator = self._operators.teach
        self._device_before = torch_default_device.CURRENT_DEVICE
        install_cuda(self._part, self.mode.memory, self._patches)
        self._compiler.install(self._patches)
        follow_backward(self.mode, self._patches, _lose_gradients)
        self._follow_threads()
        self._spare_dynamo()
        spare_symbols(self._patches)
        self._follow_default_device()
        self._accept_comparisons()
        # Not a handler of the mode: torch looks at the stream's type before it asks any mode.
        self._patches.set(torch.Tensor, "record_stream", lambda tensor, stream: None)
        # What was captured writes again, no one knows where to.
        self._patches.set(Graph, "replay", lambda graph: virtual_memory.lose_all())
        _push_mode(self.mode)

    def close(self) -> None:
        """Leave torch as it was found."""
        self._remove_mode()
        if torch_default_device.CURRENT_DEVICE is not self._device_before:
            torch.set_default_device(self._device_before)
        self._operators.forget()
        self._compiler.close()
        self._patches.restore()

    def note_arguments(self, kernel: Any, source: Any, arguments: tuple[Any, ...]) -> None:
        """A kernel was launched with these: what it may write to is no longer known."""
        signature = getattr(source, "signature", None)
        written: list[Any] | None = list(arguments)
        if kernel is not None and signature is not None:
            written = written_arguments(kernel, signature, arguments)
        if written is None:
            virtual_memory.lose_all()
            return
        for argument in written:
            _lose(argument)

    def is_host_memory(self, argument: Any) -> bool:
        """Whether a kernel's argument is a tensor that a GPU cannot reach: of the host, and not pinned."""
        while not isinstance(argument, torch.Tensor) and hasattr(argument, "base"):
            # What `triton.reinterpret` makes.
            argument = argument.base
        if not isinstance(argument, torch.Tensor):
            return False
        with torch._C.DisableTorchFunction():
            memory = self.mode.memory
            return memory.device(argument).type == "cpu" and argument.numel() > 0 and not memory.is_pinned(argument)

    def _remove_mode(self) -> None:
        # Not a plain pop: the program may have left modes of its own above.
        above = []
        for _ in range(torch._C._len_torch_function_stack()):
            mode = _pop_mode()
            if mode is self.mode:
                break
            above.append(mode)
        for mode in reversed(above):
            _push_mode(mode)

    def _follow_threads(self) -> None:
        """A mode belongs to one thread: enter it in those that the program starts."""
        run = threading.Thread.run
        mode = self.mode

        def run_in_mode(thread: threading.Thread) -> None:
            if mode.is_on:
                run(thread)
                return
            with mode:
                run(thread)

        self._patches.set(threading.Thread, "run", run_in_mode)

    def _spare_dynamo(self) -> None:
        """What is marked as not for torch.compile imports all of it when first called: a second and more, for nothing.

        Among such functions are the shape functions of most element-wise operations. They look for their unmarked
        selves with `getattr`: a name of that module's own stands in for it, as long as the program does not itself
        use torch.compile.
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

    def _follow_default_device(self) -> None:
        """`torch.set_default_device("cuda")` puts torch's own mode below ours, `with torch.device("cuda")` above."""
        kind = torch_default_device.DeviceContext
        mode = self.mode
        handle = kind.__torch_function__

        def on_meta(
            context: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if context.device.type != "cuda":
                return handle(context, func, types, args, kwargs)
            kwargs = kwargs or {}
            if func in torch_default_device._device_constructors() and kwargs.get("device") is None:
                kwargs["device"] = virtual_memory.CUDA if mode.is_on else virtual_memory.META
            return func(*args, **kwargs)

        self._patches.set(kind, "__torch_function__", on_meta)

    def _accept_comparisons(self) -> None:
        """`torch.testing.assert_close` looks into its tensors one by one: without data it has nothing to look into."""
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
            if (one := following()) is not None:
                one.check()

        self._patches.set(torch.testing, "assert_close", assert_close)


def _lose_gradients(outputs: Any) -> None:
    """Forget the gradients that are there: the engine adds to them, and asks no mode."""
    waiting = [tensor.grad_fn for tensor in outputs if isinstance(tensor, torch.Tensor)]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            with torch._C.DisableTorchFunction():
                if variable.grad is not None and variable.grad.is_meta:
                    virtual_memory.lose(variable.grad)
        for following_node, _ in getattr(node, "next_functions", ()):
            if following_node is not None and following_node not in seen:
                seen.add(following_node)
                waiting.append(following_node)


def _sure_values(value: Any) -> torch.Tensor | None:
    """The values of a tensor where they are known, and are the program's own."""
    if not isinstance(value, torch.Tensor):
        return None
    with torch._C.DisableTorchFunction():
        found = virtual_memory.known(value)
    return None if found is None or found.drawn else found.values


def _lose(argument: Any) -> None:
    """Forget the values of a launch's argument: a tensor, what wraps one, or a tuple of such."""
    if isinstance(argument, list | tuple):
        for item in argument:
            _lose(item)
    elif isinstance(argument, torch.Tensor):
        with torch._C.DisableTorchFunction():
            virtual_memory.lose(argument)
    elif (base := getattr(argument, "base", None)) is not None:
        # A tensor descriptor, or a tensor that is seen as another type.
        _lose(base)
    elif hasattr(argument, "data_ptr"):
        virtual_memory.lose_all()


def _has_virtual(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return value.is_meta
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list | tuple) and any(_has_virtual(item) for item in value)

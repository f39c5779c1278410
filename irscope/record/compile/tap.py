"""The tap: runs every pass of a backend's stage functions in a pass manager of its own, and reports it.

A stage function looks up `ir.pass_manager` and the builders (`passes.ttgpuir.add_coalesce`, …) as globals of its
backend's module when it runs. Inside `tap()` those globals are stand-ins, which forward everything, but collect the
passes that are added to a pass manager and run them one by one. No list of passes is kept here: a builder is any
function of the compiler that is called with a pass manager.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any

from irscope.record.compile.watched_compile import LLVM_OPTIMISER, WatchedCompile
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import replaced

_CurrentObserver = Callable[[], WatchedCompile | None]


@contextmanager
def tap(backends: tuple[type, ...], current: _CurrentObserver) -> Iterator[None]:
    """Report the passes of these backends' stage functions to `current()` until the end of the block.

    If `current()` is None (another thread's compile, one that is not recorded), everything runs as if untapped.
    Everything is restored on leaving, also after an exception.
    """
    with ExitStack() as stack:
        modules = {module.__name__: module for backend in backends for module in triton_api.backend_modules(backend)}
        for module in modules.values():
            for name, value in list(vars(module).items()):
                if triton_api.is_compiler_module(value):
                    stack.enter_context(replaced(module, name, _ModuleStandIn(value, current)))
                elif name == "instrument" and callable(value):
                    # Triton 3.9: extensions add passes of theirs through this function of the backend's module.
                    stack.enter_context(replaced(module, name, partial(_build, name, value)))
        yield


class _ModuleStandIn:
    """Stands in for one of the compiler's C++ modules: forwards, and sees pass managers being made and filled."""

    def __init__(self, module: ModuleType, current: _CurrentObserver) -> None:
        self._module = module
        self._current = current

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            value = _ModuleStandIn(value, self._current)
        elif name == "pass_manager":
            value = partial(self._make_pass_manager, value)
        elif name == "optimize_module":
            value = partial(self._optimize, value)
        elif name == "to_module":
            value = partial(self._translate, value)
        elif callable(value) and not isinstance(value, type):
            value = partial(_build, name, value)
        # The next look-up finds it in the instance.
        self.__dict__[name] = value
        return value

    def _make_pass_manager(self, real: Any, context: Any) -> Any:
        observer = self._current()
        return real(context) if observer is None else _TappedPassManager(real, context, observer)

    def _optimize(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        observer = self._current()
        if observer is None:
            return real(*args, **kwargs)
        step = observer.pass_added(LLVM_OPTIMISER, "")
        runs = observer.pass_begins(step)
        started = time.perf_counter_ns()
        try:
            # If the plan switches it off, DISABLE_LLVM_OPT is set, and this returns at once.
            result = real(*args, **kwargs)
        except BaseException as error:
            observer.pass_failed(step, error)
            raise
        if runs:
            observer.pass_ended(step, None, (time.perf_counter_ns() - started) // 1000)
        return result

    def _translate(self, real: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
        if (observer := self._current()) is not None:
            observer.module_leaves_mlir(module)
        return real(module, *args, **kwargs)


def _build(name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a builder, or collect the pass that it adds to a tapped pass manager."""
    if args and isinstance(args[0], _TappedPassManager):
        return args[0].add(name, real, args[1:], kwargs)
    return real(*args, **kwargs)


class _TappedPassManager:
    """A pass manager that runs each pass in a real one of its own."""

    def __init__(self, real: Any, context: Any, observer: WatchedCompile) -> None:
        self._real = real
        self._context = context
        self._observer = observer
        self._debug = False
        self._steps: list[tuple[str, Any]] = []
        """The name of each pass, and the manager of its own."""

    def add(self, name: str, builder: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add what one builder adds, as one step."""
        manager = self._real(self._context)
        if self._debug:
            manager.enable_debug()
        result = builder(manager, *args, **kwargs)
        # An extension point without extensions adds nothing.
        if manager.get_pipeline_str() != "any()":
            self._steps.append((name.removeprefix("add_"), manager))
        return result

    def enable_debug(self) -> bool:
        """As the real method: returns whether MLIR_ENABLE_DUMP enables dumps."""
        self._debug = True
        return self._real(self._context).enable_debug()

    def get_pipeline_str(self) -> str:
        """The pipeline as MLIR writes it."""
        inner = [manager.get_pipeline_str().removeprefix("any(").removesuffix(")") for _, manager in self._steps]
        return f"any({','.join(inner)})"

    def run(self, module: Any, tag: str) -> None:
        """Run the passes one by one; leaves out what the plan skips."""
        steps, self._steps = self._steps, []
        for name, manager in steps:
            step = self._observer.pass_added(name, manager.get_pipeline_str())
            if not self._observer.pass_begins(step):
                continue
            started = time.perf_counter_ns()
            try:
                if not self._observer.runs_without_clone(manager, self._context, module):
                    manager.run(module, tag)
            except BaseException as error:
                self._observer.pass_failed(step, error)
                raise
            self._observer.pass_ended(step, module, (time.perf_counter_ns() - started) // 1000)

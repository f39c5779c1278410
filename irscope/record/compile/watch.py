"""Reports every compile in this process as events, pass by pass, whichever way it is called.

A stage function looks up `ir.pass_manager` and the builders (`passes.ttgpuir.add_coalesce`, …) as globals of its
backend's module. Inside `tap()` those are stand-ins, which run the passes that are added to a pass manager one by one:
a builder is any function of the compiler that is called with a pass manager. `watch_compiles()` wraps
`triton.compile`, and each backend's `add_stages`; all compiles within it are under one plan, in a cache of their own.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from irscope.model.capture import Artifact, Capture, Environment, PassSnapshot
from irscope.record.compile.hand_over import LeftOut, deferred_kernel
from irscope.record.compile.launches import (
    PendingLaunches,
    describe_compile_error,
    describe_launch,
    plain,
    with_constants,
)
from irscope.record.compile.stopwatch import Stopwatch, timed_calls
from irscope.record.compile.watched_compile import LLVM_OPTIMISER, Watch, WatchedCompile
from irscope.record.process import events
from irscope.record.process.assembly import OpenCapture
from irscope.record.triton import api as triton_api
from irscope.record.triton import ptxas
from irscope.record.triton.autotuner import configuration_under_way, note_deferred
from irscope.record.triton.identity import code_variables, compiler_parts
from irscope.record.triton.patches import replaced
from irscope.record.triton.versions import triton_version

_CurrentObserver = Callable[[], WatchedCompile | None]


@contextmanager
def tap(backends: tuple[type, ...], current: _CurrentObserver) -> Iterator[None]:
    """Report the passes of these backends' stage functions to `current()`, if not None, until the end of the block."""
    with ExitStack() as stack:
        modules = {module.__name__: module for backend in backends for module in triton_api.backend_modules(backend)}
        for module in modules.values():
            for name, value in list(vars(module).items()):
                if triton_api.is_compiler_module(value):
                    stack.enter_context(replaced(module, name, _ModuleStandIn(value, current)))
                elif name == "instrument" and callable(value):
                    # Triton 3.9: extensions add passes of theirs through this function of the backend's module.
                    stack.enter_context(replaced(module, name, partial(_build, current, name, value)))
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
            value = partial(_build, self._current, name, value)
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
        run = partial(real, *args, **kwargs)
        # If the plan switches it off, DISABLE_LLVM_OPT is set, and this returns at once.
        return _run_pass(observer, step, LLVM_OPTIMISER, run) if observer.pass_begins(step) else run()

    def _translate(self, real: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
        observer = self._current()
        if observer is None:
            return real(module, *args, **kwargs)
        observer.module_leaves_mlir(module)
        with observer.part("translation to LLVM IR", "pass"):
            return real(module, *args, **kwargs)


def _run_pass(
    observer: WatchedCompile, step: PassSnapshot, label: str, run: Callable[[], Any], module: Any = None
) -> Any:
    started = time.perf_counter_ns()
    try:
        with observer.part(label, "pass"):
            result = run()
    except BaseException as error:
        observer.pass_failed(step, error)
        raise
    observer.pass_ended(step, module, (time.perf_counter_ns() - started) // 1000)
    return result


def _build(current: _CurrentObserver, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if args and isinstance(args[0], _TappedPassManager):
        return args[0].add(name, real, args[1:], kwargs)
    observer = current()
    if observer is None:
        return real(*args, **kwargs)
    with observer.part(name, "call"):
        return real(*args, **kwargs)


class _TappedPassManager:
    def __init__(self, real: Any, context: Any, observer: WatchedCompile) -> None:
        self._real = real
        self._context = context
        self._observer = observer
        self._debug = False
        self._steps: list[tuple[str, Any]] = []
        """The name of each pass, and the manager of its own."""

    def add(self, name: str, builder: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # A manager for each pass is irscope's own.
        with self._observer.own_part():
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
        inner = [manager.get_pipeline_str().removeprefix("any(").removesuffix(")") for _, manager in self._steps]
        return f"any({','.join(inner)})"

    def run(self, module: Any, tag: str) -> None:
        # All but the passes within it is irscope's own, and so is the end of the managers.
        with self._observer.own_part():
            self._run_each(module, tag)

    def _run_each(self, module: Any, tag: str) -> None:
        steps, self._steps = self._steps, []
        for name, manager in steps:
            step = self._observer.pass_added(name, manager.get_pipeline_str())
            if self._observer.pass_begins(step):
                label = f"{step.name}#{step.occurrence}"
                _run_pass(self._observer, step, label, partial(manager.run, module, tag), module)


@contextmanager
def watch_compiles(watch: Watch) -> Iterator[None]:
    """Report every compile in this process until the end of the block, which restores everything."""
    triton_api.require_triton()
    backends = triton_api.backend_classes()
    real = triton_api.compile_function()
    pending = PendingLaunches(watch.values)

    def compile(src: Any, target: Any = None, options: Any = None, **keywords: Any) -> Any:
        described = pending.take(src, options)

        def run(source: Any) -> Any:
            return real(source, target=target, options=options, **keywords)

        if watch.current is not None and watch.current.job is not None:
            # What another process began is watched already.
            return run(src)
        if watch.request.kernel not in ("", name := _kernel_name_of(src)):
            watch.passed_over.add(name)
            return run(src)
        if target is None:
            target = triton_api.active_gpu_target()
        if watch.request.constants:
            # What is recorded has these constants; what is launched keeps its own.
            with contextlib.suppress(Exception):
                recorded = with_constants(src, dict(watch.request.constants))
                _watched_compile(watch, run, recorded, target, options, described)
            return run(src)
        hands_over = watch.handover is not None and "record" in described and watch.handover.takes_launches()
        if hands_over and watch.handover is not None:
            watch.handover.stop_where_failed()
        return _watched_compile(watch, run, src, target, options, described, hands_over=hands_over)

    with ExitStack() as stack:
        if not watch.request.mlir_dump_path:
            stack.enter_context(tap(backends, lambda: watch.current))
        for owner in triton_api.compile_owners():
            stack.enter_context(replaced(owner, "compile", compile))
        kernels = triton_api.jit_function_class()
        stack.enter_context(replaced(kernels, "_pack_args", pending.stand_in(kernels._pack_args)))
        # A kernel that was launched before holds the original compile; a property of its class comes before that.
        keep_real = property(lambda _: compile, lambda self, _: vars(self).__setitem__("compile", real))
        stack.enter_context(replaced(kernels, "compile", keep_real))
        for backend in backends:
            stack.enter_context(replaced(backend, "add_stages", _add_stages_stand_in(backend, watch)))
            for module in triton_api.backend_modules(backend):
                stack.enter_context(replaced(module, "print", partial(_print, watch)))
                if "subprocess" in vars(module):
                    stack.enter_context(replaced(module, "subprocess", _ToolsStandIn(watch)))
        stack.enter_context(triton_api.knob("nvidia", "dump_ptxas_log", True))
        if watch.request.times:
            stack.enter_context(timed_calls(partial(_stopwatch_of, watch), backends))
        yield


def _stopwatch_of(watch: Watch) -> Stopwatch | None:
    return None if (current := watch.current) is None else current.stopwatch


def _watched_compile(
    watch: Watch,
    run: Callable[[Any], Any],
    src: Any,
    target: Any,
    options: Any,
    described: dict[str, Any],
    *,
    hands_over: bool = False,
) -> Any:
    current = watch.begin(triton_api.target_of(target))
    current.may_be_handed_over = hands_over
    current.given = src, None
    current.may_be_left_out = bool(watch.request.stored) and watch.is_virtual and not isinstance(src, str)
    launch = replace(describe_launch(src), **described)
    launch = replace(launch, autotuning=configuration_under_way(launch.kernel.name))
    current.begins(replace(launch, assumptions=watch.assumptions(launch)))
    if isinstance(src, str):
        # Parsing an IR file may end the process already.
        current.report_begin()
    try:
        with current.timed_whole():
            return finished(current, lambda: run(src), options)
    except LeftOut as left:
        watch.reported.add(left.key)
        kernel = deferred_kernel(src, left.key, left.texts, partial(_read_by_script, watch, run, src, left.key))
        if watch.handover is not None:
            watch.handover.launched(left.key, kernel)
        note_deferred(kernel)
        return kernel
    finally:
        watch.end()


def finished(current: WatchedCompile, run: Callable[[], Any], options: Any) -> Any:
    watch = current.watch
    try:
        kernel = run()
    except LeftOut:
        raise
    except BaseException as error:
        _report_missing_library(current, error, options)
        current.failed(error, describe_compile_error(error))
        raise
    key = getattr(kernel, "hash", "")
    if current.metadata is None and key in watch.reported:
        # From Triton's cache: the same compile, which was reported before.
        return kernel
    with current.own_part():
        finish_compile(current, key, kernel if current.metadata is None else None)
    return kernel


def _read_by_script(watch: Watch, run: Callable[[Any], Any], src: Any, key: str) -> Any:
    """The kernel of a compile that is recorded elsewhere: from Triton's cache, or compiled here unrecorded."""
    if watch.handover is not None:
        watch.handover.wait_for(key)
    watch.is_quiet = True
    try:
        return run(src)
    finally:
        watch.is_quiet = False


def _report_missing_library(current: WatchedCompile, error: BaseException, options: Any) -> None:
    """A library of device functions is linked where LLVM IR is made, but Triton reads it before the first stage."""
    if not isinstance(error, OSError) or error.filename is None:
        return
    parsed = vars(triton_api.make_backend(current.target).parse_options(dict(options or {})))
    if str(error.filename) in [str(path) for _, path in parsed.get("extern_libs") or ()]:
        current.report(events.OptionsKnown(current.number, plain(parsed)))
        current.report(events.StageFailed(current.number, "llir"))


def finish_compile(current: WatchedCompile, key: str, cached: Any = None) -> None:
    """Report that a compile succeeded, by its key in Triton's cache; `cached`: the kernel, if no stage was run."""
    current.watch.reported.add(key)
    if current.watch.handover is not None:
        current.watch.handover.has_compiled = True
    metadata = dict(current.metadata or {})
    if cached is not None:
        known = vars(triton_api.make_backend(current.target).parse_options({}))
        metadata = cached.metadata._asdict()
        options = {name: metadata[name] for name in known if name in metadata}
        current.report(events.OptionsKnown(current.number, plain(options)))
        for stage, data in cached.asm.items():
            current.report(events.ArtifactMade(current.number, stage, data))
    metadata.pop("target", None)
    log = "".join(current.printed)
    current.report(events.CompileEnded(current.number, key, plain(metadata), log, cached=cached is not None))


def _kernel_name_of(src: Any) -> str:
    return Path(src).stem if isinstance(src, str) else str(getattr(src, "name", ""))


def _add_stages_stand_in(backend: type, watch: Watch) -> Callable[..., Any]:
    # Not `knobs.runtime.add_stages_inspection_hook`: a program or a plugin that sets the hook takes ours away, and ours
    # would see the stages before those that the program's own hook puts in their place. In 3.6 no key asks for it.
    real = backend.add_stages  # type: ignore[attr-defined]

    def add_stages(self: Any, stages: dict[str, Any], options: Any, *args: Any) -> Any:
        result = real(self, stages, options, *args)
        if (current := watch.current) is None:
            return result
        with current.own_part():
            watched(self, options, current)
            current.wrap_stages(stages)
        return result

    def watched(self: Any, options: Any, current: WatchedCompile) -> None:
        if current.job is None:
            current.given = current.given[0], options
            current.report(events.OptionsKnown(current.number, plain(vars(options))))
            libraries = dict(getattr(options, "extern_libs", None) or ())
            known = events.CompilerKnown(
                current.number,
                parts=compiler_parts(current.target, backend, libraries.items()),
                variables=code_variables(current.target.backend),
                tools=triton_api.tool_versions(current.target),
            )
            current.identity = partial(_id_of, current, plain(vars(options)), known)
            front = _front_of(current) if watch.is_virtual else ""
            current.report(replace(known, front=front))
            if front and current.may_be_left_out:
                current.leave_out_known(front)

    return add_stages


def _front_of(current: WatchedCompile) -> str:
    """What decides a compile that Triton's front end begins, as an id; empty for a text."""
    source, _ = current.given
    kernel = getattr(source, "fn", None)
    if kernel is None:
        return ""
    # Triton's own key has the functions, their lines and the constants that they use, but no file and no other global.
    key = source.hash()
    used = [(name, value) for (name, _), (value, _) in kernel.used_global_vals.items()]
    return current.identity(repr((kernel.fn.__code__.co_filename, key, used)))


def _id_of(current: WatchedCompile, options: dict[str, Any], known: events.CompilerKnown, source: str) -> str:
    compiler = Environment(triton_version=triton_version(), parts=known.parts, variables=known.variables)
    begun = OpenCapture(current.target, current.launch)
    begun.take(events.OptionsKnown(current.number, options))
    plan, artifact = current.request.plan, Artifact(current.source_name, source)
    return Capture(begun.launch, current.target, plan, (artifact,), environment=compiler).id


class _ToolsStandIn:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def run(self, command: Any, *args: Any, **keywords: Any) -> Any:
        current = self._watch.current
        if current is None or not ptxas.is_assembler(command):
            return subprocess.run(command, *args, **keywords)
        return current.assembled(command, lambda words: subprocess.run(words, *args, **keywords))


def _print(watch: Watch, *values: Any, sep: str | None = " ", end: str | None = "\n", **keywords: Any) -> None:
    """Stands in for the `print` of a backend's module: what ptxas says belongs to the compile."""
    current = watch.current
    if watch.is_quiet:
        return
    if current is None or keywords.get("file") is not None:
        print(*values, sep=sep, end=end, **keywords)
    else:
        current.printed.append((sep or " ").join(map(str, values)) + (end or ""))

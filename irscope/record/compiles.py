"""Watches every compile in this process, by whatever route it comes, and tells of it as events.

`triton.compile` is where all routes meet: launches, `kernel.warmup`, `triton.compile` itself, TorchInductor. Within
`watch_compiles()` it is wrapped, and so is each backend's `add_stages`: its stage functions are timed and tapped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from irscope.record import triton_api
from irscope.record.compiler_identity import code_variables, compiler_parts
from irscope.record.device_watch import configuration_under_way
from irscope.record.front_end import describe_compile_error
from irscope.record.launch_arguments import GivenLaunches
from irscope.record.launches import describe_launch, with_constants
from irscope.record.tap import replaced, tap
from irscope.record.virtual_arguments import assumptions_under_way
from irscope.record.watched_compile import Watch, WatchedCompile

__all__ = ["Watch", "WatchedCompile", "finish_compile", "plain", "watch_compiles"]


@contextmanager
def watch_compiles(watch: Watch) -> Iterator[None]:
    """Tell of every compile in this process until the end of the block; everything is restored then."""
    triton_api.require_triton()
    backends = triton_api.backend_classes()
    real = triton_api.compile_function()
    given = GivenLaunches()

    def compile(src: Any, target: Any = None, options: Any = None, **keywords: Any) -> Any:
        return _watched_compile(watch, real, src, target, options, keywords, given.take(src, options))

    with ExitStack() as stack:
        if watch.tap:
            stack.enter_context(tap(backends, lambda: watch.current))
        for owner in triton_api.compile_owners():
            stack.enter_context(replaced(owner, "compile", compile))
        kernels = triton_api.jit_function_class()
        stack.enter_context(replaced(kernels, "_pack_args", given.stand_in(kernels._pack_args)))
        # A kernel that was launched before holds the compile of then; a property of its class comes before that.
        keep_real = property(lambda _: compile, lambda self, _: vars(self).__setitem__("compile", real))
        stack.enter_context(replaced(kernels, "compile", keep_real))
        for backend in backends:
            stack.enter_context(replaced(backend, "add_stages", _add_stages_stand_in(backend, watch)))
            stack.enter_context(replaced(backend, "hash", _hash_stand_in(backend, watch)))
            for module in triton_api.backend_modules(backend):
                stack.enter_context(replaced(module, "print", _print_stand_in(watch)))
        stack.enter_context(triton_api.knob("nvidia", "dump_ptxas_log", True))
        yield


def _watched_compile(
    watch: Watch,
    real: Callable[..., Any],
    src: Any,
    target: Any,
    options: Any,
    keywords: dict[str, Any],
    given: dict[str, Any],
) -> Any:
    name = kernel_name_of(src)
    if watch.current is not None or not watch.wanted(name):
        return real(src, target=target, options=options, **keywords)
    if target is None:
        target = triton_api.active_gpu_target()
    if watch.constants:
        with contextlib.suppress(Exception):
            _one_compile(watch, real, with_constants(src, watch.constants), target, options, keywords, given)
        return real(src, target=target, options=options, **keywords)
    return _one_compile(watch, real, src, target, options, keywords, given)


def _one_compile(
    watch: Watch,
    real: Callable[..., Any],
    src: Any,
    target: Any,
    options: Any,
    keywords: dict[str, Any],
    given: dict[str, Any],
) -> Any:
    current = watch.begin(triton_api.target_of(target))
    launch = {**describe_launch(src), **plain(given)}
    launch["autotuning"] = configuration_under_way(launch["kernel"]["name"])
    launch["assumptions"] = assumptions_under_way(launch)
    current.begins(launch)
    if isinstance(src, str):
        # Reading an IR file may end the process already.
        current.tell_begin()
    try:
        kernel = real(src, target=target, options=options, **keywords)
    except BaseException as error:
        _tell_missing_library(current, error, options)
        current.failed(error, describe_compile_error(error))
        raise
    finally:
        watch.end()
    key = getattr(kernel, "hash", "")
    if current.metadata is None and key in watch.told:
        # From Triton's cache: the same compile, which was told of before.
        return kernel
    finish_compile(current, key, kernel if current.metadata is None else None)
    return kernel


def _tell_missing_library(current: WatchedCompile, error: BaseException, options: Any) -> None:
    """A library of device functions is linked where LLVM IR is made, but Triton reads it before the first stage."""
    if not isinstance(error, OSError) or error.filename is None:
        return
    parsed = vars(triton_api.make_backend(current.target).parse_options(dict(options or {})))
    if str(error.filename) in [str(path) for _, path in parsed.get("extern_libs") or ()]:
        current.emit("options", options=plain(parsed))
        current.emit("stage-failed", stage="llir", message=str(error), diagnostics="")


def finish_compile(current: WatchedCompile, key: str, cached: Any = None) -> None:
    """Tell that a compile went through; `cached` is the kernel where it came from a cache, with no stage run."""
    current.watch.told.add(key)
    if cached is not None:
        known = vars(triton_api.make_backend(current.target).parse_options({}))
        held = cached.metadata._asdict()
        current.emit("options", options=plain({name: held[name] for name in known if name in held}))
        for stage, data in cached.asm.items():
            current.emit("artifact", data, stage=stage)
        metadata = held
    else:
        metadata = dict(current.metadata or {})
    metadata.pop("target", None)
    current.emit(
        "compile-end", hash=key, metadata=plain(metadata), log="".join(current.printed), cached=cached is not None
    )


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def kernel_name_of(src: Any) -> str:
    """The name of what `triton.compile` was given: a source, or the path of an IR file."""
    return Path(src).stem if isinstance(src, str) else str(getattr(src, "name", ""))


def _add_stages_stand_in(backend: type, watch: Watch) -> Callable[..., Any]:
    real = backend.add_stages  # type: ignore[attr-defined]

    def add_stages(self: Any, stages: dict[str, Any], options: Any, *args: Any) -> Any:
        result = real(self, stages, options, *args)
        if (current := watch.current) is not None:
            current.emit("options", options=plain(vars(options)))
            libraries = dict(getattr(options, "extern_libs", None) or ())
            current.emit(
                "compiler",
                parts=compiler_parts(current.target, backend, libraries.items()),
                variables=code_variables(current.target.backend),
                tools=triton_api.tool_versions(current.target),
            )
            current.wrap_stages(stages)
        return result

    return add_stages


def _hash_stand_in(backend: type, watch: Watch) -> Callable[..., Any]:
    real = backend.hash  # type: ignore[attr-defined]

    def hash(self: Any) -> str:
        # Enters the cache's key: two plans never share an entry.
        return f"{real(self)}-irscope[{watch.plan}]" if watch.plan else real(self)

    return hash


def _print_stand_in(watch: Watch) -> Callable[..., None]:
    def backend_print(*values: Any, sep: str | None = " ", end: str | None = "\n", **keywords: Any) -> None:
        current = watch.current
        if current is None or keywords.get("file") is not None:
            print(*values, sep=sep, end=end, **keywords)
        else:
            current.printed.append((sep or " ").join(map(str, values)) + (end or ""))

    return backend_print

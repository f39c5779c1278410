"""The only importer of triton: what irscope asks of it, with every difference between its versions.

Tested on Triton 3.6, 3.7, 3.8 and 3.9. Nothing here imports triton before it is called.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from irscope.capture import Target
from irscope.errors import MissingTool, TargetError, UsageError, did_you_mean
from irscope.target import KNOWN_TARGETS

OLDEST_SUPPORTED = (3, 6)


def triton_version() -> str:
    """The installed Triton's version, without importing it; empty where there is none."""
    for name in ("triton", "pytorch-triton", "triton-windows"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    module = sys.modules.get("triton")
    return str(getattr(module, "__version__", ""))


def require_triton() -> ModuleType:
    """Import Triton; raises MissingTool where it is absent or older than irscope supports."""
    try:
        import triton
    except ImportError as error:
        raise MissingTool(
            f"Triton is not installed in {sys.executable} ({error}). Recording needs it: pip install 'triton>=3.6'. "
            "Captures made elsewhere can be read without it."
        ) from error
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if version < OLDEST_SUPPORTED:
        raise MissingTool(f"Triton {triton.__version__} is too old: irscope records with 3.6 and later.")
    return triton


def silence_known_noise() -> None:
    """Quiet the notes that Triton prints for reasons of its own, which say nothing of the kernel."""
    import warnings

    # 3.9 warns once of a default that 3.10 will change; it keeps the old one all the same.
    warnings.filterwarnings("ignore", message="TRITON_DEFAULT_FP_FUSION is unset")


def compile_function() -> Any:
    """`triton.compile`, as it stands now."""
    from triton.compiler import compiler

    return compiler.compile


def compile_owners() -> tuple[Any, ...]:
    """The modules whose attribute `compile` is `triton.compile`, and which callers look it up in."""
    import triton
    from triton import compiler as package
    from triton.compiler import compiler

    return (compiler, package, triton)


def jit_function_class() -> Any:
    """The class of a `@triton.jit` function."""
    from triton.runtime.jit import JITFunction

    return JITFunction


def autotuner_class() -> Any:
    """The class of an `@triton.autotune`d kernel."""
    from triton.runtime.autotuner import Autotuner

    return Autotuner


def compiled_kernel_class() -> Any:
    """The class of what `triton.compile` gives."""
    from triton.compiler.compiler import CompiledKernel

    return CompiledKernel


def dtype_named(name: str) -> Any:
    """A type of `triton.language` by its name there, or None."""
    import triton.language as tl

    value = getattr(tl, name, None)
    return value if isinstance(value, tl.dtype) else None


def gpu_target(target: Target) -> Any:
    """Triton's own form of a target."""
    from triton.backends.compiler import GPUTarget

    return GPUTarget(target.backend, int(target.arch) if target.arch.isdigit() else target.arch, target.warp_size)


def target_of(gpu: Any) -> Target:
    """A target, of Triton's own form."""
    return Target(gpu.backend, str(gpu.arch), int(gpu.warp_size))


def backend_classes() -> tuple[type, ...]:
    """The compilers of every installed backend, third-party ones too."""
    from triton.backends import backends

    return tuple(backend.compiler for backend in backends.values())


def backend_names() -> list[str]:
    """The names of the installed backends."""
    from triton.backends import backends

    return sorted(backends)


def make_backend(target: Target) -> Any:
    """The backend for a target; raises TargetError with the backends there are."""
    from triton.compiler.compiler import make_backend as triton_make_backend

    try:
        backend = triton_make_backend(gpu_target(target))
        # An arch that the backend does not know shows up here, not when the backend is made.
        backend.parse_options({})
    except Exception as error:
        raise TargetError(
            f"Triton {triton_version()} does not take the target {str(target)!r} ({error}). Its backends are "
            f"{', '.join(backend_names())}; irscope knows {', '.join(map(str, KNOWN_TARGETS))}."
        ) from error
    return backend


def check_options(backend: Any, target: Target, names: Iterable[str]) -> None:
    """Raise UsageError for an option that the backend does not have: Triton itself passes it over in silence."""
    known = vars(backend.parse_options({}))
    for name in names:
        if name not in known:
            raise UsageError(f"{target} has no compile option {name!r}.{did_you_mean(name, known)}")


def present_gpu() -> Target | None:
    """The GPU that is there and that Triton's driver takes, or None. Imports torch where there may be one."""
    if not _device_files():
        return None
    try:
        from triton.backends import backends

        active = [backend.driver for backend in backends.values() if backend.driver.is_active()]
        return target_of(active[0]().get_current_target()) if len(active) == 1 else None
    except Exception:
        # A driver that cannot be asked is no GPU that can be run on.
        return None


def _device_files() -> bool:
    # Asking torch costs seconds; where the kernel shows no GPU there is none to ask for.
    dev = Path("/dev")
    return any(dev.glob("nvidia[0-9]*")) or (dev / "kfd").exists() or (dev / "dxg").exists()


def package_folder() -> Path:
    """The folder that Triton is installed in."""
    import triton

    return Path(str(triton.__file__)).parent


def dumping_changes_llvm_ir() -> bool:
    """Whether TRITON_KERNEL_DUMP adds Triton's and LLVM's versions to the LLVM IR, as it does in 3.9."""
    from triton._C.libtriton import llvm

    return hasattr(llvm, "add_version_info")


def backend_modules(backend: type) -> tuple[ModuleType, ...]:
    """The modules whose globals a backend's stage functions look up when they run."""
    names = [cls.__module__ for cls in backend.__mro__ if cls.__module__ not in ("builtins", "abc")]
    modules = [sys.modules[name] for name in names if name in sys.modules]
    return tuple(module for module in modules if module.__name__ != "triton.backends.compiler")


def is_compiler_module(value: Any) -> bool:
    """Whether a value is one of the compiler's own C++ modules (`ir`, `passes`, `nvidia`, …)."""
    return isinstance(value, ModuleType) and value.__name__.startswith("triton._C")


def new_pass_manager(context: Any) -> Any:
    """A plain MLIR pass manager."""
    from triton._C.libtriton import ir

    return ir.pass_manager(context)


def is_mlir_module(value: Any) -> bool:
    """Whether a stage made an MLIR module, rather than a text or a binary."""
    return hasattr(value, "get_entry_func_name")


def holds_triton_dialects(module: Any) -> bool:
    """Whether a module still has a `tt.func`: once it is gone, all is the LLVM dialect. Costs microseconds."""
    return bool(module.get_entry_func_name())


def new_context(backend: Any) -> Any:
    """An MLIR context with the dialects of Triton and of the backend."""
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


def parse_module(path: Path, context: Any) -> Any:
    """The MLIR module in a file."""
    from triton._C.libtriton import ir

    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    return module


def location_builder(module: Any) -> Any:
    """A builder, for the locations it makes: `create_loc(file, line, column)`, `create_name_loc(name, location)`."""
    from triton._C.libtriton import ir

    return ir.builder(module.context)


def compiler_library() -> tuple[Path, str]:
    """The shared library that the compiler is, and a function that it exports in every version."""
    from triton._C import libtriton

    return Path(str(libtriton.__file__)), "PyInit_libtriton"


def set_up_llvm(target: Target) -> None:
    """What the stage that makes LLVM IR leaves set up in the process, for the stage that makes assembly of it."""
    from triton._C import libtriton

    # What makes assembly ends the process without LLVM's code generators.
    libtriton.llvm.init_targets()
    # 3.6 to 3.8 set LLVM's flag nvptx-short-ptr for the process as they make LLVM IR; 3.9 hands it to both stages.
    if target.backend == "cuda" and hasattr(libtriton.nvidia, "set_short_ptr"):
        libtriton.nvidia.set_short_ptr()


def cache_invalidating_environment() -> dict[str, str]:
    """The environment variables that Triton's compile depends on, as its metadata holds them."""
    from triton._C.libtriton import get_cache_invalidating_env_vars

    return dict(get_cache_invalidating_env_vars())


def language_of(name: str) -> Any:
    """Triton's enumerator for `triton` or `gluon`."""
    from triton.backends.compiler import Language

    return Language.GLUON if name == "gluon" else Language.TRITON


def nvidia_tools() -> dict[str, Path]:
    """The programs of the CUDA toolkit that the wheel carries: ptxas, nvdisasm, cuobjdump."""
    import triton.backends

    folder = Path(triton.backends.__file__).parent / "nvidia" / "bin"
    return {path.name: path for path in sorted(folder.glob("*")) if os.access(path, os.X_OK)}


def assembler(target: Target) -> Path | None:
    """The ptxas that a target's binaries are made with, one that TRITON_PTXAS_PATH names included; None on AMD."""
    if target.backend != "cuda":
        return None
    from triton.backends.nvidia import compiler

    with contextlib.suppress(AttributeError, RuntimeError):
        return Path(compiler.get_ptxas(int(target.arch)).path)
    return None


def tool_versions(target: Target) -> dict[str, str]:
    """The version of the assembler that a target's binaries are made with."""
    if target.backend != "cuda":
        return {}
    from triton.backends.nvidia import compiler

    with contextlib.suppress(OSError, subprocess.SubprocessError, AttributeError):
        # 3.6 takes the arch as an int in all versions; the text ends in "V13.3.73".
        text = compiler.get_ptxas_version(int(target.arch))
        versions = [word for word in text.replace(",", " ").split() if word.startswith("V") and word[1:2].isdigit()]
        return {"ptxas": versions[-1].removeprefix("V")} if versions else {}
    return {}


@contextlib.contextmanager
def knob(group: str, name: str, value: Any) -> Iterator[None]:
    """One of Triton's knobs set for a while, such as `knob("nvidia", "disable_ptxas_opt", True)`."""
    from triton import knobs

    with getattr(knobs, group).scope():
        setattr(getattr(knobs, group), name, value)
        yield


@contextlib.contextmanager
def private_cache(folder: Path) -> Iterator[None]:
    """Triton's cache in a folder of our own for a while, so that the user's is neither read nor written."""
    from triton import knobs

    with knobs.cache.scope():
        knobs.cache.dir = str(folder)
        yield


def kernel_functions(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The `@triton.jit` functions in a module's namespace, by name, autotuners and heuristics taken off."""
    kernel_class = jit_function_class()
    kernels: dict[str, Any] = {}
    for name, value in namespace.items():
        inner = value
        while not isinstance(inner, kernel_class) and hasattr(inner, "fn") and hasattr(inner, "run"):
            inner = inner.fn
        if isinstance(inner, kernel_class):
            kernels[name] = inner
    return kernels


def gluon_kernel(function: Any) -> bool:
    """Whether a JIT function is written in Gluon."""
    return bool(function.is_gluon())


def ast_source(function: Any, signature: dict[str, str], constants: dict[str, Any], attributes: dict[Any, Any]) -> Any:
    """What `triton.compile` takes for a kernel of either language."""
    function.create_binder()
    return function.ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)


@contextlib.contextmanager
def fresh_kernels_in_memory() -> Iterator[None]:
    """Every `@triton.jit` function has an empty cache of compiled kernels for a while, and its own again afterwards."""
    from collections import defaultdict

    kernel_class = jit_function_class()
    fresh: dict[int, Any] = {}
    kept: list[Any] = []

    def of(function: Any) -> Any:
        if id(function) not in fresh:
            # Kept alive: the next object must not get its number.
            kept.append(function)
            fresh[id(function)] = defaultdict(function.create_binder)
        return fresh[id(function)]

    def set_own(function: Any, value: Any) -> None:
        vars(function)["device_caches"] = value

    # A property of the class comes before what the instances hold.
    kernel_class.device_caches = property(of, set_own)
    try:
        yield
    finally:
        del kernel_class.device_caches


def active_gpu_target() -> Any:
    """The target of the driver that is active, in Triton's own form; raises what Triton raises where there is none."""
    from triton.runtime.driver import driver

    return driver.active.get_current_target()


def active_target() -> Target:
    """The target of the driver that is active; raises TargetError where there is none."""
    try:
        return target_of(active_gpu_target())
    except Exception as error:
        raise TargetError(
            f"no GPU is active in this process ({error}). Record the script instead: irscope.record(path) runs it on "
            "the virtual GPU."
        ) from error


def current_stream() -> int:
    """The current stream of the current device, as a launch takes it."""
    from triton.runtime.driver import driver

    active: Any = driver.active
    return active.get_current_stream(active.get_current_device())

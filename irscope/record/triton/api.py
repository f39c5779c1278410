"""What irscope uses of Triton, with every difference between its versions.

Tested on Triton 3.6, 3.7, 3.8 and 3.9. Nothing here imports triton before it is called.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from irscope.errors import MissingTool, TargetError, UsageError, did_you_mean, installing
from irscope.model.capture import Target
from irscope.record.triton.patches import replaced
from irscope.record.triton.versions import TRIED_VERSIONS, minor_of, triton_version
from irscope.target import KNOWN_TARGETS

_GENERIC = "irscope_generic"


def require_triton() -> None:
    """Import Triton; raises MissingTool if it is absent, broken or older than irscope supports."""
    try:
        import triton
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "triton":
            raise MissingTool(
                f"Triton is not installed in {sys.executable}, and this needs it: {installing('triton')} (on "
                "Linux; a Triton that came with PyTorch will do too). Captures made elsewhere can be read without it."
            ) from error
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise MissingTool(f"Triton cannot be imported in {sys.executable}: {why}. Install it again.") from error
    if minor_of(str(triton.__version__)) < minor_of(TRIED_VERSIONS[0]):
        raise MissingTool(f"Triton {triton.__version__} is too old: irscope records with 3.6 and later.")


def silence_known_noise() -> None:
    """Suppress the warnings of Triton that say nothing about the kernel."""
    # 3.9 warns once of a default that 3.10 will change.
    warnings.filterwarnings("ignore", message="TRITON_DEFAULT_FP_FUSION is unset")


def compile_function() -> Any:
    return compile_owners()[0].compile


def compile_owners() -> tuple[Any, ...]:
    """The modules in which callers look up `triton.compile`, as their attribute `compile`."""
    import triton
    from triton import compiler as package
    from triton.compiler import compiler

    return (compiler, package, triton)


def jit_function_class() -> Any:
    from triton.runtime.jit import JITFunction

    return JITFunction


def compiled_kernel_class() -> Any:
    from triton.compiler.compiler import CompiledKernel

    return CompiledKernel


def code_generator_class() -> Any:
    from triton.compiler.code_generator import CodeGenerator

    return CodeGenerator


def timed_functions(backends: Iterable[type]) -> Iterator[tuple[Any, str, str]]:
    """(owner, attribute, title) of what a compile calls beside its passes, and is worth timing."""
    from triton.compiler import compiler
    from triton.runtime import cache

    yield compiler.ASTSource, "make_ir", "front end"
    for owner, names in (
        (compiler, ("get_cache_invalidating_env_vars", "get_cache_key", "get_cache_manager", "make_backend")),
        (compiler.CompiledKernel, ("__init__",)),
        (compiler.ir, ("context", "load_dialects")),
        (compiler.IRSource, ("__init__",)),
        (cache.FileCacheManager, ("get_group", "put", "put_group")),
        *((backend, ("parse_options", "load_dialects", "get_codegen_implementation")) for backend in backends),
    ):
        for name in names:
            if name in vars(owner):
                yield owner, name, f"{owner.__name__.rpartition('.')[2]}.{name}"
    for module in {module for backend in backends for module in backend_modules(backend)}:
        for name, value in vars(module).items():
            # Those of the module itself, cached ones too: loading AMD's code generator, reading ptxas's version.
            if callable(value) and not isinstance(value, type) and getattr(value, "__module__", "") == module.__name__:
                yield module, name, name


def dtype_named(name: str) -> Any:
    import triton.language as tl

    value = getattr(tl, name, None)
    return value if isinstance(value, tl.dtype) else None


def gpu_target(target: Target) -> Any:
    from triton.backends.compiler import GPUTarget

    return GPUTarget(target.backend, int(target.arch) if target.arch.isdigit() else target.arch, target.warp_size)


def target_of(gpu: Any) -> Target:
    return Target(gpu.backend, str(gpu.arch), int(gpu.warp_size))


def backend_classes() -> tuple[type, ...]:
    """The compilers of every installed backend, third-party ones too."""
    from triton.backends import backends

    return tuple(backend.compiler for backend in backends.values())


def backend_names() -> list[str]:
    from triton.backends import backends

    return sorted(backends)


def make_backend(target: Target) -> Any:
    """The backend for a target; raises TargetError, which names the installed backends."""
    from triton.compiler.compiler import make_backend as triton_make_backend

    try:
        backend = triton_make_backend(gpu_target(target))
        # An arch that the backend does not know fails here, not when the backend is made.
        backend.parse_options({})
    except Exception as error:
        raise TargetError(
            f"Triton {triton_version()} does not support the target {str(target)!r} ({error}). Its backends are "
            f"{', '.join(backend_names())}; irscope knows {', '.join(map(str, KNOWN_TARGETS))}."
        ) from error
    return backend


def check_options(backend: Any, target: Target, names: Iterable[str]) -> None:
    """Raise UsageError for an option that the backend does not have: Triton itself ignores it silently."""
    known = vars(backend.parse_options({}))
    for name in names:
        if name not in known:
            raise UsageError(f"{target} has no compile option {name!r}.{did_you_mean(name, known)}")


def present_gpu() -> Target | None:
    """The GPU of this machine that Triton's driver supports, or None. Imports torch where there may be one."""
    if not _device_files():
        return None
    try:
        from triton.backends import backends

        active = [backend.driver for backend in backends.values() if backend.driver.is_active()]
        return target_of(active[0]().get_current_target()) if len(active) == 1 else None
    except Exception:
        # Where the driver does not answer, nothing can run.
        return None


def _device_files() -> bool:
    # Asking torch costs seconds, and is not needed where the operating system shows no GPU.
    dev = Path("/dev")
    return any(dev.glob("nvidia[0-9]*")) or (dev / "kfd").exists() or (dev / "dxg").exists()


def package_folder() -> Path:
    """The folder that Triton is installed in, found without importing it; raises MissingTool without one."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise MissingTool(f"Triton is not installed in {sys.executable}.")
    return Path(spec.origin).parent


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
    return isinstance(value, ModuleType) and value.__name__.startswith("triton._C")


def is_mlir_module(value: Any) -> bool:
    return hasattr(value, "get_entry_func_name")


def holds_triton_dialects(module: Any) -> bool:
    """Whether a module has a `tt.func`; without it, all is in the LLVM dialect. Costs microseconds."""
    return bool(module.get_entry_func_name())


def new_context(*backends: Any) -> Any:
    """An MLIR context with the dialects of Triton and of the backends; by default, of both that Triton has."""
    from triton._C import libtriton

    context = libtriton.ir.context()
    for owner in (libtriton.ir, *(backends or (libtriton.nvidia, libtriton.amd))):
        owner.load_dialects(context)
    return context


def layout_builder(context: Any) -> Any:
    from triton._C.libtriton import gluon_ir

    return gluon_ir.GluonOpBuilder(context)


def parse_module(path: Path, context: Any) -> Any:
    from triton._C.libtriton import ir

    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    return module


def parse_text(text: str, context: Any, folder: str | None, name: str = "module.mlir") -> Any:
    """The MLIR module of a text, which is written to a temporary file in `folder`; errors name the file `name`."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        file = Path(own, name)
        file.write_text(text, "utf-8", "surrogateescape")
        return parse_module(file, context)


def printed(module: Any, *, generic: bool = False) -> str:
    """A module without its locations, in MLIR's custom form or in its generic one, which names every type."""
    return _generic(module, module.str_nodebug) if generic else str(module.str_nodebug())


def generic_text(module: Any) -> str:
    """A module in MLIR's generic form, which holds all of it: parsed, it is the same, names of values included."""
    return _generic(module, lambda: str(module))


def _generic(module: Any, print_: Callable[[], Any]) -> str:
    # MLIR prints what it cannot verify in the generic form, and a module may have no attribute without a dialect.
    module.set_attr(_GENERIC, location_builder(module).get_unit_attr())
    text = str(print_())
    for written in (f"{_GENERIC}, ", f", {_GENERIC}", f" {{{_GENERIC}}}"):
        text = text.replace(written, "", 1)
    return text


def location_builder(module: Any) -> Any:
    from triton._C.libtriton import ir

    return ir.builder(module.context)


def compiler_library() -> tuple[Path, str]:
    """The compiler's shared library, and a function that it exports in every version."""
    from triton._C import libtriton

    return Path(str(libtriton.__file__)), "PyInit_libtriton"


def amd_code_generator() -> tuple[Path, str] | None:
    """The library with AMD's code generator, which stands apart from 3.9 on, and a function that it exports."""
    try:
        from triton.backends.amd.compiler import get_amd_codegen_path
    except ImportError:
        return None
    path = Path(get_amd_codegen_path())
    return (path, "triton_amdgpu_compile") if path.is_file() else None


def set_up_llvm(target: Target) -> None:
    """Set up LLVM for the stage that makes assembly, as the stage that makes LLVM IR leaves it in the process."""
    from triton._C import libtriton

    # Without LLVM's code generators, making assembly ends the process.
    libtriton.llvm.init_targets()
    # 3.6 to 3.8 set LLVM's flag nvptx-short-ptr for the process as they make LLVM IR; 3.9 passes it to both stages.
    if target.backend == "cuda" and hasattr(libtriton.nvidia, "set_short_ptr"):
        libtriton.nvidia.set_short_ptr()


def cache_invalidating_environment() -> dict[str, str]:
    """The environment variables that Triton's compile depends on, as its metadata holds them."""
    from triton._C.libtriton import get_cache_invalidating_env_vars

    return dict(get_cache_invalidating_env_vars())


def language_of(name: str) -> Any:
    from triton.backends.compiler import Language

    return Language.GLUON if name == "gluon" else Language.TRITON


def nvidia_tools() -> dict[str, Path]:
    """The programs of the CUDA toolkit in the wheel, by name; TRITON_NVDISASM_PATH names another nvdisasm."""
    folder = package_folder() / "backends" / "nvidia" / "bin"
    tools = [(path.name, path) for path in sorted(folder.glob("*"))]
    tools.append(("nvdisasm", Path(os.environ.get("TRITON_NVDISASM_PATH", ""))))
    return {name: path for name, path in tools if path.is_file() and os.access(path, os.X_OK)}


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
    """Set one of Triton's knobs until the end of the block, such as `knob("nvidia", "disable_ptxas_opt", True)`."""
    from triton import knobs

    with getattr(knobs, group).scope():
        setattr(getattr(knobs, group), name, value)
        yield


@contextlib.contextmanager
def private_cache(folder: Path) -> Iterator[None]:
    """Move Triton's cache to a folder until the end of the block, with a key that names Triton by its version: fast."""
    from triton.runtime import cache

    with knob("cache", "dir", str(folder)), replaced(cache, "triton_key", triton_version):
        yield


def ast_source(function: Any, signature: dict[str, str], constants: dict[str, Any], attributes: dict[Any, Any]) -> Any:
    """A kernel of either language as the source that `triton.compile` takes."""
    function.create_binder()
    return function.ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)


@contextlib.contextmanager
def fresh_kernels_in_memory() -> Iterator[None]:
    """Give every `@triton.jit` function an empty cache of compiled kernels until the end of the block."""
    kernel_class = jit_function_class()
    fresh: dict[int, tuple[Any, Any]] = {}

    def fresh_cache(function: Any) -> Any:
        if id(function) not in fresh:
            # The function is kept alive, so that no other object gets its `id`.
            fresh[id(function)] = function, defaultdict(function.create_binder)
        return fresh[id(function)][1]

    def set_own(function: Any, value: Any) -> None:
        vars(function)["device_caches"] = value

    # A property of the class comes before the attributes of the instances.
    kernel_class.device_caches = property(fresh_cache, set_own)
    try:
        yield
    finally:
        del kernel_class.device_caches


def active_gpu_target() -> Any:
    return active_driver().get_current_target()


def active_target() -> Target:
    try:
        return target_of(active_gpu_target())
    except Exception as error:
        raise TargetError(
            f"no GPU is active in this process ({error}). Record the script instead: irscope.record(path) runs it on "
            "the virtual GPU."
        ) from error


def program_watches_compiles() -> bool:
    """Whether the program asked Triton to call it at compiles, loads or launches, or to read no cache."""
    from triton import knobs

    runtime = vars(type(knobs.runtime)) | vars(knobs.runtime)
    names = ("launch_enter_hook", "launch_exit_hook", "kernel_load_start_hook", "kernel_load_end_hook")
    hooks = [runtime.get(name) for name in (*names, "kernel_unload_hook", "jit_cache_hook", "jit_post_compile_hook")]
    asked = [knobs.compilation.listener, knobs.compilation.always_compile, knobs.compilation.override]
    # A chain of hooks without any is none.
    return any(getattr(hook, "calls", hook) for hook in (*hooks, *asked))


def knobs() -> Any:
    """Triton's settings, whose groups a program may set: `compilation.listener`, `cache.dir`, …"""
    from triton import knobs

    return knobs


def stages_are_in_the_key() -> bool:
    """Whether Triton asks the hook for what the key of a kernel needs: 3.7 and later; 3.6 calls it for stages alone."""
    from triton.compiler import compiler

    return "add_stages_inspection_hook" in compiler.compile.__code__.co_names


def compiler_state() -> Any:
    """What a program may change of the installed compiler; equal as long as it has not."""
    from triton import knobs
    from triton._C import libtriton
    from triton.compiler import compiler

    backends = backend_classes()
    owners: list[Any] = [compiler, libtriton.ir, libtriton.llvm]
    owners += [cls for backend in backends for cls in backend.__mro__ if cls is not object]
    owners += [module for backend in backends for module in backend_modules(backend)]
    names = [(name, id(value)) for owner in owners for name, value in vars(owner).items() if callable(value)]
    groups = [value for value in vars(knobs).values() if isinstance(value, knobs.base_knobs)]
    return names, [dict(vars(group)) for group in groups]


def parsed_source(job: Any, parse: Any) -> Any:
    """A source for `triton.compile` whose front end has run: `parse(context)` gives the module that it goes on with."""
    from triton.compiler.compiler import ASTSource

    class ParsedSource(ASTSource):
        def __init__(self) -> None:
            self.fn = None
            self.name, self.ext, self.language = job.name, job.extension, language_of(job.language)
            self.signature, self.constants, self.attrs = {}, {}, {}

        def hash(self) -> str:
            return job.source_key

        def make_ir(self, *arguments: Any, **keywords: Any) -> str:
            parse(keywords.get("context", arguments[-1] if arguments else None))
            return next(iter(job.texts.values()))

    return ParsedSource()


def use_torch_memory() -> None:
    """Let kernels that need memory of their own, as those under a sanitizer do, take it from torch."""
    import torch
    import triton

    def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int8, device="cuda")

    triton.set_allocator(allocate)


def active_driver() -> Any:
    from triton.runtime.driver import driver

    return driver.active


def current_stream() -> int:
    active = active_driver()
    return active.get_current_stream(active.get_current_device())

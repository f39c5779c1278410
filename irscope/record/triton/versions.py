"""The installed Triton's version, those that irscope was tried with, and the undocumented names that it uses of them.

Each row says in which releases the name was tried and what depends on it. A recording checks its rows before it runs
anything, so that a Triton that moved or renamed one ends in a sentence that says which, and not in a traceback.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

from irscope.errors import MissingTool

TRIED_VERSIONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
"""The releases that the tests run under, the oldest first; irscope records with none before that."""

FUTURE_METHOD = "result"
"""By which 3.6 tells a compile that is under way from a kernel that it launches."""


def triton_version() -> str:
    """The installed Triton's version, without importing it, or an empty string."""
    # The parent of a recording need not know it, and has no other use for the module.
    import importlib.metadata

    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("triton")
    # Builds that come with PyTorch or for another system have other names: pytorch-triton-rocm, triton-windows.
    for name in importlib.metadata.packages_distributions().get("triton", ()):
        return importlib.metadata.version(name)
    return str(getattr(sys.modules.get("triton"), "__version__", ""))


def untried_note() -> str:
    """What to say of a Triton that is newer than every version that irscope was tried with, or an empty string."""
    version = triton_version()
    if not version or minor_of(version) <= minor_of(TRIED_VERSIONS[-1]):
        return ""
    return (
        f"irscope is not tested with Triton {version}, only with {', '.join(TRIED_VERSIONS)}: its output may be wrong."
    )


def minor_of(version: str) -> tuple[int, ...]:
    # 3.10.0, 3.7.0+git1234abc, 3.10.0.dev20261101, 4.0a1
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class _PrivateName:
    module: str
    name: str
    """In the module, with dots: `JITFunction._pack_args`; empty for the module itself."""
    needed_for: str
    by_virtual_gpu: bool = False
    """Whether only programs that run without a GPU need it."""
    is_required: bool = True
    """Whether there is no recording without it; of any other, what it serves is left out."""
    tried: tuple[str, ...] = TRIED_VERSIONS

    @property
    def text(self) -> str:
        return f"{self.module}.{self.name}".rstrip(".")

    def is_present(self) -> bool:
        try:
            value: Any = importlib.import_module(self.module)
        except ImportError:
            return False
        for part in self.name.split(".") if self.name else ():
            value = getattr(value, part, _MISSING)
            if value is _MISSING:
                return False
        return True


def _rows(module: str, names: str, needed_for: str, **others: Any) -> tuple[_PrivateName, ...]:
    return tuple(_PrivateName(module, name, needed_for, **others) for name in names.split())


_optional = partial(_rows, is_required=False)
_virtual = partial(_rows, by_virtual_gpu=True)
_TO_38 = TRIED_VERSIONS[:3]
_JIT = "JITFunction.run JITFunction.create_binder JITFunction._pack_args JITFunction.is_gluon"
_BINDINGS = (
    "ir.context ir.load_dialects ir.pass_manager ir.parse_mlir_module ir.builder ir.module "
    "ir.module.get_entry_func_name ir.module.get_int_attr ir.module.walk ir.pass_manager.get_pipeline_str "
    "ir.pass_manager.enable_debug ir.pass_manager.run"
)

PRIVATE_NAMES: tuple[_PrivateName, ...] = (
    *_rows("triton", "compile __version__", "watch compiles"),
    *_rows("triton.compiler", "compile ASTSource", "watch compiles"),
    *_rows("triton.compiler.compiler", "compile make_backend ASTSource", "watch compiles"),
    *_rows("triton.runtime.jit", _JIT, "read the arguments of a launch"),
    *_optional("triton", "set_allocator", "sanitize launches"),
    *_rows("triton.backends", "backends", "find the compilers of targets"),
    *_rows("triton.backends.compiler", "GPUTarget Language.TRITON Language.GLUON", "compile for a target"),
    *_rows("triton.backends.compiler", "BaseBackend.add_stages", "watch the stages of a compile"),
    *_rows("triton.backends.compiler", "BaseBackend.parse_options", "read the options of a compile"),
    *_optional("triton.backends.nvidia.compiler", "get_ptxas get_ptxas_version", "name the assembler"),
    *_optional("triton.backends.amd.compiler", "get_amd_codegen_path", "time LLVM's passes", tried=("3.9.0",)),
    *_optional("triton.compiler.code_generator", "CodeGenerator", "time the front end"),
    *_rows("triton.knobs", "base_knobs.scope runtime cache nvidia compilation", "set what a compile reads"),
    *_rows("triton.runtime.cache", "triton_key", "separate Triton's cache"),
    *_rows("triton._C.libtriton", _BINDINGS, "read and run passes"),
    *_rows("triton._C.libtriton", "ir.module.str_nodebug", "print IR without locations"),
    *_rows("triton._C.libtriton", "llvm.init_targets", "resume a compile from a text"),
    *_rows("triton._C.libtriton", "get_cache_invalidating_env_vars", "distinguish compiles"),
    *_rows("triton._C.libtriton", "nvidia.load_dialects amd.load_dialects", "read IR of either vendor"),
    *_optional("triton._C.libtriton", "gluon_ir.GluonOpBuilder", "query layouts"),
    *_optional("triton._C.libtriton", "passes.ttgpuir.add_concurrency_sanitizer", "sanitize launches"),
    *_optional(
        "triton._C.libtriton",
        "passes.ttgpuir.add_fp_sanitizer passes.ttgpuir.add_global_sanitizer",
        "sanitize launches",
        tried=TRIED_VERSIONS[2:],
    ),
    *_optional("triton._C.libtriton", "llvm.add_version_info", "distinguish dumps", tried=("3.9.0",)),
    *_optional("triton._C.libtriton", "nvidia.set_short_ptr", "compile LLVM IR", tried=_TO_38),
    *_virtual("triton.compiler.compiler", "CompiledKernel._init_handles", "launch on the virtual GPU"),
    *_virtual("triton.runtime.driver", "driver._active driver._default", "replace a GPU's driver"),
    *_virtual("triton.runtime._allocation", "_allocator", "launch on the virtual GPU"),
    *_virtual(
        "triton.runtime.autotuner",
        "Autotuner.run Autotuner.prune_configs Autotuner._bench",
        "choose configurations of autotuned kernels",
    ),
    *_virtual("triton.runtime.errors", "OutOfResources PTXASError", "recognise a configuration's error"),
    *_virtual("triton.compiler.errors", "CompileTimeAssertionFailure", "recognise a configuration's error"),
    *_virtual("triton.testing", "Mark.run do_bench", "run a program's benchmarks once"),
    *_optional("triton.testing", "do_bench_cudagraph", "run a benchmark once", by_virtual_gpu=True),
    *_virtual("triton.backends.nvidia.driver", "ty_to_cpp", "launch on the virtual GPU"),
    *_rows("triton.language", "dtype", "read a signature"),
)


def require_names(*, virtual: bool) -> None:
    """Raise MissingTool for the first name that the installed Triton lacks; `virtual`: without a GPU, too."""
    for row in PRIVATE_NAMES:
        if row.is_required and (virtual or not row.by_virtual_gpu) and not row.is_present():
            raise MissingTool(refusal_of(f"has no {row.text}, without which irscope cannot {row.needed_for}"))


def refusal_of(why: str) -> str:
    """What is said of a Triton that irscope cannot record with."""
    return f"Triton {triton_version()} {why}: irscope is tested with {', '.join(TRIED_VERSIONS)}."

"""Which architectures the installed Triton makes code for: ptxas's list, and the processors its AMD library names."""

from __future__ import annotations

import mmap
import re

from irscope.errors import TargetError
from irscope.model.capture import Target
from irscope.record.triton import api as triton_api
from irscope.record.triton.versions import triton_version
from irscope.target import KNOWN_TARGETS, nearest_targets
from irscope.tools import run_tool

# --gpu-name …  Allowed values for this option:  'sm_100','sm_100a','sm_100f','sm_103', …
_GPU_NAME = re.compile(r"'sm_(\d+)[af]?'")
# \0gfx1250\0, an entry of LLVM's table of processors
_PROCESSOR = re.compile(rb"\0(gfx[0-9a-f]{3,4})(?=\0)")


def check_architecture(target: Target) -> None:
    """Raise TargetError for an architecture that neither irscope knows nor the installed Triton's own tools.

    A newer Triton's new architecture is taken: its ptxas lists it, its AMD library names it.
    """
    if target in KNOWN_TARGETS or target.backend not in ("cuda", "hip"):
        return
    taken = _listed_by_ptxas(target) if target.backend == "cuda" else _named_in_libraries(target)
    arch = target.arch.partition(":")[0]
    if not taken or arch in taken or "generic" in arch:
        # Where the tools name none, the compile itself will fail.
        return
    near = " or ".join(map(str, nearest_targets(target)))
    others = sorted(taken - {known.arch for known in KNOWN_TARGETS}, key=lambda arch: (len(arch), arch))
    raise TargetError(
        f"{str(target)!r} is an architecture that Triton {triton_version()} does not make code for. The "
        f"nearest: {near}. irscope knows {', '.join(str(known) for known in KNOWN_TARGETS)}; "
        f"the installed tools take {', '.join(others)} too."
    )


def _listed_by_ptxas(target: Target) -> set[str]:
    ptxas = triton_api.assembler(target)
    if ptxas is None:
        return set()
    try:
        answer = run_tool([str(ptxas), "--help"])
    except OSError:
        return set()
    return set(_GPU_NAME.findall(answer.stdout.decode("utf-8", "replace")))


def _named_in_libraries(target: Target) -> set[str]:
    folder = triton_api.package_folder()
    # From Triton 3.9 on the code generator is a library of its own, beside the backend.
    libraries = [*folder.glob("backends/amd/lib/libtriton_amd_codegen*"), triton_api.compiler_library()[0]]
    with open(libraries[0], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return {name.decode() for name in _PROCESSOR.findall(data)}

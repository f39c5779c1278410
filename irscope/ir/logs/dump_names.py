"""The Triton name of a pass in an MLIR log, and the stage that ran it.

A dump names a pass by MLIR's argument (`tritongpu-remove-layout-conversions`); Triton's Python names the builder that
adds it (`remove_layout_conversions`). Most builder names follow from the argument; the table holds the exceptions, of
Triton 3.6 to 3.9 and both backends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PREFIXES = (
    "tritonamdgpu-", "triton-amdgpu-", "tritongpu-", "triton-nvidia-gpu-", "triton-nvidia-", "tritoninstrument-",
    "triton-", "nvgpu-", "nvws-", "gluon-",
)  # fmt: skip

_BUILDERS = {
    "allocate-amdgpu-shared-memory": "allocate_shared_memory",
    "canonicalize": "canonicalizer",
    "convert-arith-to-llvm": "arith_to_llvmir",
    "convert-builtin-func-to-llvm": "builtin_func_to_llvmir",
    "convert-cf-to-llvm": "cf_to_llvmir",
    "convert-index-to-llvm": "index_to_llvmir",
    "convert-nv-gpu-to-llvm": "nvgpu_to_llvm",
    "convert-nvvm-to-llvm": "nvvm_to_llvm",
    "convert-scf-to-cf": "scf_to_cf",
    "convert-triton-amdgpu-to-llvm": "to_llvmir",
    "convert-triton-gpu-to-llvm": "to_llvmir",
    "convert-triton-to-tritongpu": "convert_to_ttgpuir",
    "convert-warp-pipeline": "warp_pipeline_conversion",
    "convert-warp-specialize-to-llvm": "warp_specialize_to_llvm",
    "enable-line-info": "di_scope",
    "extract-variable-info": "di_local_variable",
    "gluon-canonicalize": "canonicalizer",
    "gluon-inline": "inliner",
    "inline": "inliner",
    "loop-invariant-code-motion": "licm",
    "nvgpu-warp-specialization": "hopper_warpspec",
    "optimize-amd-lds-usage": "optimize_lds_usage",
    "triton-amdgpu-convert-warp-specialize-to-llvm": "warp_specialize_to_llvm",
    "triton-amdgpu-lower-insert-instruction-sched-hints": "lower_instruction_sched_hints",
    "triton-licm": "triton_licm",
    "triton-nvidia-mma-lowering": "lower_mma",
    "triton-tensor-memory-allocation": "allocate_tensor_memory",
    "tritonamdgpu-convert-buffer-ops": "convert_to_buffer_ops",
    "tritonamdgpu-convert-tensor-ops": "convert_to_tensor_ops",
    "tritongpu-F32DotTC": "f32_dot_tc",
    "tritongpu-automatic-warp-specialization": "warp_specialize",
    "tritongpu-global-scratch-memory-allocation": "allocate_global_scratch_memory",
}

# TritonGPURemoveLayoutConversions  |  CSEPass  |  (anonymous namespace)::TestPass
_CLASS_PREFIX = re.compile(r"^(?:.*::)?(?:TritonAMDGPU|TritonNvidiaGPU|TritonGPU|Triton)?(?=[A-Z])")
# the places between the words of RemoveLayoutConversions, CSEAgain, F32DotTC
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

TTGIR_BEGINS = "convert-triton-to-tritongpu"
"""The first pass of the ttgir stage, in every version and on every backend."""

SCF_TO_CF = "convert-scf-to-cf"
"""A pass near the beginning of the llir stage, in every version."""

# The passes that the llir stage may have before `convert-scf-to-cf`, in their order; none occurs twice there. The
# ttgir stage of Gluon ends with some of the same, which is why each backend has its own.
_BEFORE_SCF_TO_CF = {
    "cuda": (
        "triton-nvidia-gpu-decompose-unsupported-conversions",
        "tritoninstrument-global-sanitizer",
        "tritongpu-combine-tensor-select-and-if",
        "tritongpu-allocate-warp-groups",
    ),
    "hip": (
        "decompose-unsupported-amd-conversions",
        "tritonamdgpu-decompose-unsupported-conversions",
        "tritonamdgpu-update-async-wait-count",
        "optimize-amd-lds-usage",
        "convert-warp-pipeline",
    ),
}
# Passes of the llir stage alone, for a log that was cut before `convert-scf-to-cf`.
_ONLY_IN_LLIR = {
    "cuda": ("tritongpu-allocate-warp-groups", "allocate-shared-memory-nv", "allocate-shared-memory"),
    "hip": ("tritonamdgpu-update-async-wait-count", "convert-warp-pipeline", "allocate-amdgpu-shared-memory"),
}


def builder_name(argument: str, class_name: str = "") -> str:
    """The name of the builder that adds a pass, without `add_`.

    Args:
        argument: MLIR's argument of the pass; empty if the dump has none.
        class_name: the C++ class of the pass, from which a name is derived if there is no argument.
    """
    if not argument:
        bare = _CLASS_PREFIX.sub("", class_name).removesuffix("Pass") or class_name
        name = re.sub(r"\W+", "_", _WORDS.sub("_", bare)).strip("_").lower()
        return _BUILDERS.get(name.replace("_", "-"), name) or "unnamed"
    if argument in _BUILDERS:
        return _BUILDERS[argument]
    prefix = next((prefix for prefix in _PREFIXES if argument.startswith(prefix)), "")
    return argument.removeprefix(prefix).replace("-", "_").lower() or argument


def stages_of(arguments: Sequence[str], first_stage: str, backend: str, in_llvm: Sequence[bool]) -> list[str]:
    """The stage of each pass of one compile: ttir, ttgir or llir.

    Nothing in a dump says where a stage ends: the ttgir stage begins with `convert-triton-to-tritongpu`, the llir stage
    with the passes that its versions have before `convert-scf-to-cf`. A log that was cut there may leave one such pass
    in ttgir.

    Args:
        arguments: MLIR's argument of each pass, in order.
        first_stage: the stage that the module before the first pass belongs to.
        backend: `cuda`, `hip` or another.
        in_llvm: for each pass, whether the module before it holds no function of Triton's any more.
    """
    begins = next((index for index, inside in enumerate(in_llvm) if inside), len(arguments))
    if SCF_TO_CF in arguments:
        begins = min(begins, arguments.index(SCF_TO_CF))
    else:
        only = _ONLY_IN_LLIR.get(backend, ())
        begins = min(begins, next((index for index, name in enumerate(arguments) if name in only), len(arguments)))
    waiting = list(_BEFORE_SCF_TO_CF.get(backend, ()))
    while 0 < begins < len(arguments) and arguments[begins - 1] in waiting:
        begins -= 1
        del waiting[waiting.index(arguments[begins]) :]
    # A compile that starts from ttgir (an IR file) begins in the llir stage; all of it was walked back over then.
    stages: list[str] = []
    stage = first_stage
    for argument in arguments[:begins]:
        stage = "ttgir" if argument == TTGIR_BEGINS else stage
        stages.append(stage)
    return stages + ["llir"] * (len(arguments) - begins)

"""Lets the compiler print its reasons: Triton's debug output, MLIR's remarks, LLVM's missed and analysis remarks.

Triton's wheels are built with LLVM's debug output in. `TRITON_LLVM_DEBUG_ONLY` takes the names of its parts, the
`DEBUG_TYPE` of each source file, which no library lists: those here are of passes that decide something. All names at
once would print a gigabyte of a matmul, most of it MLIR's and LLVM's own.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from irscope.record.triton.native_calls import NativeCalls

__all__ = ["VARIABLES", "print_reasons"]

_DEBUG_TYPES = (
    "allocation-shared-memory",
    "nvgpu-warp-specialization",
    "nvgpu-ws-buffer",
    "nvgpu-ws-code-partition",
    "nvgpu-ws-data-partition",
    "nvgpu-ws-lower-mem",
    "nvgpu-ws-specialize",
    "nvgpu-ws-task-partition",
    "nvgpu-ws-utility",
    "nvws-assign-stage-phase",
    "nvws-insert-aref",
    "nvws-lower-aref",
    "triton-loop-pipeline",
    "triton-loop-pipelining",
    "triton-loop-unroll",
    "triton-tensor-memory-allocation",
    "triton-wgmma-pipeline",
    "tritonamd-accelerate-matmul",
    "tritonamdgpu-accelerate-matmul",
    "tritonamdgpu-block-pingpong",
    "tritonamdgpu-canonicalize-pointers",
    "tritonamdgpu-coalesce-async-copy",
    "tritonamdgpu-convert-buffer-ops",
    "tritonamdgpu-hoist-layout-conversions",
    "tritonamdgpu-in-thread-transpose",
    "tritonamdgpu-move-up-prologue-loads",
    "tritonamdgpu-optimize-buffer-op-ptr",
    "tritonamdgpu-optimize-dot-operands",
    "tritonamdgpu-optimize-epilogue",
    "tritonamdgpu-pipeline",
    "tritonamdgpu-pipeline-expand-loops",
    "tritonamdgpu-pipeline-lower-loops",
    "tritonamdgpu-range-analysis",
    "tritonamdgpu-reorder-instructions",
    "tritonamdgpu-schedule-loops",
    "tritonamdgpu-warp-pipeline",
    "tritongpu-accelerate-matmul",
    "tritongpu-automatic-warp-specialization",
    "tritongpu-coalesce",
    "tritongpu-coalesce-async-copy",
    "tritongpu-fuse-nested-loops",
    "tritongpu-hoist-tmem-alloc",
    "tritongpu-optimize-accumulator-init",
    "tritongpu-optimize-dot-operands",
    "tritongpu-optimize-partition-warps",
    "tritongpu-partition-scheduling",
    "tritongpu-prefetch",
    "tritongpu-promote-lhs-to-tmem",
    "tritongpu-reduce-data-duplication",
    "tritongpu-remove-layout-conversions",
    "tritongpu-warp-spec-lowering",
    # Triton keeps pointers into a list of strings that it moves as the list grows, and short strings move with it:
    # in front, they would name nothing.
    "ttg-utility",
    "axis-info",
)

_TYPES_VARIABLE = "TRITON_LLVM_DEBUG_ONLY"
VARIABLES = {
    "TRITON_ENABLE_LLVM_DEBUG": "1",
    _TYPES_VARIABLE: ",".join(_DEBUG_TYPES),
    "MLIR_ENABLE_DIAGNOSTICS": "remarks",
}
"""The environment variables that make Triton print its reasons."""
_LLVM_OPTIONS = ("--pass-remarks-missed=.*", "--pass-remarks-analysis=.*")
_PRINTER_OPTIONS = ("--mlir-print-debuginfo=true", "--mlir-use-nameloc-as-prefix=true")
"""Operations are printed with their locations, and their values named as in the modules that Triton prints."""


def print_reasons(native: NativeCalls, *, verified: bool, parts: Collection[str] = ()) -> None:
    """Let the compiler print its reasons until this process ends: LLVM cannot be told to stop.

    `verified`: whether it verifies the whole function before each operation that it prints, and prints what is not
    valid at that moment in the generic form. That takes most of the time; without it, an operation that a pass has half
    built may end the process, and what was printed last is lost with it. `parts`: those that print them, by their debug
    types; by default all that are listed.
    """
    os.environ.update(VARIABLES)
    if parts:
        os.environ[_TYPES_VARIABLE] = ",".join(part for part in _DEBUG_TYPES if part in parts)
    native.set_options(*_LLVM_OPTIONS, *_PRINTER_OPTIONS)
    if not verified:
        native.assume_verified()
        native.hold_errors()

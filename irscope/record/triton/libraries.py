"""Replacements of the libraries in Triton's package that need a GPU: cuBLAS behind `CublasLt`, proton's profiler."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from irscope.record.triton.patches import Patches


class CublasLt:
    """Replaces `triton._C.libtriton.nvidia.cublas.CublasLt`; its results are tensors that the caller passes."""

    def __init__(self, workspace: Any) -> None:
        self._workspace = workspace

    def matmul(self, *_: Any) -> None:
        """Would write to its last tensor, which has no data."""

    gemm = block_scaled_matmul_mxfp8 = block_scaled_matmul_nvfp4 = matmul


def install_cublas(patches: Patches) -> None:
    """Replace cuBLAS, until `patches` are closed."""
    from triton._C.libtriton import nvidia

    if hasattr(nvidia, "cublas"):
        patches.set_known(nvidia.cublas, {"CublasLt": CublasLt})


def profiler_replacements(patches: Patches) -> dict[str, Callable[[ModuleType], None]]:
    """Module of proton → what to call with it after its import; `patches` take the replacements."""
    return {
        # A module of C++, whose functions are looked up at each call.
        "triton.profiler": lambda _: patches.set_known(
            importlib.import_module("triton._C.libproton").proton, _profiler_answers()
        ),
        # There is no profile to read: `finalize` wrote none.
        "triton.profiler.viewer": lambda viewer: patches.set_known(
            viewer, {"parse": lambda *_, **__: (None, []), "print_tree": _nothing, "read": _nothing}
        ),
    }


def _profiler_answers() -> dict[str, Any]:
    sessions = itertools.count()
    names = (
        "activate activate_all deactivate deactivate_all finalize finalize_all clear_data set_metric_kernels "
        "enter_op exit_op enter_instrumented_op exit_instrumented_op init_function_metadata "
        "destroy_function_metadata add_metrics"
    )
    return dict.fromkeys(names.split(), _nothing) | {
        "start": lambda *_, **__: next(sessions),
        "get_data": lambda *_, **__: "[]",
        "get_data_msgpack": lambda *_, **__: b"\x90",
        "advance_data_phase": lambda *_, **__: 0,
        "is_data_phase_complete": lambda *_, **__: True,
    }


def _nothing(*_: Any, **__: Any) -> None:
    return None

"""Libraries that stand beside a program's kernels: cuBLAS behind `CublasLt`, proton's profiler, FlagGems' choices.

The first two cannot be loaded without a GPU: multiplying does nothing, as all that runs; a profile holds nothing. What
FlagGems measures of configurations goes into a file in the user's home, where no stand-in time belongs.
"""

from __future__ import annotations

import importlib
import itertools
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

from irscope.record.environment_variable import environment_variable
from irscope.record.own_folder import parent_of_temporaries
from irscope.record.virtual_import import AfterImport
from irscope.record.virtual_patches import Patches


class CublasLt:
    """Stands for `triton._C.libtriton.nvidia.cublas.CublasLt`; its results are the tensors that it is given."""

    def __init__(self, workspace: Any) -> None:
        self._workspace = workspace

    def matmul(self, *_: Any) -> None:
        """Writes to its last tensor, which has no data."""

    gemm = block_scaled_matmul_mxfp8 = block_scaled_matmul_nvfp4 = matmul


class Libraries:
    """What stands in for these libraries, until it is taken away again."""

    def __init__(self, vendor: str, patches: Patches) -> None:
        """Arguments:
        vendor: of the GPU, `nvidia` or `amd`.
        patches: where to note what was replaced.
        """
        self._vendor = vendor
        self._patches = patches
        self._stack = ExitStack()
        self._watches = (
            AfterImport("triton.profiler", self._stand_in_for_proton),
            AfterImport("triton.profiler.viewer", self._stand_in_for_viewer),
        )

    def install(self) -> None:
        """Put the stand-ins in place; proton's when the program imports it."""
        from triton._C.libtriton import nvidia

        cublas = getattr(nvidia, "cublas", None)
        if cublas is not None:
            self._patches.set_known(cublas, {"CublasLt": CublasLt})
        for watch in self._watches:
            watch.install()
        folder = tempfile.TemporaryDirectory(
            prefix="irscope-choices-", dir=parent_of_temporaries(), ignore_cleanup_errors=True
        )
        path = Path(self._stack.enter_context(folder)) / "choices.db"
        self._stack.enter_context(environment_variable("FLAGGEMS_DB_URL", f"sqlite:///{path}"))
        # FlagGems would ask `nvidia-smi` and its like whose GPU there is.
        vendor = os.environ.get("GEMS_VENDOR", self._vendor)
        self._stack.enter_context(environment_variable("GEMS_VENDOR", vendor))

    def remove(self) -> None:
        """Stop watching for proton, and forget what was chosen."""
        self._stack.close()
        for watch in self._watches:
            watch.remove()

    def _stand_in_for_proton(self, module: ModuleType) -> None:
        sessions = itertools.count()
        names = (
            "activate activate_all deactivate deactivate_all finalize finalize_all clear_data set_metric_kernels "
            "enter_op exit_op enter_instrumented_op exit_instrumented_op init_function_metadata "
            "destroy_function_metadata add_metrics"
        )
        answers: dict[str, Any] = dict.fromkeys(names.split(), _nothing)
        answers |= {
            "start": lambda *_, **__: next(sessions),
            "get_data": lambda *_, **__: "[]",
            "get_data_msgpack": lambda *_, **__: b"\x90",
            "advance_data_phase": lambda *_, **__: 0,
            "is_data_phase_complete": lambda *_, **__: True,
        }
        # A module of C++, whose functions are looked up at each call.
        self._patches.set_known(importlib.import_module("triton._C.libproton").proton, answers)

    def _stand_in_for_viewer(self, module: ModuleType) -> None:
        # There is no profile to read: `finalize` wrote none.
        answers = {"parse": lambda *_, **__: (None, []), "print_tree": _nothing, "read": lambda *_, **__: None}
        self._patches.set_known(module, answers)


def _nothing(*_: Any, **__: Any) -> None:
    return None

"""Replacements for libraries that kernels are used with: cuBLAS, proton's profiler, FlagGems' stored choices.

cuBLAS and proton cannot be loaded without a GPU. FlagGems stores the times of configurations in a file in the user's
home, where no placeholder time belongs.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.triton.libraries import install_cublas, profiler_stand_ins
from irscope.record.triton.patches import Patches, environment_variable
from irscope.record.virtual.after_import import AfterImport


def install_libraries(vendor: str, patches: Patches) -> None:
    """Put the replacements in place, proton's when the program imports it, until `patches` are closed.

    `vendor`: of the GPU, `nvidia` or `amd`.
    """
    install_cublas(patches)
    for name, stand_in in profiler_stand_ins(patches).items():
        patches.enter_context(AfterImport(name, stand_in))
    folder = tempfile.TemporaryDirectory(
        prefix="irscope-choices-", dir=parent_of_temporaries(), ignore_cleanup_errors=True
    )
    path = Path(patches.enter_context(folder)) / "choices.db"
    patches.enter_context(environment_variable("FLAGGEMS_DB_URL", f"sqlite:///{path}"))
    # FlagGems would call `nvidia-smi` and the like to find the vendor of the GPU.
    patches.enter_context(environment_variable("GEMS_VENDOR", os.environ.get("GEMS_VENDOR", vendor)))

"""The installed Triton's identity, without importing it: the sizes and times of its files, and its variables."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from irscope.record.triton.api import package_folder
from irscope.record.triton.identity import compiler_variables
from irscope.record.triton.versions import triton_version

__all__ = ["installed_identity"]

_FILES = (
    "*.py", "_C/libtriton*", "compiler/**/*.py", "language/**/*.py", "backends/*.py", "backends/*/*.py",
    "backends/*/lib/*", "backends/*/bin/*",
)  # fmt: skip


def installed_identity() -> str:
    """A text that changes with each installation, and with the variables that it reads and the files that they name.

    Empty where a variable names a folder, whose contents may change; raises MissingTool without a Triton.
    """
    variables = sorted(compiler_variables().items())
    named = [Path(value) for _, value in variables if os.sep in value]
    if not all(path.is_file() for path in named):
        return ""
    folder = package_folder()
    files = sorted({path for pattern in _FILES for path in folder.glob(pattern)})
    rows = [(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in (*files, *named)]
    return hashlib.sha256(repr((triton_version(), rows, variables)).encode()).hexdigest()

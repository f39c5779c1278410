"""The small matmul that `ablate` and `bisect` are tried on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.once import made_once

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "tests" / "cli" / "kernels" / "thin.py"
SIGNATURE = ("--signature", "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 16")

FEW = ("-d", "ttgir:pipeline", "-d", "ttgir:triton_licm")
"""Two passes to search in place of the forty of a stage; the first takes registers, and gives asynchronous copies."""

Run = Callable[..., tuple[int, str, str]]
"""Arguments of the command line → exit code, standard output, standard error."""


def recorded_product(factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file with its capture, and a home of the asking process where its variants are those of all processes."""

    def record(folder: Path) -> None:
        command = [sys.executable, "-m", "irscope", "dump", f"{KERNELS}::tile_product", *SIGNATURE]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "IRSCOPE_HOME": str(folder)}
        subprocess.run([*command, "-o", folder / "product.irscope"], check=True, env=environment)
        (folder / "variants").mkdir(exist_ok=True)

    folder = made_once(factory, "product", record)
    home = factory.mktemp("home")
    (home / "variants").symlink_to(folder / "variants")
    # With the key of the home that it was recorded in, the capture's code is trusted there too.
    (home / "key").symlink_to(folder / "key")
    return folder / "product.irscope", home

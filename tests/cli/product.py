"""The small matmul that `ablate` and `bisect` are tried on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "tests" / "record" / "kernels" / "no_torch.py"
SIGNATURE = ("--signature", "*fp16:16, *fp16:16, *fp32:16, i32:16, 64")

Run = Callable[..., tuple[int, str, str]]
"""Arguments of the command line → exit code, standard output, standard error."""

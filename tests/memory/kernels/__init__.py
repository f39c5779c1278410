"""Kernels that use shared memory, as captures."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from irscope.model.capture import Capture
from tests.recording import record_without_sass

FILE = Path(__file__).with_name("shared.py")
SIGNATURES = {
    "product": "*fp16:16, *fp16:16, *fp16:16, i32:16, 64",
    "specialised": "*fp16:16, *fp16:16, *fp16:16, i32:16, 128",
    "sums": "*fp32:16, *fp32:16, 64",
    "gathered": "*fp32:16, *i32:16, *fp32:16, 64",
    "calling": "*fp32:16, *fp32:16, 64",
    "branching": "*fp16:16, *fp16:16, *fp32:16, i32:16, i32, 64",
}


@cache
def compiled(kernel: str, target: str) -> Capture:
    """A kernel of `shared.py`, compiled once."""
    return record_without_sass(FILE, kernel=kernel, signature=SIGNATURES[kernel], target=target)

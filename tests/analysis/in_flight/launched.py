"""Stored captures of a matmul as if their launches had been recorded: for tests that need no Triton."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irscope.model.capture import Capture
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.store.file import load

_LAYOUTS = Path(__file__).parents[2] / "data" / "layouts"
BLOCK_K = 64


def matmul(name: str, k: int) -> Capture:
    """A capture of `tests/data/layouts` whose launch multiplies matrices of 256 × k and k × 256."""
    capture = load(_LAYOUTS / f"{name}.irscope")
    numbers = {"m": 256, "n": 256, "k": k, "stride_am": k, "stride_bk": 256, "stride_cm": 256}
    record = LaunchRecord(tuple(Argument(one, "scalar", "int", value) for one, value in numbers.items()))
    return replace(capture, launch=replace(capture.launch, record=record, grid=(4, 1, 1)))

"""A stored capture as if its launch had been recorded: for tests that need no Triton."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irscope.model.capture import Capture
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.store.file import load

_FLASH = Path(__file__).parents[2] / "data" / "layouts" / "flash_attention-cuda-90.irscope"
BATCH, HEADS, LENGTH, WIDTH = 2, 4, 256, 64
TENSOR_BYTES = BATCH * HEADS * LENGTH * WIDTH * 2


def attention(*, without: str = "", stretched: int = 1) -> Capture:
    """Causal attention of 2 × 4 heads, 256 queries and keys of 64 float16, in blocks of 128 × 128.

    `without`: a number whose value the record lacks; `stretched`: how many times too large a stride is.
    """
    capture = load(_FLASH)
    strides = (HEADS * LENGTH * WIDTH, LENGTH * WIDTH, WIDTH, 1)
    tensors = [
        Argument(
            f"{name}_ptr",
            "tensor",
            "float16",
            None,
            (BATCH, HEADS, LENGTH, WIDTH),
            strides,
            0,
            TENSOR_BYTES,
            512,
        )
        for name in "qkvz"
    ]
    numbers: dict[str, float] = {"heads": HEADS, "nq": LENGTH, "nk": LENGTH, "scale": 0.125}
    for name in "qkvz":
        numbers |= {f"stride_{name}{axis}": stride for axis, stride in zip("bhn", strides, strict=False)}
    numbers["stride_zb"] *= stretched
    scalars = [
        Argument(name, "scalar", type(value).__name__, value) for name, value in numbers.items() if name != without
    ]
    record = LaunchRecord((*tensors, *scalars))
    return replace(capture, launch=replace(capture.launch, record=record, grid=(2, BATCH * HEADS, 1)))

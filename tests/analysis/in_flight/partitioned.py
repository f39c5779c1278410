"""Stored kernels of specialised warps as if their launches had been recorded: for tests that need no Triton."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irscope.model.capture import Artifact, Capture
from irscope.model.launch_record import Argument, LaunchRecord
from tests.analysis.in_flight.launched import matmul

__all__ = ["LAUNCHED", "TURNS", "partitioned", "text_of"]

_WARPS = Path(__file__).parents[2] / "data" / "warps"
_NUMBERS: dict[str, dict[str, int]] = {
    "ws_matmul": {"M": 256, "N": 256, "K": 512},
    "ws_attention": {"n": 1024},
    "gluon_add": {"tiles": 8},
}
_SIGNATURES = {
    "ws_matmul": "a_desc:tensordesc b_desc:tensordesc c_desc:tensordesc M:i32 N:i32 K:i32",
    "ws_attention": "q_ptr:*fp16 k_ptr:*fp16 v_ptr:*fp16 out_ptr:*fp16 n:i32 scale:fp32",
    "gluon_add": "desc:tensordesc out_ptr:*fp16 tiles:i32",
}
LAUNCHED = tuple(_NUMBERS)
TURNS = {"ws_matmul": 16, "ws_attention": 16, "gluon_add": 8}
"""Of the loop that each turn is one of, in one program: of the matmul two tiles of 512 / 64."""


def text_of(name: str) -> str:
    """The TTGIR of a kernel."""
    return (_WARPS / f"{name}.ttgir").read_text("utf-8")


def partitioned(name: str, text: str = "", **numbers: int) -> Capture:
    """A capture of a kernel of `tests/data/warps`, launched with two programs; `numbers` are its own scalars."""
    capture = matmul("matmul-cuda-80", 512)
    scalars = {**_NUMBERS[name], **numbers}
    record = LaunchRecord(tuple(Argument(one, "scalar", "int", value) for one, value in scalars.items()))
    signature = tuple((left, right) for left, _, right in (one.partition(":") for one in _SIGNATURES[name].split()))
    launch = replace(capture.launch, signature=signature, record=record, grid=(2, 1, 1))
    return replace(capture, launch=launch, artifacts=(Artifact("ttgir", text or text_of(name)),), layouts=())

"""The kernels of kernels/reasons.py as captures with logs.

`python -m tests.record.reasons` writes, for the Triton that runs it, what the tests of the readers read; with targets
behind it, only of those.
"""

from __future__ import annotations

import lzma
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from irscope.model.capture import Capture
from irscope.model.evidence import PassLog
from irscope.record.compile.second import find_log
from irscope.record.triton.versions import triton_version
from tests.recording import record_without_sass

KERNELS = Path(__file__).parent / "kernels" / "reasons.py"
DATA = Path(__file__).parents[1] / "data" / "reasons"
_PRODUCT = "*fp16:16, *fp16:16, *fp32:16, i32:16"
CASES: dict[str, tuple[str, dict[str, int]]] = {
    "narrow": ("*fp16:16, *fp16:16, i32:16, i32", {"BLOCK": 1024}),
    "helped": ("*fp16:16, *fp16:16, i32:16, i32", {"BLOCK": 1024}),
    "product": (f"{_PRODUCT}, i32", {"TILE": 64}),
    "used": (_PRODUCT, {"TILE": 64}),
    "serialised": (_PRODUCT, {"TILE": 64}),
    "small": ("*fp8e5:16, *fp8e5:16, *fp32:16", {"ROWS": 16, "TILE": 64}),
    "specialised": ("*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16", {"TILE": 128}),
}
STORED = (
    ("cuda:90", tuple(CASES)[:-1]),
    ("cuda:100", ("specialised",)),
    ("hip:gfx942", ("narrow", "product", "small")),
)
_KEPT = (
    "coalesce", "accelerate_matmul", "assign_latencies", "schedule_loops", "pipeline", "block_pingpong", "to_llvmir",
    "membar", "warp_specialize",
)  # fmt: skip
"""Passes whose logs the readers' tests read; the others' would be 90 % of it."""


@cache
def with_log(kernel: str, target: str) -> Capture:
    """A kernel compiled for a target, and compiled again for its log."""
    signature, constexprs = CASES[kernel]
    how = {"signature": signature, "constexprs": constexprs, "layouts": False}
    capture = record_without_sass(KERNELS, kernel=kernel, target=target, **how)
    return replace(capture, log=find_log(capture))


def line_of(text: str) -> int:
    """The line of kernels/reasons.py that contains a text, 1-based; it must be one."""
    (found,) = (number for number, line in enumerate(KERNELS.read_text().splitlines(), 1) if text in line)
    return found


def stored_logs(path: Path) -> dict[str, list[PassLog]]:
    """Of each kernel in a file of tests/data/reasons, the logs there."""
    found: dict[str, list[PassLog]] = {}
    for part in lzma.decompress(path.read_bytes()).decode().split("\n=== ")[1:]:
        head, _, text = part.partition("\n")
        kernel, stage, index = head.split()
        found.setdefault(kernel, []).append(PassLog(stage, text, None if index == "-" else int(index)))
    return found


def _write(targets: Sequence[str]) -> None:
    for target, kernels in STORED:
        if targets and target not in targets:
            continue
        parts: list[str] = []
        for kernel in kernels:
            capture = with_log(kernel, target)
            names = {snapshot.index: snapshot.name for snapshot in capture.passes()}
            for item in capture.log.passes if capture.log is not None else ():
                if item.stage == "cubin" or (item.index is not None and names[item.index] in _KEPT):
                    text = item.text.replace(str(KERNELS), "kernels/reasons.py")
                    parts.append(f"\n=== {kernel} {item.stage} {'-' if item.index is None else item.index}\n{text}")
        path = DATA / f"{triton_version()}.{target.replace(':', '')}.xz"
        path.write_bytes(lzma.compress("".join(parts).encode(), preset=9))


if __name__ == "__main__":
    _write(sys.argv[1:])

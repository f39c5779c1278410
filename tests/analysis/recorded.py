"""Captures for tests of the source map and of the graph: two examples compiled by signature, and the stored stages."""

from __future__ import annotations

import atexit
import dataclasses
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import irscope
from irscope.model.capture import Artifact, Capture, Kernel, Launch, SourceFile, Target, stage_rank
from tests.once import kept
from tests.recording import without_torch

ROOT = Path(__file__).parents[2]
LOCATIONS = ROOT / "tests" / "data" / "locations"

_SOFTMAX = {
    "kernel": "softmax_kernel",
    "signature": "*fp32:16, *fp32:16, i32:16, i32:16, 1, i32:16, 1, 1024",
    "constexprs": {},
}
_STRIDES = ", ".join(["i32:16", "i32:16", "i32:16", "1"] * 4)
_ATTENTION = {
    "kernel": "attention_kernel",
    "signature": f"*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32, i32, i32, fp32, {_STRIDES}",
    "constexprs": {"D": 64, "BLOCK_D": 64, "CAUSAL": False, "BLOCK_M": 64, "BLOCK_N": 64},
}
EXAMPLES = {"softmax": ("softmax.py", _SOFTMAX), "attention": ("flash_attention.py", _ATTENTION)}


@cache
def example(name: str, target: str) -> Capture:
    """An example compiled for a target; needs Triton. Skipped where there is no torch, as under the older versions."""
    if find_spec("torch") is None:
        pytest.skip("the examples are compiled with the newest Triton, beside torch")
    file, how = EXAMPLES[name]
    return kept(
        ("example", name, target),
        lambda: irscope.record(without_torch(ROOT / "examples" / file, _copies()), target=target, **how),
    )


@cache
def _copies() -> Path:
    """A folder until the end of this process."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


KERNELS = Path(__file__).parent / "kernels"
_MARKED = {
    "inlined": "*i32:16, *i32:16, 128",
    "called": "*i32:16, *i32:16, i32",
    "functions": "*fp32:16, *fp32:16, *i32:16, 128",
}


@cache
def recorded(kernel: str, target: str) -> Capture:
    """An example, or a kernel of kernels/marked.py, compiled for a target; needs Triton."""
    if kernel in EXAMPLES:
        return example(kernel, target)
    how: dict[str, Any] = {"kernel": kernel, "signature": _MARKED[kernel], "target": target}
    return kept(("marked", kernel, target), lambda: irscope.record(KERNELS / "marked.py", **how))


@cache
def stored(kernel: str, target: str, version: str = "3.9.0") -> Capture:
    """The stages in tests/data/locations of one kernel, as a capture."""
    short = {"cuda:90": "cuda90", "hip:gfx942": "gfx942"}[target]
    paths = sorted((LOCATIONS / version).glob(f"{kernel}.{short}.*"), key=lambda path: stage_rank(path.suffix[1:]))
    artifacts = tuple(Artifact(path.suffix[1:], path.read_text()) for path in paths if path.suffix != ".mlir")
    sources = tuple(
        SourceFile(f"kernels/{path.name}", path.read_text()) for path in sorted((LOCATIONS / "kernels").glob("*.py"))
    )
    launch = Launch(Kernel(kernel, "kernels/locations.py", 15, "", 14))
    return Capture(launch, Target.parse(target), artifacts=artifacts, sources=sources)


def without_sources(capture: Capture) -> Capture:
    """The same capture as it comes from an IR file: nothing is known of its Python."""
    return dataclasses.replace(
        capture, sources=(), launch=dataclasses.replace(capture.launch, kernel=Kernel(capture.name))
    )

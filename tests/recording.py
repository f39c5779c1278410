"""Recordings for tests that need less than a whole one: nvdisasm and importing torch take a second of a core each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from tests.once import kept


def record_without_sass(source: str | Path, *, kernel: str = "", target: str, **options: Any) -> Capture:
    """The first capture of a recording with these options of `RecordingOptions`, made once in a run of the tests."""
    request = request_for(source, kernel=kernel, targets=target, disassemble=False, **options)
    text = Path(source).read_text("utf-8")
    return kept((Path(source).name, text, kernel, target, options), lambda: record_request(request).captures[0])


def without_torch(script: Path, folder: Path) -> Path:
    """A copy of a script, to compile its kernels by their signatures: its torch is the types that it names."""
    copy = folder / script.name
    types = "\nclass torch: Tensor = device = object; autograd = type('autograd', (), {'Function': object})\n"
    copy.write_text(script.read_text("utf-8").replace("\nimport torch\n", types), "utf-8")
    return copy

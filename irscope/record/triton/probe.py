"""`python -m irscope.record.triton.probe`: prints a line of JSON on this interpreter's Triton."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import sys
from typing import Any

from irscope.errors import IrscopeError
from irscope.record.triton import api as triton_api
from irscope.record.triton.versions import triton_version, untried_note
from irscope.target import KNOWN_TARGETS


def probe() -> dict[str, Any]:
    """Versions, supported and refused targets, the GPU, and the tools in the package."""
    answer: dict[str, Any] = dict.fromkeys(("error", "triton", "untried", "torch", "gpu"), "")
    answer |= {"backends": [], "targets": [], "refused": [], "tools": {}}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        answer["torch"] = importlib.metadata.version("torch")
    try:
        triton_api.silence_known_noise()
        triton_api.require_triton()
    except IrscopeError as error:
        return answer | {"error": str(error)}
    answer["triton"] = triton_version()
    answer["untried"] = untried_note()
    answer["backends"] = triton_api.backend_names()
    for target in KNOWN_TARGETS:
        try:
            triton_api.make_backend(target)
            answer["targets"].append(str(target))
        except IrscopeError:
            answer["refused"].append(str(target))
    gpu = triton_api.present_gpu()
    answer["gpu"] = "" if gpu is None else str(gpu)
    answer["tools"] = {name: str(path) for name, path in triton_api.nvidia_tools().items()}
    return answer


if __name__ == "__main__":
    print(json.dumps(probe()))
    sys.stdout.flush()
    # Without the messages that the compiler prints at exit.
    os._exit(0)

"""Makes the captures in this folder: run from the repository's root with Triton 3.9 installed.

    python tests/data/layouts/make.py

Each is one compile of an example, with its TTGIR, LLVM IR and assembly, and what the compiler said of its layouts.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irscope.model.capture import Environment, Target
from irscope.record.layouts.questions import layouts_of_text
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.store.file import save

KEPT = ("ttgir", "llir", "ptx", "amdgcn")
CASES = (
    ("matmul", "cuda:80"),
    ("matmul", "hip:gfx942"),
    ("matrix_transpose", "cuda:90"),
    ("flash_attention", "cuda:90"),
)


def main() -> None:
    for name, target in CASES:
        request = request_for(f"examples/{name}.py", targets=(target,), snapshots="none")
        # The largest tells most.
        captures = record_request(request).captures
        capture = max(captures, key=lambda item: len(item.text("ttgir")))
        capture = replace(
            capture,
            artifacts=tuple(item for item in capture.artifacts if item.stage in KEPT),
            snapshots=(),
            sources=(),
            layouts=layouts_of_text(capture.text("ttgir"), Target.parse(target)),
            environment=Environment(triton_version=capture.environment.triton_version),
        )
        save(capture, Path(__file__).parent / f"{name}-{target.replace(':', '-')}.irscope")


if __name__ == "__main__":
    main()

"""Cuts the captures of benchmarks/counters.py down to what the join of their profiles needs: make.py captures.zip."""

from __future__ import annotations

import os
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[2])]

from irscope.model.capture import Artifact, Capture, Environment  # noqa: E402
from irscope.store.file import from_bytes, save  # noqa: E402

KERNELS = (
    "strided", "every_second", "masked", "structs", "tile", "transposed", "column", "row_broadcast", "scalars",
    "atomics", "looped", "triangle", "multiplied", "words", "_rms_norm_forward_kernel", "_layer_norm_backward_kernel",
    "_swiglu_backward_kernel", "_triton_rope", "liger_cross_entropy_kernel", "_group_norm_backward_kernel",
    "softmax_kernel", "transpose_kernel", "matmul_naive_kernel", "attention_kernel", "batched_matmul_kernel",
)  # fmt: skip
# "/home/someone/irscope/tests/memory/addresses/accesses/case.py"   but of Triton's library "triton/language/standard.py"
_PATH = re.compile(r'(?<=")/[^"\n]*/(?=triton/language/[^"/\n]+"|[^"/\n]+")')


def main() -> None:
    wanted = list(KERNELS)
    with zipfile.ZipFile(sys.argv[1]) as archive:
        for name in archive.namelist():
            capture = from_bytes(archive.read(name))
            if capture.name in wanted:
                wanted.remove(capture.name)
                save(cut(capture), HERE / f"{capture.name.strip('_')}.irscope")
    print("not there:", ", ".join(wanted) or "none")


def cut(capture: Capture) -> Capture:
    """Three texts without the paths of the machine, the layouts, the launch, the operations and the profile."""
    artifacts = tuple(
        Artifact(one.stage, _PATH.sub("", one.text)) for one in capture.artifacts if one.stage in ("ttgir", "ptx", "sass")
    )
    kernel = replace(capture.launch.kernel, file=os.path.basename(capture.launch.kernel.file), source="")
    layouts = tuple(replace(row, operations=()) for row in capture.layouts)
    environment = Environment(triton_version=capture.environment.triton_version, gpu=capture.environment.gpu)
    return Capture(
        replace(capture.launch, kernel=kernel, autotuning=None),
        capture.target,
        artifacts=artifacts,
        layouts=layouts,
        operations=capture.operations,
        profile=capture.profile,
        environment=environment,
    )


if __name__ == "__main__":
    main()

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
_PLAIN = "SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[1, 0]"
OF_CONSTANTS = {
    "shared_columns": ("through_shared", {"M": "64", "layout": _PLAIN, "loaded": "Blocked", "stored": "[1, 1]"}),
    "shared_operand": ("through_shared", {"layout": "vec=8, per_phase=2", "loaded": "DotOperandLayout"}),
    "shared_8_bytes_alike": ("through_shared", {"loaded": "lane_bases=[[0, 2], [0, 0], [0, 4], [0, 8]"}),
    "shared_16_bytes_alike": ("through_shared", {"loaded": "lane_bases=[[0, 0], [0, 4], [0, 8]"}),
    "shared_lanes_that_left": ("through_shared", {"loaded": "lane_bases=[[0, 4], [0, 8], [0, 0], [0, 16]"}),
    "copies_of_the_same": ("copies_again", {"WIDTH": "8", "EVERY": "2", "OF": "64", "SWAPPED": "0"}),
    "copies_of_halves": ("copies_again", {"WIDTH": "8", "EVERY": "1", "OF": "16", "FLIPPED": "1"}),
    "copies_of_halves_apart": ("copies_again", {"WIDTH": "8", "OF": "128", "SWAPPED": "4"}),
}
"""File → the kernel of benchmarks/sharing.py or repeating.py, and what its constants contain."""
# "/home/someone/irscope/tests/memory/addresses/case.py"   but of Triton's library "triton/language/standard.py"
_PATH = re.compile(r'(?<=")/[^"\n]*/(?=triton/language/[^"/\n]+"|[^"/\n]+")')


def main() -> None:
    files = {name.strip("_"): (name, dict[str, str]()) for name in KERNELS} | OF_CONSTANTS
    with zipfile.ZipFile(sys.argv[1]) as archive:
        for name in archive.namelist():
            capture = from_bytes(archive.read(name))
            stem = next((stem for stem, wants in files.items() if is_wanted(capture, *wants)), None)
            if stem is not None:
                del files[stem]
                save(cut(capture), HERE / f"{stem}.irscope")
    print("not there:", ", ".join(files) or "none")


def is_wanted(capture: Capture, name: str, constants: dict[str, str]) -> bool:
    known = dict(capture.launch.constants)
    return capture.name == name and all(text in known[key] for key, text in constants.items())


def cut(capture: Capture) -> Capture:
    """Three texts without the paths of the machine, the layouts, the launch, the operations and the profile."""
    artifacts = tuple(
        Artifact(one.stage, _PATH.sub("", one.text))
        for one in capture.artifacts
        if one.stage in ("ttgir", "ptx", "sass")
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

"""Where compile time goes, of 12 kernels by each Triton and for three targets: the parts' sum against the whole.

`python -m benchmarks.compile_times 3.6.0=FOLDER 3.7.1=FOLDER … [KERNEL …]`, each a folder that `pip install --target`
has filled, empty for the Triton that is installed; KERNEL: only these examples. Prints a table for
docs/compile-time.md: the share of a compile's time by the clock that is some part's, and its processor time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KERNELS = (
    *("batched_matmul", "cross_entropy", "flash_attention", "flash_attention_1d", "layer_norm", "matmul"),
    *("matmul_tma", "matrix_copy", "matrix_transpose", "mul_relu_backward", "softmax", "vector_add"),
)
TARGETS = ("cuda:90", "cuda:100", "hip:gfx942")


def timed(kernel: str, target: str, folder: str) -> dict[str, Any] | str:
    """The times of the first launch of an example, as `passes --time --json` prints them; or why there are none."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"IRSCOPE_HOME": home, "TRITON_CACHE_DIR": f"{home}/cache"}
        places = [folder, str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
        command = [sys.executable, "-m", "irscope", "passes", str(ROOT / "examples" / f"{kernel}.py")]
        command += ["--time", "--launch", "1", "--json", "--target", target]
        answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    try:
        return json.loads(answer.stdout)[0]
    except (ValueError, IndexError):
        return (answer.stderr.strip().splitlines() or ["no output"])[-1][:100]


def main() -> None:
    """Measure and print."""
    versions = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word) or {"installed": ""}
    kernels = [word for word in sys.argv[1:] if "=" not in word] or KERNELS
    print(f"| first launch of | target | {' | '.join(versions)} |\n|{'---|' * (len(versions) + 2)}")
    shares: list[float] = []
    for kernel in kernels:
        for target in TARGETS:
            cells: list[str] = []
            for folder in versions.values():
                row = timed(kernel, target, folder)
                if isinstance(row, str):
                    cells.append(row)
                    continue
                shares.append(row["accounted"])
                cells.append(f"{row['accounted']:.1%}, {row['processor_us'] // 1000} ms")
            print(f"| `{kernel}.py` | {target} | {' | '.join(cells)} |", flush=True)
    enough = sum(share >= 0.95 for share in shares)
    print(f"\n{enough} of {len(shares)} compiles at least 95 %, the least {min(shares, default=0.0):.1%}")


if __name__ == "__main__":
    main()

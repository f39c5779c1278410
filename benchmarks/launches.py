"""What recording adds to a launch after the first, on a GPU: `python -m benchmarks.launches` prints a ratio.

The script times 10,000 launches of one kernel by itself; it is run plainly and under a recording, in turns.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request

ROUNDS = 5
SCRIPT = """
import time
import torch, triton
import triton.language as tl

@triton.jit
def touch(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < n)

x = torch.empty(1024, device="cuda")
for _ in range(200):
    touch[(1,)](x, 1024, BLOCK=1024)
torch.cuda.synchronize()
times = []
for _ in range(10):
    started = time.perf_counter()
    for _ in range(1000):
        touch[(1,)](x, 1024, BLOCK=1024)
    times.append((time.perf_counter() - started) * 1e3)
    torch.cuda.synchronize()
times.sort()
print("us_per_launch", times[len(times) // 2])
"""


def microseconds(output: str) -> float:
    """What the script printed."""
    return float(next(line.split()[1] for line in output.splitlines() if line.startswith("us_per_launch")))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "launches.py")
        path.write_text(SCRIPT)
        plain, recorded = [], []
        for _ in range(ROUNDS):
            answer = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
            plain.append(microseconds(answer.stdout))
            recorded.append(microseconds(record_request(request_for(path)).output))
    before, after = statistics.median(plain), statistics.median(recorded)
    print(f"a launch after the first: plain {before:.2f} us, recorded {after:.2f} us, ratio {after / before:.3f}")
    print(f"plain {min(plain):.2f} to {max(plain):.2f} us, recorded {min(recorded):.2f} to {max(recorded):.2f} us")


if __name__ == "__main__":
    main()

"""What recording costs over the plain compile in the same process, and what a capture weighs.

Each case runs in processes of its own; within one, plain and recorded compiles take turns, each with an empty cache.
`irscope` in another interpreter: `PYTHON -m benchmarks recording`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CASES = ("matmul_128_256_64_8_3", "flash_attention_64_128_64_4_3")
TARGETS = ("cuda:90", "cuda:100", "hip:gfx942")
ROUNDS = 5

CHILD = """
import io, json, os, statistics, sys, tempfile, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from compile_cases import CASES, compile_case
from irscope.record import triton_api
from irscope.record.assembly import Assembly
from irscope.record.compiles import Watch, watch_compiles
from irscope.record.events import EventWriter
from irscope.record.request import RecordRequest
from irscope.store import to_bytes
triton_api.silence_known_noise()
name, target, rounds, dump = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "dump"
case = next(case for case in CASES if case.name == name)

def timed(action):
    with tempfile.TemporaryDirectory() as folder, triton_api.private_cache(Path(folder)):
        started = time.perf_counter()
        action()
        return time.perf_counter() - started

def plain():
    compile_case(case, target)

def recorded(level):
    # As in the recording process: each event is written to a pipe, here to a file.
    def action():
        with open(os.devnull, "wb") as stream, watch_compiles(Watch(sink=EventWriter(stream), snapshots=level)):
            compile_case(case, target)
    return action

if dump:
    # MLIR_DUMP_PATH is read once a process.
    plain()
    print(json.dumps(statistics.median(timed(plain) for _ in range(rounds))))
    sys.stdout.flush()
    os._exit(0)
actions = {{"plain": plain, "triton": recorded("triton"), "all": recorded("all"), "none": recorded("none")}}
for action in actions.values():
    timed(action)
times = {{name: [] for name in actions}}
for _ in range(rounds):
    for name, action in actions.items():
        times[name].append(timed(action))
assembly = Assembly(RecordRequest(mode="script", snapshots="all"), "", "")
with tempfile.TemporaryDirectory() as folder, triton_api.private_cache(Path(folder)):
    with watch_compiles(Watch(sink=assembly.feed, snapshots="all")):
        compile_case(case, target)
(capture,) = assembly.captures()
raw, last = 0, ""
for snapshot in capture.snapshots:
    last = snapshot.text or last
    raw += len(last) if snapshot.argument else 0
print(json.dumps({{"times": times, "raw": raw, "file": len(to_bytes(capture))}}))
sys.stdout.flush()
os._exit(0)
"""


def run(case: str, target: str, mode: str) -> dict[str, object] | float:
    """One child's answer."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    log = ""
    if mode == "dump":
        log = f"{os.environ.get('TMPDIR', '/tmp')}/irscope-bench-{os.getpid()}.log"
        environment |= {"MLIR_ENABLE_DUMP": "1", "MLIR_DUMP_PATH": log}
    code = CHILD.format(tests=str(ROOT / "tests" / "examples"))
    command = [sys.executable, "-W", "ignore", "-c", code, case, target, str(ROUNDS), mode]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if log:
        Path(log).unlink(missing_ok=True)
    if answer.returncode:
        sys.exit(answer.stderr[-2000:])
    return json.loads(answer.stdout.strip().splitlines()[-1])


def main() -> None:
    """Measure and print."""
    from importlib.metadata import version

    print(f"Triton {version('triton')}; medians of {ROUNDS}, ratios to the plain compile in the same process")
    for case in CASES:
        for target in TARGETS:
            answer = run(case, target, "record")
            dumped = run(case, target, "dump")
            assert isinstance(answer, dict)
            assert isinstance(dumped, float)
            times = answer["times"]
            assert isinstance(times, dict)
            plain = statistics.median(times["plain"])
            ratios = ", ".join(
                f"{name} {statistics.median(times[name]) / plain:.2f}" for name in ("triton", "all", "none")
            )
            raw, size = int(str(answer["raw"])), int(str(answer["file"]))
            print(
                f"  {case} {target}: plain {plain:.3f} s; {ratios}; MLIR_ENABLE_DUMP {dumped / plain:.2f}; "
                f"all snapshots {raw / 1e6:.1f} MB, file {size / 1e3:.0f} kB ({size / raw:.1%})",
                flush=True,
            )


if __name__ == "__main__":
    main()

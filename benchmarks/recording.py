"""What recording costs over the plain compile in the same process, and what a capture weighs.

Each case runs in a process of its own, in which plain compiles, those with MLIR_ENABLE_DUMP to a file, recorded ones
and those that `irscope.listen` listens to take turns, each with an empty cache. Processor time, of the process and of
ptxas. `irscope` in another interpreter: `PYTHON -m benchmarks recording`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CASES = ("matmul_128_256_64_8_3", "flash_attention_64_128_64_4_3")
TARGETS = ("cuda:90", "cuda:100", "hip:gfx942")
ROUNDS = 5
LEVELS = ("listen", "none", "triton", "all", "dump")

CHILD = """
import json, os, resource, sys, tempfile, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from compile_cases import CASES, compile_case
import irscope
from irscope.record.triton import api as triton_api
from irscope.record.process.assembly import Assembly
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.process.messages import MessageWriter
from irscope.record.process.requests import RecordRequest
from irscope.store.file import to_bytes
triton_api.silence_known_noise()
name, target, rounds, log = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
# As in the recording process, whose standard error is irscope's.
os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
case = next(case for case in CASES if case.name == name)

def processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)

def timed(action):
    with tempfile.TemporaryDirectory() as folder, triton_api.private_cache(Path(folder)):
        started = processor_seconds()
        action()
        return processor_seconds() - started

def plain():
    compile_case(case, target)

def recorded(level):
    # As in the recording process: each event is written to a pipe, here to a file.
    def action():
        with open(os.devnull, "wb") as stream:
            request = RecordRequest(mode="script", snapshots=level, log_path=log)
            with watch_compiles(Watch(MessageWriter(stream.fileno()), request)):
                compile_case(case, target)
    return action

def dumped():
    # To the file that MLIR_DUMP_PATH named when the process began.
    os.environ["MLIR_ENABLE_DUMP"] = "1"
    try:
        compile_case(case, target)
    finally:
        del os.environ["MLIR_ENABLE_DUMP"]

actions = {{"plain": plain, "triton": recorded("triton"), "all": recorded("all"), "none": recorded("none")}}
actions["dump"] = dumped
for action in actions.values():
    timed(action)
def listened():
    # A server listens for long: what is found out of its Triton once is not counted, but printed. The listener's own
    # time is a few milliseconds, less than that of a compile varies: it is measured itself.
    spent = []
    with tempfile.TemporaryDirectory() as folder, irscope.listen(folder):
        settings = triton_api.knobs().compilation
        ours = settings.listener
        def timed_listener(**said):
            started = time.thread_time()
            ours(**said)
            spent.append(time.thread_time() - started)
        settings.listener = timed_listener
        timed(plain)
        whole = timed(plain)
        settings.listener = ours
    return spent[0], whole / (whole - spent[1])

firsts = []
times = {{name: [] for name in (*actions, "listen")}}
for _ in range(rounds):
    for name, action in actions.items():
        times[name].append(timed(action))
    first, again = listened()
    firsts.append(first)
    times["listen"].append(again * times["plain"][-1])
assembly = Assembly(RecordRequest(mode="script", snapshots="all"))
with tempfile.TemporaryDirectory() as folder, triton_api.private_cache(Path(folder)):
    with watch_compiles(Watch(assembly.feed, RecordRequest(mode="script", snapshots="all"))):
        compile_case(case, target)
(capture,) = assembly.captures()
raw, last = 0, ""
for snapshot in capture.snapshots:
    last = snapshot.text or last
    raw += len(last) if snapshot.argument else 0
print(json.dumps({{"times": times, "firsts": firsts, "raw": raw, "file": len(to_bytes(capture))}}))
sys.stdout.flush()
os._exit(0)
"""


def run(case: str, target: str) -> dict[str, object]:
    """One child's answer."""
    with tempfile.TemporaryDirectory() as folder:
        dump, log = Path(folder, "dump"), Path(folder, "log")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "MLIR_DUMP_PATH": str(dump)}
        code = CHILD.format(tests=str(ROOT / "tests" / "examples"))
        command = [sys.executable, "-W", "ignore", "-c", code, case, target, str(ROUNDS), str(log)]
        answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if answer.returncode:
            sys.exit(answer.stderr[-2000:] + (log.read_text("utf-8", "replace")[-2000:] if log.exists() else ""))
        if not dump.stat().st_size:
            sys.exit("MLIR_ENABLE_DUMP printed nothing: there is nothing to compare with")
    return json.loads(answer.stdout.strip().splitlines()[-1])


def main() -> None:
    """Measure and print."""
    from importlib.metadata import version

    print(f"Triton {version('triton')}; processor time, ratios within a round, medians of {ROUNDS}")
    for case in CASES:
        for target in TARGETS:
            answer = run(case, target)
            times = answer["times"]
            assert isinstance(times, dict)
            plain = statistics.median(times["plain"])
            # Round by round: a machine that slows down meanwhile slows down both.
            pairs = {
                name: [one / other for one, other in zip(times[name], times["plain"], strict=True)] for name in LEVELS
            }
            ratios = ", ".join(f"{name} {statistics.median(found):.2f}" for name, found in pairs.items())
            firsts = answer["firsts"]
            assert isinstance(firsts, list)
            raw, size = int(str(answer["raw"])), int(str(answer["file"]))
            print(
                f"  {case} {target}: plain {plain:.3f} s; {ratios}; once per process under listen {firsts[0]:.3f} s; "
                f"all snapshots {raw / 1e6:.1f} MB, file {size / 1e3:.0f} kB ({size / raw:.1%})",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""What `irscope why` costs of a stored capture, in plain compiles of its kernel: processor time of all processes.

A plain compile is `triton.compile` of the capture's own TTIR with its options, in a new process without irscope and
without torch: Python starts, Triton is imported, the kernel is compiled. `why` is a new process too. Beside each ratio
stands that of the same two without what a process needs to start: `why` less `irscope --help`, the compile less the
import of Triton.

All of one round run one after another; medians of rounds. A kernel has something to try if `why` names a change that it
could compile, in what is found with the compiler's log too. `why again` is the same command once more, which compiles
nothing. `python -m benchmarks why` records the examples, and takes of each kernel a launch with something to try and
one without, as far as that is known without the log; `python -m benchmarks.why FILE...` takes captures.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from irscope.api import record_all
from irscope.model.capture import Capture
from irscope.store.file import load
from irscope.store.recent import CaptureStore

ROOT = Path(__file__).parents[1]
ROUNDS = 3
EXAMPLES = (
    "vector_add", "softmax", "layer_norm", "cross_entropy", "matrix_transpose", "mul_relu_backward", "matmul",
    "flash_attention",
)  # fmt: skip
_PLAIN = """
import json, sys
import triton
from triton.backends.compiler import GPUTarget
if len(sys.argv) > 1:
    path, target, options = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    triton.compile(path, target=GPUTarget(*target), options=options)
"""
_DIGESTS = "from irscope.record.triton.identity import compiler_fingerprint; compiler_fingerprint()"
_OPTIONS = ("num_warps", "num_stages", "num_ctas")


def processor_seconds() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(command: list[str], environment: Mapping[str, str], output: Path | None = None) -> float:
    """The processor seconds of a command, and of what it starts; `output`: where what it prints goes."""
    started = processor_seconds()
    printed = subprocess.run(command, check=True, capture_output=True, env=environment).stdout
    took = processor_seconds() - started
    if output is not None:
        output.write_bytes(printed)
    return took


def actions(capture: Capture, folder: Path) -> dict[str, Callable[[], float]]:
    """What is measured of a capture."""
    source = folder / "kernel.ttir"
    source.write_text(capture.text("ttir"))
    arch = capture.target.arch
    target = [capture.target.backend, int(arch) if str(arch).isdecimal() else arch, capture.target.warp_size]
    options = {name: value for name, value in capture.launch.options if name in _OPTIONS}
    home = folder / "home"
    CaptureStore(home / "captures").add(capture)
    environment = {
        **os.environ,
        "IRSCOPE_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "TRITON_ALWAYS_COMPILE": "1",
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }
    # Whoever recorded a capture here has the digests of Triton's files, which that found.
    subprocess.run([sys.executable, "-c", _DIGESTS], check=True, env=environment)
    plain = [sys.executable, "-c", _PLAIN]

    def irscope(*words: str, output: Path | None = None) -> Callable[[], float]:
        return lambda: measured([sys.executable, "-m", "irscope", *words], environment, output)

    return {
        "triton": lambda: measured(plain, environment),
        "compile": lambda: measured([*plain, str(source), json.dumps(target), json.dumps(options)], environment),
        "start": irscope("--help"),
        "why": irscope("why", capture.id, "--json", output=folder / "why.json"),
        "why again": irscope("why", capture.id, "--json"),
        "why --no-try": irscope("why", capture.id, "--tries", "0"),
    }


def has_tries(answer: Path) -> bool:
    """Whether what `why --json` printed names a change that can be compiled."""
    findings = [finding for one in json.loads(answer.read_text()) for finding in one["findings"]]
    return any(one["changes"] for finding in findings for one in finding["suggestions"])


def found(capture: Capture) -> tuple[int, bool]:
    """How many findings it has without a compile, and whether one has something that can be tried."""
    from irscope.analysis.findings.find import findings_of

    findings = findings_of(capture)
    return len(findings), any(one.changes for finding in findings for one in finding.suggestions)


def measure(capture: Capture, rounds: int) -> dict[str, float]:
    """Measure and print one capture; returns its ratios."""
    rows: dict[str, list[float]] = {}
    tries = False
    for _ in range(rounds):
        # Anew each time: what `why` finds out of a capture is kept with it.
        with tempfile.TemporaryDirectory() as folder:
            for name, action in actions(capture, Path(folder)).items():
                rows.setdefault(name, []).append(action())
            tries = has_tries(Path(folder) / "why.json")
    seconds = {name: statistics.median(values) for name, values in rows.items()}
    base, own = seconds["compile"], seconds["compile"] - seconds["triton"]
    whys = [name for name in seconds if name.startswith("why")]
    ratios = {name: seconds[name] / base for name in whys}
    ratios |= {f"{name}, own": (seconds[name] - seconds["start"]) / own for name in whys}
    ratios["tries"] = float(tries)
    shown = "  ".join(f"{name} {ratios[name]:.2f} ({ratios[f'{name}, own']:.2f})" for name in whys)
    print(
        f"  {capture.name:28} {capture.id[:8]} compile {base:.2f} s (own {own:.2f})  "
        f"{'to try ' if tries else 'nothing'}  {shown}",
        flush=True,
    )
    return ratios


def summary(rows: list[dict[str, float]]) -> None:
    """Print the median and the most of each ratio."""
    parts = {
        "something to try": [row for row in rows if row["tries"]],
        "nothing": [row for row in rows if not row["tries"]],
    }
    for title, part in parts.items():
        for name in ("why", "why, own", "why again", "why --no-try", "why --no-try, own") if part else ():
            values = [row[name] for row in part]
            middle = statistics.median(values)
            print(f"  {title}, {len(part)} kernels: {name}: median {middle:.2f}, most {max(values):.2f}")


def main(files: Sequence[str] = ()) -> None:
    """Measure captures, or a launch of each kernel of the examples with something to try and one without."""
    if files:
        captures = [load(file) for file in files]
    else:
        captures = []
        for name in EXAMPLES:
            chosen: dict[tuple[str, bool], Capture] = {}
            for one in record_all(ROOT / "examples" / f"{name}.py", target="cuda:90"):
                chosen.setdefault((one.name, found(one)[1]), one)
            captures += chosen.values()
    print("in plain compiles, in brackets without the start of the processes:")
    summary([measure(one, int(os.environ.get("ROUNDS", ROUNDS))) for one in captures])


if __name__ == "__main__":
    main(sys.argv[1:])

"""How long commands take, against the least that Python itself would: medians of several rounds, taken in turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROUNDS = 7

# What `irscope dump` does for one launch of examples/matmul.py, made bare: the same imports, the same compile, once.
BARE = """
import sys
sys.path.insert(0, {tests!r})
import torch
from compile_cases import CASES, compile_case
compile_case(next(case for case in CASES if case.name == "matmul_naive"), "cuda:90")
import os
os._exit(0)
"""
SCRIPT = """
import sys
sys.path.insert(0, {examples!r})
import torch
import matmul
a = torch.empty(512, 512, device="cuda", dtype=torch.float16)
matmul.matmul_naive(a, a)
"""


def seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """How long a command takes, once; it must succeed."""
    started = time.perf_counter()
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if answer.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{answer.stderr[-2000:]}")
    return time.perf_counter() - started


def compare(title: str, commands: dict[str, Sequence[str]], environment: dict[str, str], rounds: int = ROUNDS) -> None:
    """Print the median of each command and its ratio to the first."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            took = seconds(
                command, environment | {"TRITON_CACHE_DIR": tempfile.mkdtemp(dir=environment["IRSCOPE_HOME"])}
            )
            # The first round warms the file cache.
            if number:
                times[name].append(took)
    base = statistics.median(next(iter(times.values())))
    print(title)
    for name, values in times.items():
        median = statistics.median(values)
        spread = f"{min(values):.3f} to {max(values):.3f} s"
        print(f"  {name:<50} {median:.3f} s ({spread}), ratio {median / base:.2f}", flush=True)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "IRSCOPE_HOME": home, "PYTHONPATH": str(ROOT)}
        places = {"tests": str(ROOT / "tests" / "examples"), "examples": str(ROOT / "examples")}
        for name, text in (("bare", BARE), ("script", SCRIPT)):
            Path(home, f"{name}.py").write_text(text.format(**places))
        irscope = [sys.executable, "-m", "irscope"]
        stored = str(Path(home, "stored.irscope"))
        seconds([*irscope, "dump", f"{home}/script.py", "-o", stored], environment)
        compare(
            "starting up",
            {
                "python -c 'import typer'": [sys.executable, "-c", "import typer"],
                "irscope --help": [*irscope, "--help"],
                "irscope show CAPTURE": [*irscope, "show", stored],
                "irscope show CAPTURE --stage ttgir": [*irscope, "show", stored, "--stage", "ttgir"],
            },
            environment,
        )
        compare(
            "one launch of a matmul, end to end",
            {
                "a bare script that compiles it": [sys.executable, "-W", "ignore", f"{home}/bare.py"],
                "irscope dump --stage ttgir": [*irscope, "dump", f"{home}/script.py", "--stage", "ttgir"],
                "irscope passes CAPTURE": [*irscope, "passes", stored],
                "irscope diff CAPTURE CAPTURE": [*irscope, "diff", stored, stored],
            },
            environment,
            rounds=5,
        )


if __name__ == "__main__":
    main()

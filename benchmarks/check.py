"""What `irscope check` costs beside compiling, and a round of `irscope watch`: processor time of all processes.

A hundred variants of a small matmul: compiled by Triton itself, one after another in one process; then checked,
recording included. A save: the round of a watch that it makes, against compiling the file in a new process.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
VARIANTS = int(os.environ.get("CHECK_VARIANTS", "100"))
ROUNDS = int(os.environ.get("CHECK_ROUNDS", "3"))

KERNEL = """
import triton, triton.language as tl
@triton.jit
def product(a, b, c, size, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SCALE: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, size, 32):
        k = start + tl.arange(0, 32)
        x = tl.load(a + rows[:, None] * size + k[None, :])
        y = tl.load(b + k[:, None] * COLUMNS + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * COLUMNS + columns[None, :], acc * SCALE)
"""
LAUNCHES = """
class Buffer:
    def __init__(self, dtype):
        self.dtype = dtype
    def data_ptr(self):
        return 4096
half, single = Buffer("fp16"), Buffer("fp32")
for number in range({count}):
    product[(1,)](half, half, single, 512, 64 << number % 2, 64, number + 1.5, num_warps=4 << number % 4 // 2)
"""
PLAIN = """
import os
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
types = dict(a="*fp16", b="*fp16", c="*fp32", size="i32", ROWS="constexpr", COLUMNS="constexpr", SCALE="constexpr")
known = {{(place,): [["tt.divisibility", 16]] for place in range(4)}}
for number in range({count}):
    values = {{(4,): 64 << number % 2, (5,): 64, (6,): number + 1.5}}
    source = ASTSource(product, types, values, known)
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options=dict(num_warps=4 << number % 4 // 2))
os._exit(0)
"""
ASSERTED = [
    "--max-regs",
    "255",
    "--no-spills",
    "--max-shared",
    "100k",
    "--uses",
    "wgmma",
    "--pipelined",
    "--min-width",
    "load=16",
]


def seconds(command: Sequence[str | Path], folder: Path, codes: Sequence[int] = (0,)) -> float:
    """Processor seconds of a command and all that it starts, with a home and a Triton cache of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        environment = {
            **os.environ, "IRSCOPE_HOME": home, "TRITON_CACHE_DIR": f"{home}/triton", "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        before = _used()
        done = subprocess.run([*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode not in codes:
            sys.exit(f"{command}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
        return _used() - before


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(title: str, commands: dict[str, tuple[Sequence[str | Path], Sequence[int]]], folder: Path) -> None:
    """Print the median of each command, and its ratio to the first."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, (command, codes) in commands.items():
            taken[name].append(seconds(command, folder, codes))
    print(title, flush=True)
    base = statistics.median(next(iter(taken.values())))
    for name, values in taken.items():
        median = statistics.median(values)
        print(
            f"  {name:<64} {median:6.2f} s ({min(values):.2f} to {max(values):.2f}), ratio {median / base:.2f}",
            flush=True,
        )


SAVES = """
import sys
from pathlib import Path
from irscope.__main__ import run
from irscope.api.watching import Watched

def wait(self):
    file = Path("one.py")
    file.write_text(file.read_text().replace("acc * SCALE", "acc * SCALE + 1.5"))
    return (file,)

Watched.wait = wait
sys.exit(run(["diff", "one.py", "--watch", "--target", "cuda:90", "--recordings", sys.argv[1]]))
"""


def watched_round(folder: Path) -> float:
    """Processor seconds of one more round of a watch: a fourth of what five rounds take more than one."""
    (folder / "saves.py").write_text(SAVES)
    first, rows = (folder / "one.py").read_text(), dict[int, float]()
    for rounds in (1, 5):
        rows[rounds] = seconds([sys.executable, folder / "saves.py", str(rounds)], folder)
        (folder / "one.py").write_text(first)
    return (rows[5] - rows[1]) / 4


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="irscope-bench-") as name:
        folder = Path(name)
        for stem, count in (("many", VARIANTS), ("one", 1)):
            (folder / f"{stem}.py").write_text(KERNEL + LAUNCHES.format(count=count))
            (folder / f"plain_{stem}.py").write_text(KERNEL + PLAIN.format(count=count))
        check = [sys.executable, "-m", "irscope", "check", "many.py", "--target", "cuda:90"]
        compare(
            f"{VARIANTS} variants",
            {
                "compiled by Triton in one process": ([sys.executable, "-W", "ignore", "plain_many.py"], (0,)),
                "recorded: irscope dump --stage ttgir": (
                    [sys.executable, "-m", "irscope", "dump", "many.py", "--target", "cuda:90", "--stage", "ttgir"],
                    (0,),
                ),
                "irscope check with six assertions": ([*check, *ASSERTED], (0,)),
                "irscope check --baseline B --update-baseline": (
                    [*check, "--baseline", "b.json", "--update"],
                    (0,),
                ),
            },
            folder,
        )
        plain = [seconds([sys.executable, "-W", "ignore", "plain_one.py"], folder) for _ in range(ROUNDS)]
        rounds = [watched_round(folder) for _ in range(ROUNDS)]
        one, base = statistics.median(rounds), statistics.median(plain)
        print("a save")
        print(f"  compiling the file in a new process                              {base:6.2f} s")
        print(
            f"  the round of irscope watch                                       {one:6.2f} s, ratio {one / base:.2f}"
        )


if __name__ == "__main__":
    main()

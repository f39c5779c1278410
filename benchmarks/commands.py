"""What commands take, against the least that Python itself would: medians of several rounds, taken in turns.

Processor time, children included, decides on a machine that others use too; the time by the clock stands beside it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import irscope

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

# Every compile of an example, made directly: what `irscope dump` and the virtual GPU are measured against.
DIRECT = """
import ast, os, sys
sys.path.insert(0, {examples!r})
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import {name}
for kernel, signature, constants, attributes, options in {launches!r}:
    function = getattr({name}, kernel)
    while not isinstance(function, triton.runtime.jit.JITFunction):
        function = function.fn
    places = {{parameter: (place,) for place, parameter in enumerate(signature)}}
    values = {{parameter: ast.literal_eval(value) for parameter, value in constants.items()}}
    known = {{places[parameter]: [["tt.divisibility", 16]] for parameter in attributes}}
    source = ASTSource(function, signature, values, known)
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
os._exit(0)
"""
VIRTUAL = """
import os, runpy, sys
from irscope.record.virtual.gpu import virtual_gpu
from irscope.target import Target
with virtual_gpu(Target.parse("cuda:90")):
    runpy.run_path({path!r}, run_name="__main__")
sys.stdout.flush()
os._exit(0)
"""


def installed(home: str | Path) -> dict[str, str]:
    """The environment of commands, a folder for what they keep, and the bytecode that an installed irscope has."""
    own = {"IRSCOPE_HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(Path(home, "bytecode"))}
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | own


def direct_compiles(name: str) -> str:
    """A script that makes every compile of an example directly, as a recording of it says."""
    launches = []
    for capture in irscope.record_all(ROOT / "examples" / f"{name}.py", target="cuda:90", snapshots="none"):
        launch = capture.launch
        if any(value != "tt.divisibility=16" for _, value in launch.attributes):
            sys.exit(f"{name}: attributes that this benchmark does not know: {launch.attributes}")
        options = {key: value for key, value in launch.options if key in ("num_warps", "num_stages", "num_ctas")}
        row = (dict(launch.signature), dict(launch.constants), dict(launch.attributes), options)
        launches.append((launch.kernel.name, *row))
    return DIRECT.format(examples=str(ROOT / "examples"), name=name, launches=launches)


def seconds(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock, and of the processors with all children, that a command takes; it must succeed."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    clock, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if answer.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{answer.stderr[-2000:]}")
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(title: str, commands: dict[str, Sequence[str]], environment: dict[str, str], rounds: int = ROUNDS) -> None:
    """Print the median of each command and its ratio to the first."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            took = seconds(
                command, environment | {"TRITON_CACHE_DIR": tempfile.mkdtemp(dir=environment["IRSCOPE_HOME"])}
            )
            # The first round warms the file cache.
            if number:
                times[name].append(took)
    first = next(iter(times.values()))
    print(title)
    for name, rows in times.items():
        clock, processor = (statistics.median(column) for column in zip(*rows, strict=True))
        # Round by round: a machine that slows down meanwhile slows down both.
        ratios = [
            statistics.median(one / other for one, other in zip(own, base, strict=True))
            for own, base in zip(zip(*rows, strict=True), zip(*first, strict=True), strict=True)
        ]
        told = f"{clock:.3f} s, {processor:.3f} s of processors, ratios {ratios[0]:.2f} and {ratios[1]:.2f}"
        print(f"  {name:<50} {told}", flush=True)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as home:
        environment = installed(home)
        places = {"tests": str(ROOT / "tests" / "examples"), "examples": str(ROOT / "examples")}
        for name, text in (("bare", BARE), ("script", SCRIPT)):
            Path(home, f"{name}.py").write_text(text.format(**places))
        command = [sys.executable, "-m", "irscope"]
        stored = str(Path(home, "stored.irscope"))
        seconds([*command, "dump", f"{home}/script.py", "-o", stored], environment)
        compare(
            "starting up",
            {
                "python -c 'import typer'": [sys.executable, "-c", "import typer"],
                "irscope --help": [*command, "--help"],
                "irscope show CAPTURE": [*command, "show", stored],
                "irscope passes CAPTURE": [*command, "passes", stored],
                "irscope show CAPTURE --stage ttgir": [*command, "show", stored, "--stage", "ttgir"],
            },
            environment,
        )
        compare(
            "one launch of a matmul, end to end",
            {
                "a bare script that compiles it": [sys.executable, "-W", "ignore", f"{home}/bare.py"],
                "irscope dump --stage ttgir": [*command, "dump", f"{home}/script.py", "--stage", "ttgir"],
                "irscope diff CAPTURE CAPTURE": [*command, "diff", stored, stored],
            },
            environment,
            rounds=5,
        )
        for name in ("matmul", "softmax", "layer_norm"):
            example = str(ROOT / "examples" / f"{name}.py")
            Path(home, "direct.py").write_text(direct_compiles(name))
            Path(home, "virtual.py").write_text(VIRTUAL.format(path=example))
            compare(
                f"examples/{name}.py, end to end",
                {
                    "its compiles, made directly": [sys.executable, "-W", "ignore", f"{home}/direct.py"],
                    "the script on the virtual GPU, not recorded": [
                        sys.executable,
                        "-W",
                        "ignore",
                        f"{home}/virtual.py",
                    ],
                    f"irscope dump examples/{name}.py --stage ttgir": [*command, "dump", example, "--stage", "ttgir"],
                },
                environment,
                rounds=5,
            )


if __name__ == "__main__":
    main()

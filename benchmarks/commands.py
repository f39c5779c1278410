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
        command = [sys.executable, "-m", "irscope"]
        stored = str(Path(home, "stored.irscope"))
        seconds([*command, "dump", f"{home}/script.py", "-o", stored], environment)
        compare(
            "starting up",
            {
                "python -c 'import typer'": [sys.executable, "-c", "import typer"],
                "irscope --help": [*command, "--help"],
                "irscope show CAPTURE": [*command, "show", stored],
                "irscope show CAPTURE --stage ttgir": [*command, "show", stored, "--stage", "ttgir"],
            },
            environment,
        )
        compare(
            "one launch of a matmul, end to end",
            {
                "a bare script that compiles it": [sys.executable, "-W", "ignore", f"{home}/bare.py"],
                "irscope dump --stage ttgir": [*command, "dump", f"{home}/script.py", "--stage", "ttgir"],
                "irscope passes CAPTURE": [*command, "passes", stored],
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

"""What works with neither Triton nor torch, nor NumPy: `python -m tests.viewing PYTHON` tries an installed irscope.

PYTHON is an interpreter that has irscope installed, and nothing that recording needs. Every command that reads must do
so, and every command that records must say in one line what to install. The commands run in a folder of their own, so
that what is tried is the installed package and not this checkout.
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LAYOUTS = ROOT / "tests" / "data" / "layouts"
CAPTURE, OTHER = str(_LAYOUTS / "matmul-cuda-80.irscope"), str(_LAYOUTS / "matmul-hip-gfx942.irscope")
_DUMP = ROOT / "tests" / "data" / "dumps" / "3.6.0.cuda90.stderr.xz"
_SCRIPT = str(ROOT / "examples" / "softmax.py")
_KERNEL = (str(ROOT / "examples" / "vector_add.py::add_kernel"), "--signature", "*fp32,*fp32,*fp32,i32")
_COMPUTED = "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
_COMPILERS = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"

READS: tuple[tuple[str, ...], ...] = (
    ("--help",),
    ("--version",),
    ("diff", "--help"),
    ("ls",),
    ("show", CAPTURE),
    ("show", CAPTURE, "--stage", "ttgir"),
    ("show", CAPTURE, "--json"),
    ("passes", CAPTURE),
    ("diff", CAPTURE, OTHER, "--stat"),
    ("source", CAPTURE),
    ("layout", CAPTURE),
    ("layout", _COMPUTED, "--shape", "1024"),
    ("draw", "dataflow", CAPTURE, "--stage", "ttgir", "-o", "graph.gv"),
    ("report", CAPTURE, "-o", "report.html"),
    ("import", "dump.log", "-o", "imported.irscope"),
)
RECORDS: tuple[tuple[str, ...], ...] = (
    ("dump", _SCRIPT),
    ("dump", *_KERNEL, "--constexpr", "BLOCK=1024"),
    ("dump", CAPTURE, "--target", "cuda:90"),
    ("passes", _SCRIPT),
    ("diff", CAPTURE, "--disable-pass", "coalesce"),
    ("source", _SCRIPT),
    ("layout", _COMPILERS, "--shape", "64x64"),
    ("draw", "dataflow", _SCRIPT, "--stage", "ttgir"),
    ("report", _SCRIPT, "-o", "script.html"),
    ("ablate", CAPTURE),
    ("ablate", CAPTURE, "--stage", "ttgir", "--check", "registers=100"),
    ("bench", _SCRIPT),
)
EXECUTES: tuple[tuple[str, ...], ...] = (
    ("layout", CAPTURE, "--costs"),
    ("why", CAPTURE),
    ("time", CAPTURE),
    ("verify", CAPTURE),
    ("run", _SCRIPT),
    ("draw", "roofline", CAPTURE, "-o", "roofline.svg"),
)
"""Those that execute IR, on NumPy, and say what to install where there is none."""
REMEDY = "[triton]"
_COMMANDS = """
import contextlib, io, json, sys, traceback
from irscope.__main__ import run
done = []
for words in json.loads(sys.argv[1]):
    out, told = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        try:
            code = run(words)
        except BaseException:
            traceback.print_exc()
            code = 1
    done.append((code, told.buffer.getvalue().decode()))
json.dump(done, sys.stdout)
"""
_IMPORTS = """
import irscope
from irscope.errors import MissingTool
def fails(call):
    try:
        call()
    except MissingTool as error:
        assert "[triton]" in str(error), error
        return True
    return False
assert fails(lambda: irscope.record("kernel.ttir"))
assert fails(lambda: irscope.capture().__enter__())
print(irscope.load(%r).ttgir[:1])
"""


def problems(
    python: str, environment: Mapping[str, str], commands: tuple[tuple[str, ...], ...], remedy: str = REMEDY
) -> list[str]:
    """What is wrong with each command, run by an interpreter that cannot record; empty if nothing is.

    `remedy`: what the last line of a command that records must hold.
    """
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "dump.log").write_bytes(lzma.decompress(_DUMP.read_bytes()))
        env = {**environment, "IRSCOPE_HOME": str(Path(folder, "home"))}
        done = _in_a_process_each(python, commands[:1], folder, env)
        # The others in one: starting it takes longer than most commands.
        done += _in_one_process(python, commands[1:], folder, env)
    for command, (code, told) in zip(commands, done, strict=True):
        said = told.splitlines()
        reads = remedy == REMEDY and command in READS
        if "Traceback" in told or code != (0 if reads else 1):
            found.append(f"irscope {' '.join(command)}: exit {code}: {told}")
        elif not reads and (len([line for line in said if remedy in line]) != 1 or remedy not in said[-1]):
            found.append(f"irscope {' '.join(command)}: its last line does not say {remedy}: {told}")
    return found


def _in_a_process_each(
    python: str, commands: tuple[tuple[str, ...], ...], folder: str, env: Mapping[str, str]
) -> list[tuple[int, str]]:
    """The (exit code, standard error) of each command."""
    done = [
        subprocess.run(
            [python, "-m", "irscope", *command], capture_output=True, text=True, cwd=folder, env=env, check=False
        )
        for command in commands
    ]
    return [(one.returncode, one.stderr) for one in done]


def _in_one_process(
    python: str, commands: tuple[tuple[str, ...], ...], folder: str, env: Mapping[str, str]
) -> list[tuple[int, str]]:
    """The (exit code, standard error) of each command."""
    words = [python, "-c", _COMMANDS, json.dumps(commands)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=env, check=True)
    return [(code, told) for code, told in json.loads(done.stdout)]


def api_problem(python: str, environment: Mapping[str, str]) -> str:
    """What is wrong with the Python API there, or an empty string."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.ttir").write_text("module {}\n")
        code = _IMPORTS % CAPTURE
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, cwd=folder, env=dict(environment), check=False
        )
    return done.stderr


def main() -> None:
    """Try the interpreter that is named."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    names = ("triton", "torch", "numpy")
    look = f"import importlib.util as u, irscope; print(*map(u.find_spec, {names}), irscope.__file__)"
    seen = subprocess.run(
        [sys.argv[1], "-c", look], capture_output=True, text=True, cwd="/", env=environment, check=True
    ).stdout
    if not seen.startswith("None None None ") or str(ROOT / "irscope") in seen:
        sys.exit(f"{sys.argv[1]} has Triton, torch, NumPy or this checkout: {seen}")
    found = [*problems(sys.argv[1], environment, READS), *problems(sys.argv[1], environment, RECORDS)]
    found += problems(sys.argv[1], environment, EXECUTES, "[machine]")
    found += filter(None, [api_problem(sys.argv[1], environment)])
    print("\n".join(found) or f"{len(READS)} commands read, {len(RECORDS) + len(EXECUTES)} say what to install")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()

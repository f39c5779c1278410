"""Viewing needs neither Triton nor torch nor POSIX, and what needs Triton says so in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.viewing import READS, RECORDS, ROOT, api_problem, problems

# Python imports a `sitecustomize` of the path as it starts, in every process that a command starts too.
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""
NO_TRITON = BLOCK.format(blocked=("triton", "torch"))
# Its Python lacks these.
ON_MACOS = NO_TRITON + "import os\ndel os.sched_getaffinity, os.waitid\n"
# As on Windows, as far as a module of ours could tell: the standard library and numpy have chosen before.
NO_POSIX = BLOCK.format(
    blocked=("triton", "torch", "fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline")
) + (
    """
import os, signal, socket, subprocess, tempfile, threading, multiprocessing, random, platform, numpy
for module, names in (
    (os, "fork forkpty killpg setsid setpgid getuid geteuid getgid getpgid waitid sched_getaffinity mkfifo chown uname "
         "register_at_fork WNOHANG P_PID posix_spawn wait openpty"),
    (signal, "SIGHUP SIGKILL SIGALRM SIGPIPE SIGCHLD SIGUSR1 SIGWINCH alarm setitimer pthread_sigmask"),
    (socket, "AF_UNIX recv_fds send_fds"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
)


def environment(folder: Path, sitecustomize: str) -> dict[str, str]:
    (folder / "sitecustomize.py").write_text(sitecustomize)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


@pytest.mark.slow
@pytest.mark.parametrize(
    "records",
    [pytest.param(RECORDS[::2], id="some"), pytest.param(RECORDS[1::2], id="others", marks=pytest.mark.exhaustive)],
)
def test_without_triton_reading_works_and_recording_says_what_to_install(
    tmp_path: Path, records: tuple[tuple[str, ...], ...]
) -> None:
    """Of a script, a capture and a layout; `make exhaustive` tries the other commands."""
    assert problems(sys.executable, environment(tmp_path, ON_MACOS), (*records, *READS[4:7])) == []


@pytest.mark.slow
def test_reading_needs_nothing_of_posix(tmp_path: Path) -> None:
    # Graphviz is found on the PATH, and Python's own subprocess cannot start it without what is taken away here.
    assert problems(sys.executable, environment(tmp_path, NO_POSIX) | {"PATH": ""}, READS) == []


def test_the_python_api_without_triton(tmp_path: Path) -> None:
    assert api_problem(sys.executable, environment(tmp_path, NO_TRITON)) == ""


def test_every_viewing_module_imports_without_posix(tmp_path: Path) -> None:
    paths = (path.relative_to(ROOT).with_suffix("") for path in sorted((ROOT / "irscope").rglob("*.py")))
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths if path.name != "__main__"]
    # Of the server's package, on this system, another module needs POSIX.
    viewing = [name for name in names if not name.startswith(("irscope.record", "irscope.cli.mcp.server"))]
    assert len(viewing) > 100
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    env = environment(tmp_path, NO_POSIX)
    answer = subprocess.run(
        [sys.executable, "-c", code, *viewing], capture_output=True, text=True, env=env, check=False
    )
    assert answer.returncode == 0, answer.stderr


@pytest.mark.slow
def test_without_posix_recording_says_that_it_needs_linux(tmp_path: Path) -> None:
    # Of a layout that is given as text it is asked in another way, and says that Triton is missing.
    others = tuple(command for command in RECORDS if command[0] in ("dump", "passes", "ablate"))
    assert problems(sys.executable, environment(tmp_path, NO_POSIX), others, "recording needs Linux") == []

"""Runs the commands that read a capture, in this process, and keeps what it prints."""

from __future__ import annotations

import contextlib
import io

from irscope.__main__ import run

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("show", "{file}"),
    ("show", "{file}", "--json"),
    ("show", "{file}", "--stage", "all"),
    ("show", "{file}", "--stage", "ttgir,sass,amdgcn", "--lines", "5-30"),
    ("show", "{file}", "-o", "{out}/folder/"),
    ("passes", "{file}"),
    ("passes", "{file}", "--json"),
    ("layout", "{file}"),
    ("layout", "{file}", "--costs"),
    ("layout", "{file}", "-l", "blocked", "-o", "{out}/x.svg"),
    ("source", "{file}"),
    ("source", "{file}", "--json"),
    ("draw", "dataflow", "{file}", "--stage", "ttgir", "--json"),
    ("draw", "dataflow", "{file}", "--stage", "ttgir", "-o", "{out}/x.gv"),
    ("draw", "control-flow", "{file}", "--stage", "ptx", "-o", "{out}/y.gv"),
    ("diff", "{file}", "{other}", "-s", "all"),
    ("diff", "{other}", "{file}", "-s", "all", "--json"),
    ("diff", "{file}", "{other}", "-s", "all", "-o", "{out}/x.html"),
    ("report", "{file}", "{other}", "-o", "{out}/report.html"),
    ("draw", "poster", "{file}", "-o", "{out}/poster.svg"),
)  # fmt: skip

LONGEST_S = 5.0
LARGEST_BYTES = 1 << 30


def run_quietly(command: tuple[str, ...]) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command run in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(command))
    return code, out.getvalue(), err.getvalue()

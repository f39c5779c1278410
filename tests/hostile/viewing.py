"""Runs the commands that read a capture, in this process, and tells what goes wrong."""

from __future__ import annotations

import contextlib
import io
import resource
import time
from dataclasses import dataclass
from pathlib import Path

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
    ("graph", "{file}", "--stage", "ttgir", "--json"),
    ("graph", "{file}", "--stage", "ttgir", "-o", "{out}/x.gv"),
    ("graph", "{file}", "--stage", "ptx", "-o", "{out}/y.gv"),
    ("diff", "{file}", "{other}", "-s", "all"),
    ("diff", "{other}", "{file}", "-s", "all", "--json"),
    ("diff", "{file}", "{other}", "-s", "all", "-o", "{out}/x.html"),
    ("report", "{file}", "{other}", "-o", "{out}/report.html"),
)  # fmt: skip

LONGEST_S = 5.0
LARGEST_BYTES = 1 << 30


@dataclass(frozen=True)
class Fault:
    """A command that did what it may not."""

    command: tuple[str, ...]
    what: str


def run_quietly(command: tuple[str, ...]) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command run in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(command))
    return code, out.getvalue(), err.getvalue()


def faults_of(file: Path, other: Path, out: Path, *, timed: bool = False) -> list[Fault]:
    """What goes wrong where each command that views reads a file: an exception that is not irscope's own, a long time.

    `timed`: whether to count a command of more than `LONGEST_S` seconds, or a peak above `LARGEST_BYTES`; not where
    others use the machine.
    """
    found: list[Fault] = []
    peak_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    for words in COMMANDS:
        command = tuple(word.format(file=file, other=other, out=out) for word in words)
        began = time.process_time()
        try:
            code, _, told = run_quietly(command)
        except BaseException as error:
            found.append(Fault(words, f"{type(error).__name__}: {error}"))
            continue
        if "internal error" in told or code not in (0, 1, 2):
            found.append(Fault(words, f"exit {code}: {told[-300:]}"))
        if timed and (seconds := time.process_time() - began) > LONGEST_S:
            found.append(Fault(words, f"{seconds:.1f} s"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if timed and peak > max(LARGEST_BYTES, peak_before):
            found.append(Fault(words, f"{peak >> 20} MiB"))
            break
    return found

"""Kill a recording at random moments and look at what is left: `python kills.py COUNT [SEED]`.

Prints a line for each kill that left something wrong, and figures at the end; exits with 1 where there was one. A
launch counts as complete when it returned, as the script itself wrote down; where the parent is killed, `BEFORE_S`
earlier.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from irscope.record.process import own_folder
from irscope.store.file import load

SCRIPT = Path(__file__).parent / "scripts" / "tells_each_launch.py"
ROOT = Path(__file__).parents[2]
WAYS = ("parent", "child", "both", "SIGTERM", "SIGINT")
LAUNCHES = 6
BEFORE_S = 0.5
GONE_S = 20.0


@dataclass(frozen=True)
class Kill:
    """One kill: how, after how many launches, and how long after the last of them."""

    way: str
    launches: int
    delay_s: float


@dataclass(frozen=True)
class Left:
    """What a kill left behind."""

    problems: tuple[str, ...]
    complete: int
    stored: int
    interrupted: int
    too_late: int
    """Launches that returned less than `BEFORE_S` before the parent was killed, and are not stored."""


def kills(count: int, seed: int) -> list[Kill]:
    """The ways in turn, at random moments: as many launches never come twice among `LAUNCHES` kills."""
    chance = random.Random(seed)
    moments = [launches for _ in range(0, count, LAUNCHES) for launches in chance.sample(range(LAUNCHES), LAUNCHES)]
    return [
        Kill(WAYS[number % len(WAYS)], launches, chance.uniform(0, 1.0 if launches == 0 else 0.15))
        for number, launches in enumerate(moments[:count])
    ]


def what_is_left(kill: Kill, folder: Path) -> Left:
    """Record, kill, and look."""
    home, temporary, told = folder / "home", folder / "temporary", folder / "told"
    temporary.mkdir()
    environment = os.environ | {
        "IRSCOPE_HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(folder)
    }  # fmt: skip
    # With more, a launch returns before its compile is complete.
    command = [sys.executable, "-m", "irscope", "dump", str(SCRIPT), "--virtual", "-j", "1", "--", str(told)]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # Where none is to have returned yet, from the moment that there is a child.
    while process.poll() is None and (not children_of(process.pid) or ended_by(told) < kill.launches):
        time.sleep(0.005)
    time.sleep(kill.delay_s)
    moment = time.time()
    children = children_of(process.pid)
    began_before_the_end = process.poll() is None
    for pid in [process.pid, *children] if kill.way == "both" else children if kill.way == "child" else [process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, getattr(signal, kill.way, signal.SIGKILL))
    _, errors = process.communicate(timeout=60)
    gone = time.monotonic() + GONE_S
    while (left := processes_with(str(home))) and time.monotonic() < gone:
        time.sleep(0.05)
    problems = [f"process left: {name}" for name in left]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if kill.way in ("parent", "both"):
        sweep(temporary)
    problems += [f"left in the temporary folder: {path.name}" for path in temporary.iterdir()]
    if "internal error" in errors or "Traceback" in errors:
        problems.append(errors)
    if began_before_the_end and kill.way in ("SIGTERM", "SIGINT"):
        code = 143 if kill.way == "SIGTERM" else 130
        told_so = process.returncode == code and "irscope: interrupted" in errors
        # Its work may have been done, and its end begun.
        if not told_so and not (process.returncode in (0, -getattr(signal, kill.way)) and ended_by(told) == LAUNCHES):
            problems.append(f"exit code {process.returncode}: {errors!r}")
    captures = [load(path) for path in (home / "captures").glob("*.irscope")]
    stored = {str(dict(capture.launch.constants)["BLOCK"]) for capture in captures if capture.status == "ok"}
    ended = {block: float(at) for word, block, at in told_by(told) if word == "end"}
    lost = {block for block in ended if block not in stored}
    late = {block for block in lost if kill.way in ("parent", "both") and ended[block] > moment - BEFORE_S}
    problems += [f"lost: BLOCK={block}" for block in sorted(lost - late)]
    interrupted = [one for one in captures if one.failure is not None]
    problems += [f"failed: {one.failure}" for one in interrupted if one.failure.kind not in ("interrupt", "abort")]
    return Left(tuple(problems), len(ended), len(stored), len(interrupted), len(late))


def ended_by(told: Path) -> int:
    """How many launches returned so far."""
    return sum(word == "end" for word, _, _ in told_by(told))


def told_by(told: Path) -> list[list[str]]:
    """(begin or end, block, time) of each launch so far."""
    rows = [line.split() for line in told.read_text().splitlines()] if told.exists() else []
    return [row for row in rows if len(row) == 3]


def children_of(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def processes_with(text: str) -> dict[int, str]:
    """The processes whose environment holds a text, by number; what ended already has none."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def sweep(temporary: Path) -> None:
    """What the next recording does first."""
    before, tempfile.tempdir = tempfile.tempdir, str(temporary)
    try:
        own_folder.sweep()
    finally:
        tempfile.tempdir = before


def main() -> int:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 14
    totals: collections.Counter[str] = collections.Counter()
    for number, kill in enumerate(kills(count, seed)):
        with tempfile.TemporaryDirectory() as folder:
            left = what_is_left(kill, Path(folder))
        totals.update(
            kills=1, complete=left.complete, stored=left.stored, interrupted=left.interrupted,
            too_late=left.too_late, wrong=bool(left.problems),
        )  # fmt: skip
        if left.problems:
            print(f"{number}: {kill}: {'; '.join(left.problems)}", flush=True)
        if number % 10 == 9:
            print(dict(totals), flush=True)
    print(dict(totals))
    return bool(totals["wrong"])


if __name__ == "__main__":
    sys.exit(main())

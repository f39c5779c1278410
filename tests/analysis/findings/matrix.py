"""Judges planted kernels on their targets, in several processes that each keep a warm compiler."""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from irscope.errors import IrscopeError
from irscope.record.variants.pool import VariantPool
from tests.analysis.findings.cases import Case, Run
from tests.analysis.findings.every import EVERY
from tests.analysis.findings.verdict import Verdict, judge

__all__ = ["Row", "Task", "read_rows", "rows_of", "table", "tasks_of", "warm_compiler"]

Task = tuple[str, tuple[str, ...]]
"""A target, and the names of the cases of one kernel, which share their compiles."""


@dataclass(frozen=True)
class Row:
    """The verdict on one case on one target of one Triton."""

    triton: str
    target: str
    code: str
    name: str
    verdict: Verdict

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is known by in a file of rows."""
        return self.triton, self.target, self.name

    def as_line(self) -> str:
        """As a line of JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def of_line(line: str) -> Row:
        """Out of a line of JSON."""
        plain: dict[str, Any] = json.loads(line)
        said: dict[str, Any] = plain.pop("verdict")
        said |= {name: tuple(said[name]) for name in ("why", "others")}
        return Row(**plain, verdict=Verdict(**said))


def tasks_of(triton: str, known: Iterable[Row], words: Sequence[str], targets: Sequence[str]) -> list[Task]:
    """The tasks whose rows are not known yet: of the cases with one of some words in their names, on some targets."""
    done = {row.key for row in known}
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for name, case in EVERY.items():
        if words and not any(word in name for word in words):
            continue
        for target in case.targets:
            if (not targets or target in targets) and (triton, target, name) not in done:
                grouped.setdefault((target, str(case.planted.file), case.planted.kernel), []).append(name)
    # The longest ones, of dots and of spills, begin first.
    ordered = sorted(grouped.items(), key=lambda row: max(EVERY[name].code for name in row[1]), reverse=True)
    return [(target, tuple(names)) for (target, _, _), names in ordered]


def rows_of(triton: str, tasks: Sequence[Task], jobs: int) -> Iterator[Row]:
    """The rows of some tasks, as they come."""
    # Spawned: each of them starts a warm compiler of its own, and compiles nothing itself.
    with multiprocessing.get_context("spawn").Pool(jobs, _begin) as pool:
        for target, verdicts in pool.imap_unordered(_judged, tasks):
            for name, verdict in verdicts:
                yield Row(triton, target, EVERY[name].code, name, verdict)


@contextmanager
def warm_compiler() -> Iterator[Run]:
    """What compiles every request in forks of one process, those of suggestions too; nothing is stored."""
    with ExitStack() as held:
        pool = held.enter_context(VariantPool(jobs=1))
        held.enter_context(patch("irscope.record.variants.pool.VariantPool", lambda **_: nullcontext(pool)))
        home = held.enter_context(tempfile.TemporaryDirectory(prefix="irscope-matrix-"))
        held.enter_context(patch.dict(os.environ, {"IRSCOPE_HOME": home}))
        yield pool.compile_one


_process = SimpleNamespace()
"""What this process holds."""


def _begin() -> None:
    _process.held = ExitStack()
    _process.run = _process.held.enter_context(warm_compiler())


def _judged(task: Task) -> tuple[str, list[tuple[str, Verdict]]]:
    target, names = task
    return target, [(name, _verdict(EVERY[name], target)) for name in names]


def _verdict(case: Case, target: str) -> Verdict:
    try:
        return judge(case, target, _process.run)
    except IrscopeError as error:
        return Verdict("failed", (str(error),))


def table(rows: Sequence[Row]) -> str:
    """How many are right, for each kind, version and target; then those that are not."""
    columns = sorted({(row.triton, row.target) for row in rows})
    counted: dict[tuple[str, str, str], list[bool]] = {}
    for row in rows:
        counted.setdefault((row.code, row.triton, row.target), []).append(row.verdict.status == "right")

    def cell(code: str, column: tuple[str, str]) -> str:
        found = counted.get((code, *column), [])
        return f"{sum(found)}/{len(found)}" if found else ""

    codes = sorted({row.code for row in rows})
    lines = [["kind", *(f"{triton} {target}" for triton, target in columns)]]
    lines += [[code, *(cell(code, column) for column in columns)] for code in codes]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    for row in sorted(rows, key=lambda one: one.key):
        if row.verdict.status != "right":
            shown.append(f"{row.verdict.status} {' '.join(row.key)} {'; '.join(row.verdict.why)}".rstrip())
    right = sum(row.verdict.status == "right" for row in rows)
    held = sum(row.verdict.held for row in rows)
    names = len({row.name for row in rows})
    shown.append(f"{right} of {len(rows)} right, {names} planted kernels; {held} figures of suggestions held")
    return "\n".join(shown)


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """The rows of some files, the last of each key."""
    lines = [line for path in paths if path.exists() for line in path.read_text().splitlines() if line.strip()]
    return list({row.key: row for row in map(Row.of_line, lines)}.values())

"""The duration of each pass of one pass manager, from the report that MLIR prints.

With MLIR_ENABLE_TIMING, a pass manager of Triton prints its report on standard error when it is freed. Until then,
standard error is redirected to a file; other output is printed again afterwards.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable

from irscope.record.triton.patches import environment_variable

#     0.0124 (  7.4%)  CSE
#     0.0000 (  0.0%)    (A) DominanceInfo
#     0.0052 (  3.1%)  'any' Pipeline
_ROW = re.compile(r"^ +(-?\d+\.\d+) \( *-?[\d.]+%\)  ( *)(.*)$")
# tritongpu-pipeline{num-stages=3}  |  any(reconcile-unrealized-casts)
_OPTIONS = re.compile(r"\{[^{}]*\}")
_PASS = re.compile(r"[^(),\s]+(?![^(),]*\()")
_RULE = "===" + "-" * 73 + "==="


def timed(run: Callable[[], None]) -> tuple[int, ...]:
    """Call `run`, which makes, runs and frees a pass manager; returns the microseconds of its passes, in order."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            with environment_variable("MLIR_ENABLE_TIMING", "1"):
                run()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            durations, rest = read_report(file.read().decode("utf-8", "replace"))
            if rest.strip():
                sys.stderr.write(rest)
                sys.stderr.flush()
    return durations


def read_report(text: str) -> tuple[tuple[int, ...], str]:
    """The durations in microseconds of each pass in MLIR's report of timing, and the text around it."""
    head, rule, report = text.partition(_RULE)
    if not rule or "Execution time report" not in report:
        return (), text
    lines = report.splitlines(keepends=True)
    rows: list[tuple[int, str, int]] = []
    last = 0
    for number, line in enumerate(lines):
        if (row := _ROW.match(line)) is not None:
            seconds, indent, name = row.groups()
            rows.append((len(indent), name.rstrip(), max(0, round(float(seconds) * 1e6))))
            last = number
    passes: list[int] = []
    inner_of: int | None = None
    # The last two are `Rest` and `Total`; a pipeline's time is that of the passes in it; (A) is an analysis.
    for indent, name, microseconds in rows[:-2]:
        if inner_of is not None and indent > inner_of:
            continue
        # The passes that a pass runs itself, on any operation, have rows beside its own.
        inner_of = indent if name == "'any' Pipeline" else None
        if not name.endswith(" Pipeline") and not name.startswith("(A) "):
            passes.append(microseconds)
    return tuple(passes), head + "".join(lines[last + 1 :])


def pass_count(pipeline: str) -> int:
    """The number of passes in a pipeline as MLIR prints it: 2 for `any(cse,llvm.func(canonicalize{x=1}))`."""
    while (bare := _OPTIONS.sub("", pipeline)) != pipeline:
        pipeline = bare
    return len(_PASS.findall(pipeline))


def split_durations(durations: tuple[int, ...], pipelines: list[str]) -> list[int | None]:
    """The duration of each of several pipelines, which ran one after another; None if that is not known."""
    counts = [pass_count(pipeline) for pipeline in pipelines]
    if sum(counts) != len(durations):
        return [None] * len(pipelines)
    left = iter(durations)
    return [sum(next(left) for _ in range(count)) for count in counts]

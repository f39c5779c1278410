"""Runs every planted kernel on every target of the installed Triton: `python -m tests.analysis.findings --jobs 16`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from irscope.record.triton.versions import triton_version
from tests.analysis.findings.matrix import read_rows, rows_of, table, tasks_of


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.analysis.findings", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases with one of these words in their names")
    parser.add_argument("--target", action="append", default=[], help="only this target; repeatable")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument("--json", type=Path, help="a file of rows: those in it are not judged again")
    parser.add_argument("--table", type=Path, nargs="+", metavar="JSON", help="print the table of such files alone")
    asked = parser.parse_args()
    if asked.table:
        rows = read_rows(asked.table)
    else:
        triton = triton_version()
        rows = read_rows([asked.json] if asked.json else [])
        tasks = tasks_of(triton, rows, asked.words, asked.target)
        began = time.monotonic()
        with open(asked.json or "/dev/null", "a") as kept:
            for row in rows_of(triton, tasks, asked.jobs) if tasks else ():
                rows.append(row)
                print(row.as_line(), file=kept, flush=True)
                print(row.verdict.status, *row.key, *row.verdict.why, file=sys.stderr, flush=True)
        print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    print(table(rows))
    return int(any(row.verdict.status != "right" for row in rows))


if __name__ == "__main__":
    sys.exit(_main())

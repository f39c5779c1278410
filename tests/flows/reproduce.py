"""Every kernel of the examples through its file: `python -m tests.flows.reproduce [TARGET…] [--all] [-k NAME]`.

Records each case in a fork of its own, runs the file of the capture in another, and compares every artifact by its
bytes: as it is, with passes off, and where the compile fails. Prints a line a case, and ends with 1 where one differs.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from irscope.errors import IrscopeError
from irscope.model.capture import SourceFile
from irscope.plan import PassPlan
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.process.assembly import Assembly
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.variants.reproduced import compared
from irscope.render.reproduction.program import render_reproduction
from irscope.store.file import load, save
from tests.examples.compile_cases import CASES, EXAMPLES, ONE_CASE_A_KERNEL, Case, compile_case

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942")
PLANS = {
    "": "",
    "off": "-ttgir:remove_layout_conversions -ttir:cse -llir:llvm-opt",
    "optimisers": "-ptxas-opt -llvm-opt",
    "fails": "-ttgir:convert_to_ttgpuir",
}

MOST_OTHER_CUBINS = 12


def in_fork(work: Callable[[], object], log: Path) -> int:
    """Do something in a fork whose output goes to a file; returns the exit code, or minus the signal."""
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        code = 1
        try:
            with log.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            work()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def record(case: Case, target: str, plan: str, folder: Path) -> None:
    """Record a case, its failure included, into `folder/it.irscope`."""
    log = folder / "record.log"
    request = RecordRequest(mode="script", plan=PassPlan.parse(plan), log_path=str(log), layouts=False)
    assembly = Assembly(request)
    with triton_api.private_cache(folder / "cache"), watch_compiles(Watch(assembly.feed, request)):
        try:
            compile_case(case, target)
        except Exception as error:
            print(type(error).__name__)
    (capture,) = assembly.captures()
    path = EXAMPLES / f"{case.script}.py"
    save(replace(capture, sources=(SourceFile(str(path), path.read_text("utf-8")),)), folder / "it.irscope")


def run_file(path: Path, folder: Path) -> None:
    """Run a file as Python does, with Triton imported already."""
    sys.argv = [str(path), "--keep", str(folder), "--no-launch"]
    runpy.run_path(str(path), run_name="__main__")


def check(case: Case, target: str, plan: str) -> str:
    """What is the same or differs of a case, as a line."""
    with tempfile.TemporaryDirectory() as name:
        folder, kept = Path(name), Path(name, "kept")
        if code := in_fork(lambda: record(case, target, plan, folder), folder / "record.log"):
            return f"not recorded, {code}: {(folder / 'record.log').read_text('utf-8', 'replace')[-300:]}"
        capture = load(folder / "it.irscope")
        try:
            made = render_reproduction(capture)
        except IrscopeError as error:
            return f"no file: {error}"
        path = folder / "reproduction.py"
        path.write_text(made.text, "utf-8")
        log = folder / "run.log"
        others = -1
        while True:
            others += 1
            shutil.rmtree(kept, ignore_errors=True)
            code = in_fork(lambda: run_file(path, kept), log)
            found = compared(kept, capture, code, log.read_text("utf-8", "replace"))
            # ptxas does not always make the same bytes of one PTX.
            only_cubin = found.different == ("cubin",) and "ptx" in found.identical
            if not only_cubin or others == MOST_OTHER_CUBINS:
                break
    failed = f"; {capture.failure.verdict}" if capture.failure is not None else ""
    way = "" if made.way == "python" else f" (from {made.way})"
    if others:
        way += f"; ptxas made other bytes of the same PTX, {others} times"
    if found.is_same:
        return f"identical: {' '.join(found.identical)}{failed}{way}"
    return f"DIFFERENT: {found}{failed}{way}"


def chosen(every: bool, word: str) -> Iterator[Case]:
    """The cases: the smallest of each kernel, or every one; of those whose name has a word."""
    for case in CASES:
        if (every or case.name in ONE_CASE_A_KERNEL.values()) and word in case.name:
            yield case


def main() -> None:
    """Check the cases of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--plans", default=",".join(PLANS), help="which of '', off, optimisers, fails")
    parser.add_argument("-k", default="")
    wanted = parser.parse_args()
    triton_api.require_triton()
    triton_api.silence_known_noise()
    rows: list[str] = []
    for target in wanted.targets:
        for case in chosen(wanted.all, wanted.k):
            for plan in wanted.plans.split(","):
                rows.append(check(case, target, PLANS[plan]))
                print(f"{target} {case.name}{f' [{plan}]' if plan else ''}: {rows[-1]}", flush=True)
    same = sum(row.startswith("identical") for row in rows)
    print(f"{same} of {len(rows)} identical")
    sys.exit(same != len(rows))


if __name__ == "__main__":
    main()

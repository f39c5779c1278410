"""The times of LLVM's passes as irscope reads them, against LLVM's own report, `-time-passes`, of the same compile.

`python -m benchmarks.llvm_times [RUNS]` prints both by pass, in milliseconds by the clock, those of at least one, and
their sums: of each row the shortest of so many compiles, each in a process of its own. On a busy machine the
scheduler's pauses fall between the two clocks of a pass, into the one or the other. Ends with 1 where a row differs by
more than 2 % and half a millisecond; LLVM's report has tenths of them.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import triton  # noqa: TID251 - it compiles in this process

from irscope.ir.logs.dump import pass_identifier
from irscope.ir.logs.time_trace import MARK, LlvmTrace, llvm_spans
from irscope.model.evidence import TimeSpan
from irscope.plan import PassPlan
from irscope.record.triton import api as triton_api
from irscope.record.triton.llvm import LlvmPasses
from irscope.record.triton.reasons import function_addresses
from tests.record.kernels.no_torch import tile_product

_PARSE, _REPORT = "LLVMParseCommandLineOptions", "_ZN4llvm21reportAndResetTimingsEPNS_11raw_ostreamE"
#    0.0012 ( 10.5%)   0.0001 (  3.0%)   0.0013 (  9.8%)   0.0013 (  9.7%)  InstCombinePass
_ALL = "all"
_NUMBER = re.compile(r" #\d+$")
_ROW = re.compile(r"^\s+(?:[\d.]+ \(\s*[\d.]+%\)\s+){0,3}(?P<seconds>[\d.]+) \(\s*[\d.]+%\)\s+(?P<name>\S.*)$")


class Named(LlvmPasses):
    """LLVM's passes of a compile, with the names that the report has for those of the middle end."""

    def __init__(self) -> None:
        super().__init__("cuda", PassPlan(), is_timed=True, prints=False)
        self.library = self._libraries[0]
        self.classes: dict[str, str] = {}
        """`licm` of `LICMPass`."""

    def read(self, trace: LlvmTrace) -> list[TimeSpan]:
        """The spans of a trace, of which the names are noted."""
        spans = llvm_spans([trace])
        names = {(span.start_ns, span.duration_ns): span.name.partition("#")[0] for span in spans}
        events = [row for row in json.loads(trace.data)["traceEvents"] if row["ph"] == "X"]
        begun_ns = trace.begun_ns - 1000 * max(row["ts"] for row in events if row["name"] == MARK)
        for row in events:
            place = begun_ns + 1000 * row["ts"], 1000 * row["dur"]
            if place in names and not row["name"].startswith(("Run", "Opt", "Pass", "Total")):
                self.classes.setdefault(row["name"], names[place])
        return spans

    def name_of(self, text: str) -> str:
        """The name here of a row of the report: `licm` of `LICMPass`, `nvptx-isel` of the selector's description."""
        text = _NUMBER.sub("", text)
        return self.classes.get(text) or self.library.argument_of(text) or pass_identifier(text)


def compiled(passes: Named) -> Counter[str]:
    """Compile a kernel with LLVM's stages watched; nanoseconds by pass."""
    found = Counter[str]()

    def watch(_: Any = None, stages: Any = None, *__: Any, **___: Any) -> tuple[str, str] | None:
        if stages is None:
            return "times", "times"
        for name, run in list(stages.items()):

            def watched(source: Any, metadata: Any, name: str = name, run: Any = run) -> Any:
                if name not in ("llir", "ptx"):
                    return run(source, metadata)
                with passes.stage(name):
                    result = run(source, metadata)
                spans = passes.read(passes.traces[-1])
                for at, span in enumerate(spans):
                    # LLVM times a pass without the analyses that it asks for.
                    inner = takewhile(lambda one, span=span: one.depth > span.depth, spans[at + 1 :])
                    nested = sum(one.duration_ns for one in inner if one.depth == span.depth + 1)
                    found[span.name.partition("#")[0]] += int(span.duration_ns - nested)
                return result

            stages[name] = watched
        return None

    triton.knobs.runtime.add_stages_inspection_hook = watch
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "size": "i32", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(tile_product, types, {(4,): 64})
    triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32))
    return found


def report_of(work: Callable[[], None]) -> str:
    """What LLVM prints of its passes' times in a block that compiles: on standard error, where it prints reports."""
    with tempfile.TemporaryFile() as errors:
        kept = os.dup(2)
        os.dup2(errors.fileno(), 2)
        try:
            work()
        finally:
            os.dup2(kept, 2)
        errors.seek(0)
        return errors.read().decode("utf-8", "replace")


def measured() -> dict[str, tuple[int, int]]:
    """Nanoseconds of each pass of one compile in this process, here and in LLVM's report."""
    ours, theirs = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        passes = Named()
        path, exported = triton_api.compiler_library()
        addresses = function_addresses(path, (_PARSE, _REPORT), exported)

        def compile_with_both() -> None:
            words = [b"irscope", b"-time-passes"]
            parse = ctypes.PYFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p)
            parse(addresses[_PARSE])(len(words), (ctypes.c_char_p * len(words))(*words), None)
            ours.update(compiled(passes))
            ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(addresses[_REPORT])(None)

        report = report_of(compile_with_both)
    for row in filter(None, map(_ROW.match, report.splitlines())):
        text = row["name"].strip()
        # Of the many passes that take less than a tenth of a millisecond, the totals alone have the time.
        theirs[_ALL if text == "Total" else passes.name_of(text)] += int(float(row["seconds"]) * 1e9)
    ours[_ALL] = ours.total()
    return {name: (ours[name], theirs[name]) for name in ours.keys() | theirs.keys()}


def main() -> int:
    """Compile with both, in a process for each run, and print the shortest of each row."""
    if "--one" in sys.argv:
        print(json.dumps(measured()))
        return 0
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    command = [sys.executable, "-m", "benchmarks.llvm_times", "--one"]
    runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(count)]
    names = set[str]().union(*runs)
    rows = {name: [ns / 1e6 for ns in min((run.get(name, (0, 0)) for run in runs), key=sum)] for name in names}
    print("| pass | irscope | LLVM |\n|---|---|---|")
    for name, (ours, theirs) in sorted(rows.items(), key=lambda row: -max(row[1])):
        if max(ours, theirs) >= 1:
            print(f"| `{name}` | {ours:.2f} | {theirs:.2f} |")
    apart = [name for name, (ours, theirs) in rows.items() if abs(ours - theirs) > _limit(name, max(ours, theirs))]
    print(f"differ by more than 2 % and half a millisecond (the sums by 5 %): {', '.join(apart) or 'none'}")
    return int(bool(apart))


def _limit(name: str, duration_ms: float) -> float:
    return 0.05 * duration_ms if name == _ALL else max(0.5, 0.02 * duration_ms)


if __name__ == "__main__":
    sys.exit(main())

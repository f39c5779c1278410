"""The times of LLVM's passes as irscope reads them, against LLVM's own report, `-time-passes`, of the same compile.

Prints both by pass, in their own names, and their sums.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections import Counter
from itertools import takewhile
from typing import Any

import triton  # noqa: TID251 - it compiles in this process

from irscope.record.triton import api as triton_api
from irscope.record.triton.llvm import LlvmPasses
from irscope.record.triton.reasons import function_addresses
from tests.record.kernels.no_torch import tile_product

_PARSE, _REPORT = "LLVMParseCommandLineOptions", "_ZN4llvm21reportAndResetTimingsEPNS_11raw_ostreamE"
#    0.0012 ( 10.5%)   0.0001 (  3.0%)   0.0013 (  9.8%)   0.0013 (  9.7%)  InstCombinePass
_ROW = re.compile(r"^\s+(?:[\d.]+ \(\s*[\d.]+%\)\s+){0,3}(?P<seconds>[\d.]+) \(\s*[\d.]+%\)\s+(?P<name>\S.*)$")


def compiled(passes: LlvmPasses) -> Counter[str]:
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
                for at, span in enumerate(passes.spans):
                    # LLVM times a pass without the analyses that it asks for.
                    inner = takewhile(lambda one, span=span: one.depth > span.depth, passes.spans[at + 1 :])
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


def main() -> None:
    """Compile with both, and print."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        os.environ["TRITON_CACHE_DIR"] = folder
        kept = os.dup(2)
        os.dup2(errors.fileno(), 2)
        path, exported = triton_api.compiler_library()
        passes = LlvmPasses("cuda", lambda _: False, is_timed=True, prints=False, folder=folder)
        addresses = function_addresses(path, (_PARSE, _REPORT), exported)
        words = [b"irscope", b"-time-passes"]
        parse = ctypes.PYFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p)
        parse(addresses[_PARSE])(len(words), (ctypes.c_char_p * len(words))(*words), None)
        ours = compiled(passes)
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(addresses[_REPORT])(None)
        os.dup2(kept, 2)
        errors.seek(0)
        report = errors.read().decode("utf-8", "replace")
    theirs = Counter[str]()
    for row in filter(None, map(_ROW.match, report.splitlines())):
        theirs[row["name"].strip()] += int(float(row["seconds"]) * 1e9)
    if "--raw" in sys.argv:
        print(report[-20_000:])
    for name, duration_ns in ours.most_common(25):
        print(f"{name:<40} {duration_ns / 1e6:8.2f} ms")
    print(f"{'all of these':<40} {ours.total() / 1e6:8.2f} ms")
    print("LLVM's own report")
    theirs.pop("Total", None)
    print(f"{'all of these':<60} {theirs.total() / 1e6:8.2f} ms")
    for name, duration_ns in theirs.most_common(25):
        print(f"{name:<60} {duration_ns / 1e6:8.2f} ms")


if __name__ == "__main__":
    main()

"""The compiler's own log of its allocation of shared memory: `python -m tests.memory.compiler_log FILE TARGET …`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from irscope.memory.allocation import shared_text
from tests.memory.kernels import compiled
from tests.once import kept

# -- 3 8192 0 interval 188 189
_BUFFER = re.compile(r"^-- \d+ (\d+) (\d+) interval (\d+) (\d+)$", re.MULTILINE)
_NEXT = "== the next text\n"
_END = "Dump shared memory allocation size"
FOR_EVER = 2**64 - 1

CASES = [
    ("product", "cuda:90"),
    ("product", "hip:gfx950"),
    ("specialised", "cuda:100"),
    ("sums", "hip:gfx942"),
    ("gathered", "cuda:80"),
    ("calling", "cuda:90"),
    ("branching", "cuda:100"),
    ("branching", "cuda:120"),
]
"""The kernels, and what each is compiled for, whose allocation is compared with the log."""

Row = tuple[int, int, int, int]
"""Size, offset, first and last step of a buffer."""


def logged_buffers(kernel: str, target: str) -> list[list[Row]]:
    """The buffers of each function of one of CASES that has any, callees first, as the pass logs them on its text."""
    return kept("the log of the allocation", _logged)[kernel, target]


def _logged() -> dict[tuple[str, str], list[list[Row]]]:
    """Of all CASES: one process does them, which takes longer to import Triton than to run any."""
    environment = os.environ | {
        "TRITON_ENABLE_LLVM_DEBUG": "1",
        "TRITON_LLVM_DEBUG_ONLY": "allocation-shared-memory",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-m", "tests.memory.compiler_log"]
    with tempfile.TemporaryDirectory() as folder:
        for kernel, target in CASES:
            text = shared_text(compiled(kernel, target))
            assert text is not None
            file = Path(folder, f"{len(command)}.ttgir")
            file.write_text(text, "utf-8")
            command += [str(file), target]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    logs = done.stderr.split(_NEXT)[1:]
    return {case: _functions(log) for case, log in zip(CASES, logs, strict=True)}


def _functions(log: str) -> list[list[Row]]:
    functions = [part.split("Dump bufferRange")[-1] for part in log.split(_END)[:-1]]
    found = [sorted(_row(match) for match in _BUFFER.finditer(part)) for part in functions]
    return [rows for rows in found if rows]


def _row(match: re.Match[str]) -> Row:
    size, offset, start, end = (int(part) for part in match.groups())
    return size, offset, start, end


def _run(file: str, target: str) -> None:
    from triton._C.libtriton import amd, ir, nvidia

    context = ir.context()
    for load in (ir.load_dialects, nvidia.load_dialects, amd.load_dialects):
        load(context)
    module = ir.parse_mlir_module(file, context)
    module.context = context
    passes = ir.pass_manager(context)
    backend, _, arch = target.partition(":")
    if backend == "cuda":
        nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(passes, int(arch), 90)
    else:
        try:
            amd.passes.ttgpuir.add_allocate_shared_memory(passes, arch)
        except TypeError:
            # Before 3.8 it takes no architecture, and before that it was not AMD's own.
            amd.passes.ttgpuir.add_allocate_shared_memory(passes)
    passes.enable_debug()
    passes.run(module, "allocate")


if __name__ == "__main__":
    for file, target in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        print(_NEXT, end="", file=sys.stderr, flush=True)
        _run(file, target)

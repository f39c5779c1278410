"""What irscope's machine runs, how fast, and whether a GPU computes the same: `python -m benchmarks.machine COMMAND`.

`speed` times three launches on the CPU. `coverage CAPTURE...` runs every text of the captures in TTIR and TTGIR, before
and after each pass, with one program of their launches, and lists what is not run by name and count. `hardware` runs
some 60 kernels on the GPU of this machine, and compares what each launch leaves with what the CPU computes of it;
without a GPU it compares with the IR before any pass, which shows that the scripts are right. `hardware --ptx` compares
with what the CPU computes of the PTX of the same compile, all programs of each launch.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from math import prod
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from irscope.device.measurement import Agreement
from irscope.errors import IrscopeError, NotRun, UsageError, WrongProgram
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.agreement import agreement_of, moved_runs
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.captured import Inputs, captured_inputs, launched_grid, recorded_results, run_text
from irscope.machine.launch import RunLimits
from irscope.machine.values import Array
from irscope.model.capture import Capture
from irscope.record.gpu.on_machine import MachineRun, check_script_on_machine
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.store.file import load
from irscope.verify.lowering import clear_common_nans, left_by_ptx

ROOT = Path(__file__).parents[1]
SCRIPTS = (ROOT / "tests/machine/small_examples.py", ROOT / "tests/machine/more_kernels.py")

_SPEED = """
import sys
sys.path.insert(0, {examples!r})
import torch
import flash_attention, matmul, softmax
half = dict(device="cuda", dtype=torch.float16)
matmul.matmul_naive(torch.randn(1024, 1024, **half), torch.randn(1024, 1024, **half))
softmax.softmax(torch.randn(8192, 8192, device="cuda"))
flash_attention.attention(*torch.randn(3, 4, 8, 1024, 64, **half).unbind())
"""


def _recorded(text: str, **options: object) -> list[Capture]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernels.py")
        path.write_text(text)
        request = request_for(path, targets=("cuda:90",), disassemble=False, layouts=False, snapshots="none")
        return list(record_request(replace(request, **options)).captures)


def speed() -> None:
    """Time a matmul of 1024³, a softmax of 8192 × 8192 and attention of 4 × 8 × 1024 × 64, with one thread and two."""
    for capture in _recorded(_SPEED.format(examples=str(ROOT / "examples"))):
        for jobs in (1, 2):
            inputs = captured_inputs(capture)
            begun, burnt = time.perf_counter(), time.process_time()
            run_text(capture.text("ttgir"), capture.launch.grid or (1, 1, 1), inputs, limits=RunLimits(jobs=jobs))
            wall, cpu = time.perf_counter() - begun, time.process_time() - burnt
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{capture.name} -j {jobs}: {wall:.2f} s, {cpu:.2f} s of a processor; {most:.0f} MiB so far")


_LIMITS = RunLimits(elements=1 << 28)
"""Where the sizes of a launch are elements of tensors that are not recorded, loops may go on for ever."""


def _texts(capture: Capture) -> Iterator[str]:
    yield capture.begun_text
    for one in capture.passes():
        if one.text and one.stage in ("ttir", "ttgir"):
            yield one.text
    yield from (capture.text(stage) for stage in ("ttir", "ttgir") if stage in capture.stages)


def why_not_run(capture: Capture, text: str) -> str:
    """Why the text is not run; empty if it is."""
    grid = capture.launch.grid
    if grid is None or capture.launch.record is None:
        return "no launch was recorded"
    try:
        parse_mlir(text)
        # Locks are free, and loops whose counts nobody knows are not entered.
        zeros = {
            one.path: np.zeros(one.shape, np.int8)
            for one in capture.launch.record.arguments
            if one.kind == "tensor" and "int" in one.dtype and not one.data and one.least is None
        }
        run_text(text, grid, captured_inputs(capture, zeros), programs=[prod(grid) // 2], limits=_LIMITS)
    except (NotRun, UsageError) as error:
        # `ttg.local_load, line 31: …`: the same reason in every text.
        return re.sub(r", line \d+|\(\d+\)|0x[0-9a-f]+|\d{3,}", "", str(error))[:160]
    except WrongProgram as error:
        return f"wrong program: {re.sub('[0-9]+', 'N', str(error))[:120]}"
    return ""


def coverage(paths: list[Path]) -> None:
    """Count texts and captures that run, and what the others are not run for."""
    files = sorted(one for path in paths for one in ([path] if path.is_file() else path.rglob("*.irscope")))
    whole = texts = ran = 0
    reasons: Counter[str] = Counter()
    seen: set[str] = set()
    for file in files:
        try:
            capture = load(file)
        except IrscopeError as error:
            print(f"{file}: {error}")
            continue
        if capture.failure is not None or capture.id in seen or capture.launch.grid is None:
            continue
        seen.add(capture.id)
        found = {text: why_not_run(capture, text) for text in dict.fromkeys(_texts(capture))}
        texts += len(found)
        ran += sum(not why for why in found.values())
        whole += not any(found.values())
        wrong = sorted({why for why in found.values() if why})
        reasons.update(wrong)
        told = "; ".join(wrong) or "runs"
        print(f"  {whole}/{len(seen)} {capture.name} ({capture.target}): {len(found)} texts, {told}", flush=True)
    print(f"{whole} of {len(seen)} captures run in every text; {ran} of {texts} texts")
    for why, count in reasons.most_common():
        print(f"{count:6} {why}")


# ── against a GPU ─────────────────────────────────────────────────────────────────────────────────────────────────

_FLOATS = (
    "x + y", "x * y - 1", "x / y", "tl.exp(x)", "tl.log(tl.abs(x) + 1)", "tl.sqrt(tl.abs(x))", "tl.sin(x)",
    "tl.rsqrt(tl.abs(x) + 0.5)", "tl.sigmoid(x)", "tl.maximum(x, y)", "tl.where(x > y, x, -y)", "tl.floor(x * 8)",
    "tl.fma(x, y, x)", "tl.erf(x)", "tl.exp2(x)", "(x * 100).to(tl.int32).to(tl.float32)",
)  # fmt: skip
_INTEGERS = (
    "x + y", "x * y", "x // (y | 1)", "x % (y | 1)", "x << (y & 7)", "x >> (y & 7)", "(x & y) ^ ~x", "x // 3",
    "tl.where(x < y, x, -y)", "tl.minimum(x, y)", "(x == y).to(x.dtype)", "x.to(tl.float32).to(x.dtype)",
)  # fmt: skip
_ROWS = (
    "tl.sum(x, 1)", "tl.max(x, 1)", "tl.argmax(x, 1).to(x.dtype)", "tl.sum(tl.cumsum(x, 1) * 2, 1)",
    "tl.min(tl.sort(x, 1), 1)", "tl.sum(tl.trans(tl.trans(x)), 1)",
)  # fmt: skip
_ELEMENTWISE = """
@triton.jit
def {name}(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1){wide}
    y = tl.load(y_ptr + at, mask=at < n, other=1){wide}
    tl.store(out_ptr + at, ({expression}).to(out_ptr.dtype.element_ty), mask=at < n)
"""
_ROW = """
@triton.jit
def {name}(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :]){wide}
    tl.store(out_ptr + rows, ({expression}).to(out_ptr.dtype.element_ty))
"""
_DRIVER = '''
"""Kernels for the comparison of the CPU with a GPU."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
{kernels}

@triton.jit
def product(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr, PRECISION: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    c = tl.dot(tl.load(a_ptr + i * SIZE + j), tl.load(b_ptr + i * SIZE + j), input_precision=PRECISION)
    tl.store(c_ptr + i * SIZE + j, c)


@triton.jit
def atomics(x_ptr, out_ptr, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    if KIND == "add":
        tl.atomic_add(out_ptr + at % 37, x, mask=at < n)
    elif KIND == "max":
        tl.atomic_max(out_ptr + at % 37, x, mask=at < n)
    else:
        tl.atomic_xor(out_ptr + at % 37, x, mask=at < n)


@triton.jit
def gathered(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, tl.load(x_ptr + index, mask=at < n), mask=at < n)


@triton.jit
def tiles(x_ptr, y_ptr, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, KIND: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [ROWS, COLUMNS])
    y = tl.make_tensor_descriptor(y_ptr, [m, n], [n, 1], [ROWS, COLUMNS])
    row = tl.program_id(0) * ROWS
    for column in range(0, n, COLUMNS):
        # Rows and columns outside are read as zero, and not written.
        tile = x.load([row - 3, column + 8])
        if KIND == "add":
            y.atomic_add([row, column], tile)
        elif KIND == "max":
            y.atomic_max([row, column], tile)
        else:
            y.store([row, column], tile)


@triton.jit
def tiles_of_host(x_desc, y_desc, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    y_desc.store([column, row], x_desc.load([row, column]).T)


@triton.jit
def product_of_warps(a_ptr, b_ptr, c_ptr, n, TILE: tl.constexpr, STEP: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [n, n], [n, 1], [TILE, STEP])
    b = tl.make_tensor_descriptor(b_ptr, [n, n], [n, 1], [STEP, TILE])
    c = tl.make_tensor_descriptor(c_ptr, [n, n], [n, 1], [TILE, TILE])
    row, column = tl.program_id(0) // (n // TILE) * TILE, tl.program_id(0) % (n // TILE) * TILE
    total = tl.zeros((TILE, TILE), tl.float32)
    for k in tl.range(0, n, STEP, warp_specialize=True, num_stages=3):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


torch.manual_seed(0)
N = 1000
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int32, torch.int64, torch.int16]


def values(dtype, *shape):
    if dtype.is_floating_point:
        return torch.randn(shape, device="cuda").to(dtype)
    return torch.randint(-1000, 1000, shape, device="cuda").to(dtype)


for kernel in [{floats}]:
    for dtype in FLOATS:
        kernel[(4,)](values(dtype, N), values(dtype, N), torch.zeros(N, device="cuda", dtype=dtype), N, BLOCK=256)
for kernel in [{integers}]:
    for dtype in INTEGERS:
        kernel[(4,)](values(dtype, N), values(dtype, N), torch.zeros(N, device="cuda", dtype=dtype), N, BLOCK=256)
for kernel in [{rows}]:
    for dtype in [torch.float32, torch.int32, torch.int64]:
        kernel[(1,)](values(dtype, 8, 128), torch.zeros(8, device="cuda", dtype=dtype), ROWS=8, COLUMNS=128)
for dtype, precision in [(torch.float16, "ieee"), (torch.bfloat16, "ieee"), (torch.float32, "tf32"),
                         (torch.float32, "ieee"), (torch.float32, "tf32x3"), (torch.int8, "ieee")]:
    for size in (32, 64):
        out = torch.zeros(size, size, device="cuda", dtype=torch.int32 if dtype == torch.int8 else torch.float32)
        product[(1,)](values(dtype, size, size), values(dtype, size, size), out, SIZE=size, PRECISION=precision)
for kind in ("add", "max", "xor"):
    atomics[(4,)](values(torch.int32, N), torch.zeros(37, device="cuda", dtype=torch.int32), N, KIND=kind, BLOCK=256)
atomics[(4,)](values(torch.float32, N), torch.zeros(37, device="cuda"), N, KIND="add", BLOCK=256)
for dtype in FLOATS + INTEGERS:
    index = torch.randint(0, N, (N,), device="cuda")
    gathered[(4,)](values(dtype, N), index, torch.zeros(N, device="cuda", dtype=dtype), N, BLOCK=256)
if torch.cuda.get_device_capability()[0] >= 9:
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    for dtype in FLOATS + INTEGERS:
        for columns in (16, 32, 64):
            x, y = values(dtype, 72, 96), values(dtype, 72, 96)
            tiles[(3,)](x, y, 72, 96, ROWS=32, COLUMNS=columns, KIND="copy")
        hosted = [TensorDescriptor.from_tensor(one, [32, 32]) for one in (values(dtype, 72, 96), values(dtype, 96, 72))]
        tiles_of_host[(3, 3)](*hosted, ROWS=32, COLUMNS=32)
    for dtype, kind in [(torch.float16, "add"), (torch.bfloat16, "add"), (torch.float16, "max"), (torch.float32, "add"),
                        (torch.int32, "add"), (torch.int32, "max")]:
        tiles[(3,)](values(dtype, 72, 96), values(dtype, 72, 96), 72, 96, ROWS=32, COLUMNS=32, KIND=kind)
    half = [values(torch.float16, 256, 256) for _ in range(3)]
    product_of_warps[(4,)](*half, 256, TILE=128, STEP=64, num_warps=4)
'''


def kernels_script() -> str:
    """A script that launches 40 kernels, 155 times; those with descriptors need compute capability 9.0."""
    kernels: list[str] = []
    names: dict[str, list[str]] = {}
    for group, form, expressions in (
        ("floats", _ELEMENTWISE, _FLOATS), ("integers", _ELEMENTWISE, _INTEGERS), ("rows", _ROW, _ROWS),
    ):  # fmt: skip
        for number, expression in enumerate(expressions):
            name = f"{group}_{number}"
            wide = ".to(tl.float32)" if group == "floats" else ""
            kernels.append(form.format(name=name, expression=expression, wide=wide))
            names.setdefault(group, []).append(name)
    listed = {group: ", ".join(row) for group, row in names.items()}
    return _DRIVER.format(kernels="\n".join(kernels), **listed)


def hardware(target: str) -> int:
    """Compare launches on a GPU with the CPU, and print what is not the same; returns the exit code."""
    counts: Counter[str] = Counter()
    kernels: set[str] = set()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "kernels.py")
        script.write_text(kernels_script())
        for path in (script, *SCRIPTS):
            request = request_for(path, targets=(target,) if target else (), disassemble=False, layouts=False)
            checked = check_script_on_machine(request, MachineRun(), with_gpu=not target)
            judges = {one.environment.gpu or "the CPU, before any pass" for one in checked.captures}
            print(f"{path.name}: {len(checked.launches)} launches against {', '.join(judges)}", flush=True)
            if checked.script_end is not None and checked.script_end.stopped:
                print(f"  stopped: {checked.script_end.message}")
            for row in checked.launches:
                kernels.add(f"{path.name} {row.where.kernel}")
                one = row.agreement
                counts[one.verdict] += 1
                if one.verdict != "identical":
                    figures = f"max abs {one.max_abs_error}, of noise {one.over_noise}, {one.differing} differ"
                    print(
                        f"  {row.where.launch} {row.where.kernel}: {one.verdict}, {figures} {one.argument} {one.detail}"
                    )
    total = sum(counts.values())
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    print(f"{total} launches of {len(kernels)} kernels in {time.perf_counter() - began:.0f} s: {found}")
    return int(bool(total - counts["identical"] - counts["close"]))


_PTX_INSTRUCTIONS = 200_000
"""Of each program."""
_DATA_BYTES = 64 << 20
"""Of a tensor: the data of a larger one are not recorded."""
_launches: list[tuple[str, Capture]] = []
"""(script, capture) of each launch, which child processes inherit."""


def _ptx_agreement(number: int) -> tuple[int, str, str]:
    """(the number of a launch, `equal`, `within`, `beyond` or `not executed`, why) of its PTX against the reference."""
    np.seterr(all="ignore")
    capture = _launches[number][1]
    try:
        agreement = _ptx_against(capture)
    except IrscopeError as error:
        return number, "not executed", re.sub(r"line \d+", "a line", str(error))[:160]
    verdict = {"identical": "equal", "close": "within"}.get(agreement.verdict, "beyond")
    figures = f"max abs {agreement.max_abs_error}, of noise {agreement.over_noise}, {agreement.differing} differ"
    return number, verdict, "" if verdict == "equal" else f"{figures} {agreement.argument} {agreement.detail}"


def _ptx_against(capture: Capture) -> Agreement:
    """What the PTX leaves of a launch against what a GPU left, or without one the IR before any pass leaves."""
    if capture.failure is not None:
        raise NotRun(f"it was not launched: {capture.failure.headline}")
    grid = launched_grid(capture)
    inputs = partial(captured_inputs, capture)

    def run(given: Inputs, arithmetic: Arithmetic | None = None) -> dict[str, Array]:
        programs = range(prod(grid))[::-1] if arithmetic is not None else None
        return run_text(capture.text("ttgir"), grid, given, programs=programs, arithmetic=arithmetic)

    if capture.environment.gpu:
        reference = recorded_results(capture)
        if inputs().made_up or not reference.keys() >= inputs().tensors.keys():
            raise NotRun("the data of some tensor are not recorded")
    else:
        reference = run_text(capture.begun_text, grid, inputs())
    reference = {name: elements.copy() for name, elements in reference.items()}
    left = left_by_ptx(capture, inputs(), range(prod(grid)), _PTX_INSTRUCTIONS)
    plain, moved = run(inputs()), moved_runs(run, inputs, 0)
    first = {name: tensor.copy() for name, tensor in inputs().tensors.items()}
    clear_common_nans(left, reference, first)
    # The noise is the TTGIR's, around what the PTX leaves.
    around = [
        {name: left[name].astype(float) + (row[name].astype(float) - plain[name].astype(float)) for name in left}
        for row in moved
    ]
    return agreement_of(first, left, around, reference, "moved inputs")


def hardware_ptx(target: str, jobs: int, scripts: Sequence[Path]) -> int:
    """Compare launches on a GPU with what the CPU computes of their PTX; returns the exit code."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "kernels.py")
        own.write_text(kernels_script())
        for path in scripts or (own, *SCRIPTS):
            request = request_for(path, targets=(target,) if target else (), disassemble=False, layouts=False)
            request = replace(
                request, virtual=bool(target), computes=True, snapshots="none", data_limit_bytes=_DATA_BYTES
            )
            recording = record_request(request).whole()
            _launches.extend((path.name, capture) for capture in recording.captures)
            judges = {one.environment.gpu or "the CPU, before any pass" for one in recording.captures}
            seconds = time.perf_counter() - began
            print(f"{path.name}: {len(recording.captures)} launches against {', '.join(judges)}, {seconds:.0f} s")
            for end in recording.script_ends:
                if end.stopped:
                    print(f"  stopped: {end.message}")
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        for number, verdict, why in pool.map(_ptx_agreement, range(len(_launches))):
            script, capture = _launches[number]
            counts[verdict] += 1
            reasons[why] += verdict == "not executed"
            if verdict != "equal":
                print(f"  {script} {number} {capture.name}: {verdict}: {why}", flush=True)
    kernels = {(script, capture.name) for script, capture in _launches}
    print(
        f"PTX of {len(_launches)} launches of {len(kernels)} kernels in {time.perf_counter() - began:.0f} s: "
        f"{counts['equal']} equal in every bit, {counts['within']} within the stated error, "
        f"{counts['beyond']} beyond, {counts['not executed']} not executed"
    )
    for why, count in (+reasons).most_common():
        print(f"{count:6} {why}")
    return int(bool(counts["beyond"]))


def main() -> int:
    """Run one command; returns the exit code."""
    np.seterr(all="ignore")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("speed")
    commands.add_parser("coverage").add_argument("captures", nargs="+", type=Path)
    against = commands.add_parser("hardware")
    against.add_argument("--target", default="", help="without a GPU: cuda:90")
    against.add_argument("--ptx", action="store_true", help="execute the PTX, not the TTGIR")
    against.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    against.add_argument("scripts", nargs="*", type=Path, help="with --ptx, in place of its own kernels")
    given = parser.parse_args()
    if given.command == "speed":
        speed()
    elif given.command == "coverage":
        coverage(given.captures)
    elif given.ptx:
        return hardware_ptx(given.target, given.jobs, given.scripts)
    else:
        return hardware(given.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())

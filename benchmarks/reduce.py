"""How small `irscope reduce` makes failures, and what that takes: `python -m benchmarks.reduce [PYTHON…]`.

Each interpreter is one with another Triton; the default is this one. The failures of each are found anew: three
kernels, for two targets, with each pass off in turn that may be needed, and with something planted in their IR that the
compiler cannot take. Of those that fail alike one is kept, that of the largest kernel. Every result is compiled once
more, by the command that stands in it, and must fail as the capture does.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.analysis.reduce.model import Likeness, Reduced, likeness_of
from irscope.api import record, record_all
from irscope.api.reduction.kept import failing_alike
from irscope.api.reduction.run import Reduction, origins_of
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.requests import request_for
from irscope.record.variants.pool import VariantPool, own_request

ROOT = Path(__file__).parents[1]
TARGETS = ("cuda:90", "hip:gfx942")
LIMIT_S = 30.0
NEEDED = (
    "inliner", "convert_to_ttgpuir", "accelerate_matmul", "scf_to_cf", "allocate_shared_memory_nv",
    "allocate_shared_memory", "allocate_tensor_memory", "allocate_global_scratch_memory", "to_llvmir", "nvgpu_to_llvm",
    "nvvm_to_llvm", "lower_mma", "warp_specialize_to_llvm", "add_decompose_unsupported_conversions",
    "decompose_unsupported_conversions", "builtin_func_to_llvmir", "cf_to_llvmir", "arith_to_llvmir",
    "allocate_warp_groups", "lower_instruction_sched_hints", "index_to_llvmir",
)  # fmt: skip
"""Passes that a compile may be unable to do without; off one at a time."""
_PRODUCT = {"M": 32, "N": 32, "K": 32}

PLANTED = {
    "instruction": "%planted_x = arith.constant 3 : i32\n"
    '    %planted = tt.elementwise_inline_asm "bogus.u32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, '
    "pure = false} %planted_x : i32 -> i32",
    "constraint": "%planted_x = arith.constant 3.0 : f32\n"
    '    %planted = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=q,q", packed_element = 1 : i32, '
    "pure = false} %planted_x : f32 -> f32",
    "extern": "%planted_x = arith.constant 3.0 : f32\n"
    '    %planted = tt.extern_elementwise %planted_x {libname = "", libpath = "", pure = false, symbol = "nowhere"} : '
    "(f32) -> f32",
}
"""What the compiler cannot take, put before the end of the kernel."""


@dataclass(frozen=True, slots=True)
class Found:
    """One failure."""

    name: str
    capture: Capture
    likeness: Likeness


def kernels() -> Iterator[Capture]:
    """The kernels, compiled by this interpreter's Triton up to where its front end ends."""
    for name, kernel in (("flash_attention", "attention_kernel"), ("layer_norm", "")):
        captures = record_all(ROOT / "examples" / f"{name}.py", kernel=kernel, target="cuda:90", jobs=1)
        yield max(captures, key=lambda one: len(one.text("source")))
    types = "*fp16:16, *fp16:16, *fp32:16, i32:16"
    yield record(
        ROOT / "tests" / "record" / "kernels" / "failing.py", kernel="product", signature=types, constexprs=_PRODUCT
    )


def failures(pool: VariantPool, captures: Iterable[Capture]) -> list[Found]:
    """Failures of the pool's Triton, one of each kind, of the largest kernel."""
    found: dict[Likeness, Found] = {}
    for capture in captures:
        for target in TARGETS:
            for name, failed in _failed(pool, capture, target):
                if failed.failure is None or failed.failure.kind in ("timeout", "parse"):
                    continue
                likeness = likeness_of(failed.failure)
                one = Found(f"{name} {failed.target}", failed, likeness)
                if likeness not in found or _size(failed) > _size(found[likeness].capture):
                    found[likeness] = one
    return list(found.values())


def _size(capture: Capture) -> int:
    return len(next(iter(capture.texts.values()), ""))


def _failed(pool: VariantPool, capture: Capture, target: str) -> Iterator[tuple[str, Capture]]:
    asked = RecordingOptions(targets=(target,), layouts=False, disassemble=False)
    request = own_request(capture, asked, pool.compiler[0])
    base = pool.compile_one(request)
    plans = [PassPlan.parse(f"-{name}") for name in dict.fromkeys(one.name for one in base.passes()) if name in NEEDED]
    rows = [(f"{capture.name} {plan}", replace(request, plan=plan)) for plan in plans]
    rows += [
        (f"{capture.name} with {name}", replace(request, text=_planted(request.text, text)))
        for name, text in PLANTED.items()
    ]
    if not base.has_compiled:
        rows = [(capture.name, request)]
    for place, failed in pool.compile(request for _, request in rows):
        if not failed.has_compiled:
            yield rows[place][0], failed


def _planted(text: str, planted: str) -> str:
    """The IR of a kernel with something before its end."""
    place = text.index("    tt.return")
    return f"{text[:place]}    {planted}\n{text[place:]}"


def processor_seconds() -> float:
    """Of this process and all children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one failure."""

    found: Found
    made: Reduced | None
    seconds: float
    processor_s: float
    runs_again: bool
    why: str = ""


def reduced(found: Found, interpreter: str | None) -> Row:
    """Reduce a failure, and run the command of the result on its file."""
    started, used = time.monotonic(), processor_seconds()
    made: Reduced | None = None
    why, runs_again = "", False
    try:
        with VariantPool(jobs=2, timeout_s=LIMIT_S, interpreter=interpreter) as pool:
            reduction = Reduction(pool, found.capture, failing_alike(found.capture), "", lambda text: None, fresh=True)
            made = reduction.run(origins_of(found.capture, None, None))
    except IrscopeError as error:
        why = str(error)
    seconds, processor_s = time.monotonic() - started, processor_seconds() - used
    if made is not None:
        runs_again = _runs_again(made, found, interpreter)
    return Row(found, made, seconds, processor_s, runs_again, why)


def _runs_again(made: Reduced, found: Found, interpreter: str | None) -> bool:
    """Whether the file fails as the capture does, when it is compiled as its `RUN:` line says."""
    from irscope.record.process.session import record_request
    from irscope.render.text.searches import reduced_file

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "reduced.mlir")
        file.write_text(reduced_file(made))
        asked = RecordingOptions(
            into=made.into, plan=made.case.pipeline.plan, targets=(str(found.capture.target),),
            options=made.case.options, interpreter=interpreter, layouts=False, disassemble=False,
        )  # fmt: skip
        (again,) = record_request(request_for(file, asked)).captures
    return again.failure is not None and likeness_of(again.failure).said == found.likeness.said


def main(interpreters: Iterable[str | None]) -> None:
    """Print a row for each failure, and the medians."""
    rows: list[Row] = []
    captures = list(kernels())
    for interpreter in interpreters:
        with ExitStack() as stack:
            pool = stack.enter_context(VariantPool(jobs=2, timeout_s=LIMIT_S, interpreter=interpreter))
            version = pool.compiler[0]
            every = failures(pool, captures)
        for found in every:
            row = reduced(found, interpreter)
            rows.append(row)
            print(f"| {version} | {_text(row)} |", flush=True)
    done = [row.made for row in rows if row.made is not None]
    print(
        f"{len(rows)} failures, {len(done)} reduced, {sum(row.runs_again for row in rows)} fail again by their command"
        "; medians: "
        f"{statistics.median(one.after.operations for one in done):g} operations, "
        f"{statistics.median(one.after.characters / one.before.characters for one in done):.1%} of the text, "
        f"{statistics.median(row.seconds for row in rows):.0f} s, "
        f"{statistics.median(row.processor_s for row in rows):.0f} s of processor time; "
        f"most {max(row.seconds for row in rows):.0f} s, {max(row.processor_s for row in rows):.0f} s"
    )


def _text(row: Row) -> str:
    likeness = row.found.likeness
    said = " ".join(likeness.said.split())[:70].replace("|", "\\|")
    if row.made is None:
        return f"{row.found.name} | {likeness.where}: {said} | {row.why[:200]}"
    before, after = row.made.before, row.made.after
    return (
        f"{row.found.name} | {likeness.where}: `{said}` | {before.operations} → {after.operations} | "
        f"{after.characters / before.characters:.1%} | {before.passes} → {after.passes} | {row.seconds:.0f} s "
        f"({row.processor_s:.0f} s) | {row.made.compiled} | {'yes' if row.runs_again else 'NO'}"
    )


if __name__ == "__main__":
    main(sys.argv[1:] or [None])

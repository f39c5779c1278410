"""Launches many kernels, each compiled one once under a profiler: python benchmarks/counted.py [GROUP…].

`benchmarks/counters.py` runs it twice: recorded, and under Nsight Compute. Kernels of tests/memory/addresses that stay
within their tensors, those of examples/, of benchmarks/sharing.py and repeating.py, of tests/analysis/roofline and of
benchmarks/sized, and layers of a public library where that is installed.
"""

from __future__ import annotations

import itertools
import os
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

import torch  # noqa: E402, TID251
import triton  # noqa: E402, TID251

EXAMPLES = (
    "vector_add", "matrix_copy", "matrix_transpose", "softmax", "layer_norm", "cross_entropy", "mul_relu_backward",
    "gluon_transpose", "batched_matmul", "flash_attention_1d", "matmul_tma", "matmul", "flash_attention",
)  # fmt: skip
LAYERS = (
    "softmax", "layer_norm", "rms_norm", "fused_add_rms_norm", "swiglu", "geglu", "relu_squared", "rope", "group_norm",
    "kl_div", "jsd", "tvd", "cross_entropy", "sparsemax", "dyt",
)  # fmt: skip
BUDGET_S = float(os.environ.get("COUNTED_SECONDS", "170"))


def accessing() -> Iterator[tuple[str, Callable[[], object]]]:
    from tests.memory.addresses.accesses.every import CASES, OF_DATA

    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    for name, case in (*CASES.items(), *OF_DATA.items()):
        yield name, lambda case=case: launch_within(case)


def launch_within(case: Any) -> None:
    """Launch a case whose model stays within its tensors."""
    arguments = case.arguments()
    named = dict(zip(case.kernel.arg_names, arguments, strict=False))
    for index in itertools.product(*(range(size) for size in (*case.grid, 1, 1, 1)[:3])):
        for key, touched in case.model(index).items() if name_is_model(case) else ():
            check_within(key, touched, named)
    case.kernel[case.grid](*arguments, **case.options)


def name_is_model(case: Any) -> bool:
    return not case.kernel.fn.__name__.startswith("described") and case.kernel.fn.__name__ not in (
        "rows", "words", "dropped",
    )  # fmt: skip


def check_within(key: str, touched: Any, named: dict[str, Any]) -> None:
    import numpy as np

    path = key.split()[1]
    name, _, index = path.partition("[")
    tensor = named[name][int(index[:-1])] if index else named[name]
    if not isinstance(tensor, torch.Tensor):
        return
    first = tensor.storage_offset()
    most = tensor.untyped_storage().nbytes() // tensor.element_size()
    for elements, mask in touched:
        at = np.asarray(elements)[np.broadcast_to(np.asarray(mask, dtype=bool), np.shape(elements))]
        if at.size and not (first + at.min() >= 0 and first + at.max() < most):
            raise IndexError(f"{key} leaves its tensor: {at.min()} to {at.max()}")


def examples() -> Iterator[tuple[str, Callable[[], object]]]:
    # Their times are not wanted here.
    triton.testing.do_bench = lambda *arguments, **options: 1.0
    for name in EXAMPLES:
        yield name, lambda name=name: run(ROOT / "examples" / f"{name}.py")


def liger() -> Iterator[tuple[str, Callable[[], object]]]:
    for layer in LAYERS:
        script = ROOT / "tests" / "gpu" / "scripts" / "libraries.py"
        yield f"liger {layer}", lambda layer=layer, script=script: run(script, f"liger:{layer}", "float32")


def sharing() -> Iterator[tuple[str, Callable[[], object]]]:
    from benchmarks.sharing import launches

    return launches()


def repeating() -> Iterator[tuple[str, Callable[[], object]]]:
    from benchmarks.repeating import launches

    return launches()


def computing() -> Iterator[tuple[str, Callable[[], object]]]:
    from tests.analysis.roofline.computing import CASES

    for name, case in CASES.items():
        yield f"computing: {name}", lambda case=case: case.kernel[case.grid](*case.arguments(), **case.options)


def sized() -> Iterator[tuple[str, Callable[[], object]]]:
    for script in sorted((ROOT / "benchmarks" / "sized").glob("*.py")):
        yield f"sized {script.stem}", lambda script=script: run(script)


def run(script: Path, *arguments: str) -> None:
    before = sys.argv
    sys.argv = [str(script), *arguments]
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv = before


GROUPS = {
    "accessing": accessing, "examples": examples, "liger": liger, "sharing": sharing, "computing": computing,
    "sized": sized, "repeating": repeating,
}  # fmt: skip


@contextmanager
def profiled() -> Iterator[None]:
    """Start and stop the profiler around the first launch of each compiled kernel, but not while it is being tuned."""
    from triton.runtime.autotuner import Autotuner  # noqa: TID251

    from irscope.record.gpu.kernels import watched_launches

    timing: list[object] = []
    real_bench = Autotuner._bench

    def bench(*arguments: Any, **options: Any) -> Any:
        timing.append(None)
        try:
            return real_bench(*arguments, **options)
        finally:
            timing.pop()

    seen: set[str] = set()

    def on_launch(launch: Any, proceed: Callable[[], Any]) -> Any:
        if launch.kernel.hash in seen or timing:
            return proceed()
        seen.add(launch.kernel.hash)
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        try:
            return proceed()
        finally:
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()

    Autotuner._bench = bench
    with watched_launches(on_launch):
        yield


def main() -> None:
    began = time.monotonic()
    for group in sys.argv[1:] or list(GROUPS):
        for name, launch in GROUPS[group]():
            if time.monotonic() - began > BUDGET_S:
                print(f"left out for want of time: {name}", flush=True)
                continue
            try:
                launch()
                torch.cuda.synchronize()
                print(f"{name}: launched after {time.monotonic() - began:.0f} s", flush=True)
            except (Exception, SystemExit) as error:
                lines = traceback.format_exception_only(type(error), error)
                print(f"{name}: failed: {lines[-1].strip()[:200]}", flush=True)


if __name__ == "__main__":
    if "COUNTED_PROFILE" in os.environ:
        with profiled():
            main()
    else:
        main()

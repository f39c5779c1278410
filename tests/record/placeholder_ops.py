"""Runs torch's own table of operators on data that the virtual GPU has not: what follows from data must be reported.

`placeholder_ops.py [--samples N] [NAME ...]`: every operator of `op_db`, or those named. On the CPU each runs on its
sample and on four others of the same shapes. Where sizes or numbers of the results differ, the virtual GPU must report
a placeholder value, and where none do, none. Prints a line for each case that differs, and ends with 1 where there is
one. It compiles nothing.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from irscope.model.capture import Target
from irscope.record.virtual.gpu import virtual_gpu
from irscope.record.virtual.torch import memory
from tests.record.autograd_ops import operators, sample_on

READS_ALL = frozenset(["allclose", "equal", "narrow", "nn_functional_ctc_loss", "nn_functional_gaussian_nll_loss"])
"""They read data whatever these are: to compare, to find a place, to check, for a result that the caller drops."""
FILLS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda value: value,
    torch.zeros_like,
    torch.ones_like,
    lambda value: torch.arange(value.numel()).reshape(value.shape).to(value.dtype) % 3,
    lambda value: torch.full_like(value, 60),
)


def sizes(value: Any) -> Any:
    """What a program sees of a result without reading data: sizes, and numbers."""
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value._nnz() if value.layout is not torch.strided else None)
    if isinstance(value, list | tuple):
        return [sizes(item) for item in value]
    return value


def of_the_cpu(op: Any, sample: Any) -> list[Any]:
    """The sizes for each of the fills that the operator takes."""
    rows = []
    for fill in FILLS:
        moved = mapped_on_cpu(sample, fill)
        try:
            rows.append(sizes(op(moved.input, *moved.args, **moved.kwargs)))
        except Exception:
            continue
    return rows


def mapped_on_cpu(sample: Any, fill: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    def change(value: torch.Tensor) -> torch.Tensor:
        return fill(value.detach()) if value.layout is torch.strided else value

    moved = sample_on(sample, change)
    moved.args, moved.kwargs = on_cpu(moved.args), on_cpu(moved.kwargs)
    return moved


def on_cpu(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: on_cpu(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(on_cpu, value))
    return torch.device("cpu") if isinstance(value, torch.device) else value


def without_data(value: torch.Tensor) -> torch.Tensor:
    moved = value.detach().cuda()
    with torch._C.DisableTorchFunction():
        memory.invalidate(moved)
    return moved


def check(op: Any, count: int) -> tuple[int, int, list[str]]:
    """How many cases of one operator ran, in how many data decided, and what was wrong."""
    allowed = op.supported_dtypes("cpu")
    dtype = next((each for each in (torch.float32, torch.int64, torch.bool, torch.uint8) if each in allowed), None)
    if dtype is None:
        return 0, 0, []
    try:
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), count))
    except Exception:
        return 0, 0, []
    cases, deciding, wrong = 0, 0, []
    for number, sample in enumerate(samples):
        rows = of_the_cpu(op, sample)
        if not rows:
            continue
        with virtual_gpu(Target.parse("cuda:90")) as following:
            try:
                moved = sample_on(sample, without_data)
                before = following.unreported()
                op(moved.input, *moved.args, **moved.kwargs)
            except Exception:
                continue
            reported = [item for item in following.unreported() if item not in before]
        cases += 1
        depends = any(row != rows[0] for row in rows)
        deciding += depends
        if depends and not reported:
            wrong.append(f"{number}: nothing is reported: {rows}")
        elif reported and not depends and op.formatted_name not in READS_ALL:
            wrong.append(f"{number}: reported without need: {[item.text for item in reported]}")
    return cases, deciding, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    total, decided, failed = 0, 0, 0
    chosen = [op for op in operators() if not options.names or op.name in options.names]
    for op in chosen:
        torch.manual_seed(0)
        cases, deciding, wrong = check(op, options.samples)
        total, decided, failed = total + cases, decided + deciding, failed + len(wrong)
        for line in wrong:
            print(f"{op.formatted_name} {line}", flush=True)
    print(f"{len(chosen)} operators, {total} cases, data decide in {decided}, {failed} wrong", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

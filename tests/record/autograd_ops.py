"""Runs torch's own table of operators forward and backward on the virtual GPU, and compares with the CPU.

`autograd_ops.py [--samples N] [NAME ...]`: every operator of `op_db` (torch's test inputs for each operator), or those
named. Shapes, types and strides of results and gradients must be the CPU's, their device the GPU. Prints a line for
each case that differs, and ends with 1 where there is one. It compiles nothing.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import unittest
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from irscope.model.capture import Target
from irscope.record.virtual.gpu import virtual_gpu

BY_VALUES = frozenset(
    [
        "argwhere",
        "bincount",
        "masked_select",
        "nn_functional_one_hot",
        "nonzero",
        "nonzero_static",
        "unique",
        "unique_consecutive",
    ]
)
"""Sizes of their results follow from values that a GPU would compute: they need only run."""
OTHER_LAYOUT = frozenset(
    [
        "fft_hfft2",
        "fft_hfftn",
        "fft_irfft2",
        "fft_irfftn",
        "fft_rfft2",
        "fft_rfftn",
        "linalg_eig",
        "linalg_lstsq",
        "linalg_lstsq_grad_oriented",
        "linalg_svd",
        "nn_functional_max_unpool2d_grad",
        "nn_functional_scaled_dot_product_attention",
        "ormqr",
        "pca_lowrank",
        "svd",
        "svd_lowrank",
    ]
)
"""Torch's shape functions, which speak for the GPU, give other strides than the libraries that its CPU code calls."""
OTHER_SHAPE = frozenset({"_native_batch_norm_legit", "native_batch_norm"})
"""Likewise the size of what is saved for a backward pass that there is not."""
REFUSED = frozenset({"tensor_split"})
"""Takes a tensor of the CPU alone, and says so."""


def operators() -> list[Any]:
    """Torch's table. Its module imports a package of expectation tests, of which nothing is used here."""
    if "expecttest" not in sys.modules:
        stub = ModuleType("expecttest")
        stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        stub.assert_expected_inline = None  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stub
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def mapped(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: mapped(item, change) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, torch.device) or value == "cpu":
        return torch.device("cuda")
    return value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)


def seen(value: torch.Tensor | None) -> Any:
    if value is None:
        return None
    if value.layout is not torch.strided:
        return [list(value.shape), str(value.dtype), str(value.layout)]
    # What a dimension of one element has for a stride is nobody's promise.
    strides = [stride if size > 1 else 0 for size, stride in zip(value.shape, value.stride(), strict=True)]
    return [list(value.shape), str(value.dtype), strides if value.numel() > 1 else []]


def run(op: Any, sample: Any, backward: bool) -> dict[str, Any]:
    """What an operator's results and gradients look like."""
    arguments = (sample.input, sample.args, sample.kwargs)
    result = op(sample.input, *sample.args, **sample.kwargs)
    outcome = sample.output_process_fn_grad(result) if backward and sample.output_process_fn_grad else result
    places = {value.device.type for value in tensors(result)}
    told = {"results": [seen(value) for value in tensors(result)], "places": sorted(places)}
    if not backward:
        return told
    roots = [value for value in tensors(outcome) if value.requires_grad]
    leaves = [value for value in tensors(arguments) if value.requires_grad]
    if roots and leaves:
        gradients = torch.autograd.grad(
            roots, leaves, [torch.ones_like(root) for root in roots], allow_unused=True, retain_graph=True
        )
        told["gradients"] = [seen(value) for value in gradients]
        told["places"] = sorted(places | {value.device.type for value in gradients if value is not None})
    return told


def sample_on(sample: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    kind = type(sample)
    return kind(
        mapped(sample.input, move),
        args=mapped(sample.args, move),
        kwargs=mapped(sample.kwargs, move),
        output_process_fn_grad=sample.output_process_fn_grad,
    )


def to_device(value: torch.Tensor) -> torch.Tensor:
    moved = value.detach().cuda()
    return moved.requires_grad_(value.requires_grad)


def comparable(op: Any, told: Any) -> Any:
    """What of an operator's results is compared."""
    if told is None or op.formatted_name in BY_VALUES | OTHER_SHAPE:
        return None
    return [one and one[:2] for one in told] if op.formatted_name in OTHER_LAYOUT else told


def check(op: Any, count: int) -> tuple[int, list[str]]:
    """How many cases of one operator were compared, and what differed."""
    dtypes = op.supported_backward_dtypes("cuda") if op.supports_autograd else set()
    backward = torch.float32 in dtypes
    allowed = op.supported_dtypes("cpu")
    choices = (torch.float32, torch.complex64, torch.int64, torch.bool, torch.float16, torch.uint8)
    dtype = next((each for each in choices if each in allowed), None)
    if dtype is None:
        return 0, []
    try:
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=backward), count))
    except Exception:
        return 0, []
    cases, wrong = 0, []
    for number, sample in enumerate(samples):
        try:
            expected = run(op, sample, backward)
        except Exception:
            continue
        cases += 1
        try:
            with virtual_gpu(Target.parse("cuda:90")):
                found = run(op, sample_on(sample, to_device), backward)
        except Exception as error:
            if op.formatted_name in REFUSED:
                continue
            text = str(error).splitlines()
            wrong.append(f"{number}: {type(error).__name__}: {text[0] if text else ''}")
            continue
        for name in ("results", "gradients"):
            if comparable(op, expected.get(name)) != comparable(op, found.get(name)):
                wrong.append(f"{number}: {name}: {expected.get(name)} on the CPU, {found.get(name)} here")
        if expected["places"] and found["places"] != ["cuda"] and expected["places"] != found["places"]:
            wrong.append(f"{number}: on {found['places']}")
    return cases, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    total, failed = 0, 0
    chosen = [op for op in operators() if not options.names or op.name in options.names]
    for op in chosen:
        torch.manual_seed(0)
        cases, wrong = check(op, options.samples)
        total, failed = total + cases, failed + len(wrong)
        for line in wrong:
            print(f"{op.formatted_name} {line}", flush=True)
    print(f"{len(chosen)} operators, {total} cases, {failed} wrong", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

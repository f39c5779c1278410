"""The data of the tensors of a launch on a GPU, before it and after it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from irscope.model.launch_record import without_largest
from irscope.record.virtual.arguments import known_values

__all__ = ["launch_contents"]


def launch_contents(
    kernel: Any, values: tuple[Any, ...], most_bytes: int, launch: Callable[[], Any]
) -> tuple[Any, tuple[tuple[str, str, str], ...]]:
    """Make a launch; gives what that gives, and the contents of its tensors as `LaunchRecord.with_contents` takes them.

    None of these where the arguments are not the parameters of a `@triton.jit` function, one by one, and in a CUDA
    graph's capture. `most_bytes`: of a tensor whose data are read. Waits for the GPU, before and after.
    """
    names: list[str] = list(getattr(getattr(kernel.src, "fn", None), "arg_names", []))
    torch = sys.modules.get("torch")
    if len(names) != len(values) or torch is None:
        return launch(), ()
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        return launch(), ()
    tensors = dict(_tensors(names, values))
    before = without_largest(_packed(tensors, most_bytes))
    result = launch()
    after = _packed({path: tensors[path] for path, data in before.items() if data}, most_bytes)
    changed = without_largest({path: data for path, data in after.items() if data != before[path]})
    # Of one whose result is too large no data are kept: it would seem to be as it was.
    lost = {path for path, data in changed.items() if not data}
    return result, tuple((path, "" if path in lost else data, changed.get(path, "")) for path, data in before.items())


def _tensors(names: list[str], values: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """(path, tensor) of each argument that is one, as the launch's record names it."""
    for name, value in zip(names, values, strict=False):
        if isinstance(value, (tuple, list)):
            yield from _tensors([f"{name}[{index}]" for index in range(len(value))], tuple(value))
        elif hasattr(value, "data_ptr"):
            yield name, value


def _packed(tensors: dict[str, Any], most_bytes: int) -> dict[str, str]:
    return {path: known_values(tensor, most_bytes).get("data", "") for path, tensor in tensors.items()}

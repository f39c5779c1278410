"""The kernels of all modules; as a script, it launches them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch
import triton

sys.path.insert(0, str(Path(__file__).parents[4]))

from tests.memory.addresses.accesses.case import CASES
from tests.memory.addresses.accesses.of_data import OF_DATA

for _module in ("one_dimension", "element_sizes", "more_dimensions", "scalars_and_atomics", "control", "descriptors"):
    importlib.import_module(f"tests.memory.addresses.accesses.{_module}")


def launch_all() -> None:
    """Launch every kernel."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    for one in (*CASES.values(), *OF_DATA.values()):
        one.kernel[one.grid](*one.arguments(), **one.options)


if __name__ == "__main__":
    launch_all()

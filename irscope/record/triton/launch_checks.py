"""The checks of the real launcher: a pointer argument must not be a tensor of the host, nor the grid too large.

Source: `extractPointer` (Triton 3.6: `getPointer`) and `_launch` in `triton/backends/{nvidia,amd}/driver.{c,py}`. A
pointer argument may be None, a number, or have a method `data_ptr` whose result, unless 0, the driver must know: memory
of the device, or memory of the host that it has pinned.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

IsHost = Callable[[Any], bool]
"""Whether an object with a method `data_ptr` is a tensor in host memory that the driver does not know."""

_LARGEST_GRID = (2**31 - 1, 65535, 65535)
"""Source: CUDA C++ Programming Guide, Technical Specifications per Compute Capability; the same for all of them."""


def check_arguments(source: Any, metadata: Any, arguments: tuple[Any, ...], backend_name: str, is_host: IsHost) -> None:
    """Raise what Triton raises for a pointer argument that the GPU cannot reach.

    `source`: what was compiled, Triton's `ASTSource`; another kind has no signature, and is not checked. `metadata`:
    the compiled kernel's. `arguments`: the launch's, constants included. `backend_name`: `nvidia` or `amd`.
    """
    signature = getattr(source, "signature", None)
    if not isinstance(signature, dict):
        return
    by_address = bool(getattr(metadata, "tensordesc_meta", None))
    for index, (kind, argument) in enumerate(_flat(tuple(signature.values()), arguments)):
        pointer = argument
        if kind.startswith("tensordesc"):
            # Where the part has no hardware for descriptors, the descriptor's pointer is an argument like any other.
            pointer = None if by_address else getattr(argument, "base", None)
        elif not kind.startswith("*"):
            continue
        if pointer is not None and not isinstance(pointer, int) and is_host(pointer):
            raise ValueError(refusal_of(backend_name).replace("%d", str(index)))


def check_grid(grid: tuple[int, int, int]) -> None:
    """Raise what Triton raises for a grid that is too large for a CUDA driver."""
    if 0 not in grid and any(size > largest for size, largest in zip(grid, _LARGEST_GRID, strict=True)):
        raise RuntimeError("Triton Error [CUDA]: invalid argument")


def _flat(kinds: tuple[Any, ...], arguments: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for kind, argument in zip(kinds, arguments, strict=False):
        if isinstance(kind, tuple):
            yield from _flat(kind, tuple(argument))
        else:
            yield str(kind), argument


def refusal_of(backend_name: str) -> str:
    """The installed launcher's message: that of NVIDIA in 3.7 and later does not number the arguments."""
    driver = importlib.import_module(f"triton.backends.{backend_name}.driver")
    folder = Path(str(driver.__file__)).parent
    text = "".join(path.read_text("utf-8") for path in (folder / "driver.py", folder / "driver.c") if path.exists())
    counted = "Pointer argument (at %d) cannot be"
    begin = counted if counted in text else "Pointer argument cannot be"
    return f"{begin} accessed from Triton (cpu tensor?)"

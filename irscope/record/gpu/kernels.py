"""Kernels on the device: launches as they are made, and other binaries in the place of a launch's own."""

from __future__ import annotations

import copy
import hashlib
import json
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from irscope.ir.mlir.uses import Arithmetic, PointerUses, read_arithmetic, read_pointer_uses
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import replaced

# What the metadata of a launch's own binary says, whatever stands in the place of that.
_OF_THE_LAUNCH = ("target", "triton_version", "hash")


@dataclass(frozen=True, slots=True)
class SeenLaunch:
    """One launch, about to be made."""

    kernel: Any
    """Triton's CompiledKernel."""
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]
    """One a parameter, constants included."""

    @property
    def kernel_name(self) -> str:
        """The name of its function, as a capture has it."""
        return getattr(getattr(self.kernel.src, "fn", None), "__name__", self.kernel.name)

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return list(self.kernel.src.fn.arg_names)

    @property
    def signature(self) -> dict[str, Any]:
        """Parameter → type."""
        return dict(self.kernel.src.signature)

    @property
    def has_arguments(self) -> bool:
        """Whether its arguments are the parameters of a `@triton.jit` function, one by one."""
        # A kernel of an IR file has no such function, and TorchInductor's own launchers leave constants out.
        return hasattr(self.kernel.src, "fn") and len(self.arguments) == len(self.names)


def pointer_uses_of(kernel: Any) -> PointerUses:
    """What a CompiledKernel does with each of its pointers."""
    texts = kernel.asm
    stage = "ttir" if "ttir" in texts else "ttgir"
    return read_pointer_uses(texts[stage]) if stage in texts else PointerUses(elsewhere=True)


def arithmetic_of(kernel: Any) -> Arithmetic:
    """The precision of a CompiledKernel's arithmetic."""
    return read_arithmetic(kernel.asm["ttir"]) if "ttir" in kernel.asm else Arithmetic()


@contextmanager
def watched_launches(on_launch: Callable[[SeenLaunch, Callable[[], Any]], Any]) -> Iterator[None]:
    """Hand every launch of this process to `on_launch(launch, proceed)`, for a while; `proceed()` makes it."""
    kernel_class = triton_api.compiled_kernel_class()
    real = kernel_class.run

    def run(kernel: Any) -> Callable[..., Any]:
        launcher = real.fget(kernel)

        # grid_x, grid_y, grid_z, stream, function, packed_metadata, launch_metadata, enter_hook, exit_hook, *arguments:
        # so in Triton 3.6 to 3.9.
        def launch(x: int, y: int, z: int, *rest: Any) -> Any:
            seen = SeenLaunch(kernel, (int(x), int(y), int(z)), rest[6:])
            return on_launch(seen, lambda: launcher(x, y, z, *rest))

        return launch

    with replaced(kernel_class, "run", property(run)):
        yield


def launch(kernel: Any, grid: tuple[int, int, int], arguments: tuple[Any, ...] | list[Any]) -> None:
    """Launch a kernel on the current stream, unwatched, with no hooks."""
    if kernel.module is None:
        kernel._init_handles()
    kernel._run(
        *grid, triton_api.current_stream(), kernel.function, kernel.packed_metadata, None, None, None, *arguments
    )


def with_binary(kernel: Any, binary: bytes, metadata: Mapping[str, Any]) -> Any:
    """A copy of a CompiledKernel with another binary and what that needs: shared memory, warps, scratch, …

    The launcher is made of it anew when it is first launched, and Triton's own checks (shared memory, threads) with it.
    """
    # As Triton reads it from its cache: lists, not tuples.
    fields = kernel.metadata._asdict() | json.loads(json.dumps(dict(metadata)))
    fields |= {name: getattr(kernel.metadata, name) for name in _OF_THE_LAUNCH if hasattr(kernel.metadata, name)}
    made = copy.copy(kernel)
    made.metadata = namedtuple("KernelMetadata", sorted(fields))(**fields)
    made.packed_metadata = triton_api.make_backend(triton_api.target_of(fields["target"])).pack_metadata(made.metadata)
    made.kernel = binary
    made.name = fields["name"]
    made.hash = hashlib.sha256(binary).hexdigest()
    made.module = made.function = made._run = None
    return made

"""What a virtual tensor says of itself: where it lives, at which address, and, where that is known, what it holds.

All of it hangs on torch's own objects (on the storage, or on the tensor), so it dies with them and there is no table
to leak.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

BASE = 0x7F00_0000_0000
"""Where the device's memory begins, as it does on a real one."""
ALIGNMENT = 512
"""Of a fresh allocation, in bytes; torch's own allocator gives the same."""
KNOWN_INTEGERS = 16384
"""Tensors of integers up to this many elements are computed alongside: they hold lengths, offsets and indices."""
KNOWN_FLOATS = 1024
"""Likewise for other types, where the script gave the numbers itself."""

_ADDRESS = "_irscope_address"
_DEVICE = "_irscope_device"
_PINNED = "_irscope_pinned"
_KNOWN = "_irscope_known"
_TRUTH = "_irscope_truth"

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
META = torch.device("meta")


@dataclass(slots=True, eq=False)
class Origin:
    """Where known values come from: one allocation of the script."""

    written: bool = False
    """Whether a kernel was given it, and may have changed it."""
    lost: bool = False
    """Whether something unknown was written to it."""


@dataclass(slots=True, eq=False)
class Known:
    """The values of a virtual tensor, as far as torch alone computes them."""

    values: torch.Tensor
    """On the CPU; a view of another tensor's values where the tensor is a view of that tensor."""
    origins: frozenset[Origin] = field(default_factory=lambda: frozenset({Origin()}))

    @property
    def lost(self) -> bool:
        """Whether the values no longer hold."""
        return any(origin.lost for origin in self.origins)

    @property
    def doubtful(self) -> bool:
        """Whether a kernel may have changed what is compared here: then nothing can be said of the outcome."""
        return len(self.origins) > 1 and any(origin.written for origin in self.origins)


class Memory:
    """The memory of one virtual device: addresses, and the tensors that report another device than `cuda:0`."""

    def __init__(self) -> None:
        self._next = BASE
        self.marks = False
        """Whether any tensor reports another device."""

    def address(self, storage: Any) -> int:
        """The address of a storage, given to it when first asked for."""
        address = storage.__dict__.get(_ADDRESS)
        if address is None:
            address = self._next
            size = max(int(storage.nbytes()), 1)
            self._next += -(-size // ALIGNMENT) * ALIGNMENT
            setattr(storage, _ADDRESS, address)
        return address

    def data_ptr(self, tensor: torch.Tensor) -> int:
        """What `tensor.data_ptr()` answers."""
        if tensor.numel() == 0:
            return 0
        return self.address(tensor.untyped_storage()) + tensor.storage_offset() * tensor.element_size()

    def mark(self, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        """Let a tensor, and all that share its storage, report `device`."""
        self.marks = True
        setattr(tensor.untyped_storage(), _DEVICE, device)
        return tensor

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Let a tensor of the host, and all that share its storage, say that the GPU can reach it."""
        setattr(tensor.untyped_storage(), _PINNED, True)
        return tensor

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is in memory of the host that the GPU can reach."""
        return tensor.layout is torch.strided and _PINNED in tensor.untyped_storage().__dict__

    def device(self, tensor: torch.Tensor) -> torch.device:
        """The device that a tensor reports."""
        if not tensor.is_meta:
            return tensor.device
        if not self.marks or tensor.layout is not torch.strided:
            return CUDA
        return tensor.untyped_storage().__dict__.get(_DEVICE, CUDA)


def known(tensor: torch.Tensor) -> Known | None:
    """What is known of a tensor's values; for a real one, all."""
    if not tensor.is_meta:
        return Known(tensor, frozenset())
    found = tensor.__dict__.get(_KNOWN)
    return None if found is None or found.lost else found


def know(tensor: torch.Tensor, values: Known) -> torch.Tensor:
    """Remember a tensor's values."""
    tensor.__dict__[_KNOWN] = values
    return tensor


def lose(tensor: torch.Tensor) -> None:
    """Something unknown was written to a tensor: forget its values, and those of all that share its memory."""
    tensor.__dict__.pop(_TRUTH, None)
    found = tensor.__dict__.pop(_KNOWN, None)
    for origin in found.origins if found is not None else ():
        origin.lost = True


def may_be_written(argument: object) -> None:
    """A kernel was given this argument."""
    found = getattr(argument, "__dict__", {}).get(_KNOWN)
    for origin in found.origins if found is not None else ():
        origin.written = True


def truth(tensor: torch.Tensor) -> bool | None:
    """Whether a comparison whose operands are not known is taken to hold; None for a tensor that is no such thing."""
    return tensor.__dict__.get(_TRUTH)


def suppose(tensor: Any, holds: bool) -> Any:
    """Remember how a comparison is taken to have come out."""
    if isinstance(tensor, torch.Tensor):
        tensor.__dict__[_TRUTH] = holds
    return tensor


def worth_knowing(tensor: torch.Tensor, given: bool) -> bool:
    """Whether a result's values are worth computing; `given` where the script spelled them out."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        return given and tensor.numel() <= KNOWN_FLOATS
    return tensor.numel() <= KNOWN_INTEGERS

"""What a virtual tensor says of itself: where it lives, at which address, and, where that is known, what it holds.

All of it hangs on torch's own objects (on the storage, or on the tensor), so it dies with them and there is no table
to leak. What a tensor holds hangs on its storage: views of one memory agree, however they were made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

BASE = 0x7F00_0000_0000
"""Where the device's memory begins, as it does on a real one."""
ALIGNMENT = 512
"""Of a fresh allocation, in bytes; torch's own allocator gives the same."""
KNOWN_ELEMENTS = 16384
"""Tensors of up to this many elements are computed alongside: lengths, offsets, indices and small weights."""
KNOWN_BYTES = 8 * KNOWN_ELEMENTS

_ADDRESS = "_irscope_address"
_DEVICE = "_irscope_device"
_PINNED = "_irscope_pinned"
_SHADOW = "_irscope_shadow"
_TRUTH = "_irscope_truth"

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
META = torch.device("meta")


@dataclass(slots=True, eq=False)
class Shadow:
    """The bytes of a data-less storage, computed on the CPU."""

    data: torch.UntypedStorage
    drawn: bool
    """Whether they are not the program's own, but stand for them: random numbers of another generator, for example."""
    epoch: int


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The values of a tensor, as far as torch alone computes them."""

    values: torch.Tensor
    """On the CPU; a view of the storage's shadow, so that what is written to it is written for all views."""
    drawn: bool = False
    """Whether they stand for values that only a GPU has."""


class _Epoch:
    """Shadows made before the last time that anything in the memory may have been written hold no longer."""

    now = 0


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
        return Known(tensor)
    shadow = _shadow(tensor)
    return None if shadow is None else Known(_view(tensor, shadow.data), shadow.drawn)


def is_known(tensor: torch.Tensor) -> bool:
    """Whether `known` would give anything."""
    return not tensor.is_meta or _shadow(tensor) is not None


def know(tensor: torch.Tensor, values: torch.Tensor, *, drawn: bool = False) -> torch.Tensor:
    """Remember the values of a tensor that has its memory for itself; too many of them are not remembered."""
    room = make_known(tensor, drawn=drawn)
    if room is not None:
        with torch.no_grad():
            room.copy_(values.detach())
    return tensor


def make_known(tensor: torch.Tensor, *, drawn: bool = False) -> torch.Tensor | None:
    """A place on the CPU for a tensor's values, all of which the caller writes at once; None for too many."""
    if not has_shadow(tensor):
        return None
    storage = tensor.untyped_storage()
    if storage.nbytes() > KNOWN_BYTES:
        return None
    data = torch.UntypedStorage(storage.nbytes(), device=CPU)
    setattr(storage, _SHADOW, Shadow(data, drawn, _Epoch.now))
    return _view(tensor, data)


def lose(tensor: torch.Tensor) -> None:
    """Something unknown was written to a tensor: forget its values, and those of all that share its memory."""
    tensor.__dict__.pop(_TRUTH, None)
    if tensor.is_meta and tensor.layout is torch.strided:
        tensor.untyped_storage().__dict__.pop(_SHADOW, None)


def lose_all() -> None:
    """Something unknown was written somewhere: forget all values."""
    _Epoch.now += 1


def doubt(tensor: torch.Tensor) -> None:
    """What was computed and written here stands for values that only a GPU has."""
    shadow = _shadow(tensor)
    if shadow is not None:
        shadow.drawn = True


def covers(tensor: torch.Tensor) -> bool:
    """Whether a tensor is all of its memory, so that writing it all leaves nothing of what was there."""
    if not has_shadow(tensor) or not tensor.is_contiguous():
        return False
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def has_shadow(tensor: torch.Tensor) -> bool:
    """Whether a tensor is of a kind whose values can be known: strided memory, and no wrapper of other tensors."""
    return tensor.is_meta and tensor.layout is torch.strided and not tensor.is_quantized


def truth(tensor: torch.Tensor) -> bool | None:
    """Whether a comparison whose operands are not known is taken to hold; None for a tensor that is no such thing."""
    return tensor.__dict__.get(_TRUTH)


def suppose(tensor: Any, holds: bool) -> Any:
    """Remember how a comparison is taken to have come out."""
    if isinstance(tensor, torch.Tensor):
        tensor.__dict__[_TRUTH] = holds
    return tensor


def _shadow(tensor: torch.Tensor) -> Shadow | None:
    if not has_shadow(tensor):
        return None
    storage = tensor.untyped_storage()
    shadow = storage.__dict__.get(_SHADOW)
    if shadow is None or shadow.epoch != _Epoch.now or shadow.data.nbytes() != storage.nbytes():
        return None
    return shadow


def _view(tensor: torch.Tensor, data: torch.UntypedStorage) -> torch.Tensor:
    values = torch.empty(0, dtype=tensor.dtype, device=CPU)
    values.set_(data, tensor.storage_offset(), tensor.shape, tensor.stride())
    if tensor.is_conj():
        values = values.conj()
    return values._neg_view() if tensor.is_neg() else values
